/* Queues, batches and retries in simulated time, with a collector that answers what the test says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants the four above first. */
#include <cmocka.h>
#include <string.h>

#include "otlp/otlp.pb-c.h"
#include "otlp/otlp_exporter.h"
#include "otlp/otlp_http.h"
#include "time/env_sim.h"

enum { N_DROPS = OTLP_DROP_MISSED + 1, ITEM_BYTES = 100, OVERHEAD = 4 };

typedef struct world {
    env_sim *sim;
    otlp_common common;
    otlp_exporter *x;
    /* What was asked last, and is not answered yet. */
    otlp_replied done;
    void *done_user;
    unsigned n_posts, n_cancelled;
    size_t n_items; /* of the last */
    bool no_memory;
    uint64_t n_sent, n_dropped[N_DROPS];
    unsigned n_changes;
    bool up, flushed;
} world;

static void *post(void *user, otlp_signal s, const buf *body, otlp_replied done, void *done_user)
{
    world *w = user;
    if (w->no_memory) return NULL;
    Otlp__ExportTraceServiceRequest *r =
        otlp__export_trace_service_request__unpack(NULL, body->len, (const uint8_t *)body->data);
    assert_non_null(r);
    w->n_items = r->resource_spans[0]->scope_spans[0]->n_spans;
    otlp__export_trace_service_request__free_unpacked(r, NULL);
    w->n_posts++;
    assert_null(w->done); /* one request under way */
    w->done = done;
    w->done_user = done_user;
    return w;
}

static void cancel(void *user, void *call)
{
    world *w = user;
    w->n_cancelled++;
    w->done = NULL;
}

static void sent(void *user, otlp_signal s, size_t n)
{
    ((world *)user)->n_sent += n;
}

static void dropped(void *user, otlp_signal s, otlp_drop why, uint64_t n)
{
    ((world *)user)->n_dropped[why] += n;
}

static void changed(void *user, otlp_signal s, bool up, const char *why)
{
    world *w = user;
    w->n_changes++;
    w->up = up;
}

static void on_flushed(void *user)
{
    ((world *)user)->flushed = true;
}

static void open_world(world *w, size_t queue_bytes)
{
    static const otlp_attribute RESOURCE[] = {{.key = "service.name", .text = "shoal"}};
    shoal_err err;
    *w = (world){.sim = env_sim_new(1)};
    otlp_transport t = {.user = w, .post = post, .cancel = cancel};
    assert_int_equal(otlp_common_init(&w->common, OTLP_PROTOBUF, RESOURCE, 1, "shoal", "1", ""), 0);
    otlp_exporter_options o = {.common = &w->common,
                               .batch_items = 4,
                               .queue_bytes = queue_bytes,
                               .interval_ms = 1000,
                               .retry_ms = 10000,
                               .user = w,
                               .sent = sent,
                               .dropped = dropped,
                               .changed = changed};
    assert_int_equal(otlp_exporter_new(&w->x, env_sim_env(w->sim), &t, &o, &err), 0);
}

static void close_world(world *w)
{
    otlp_exporter_free(w->x);
    otlp_common_done(&w->common);
    assert_int_equal(env_sim_timers(w->sim), 0);
    env_sim_free(w->sim);
}

/* Spans of ITEM_BYTES each. */
static void add(world *w, size_t n)
{
    char name[ITEM_BYTES];
    for (size_t i = 0; i < n; i++) {
        buf *item = otlp_exporter_item(w->x);
        size_t n_name = ITEM_BYTES - 2 - 3; /* key and length; flags take 6 with 0x100 */
        memset(name, 'x', sizeof name);
        name[n_name] = '\0';
        do {
            name[--n_name] = '\0';
            buf_clear(item);
            otlp_put_span(item, OTLP_PROTOBUF, &(otlp_span){.name = name, .id = 1});
        } while (item->len > ITEM_BYTES);
        assert_int_equal(item->len, ITEM_BYTES);
        otlp_exporter_add(w->x, OTLP_TRACES, item);
    }
}

static void reply(world *w, otlp_reply r)
{
    otlp_replied done = w->done;
    assert_non_null(done);
    w->done = NULL;
    if (!r.body) r.body = "";
    if (!r.why) r.why = "";
    done(w->done_user, &r);
}

static void a_batch_goes_out_when_it_is_full_or_the_interval_is_over(void **state)
{
    world w;
    open_world(&w, 100000);
    add(&w, 3);
    env_sim_run(w.sim, 999);
    assert_int_equal(w.n_posts, 0);
    env_sim_run(w.sim, 1);
    assert_int_equal(w.n_posts, 1);
    assert_int_equal(w.n_items, 3);
    add(&w, 9); /* while one is under way no other goes */
    assert_int_equal(w.n_posts, 1);
    reply(&w, (otlp_reply){.status = 200});
    assert_int_equal(w.n_posts, 2);
    assert_int_equal(w.n_items, 4);
    reply(&w, (otlp_reply){.status = 200});
    reply(&w, (otlp_reply){.status = 200});
    assert_int_equal(w.n_posts, 3);
    assert_int_equal(w.n_sent, 11);
    env_sim_run(w.sim, 1000);
    assert_int_equal(w.n_items, 1);
    reply(&w, (otlp_reply){.status = 202});
    assert_int_equal(w.n_sent, 12);
    assert_int_equal(w.n_changes, 0);
    assert_int_equal(otlp_exporter_queued_bytes(w.x, OTLP_TRACES), 0);
    close_world(&w);
}

static void a_full_queue_drops_what_comes_and_counts_it(void **state)
{
    world w;
    open_world(&w, 10 * (ITEM_BYTES + OVERHEAD));
    add(&w, 4); /* under way, with what is around it */
    assert_int_equal(w.n_posts, 1);
    add(&w, 20);
    assert_true(w.n_dropped[OTLP_DROP_FULL] >= 14);
    assert_true(otlp_exporter_queued_bytes(w.x, OTLP_TRACES) <= 10 * (ITEM_BYTES + OVERHEAD));
    uint64_t before = w.n_dropped[OTLP_DROP_FULL];
    reply(&w, (otlp_reply){.status = 200});
    add(&w, 1);
    assert_int_equal(w.n_dropped[OTLP_DROP_FULL], before);
    otlp_exporter_free(w.x);
    w.x = NULL;
    assert_int_equal(w.n_cancelled, 1);
    assert_int_equal(w.n_dropped[OTLP_DROP_STOPPED] + w.n_sent + w.n_dropped[OTLP_DROP_FULL], 25);
    close_world(&w);
}

static void an_item_larger_than_the_queue_is_dropped(void **state)
{
    world w;
    open_world(&w, ITEM_BYTES - 1);
    add(&w, 1);
    assert_int_equal(w.n_dropped[OTLP_DROP_FULL], 1);
    close_world(&w);
}

static void statuses_that_pass_are_retried_with_back_off(void **state)
{
    world w;
    open_world(&w, 100000);
    add(&w, 4);
    reply(&w, (otlp_reply){.status = 503});
    assert_false(w.up);
    assert_int_equal(w.n_changes, 1);
    env_sim_run(w.sim, 700);
    assert_int_equal(w.n_posts, 1);
    env_sim_run(w.sim, 300);
    assert_int_equal(w.n_posts, 2);
    assert_int_equal(w.n_items, 4);
    reply(&w, (otlp_reply){.why = "nobody listens there"});
    env_sim_run(w.sim, 1400);
    assert_int_equal(w.n_posts, 2);
    env_sim_run(w.sim, 600);
    assert_int_equal(w.n_posts, 3);
    reply(&w, (otlp_reply){.status = 429, .retry_after_ms = 3000});
    env_sim_run(w.sim, 2999);
    assert_int_equal(w.n_posts, 3);
    env_sim_run(w.sim, 1);
    assert_int_equal(w.n_posts, 4);
    assert_int_equal(w.n_changes, 1);
    reply(&w, (otlp_reply){.status = 200});
    assert_int_equal(w.n_sent, 4);
    assert_true(w.up);
    assert_int_equal(w.n_changes, 2);
    close_world(&w);
}

static void a_batch_is_given_up_after_the_time_for_retries(void **state)
{
    world w;
    open_world(&w, 100000);
    add(&w, 6);
    for (unsigned i = 0; i < 100 && w.n_dropped[OTLP_DROP_LATE] == 0; i++) {
        if (w.done) reply(&w, (otlp_reply){.status = 502});
        env_sim_run(w.sim, 500);
    }
    assert_int_equal(w.n_dropped[OTLP_DROP_LATE], 4);
    env_sim_run(w.sim, 1000); /* the others have their own time */
    assert_int_equal(w.n_items, 2);
    reply(&w, (otlp_reply){.status = 200});
    assert_int_equal(w.n_sent, 2);
    close_world(&w);
}

static void a_wait_that_is_too_long_is_not_waited(void **state)
{
    world w;
    open_world(&w, 100000);
    add(&w, 4);
    reply(&w, (otlp_reply){.status = 503, .retry_after_ms = 3600000});
    assert_int_equal(w.n_dropped[OTLP_DROP_LATE], 4);
    close_world(&w);
}

static void other_statuses_drop_the_batch(void **state)
{
    world w;
    open_world(&w, 100000);
    add(&w, 8);
    reply(&w, (otlp_reply){.status = 400});
    assert_int_equal(w.n_dropped[OTLP_DROP_REFUSED], 4);
    assert_int_equal(w.n_posts, 2);
    reply(&w, (otlp_reply){.status = 404});
    assert_int_equal(w.n_dropped[OTLP_DROP_REFUSED], 8);
    close_world(&w);
}

static void partial_success_is_counted(void **state)
{
    static const char SOME[] = "{\"partialSuccess\":{\"rejectedSpans\":\"3\",\"errorMessage\":\"too many\"}}";
    static const char MANY[] = "{\"partialSuccess\":{\"rejectedSpans\":9000000000}}";
    world w;
    open_world(&w, 100000);
    add(&w, 4);
    reply(&w, (otlp_reply){.status = 200, .json = true, .body = SOME, .n_body = sizeof SOME - 1});
    assert_int_equal(w.n_dropped[OTLP_DROP_PARTIAL], 3);
    assert_int_equal(w.n_sent, 1);
    add(&w, 4);
    reply(&w, (otlp_reply){.status = 200, .json = true, .body = MANY, .n_body = sizeof MANY - 1});
    assert_int_equal(w.n_dropped[OTLP_DROP_PARTIAL], 7);
    add(&w, 4);
    reply(&w, (otlp_reply){.status = 200, .json = true, .body = "nonsense", .n_body = 8});
    assert_int_equal(w.n_sent, 5);
    close_world(&w);
}

static void a_flush_ends_when_all_is_delivered(void **state)
{
    world w;
    open_world(&w, 100000);
    otlp_exporter_flush(w.x, 2000, on_flushed, &w);
    assert_true(w.flushed); /* nothing waits */
    w.flushed = false;
    add(&w, 2);
    otlp_exporter_flush(w.x, 2000, on_flushed, &w);
    assert_int_equal(w.n_posts, 1);
    assert_false(w.flushed);
    reply(&w, (otlp_reply){.status = 200});
    assert_true(w.flushed);
    close_world(&w);
}

static void a_flush_ends_at_its_limit_whatever_the_collector_does(void **state)
{
    world w;
    open_world(&w, 100000);
    add(&w, 6);
    otlp_exporter_flush(w.x, 2000, on_flushed, &w);
    reply(&w, (otlp_reply){.status = 503});
    env_sim_run(w.sim, 1999);
    assert_false(w.flushed);
    env_sim_run(w.sim, 1);
    assert_true(w.flushed);
    close_world(&w);
    assert_int_equal(w.n_dropped[OTLP_DROP_STOPPED], 6);
}

static void a_snapshot_takes_the_place_of_one_that_waits(void **state)
{
    world w;
    open_world(&w, 100000);
    add(&w, 3);
    otlp_exporter_replace(w.x, OTLP_TRACES);
    add(&w, 2);
    env_sim_run(w.sim, 1000);
    assert_int_equal(w.n_items, 2);
    reply(&w, (otlp_reply){.status = 200});
    assert_int_equal(w.n_sent, 2);
    close_world(&w);
}

static void a_request_without_memory_is_made_later(void **state)
{
    world w;
    open_world(&w, 100000);
    w.no_memory = true;
    add(&w, 4);
    assert_int_equal(w.n_posts, 0);
    w.no_memory = false;
    env_sim_run(w.sim, 1000);
    assert_int_equal(w.n_posts, 1);
    reply(&w, (otlp_reply){.status = 200});
    assert_int_equal(w.n_sent, 4);
    close_world(&w);
}

static uint64_t after(const char *line)
{
    return otlp_retry_after_ms(line, strlen(line));
}

static void retry_after_is_seconds(void **state)
{
    assert_int_equal(after("Retry-After: 7\r\n"), 7000);
    assert_int_equal(after("retry-after:120"), 120000);
    assert_int_equal(after("Retry-After: 99999999999999999999\r\n"), 3600000);
    assert_int_equal(after("Retry-After: Fri, 31 Dec 1999 23:59:59 GMT\r\n"), 0);
    assert_int_equal(after("Retry-After: \r\n"), 0);
    assert_int_equal(after("Retry-Afte"), 0);
    assert_int_equal(after("x-retry-after: 7\r\n"), 0);
    assert_int_equal(after("Retry-After: 7s"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_batch_goes_out_when_it_is_full_or_the_interval_is_over),
        cmocka_unit_test(a_full_queue_drops_what_comes_and_counts_it),
        cmocka_unit_test(an_item_larger_than_the_queue_is_dropped),
        cmocka_unit_test(statuses_that_pass_are_retried_with_back_off),
        cmocka_unit_test(a_batch_is_given_up_after_the_time_for_retries),
        cmocka_unit_test(a_wait_that_is_too_long_is_not_waited),
        cmocka_unit_test(other_statuses_drop_the_batch),
        cmocka_unit_test(partial_success_is_counted),
        cmocka_unit_test(a_flush_ends_when_all_is_delivered),
        cmocka_unit_test(a_flush_ends_at_its_limit_whatever_the_collector_does),
        cmocka_unit_test(a_snapshot_takes_the_place_of_one_that_waits),
        cmocka_unit_test(a_request_without_memory_is_made_later),
        cmocka_unit_test(retry_after_is_seconds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
