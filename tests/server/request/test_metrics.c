/* /metrics is valid Prometheus text; errors have the OpenAI form. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "messages/api_error.h"
#include "../../cluster/cluster/sim_workers.h"
#include "request/metrics.h"

static void metrics_name_each_family_once(void **state)
{
    metrics *m = metrics_new();
    buf out = {0};
    metrics_put(&out, m);
#define FAMILY_CHECK(e, name, type, labels, help)        \
    {                                                    \
        char *at = strstr(out.data, "# TYPE " name " "); \
        assert_non_null(at);                             \
        assert_null(strstr(at + 1, "# TYPE " name " ")); \
    }
    METRIC_TABLE(FAMILY_CHECK)
#undef FAMILY_CHECK
    assert_non_null(strstr(out.data, "shoal_build_info{version=\"" SHOAL_VERSION "\"} 1\n"));
    buf_done(&out);
    metrics_free(m);
}

static void metrics_count_by_labels(void **state)
{
    metrics *m = metrics_new();
    buf out = {0};
    metrics_add(m, METRIC_REQUESTS, 1, "chat", "a", "200");
    metrics_add(m, METRIC_REQUESTS, 2, "chat", "a", "200");
    metrics_add(m, METRIC_REQUESTS, 1, "chat", "b", "500");
    assert_true(metrics_get(m, METRIC_REQUESTS, "chat", "a", "200") == 3);
    metrics_put(&out, m);
    assert_non_null(strstr(out.data, "shoal_requests_total{endpoint=\"chat\",model=\"a\",code=\"200\"} 3\n"));
    assert_non_null(strstr(out.data, "shoal_requests_total{endpoint=\"chat\",model=\"b\",code=\"500\"} 1\n"));
    buf_done(&out);
    metrics_free(m);
}

static void metrics_escape_label_values(void **state)
{
    metrics *m = metrics_new();
    buf out = {0};
    metrics_add(m, METRIC_GONE, 1, "a\"b\\c\nd", NULL, NULL);
    metrics_put(&out, m);
    assert_non_null(strstr(out.data, "shoal_client_gone_total{endpoint=\"a\\\"b\\\\c\\nd\"} 1\n"));
    buf_done(&out);
    metrics_free(m);
}

static size_t count(const char *text, const char *what)
{
    size_t n = 0;
    for (; (text = strstr(text, what)); text += strlen(what)) n++;
    return n;
}

/* Machines that come and go for ever leave nothing behind; what is left keeps its series. */
static void metrics_show_the_work_of_the_loops_turns(void **state)
{
    metrics *m = metrics_new();
    buf out = {0};
    loop_work_reset();
    loop_work_add(100);
    loop_work_end_turn();
    loop_work_end_turn(); /* of no work: no turn */
    loop_work_add_message(100000);
    loop_work_end_turn();
    assert_int_equal(loop_work_get()->max_bytes, 104096);
    metrics_set_work(m, METRIC_LOOP_WORK, loop_work_get());
    metrics_put(&out, m);
    assert_non_null(strstr(out.data, "shoal_loop_turn_work_bytes_bucket{le=\"16384\"} 1\n"));
    assert_non_null(strstr(out.data, "shoal_loop_turn_work_bytes_bucket{le=\"65536\"} 1\n"));
    assert_non_null(strstr(out.data, "shoal_loop_turn_work_bytes_bucket{le=\"262144\"} 2\n"));
    assert_non_null(strstr(out.data, "shoal_loop_turn_work_bytes_bucket{le=\"+Inf\"} 2\n"));
    assert_non_null(strstr(out.data, "shoal_loop_turn_work_bytes_sum 104196\n"));
    buf_done(&out);
    metrics_free(m);
}

static void metrics_of_a_replica_go_with_it(void **state)
{
    sim_world world;
    registry *g;
    source *s;
    buf out = {0};
    metrics *m = metrics_new();
    sim_world_open(&world, 1);
    connector how = sim_connector(&world);
    assert_int_equal(registry_new_with(&g, world.e, &how, NULL), 0);
    assert_int_equal(source_open(&s, g, "nodes", NULL), 0);
    sim_worker_at(&world, "sim:a");
    assert_int_equal(
        source_put(s, &(member){.id = "m/0", .generation = 1, .model = "m", .address = "sim:a"}, NULL), 0);
    metrics_add(m, METRIC_MOVES, 3, "lost", NULL, NULL);
    for (int round = 0; round < 5; round++) {
        char id[32];
        snprintf(id, sizeof id, "node%d/m/0", round);
        member x = {.id = id, .generation = 1, .model = "m", .address = "sim:a"};
        assert_int_equal(source_put(s, &x, NULL), 0);
        env_sim_run(world.time, 2000);
        metrics_scrape(m, g);
        buf_clear(&out);
        metrics_put(&out, m);
        assert_int_equal(count(out.data, "shoal_worker_up{"), 2);
        assert_int_equal(count(out.data, id), count(out.data, "\"m/0\""));
        assert_true(count(out.data, id) >= 12);
        assert_true(metrics_get(m, METRIC_UP, "m", id, NULL) == 1);
        source_drop(s, id, 1);
    }
    metrics_scrape(m, g);
    buf_clear(&out);
    metrics_put(&out, m);
    assert_null(strstr(out.data, "replica=\"node"));
    assert_non_null(strstr(out.data, "shoal_worker_up{model=\"m\",replica=\"m/0\"} 1\n"));
    assert_non_null(strstr(out.data, "shoal_moves_total{cause=\"lost\"} 3\n"));
    source_close(s);
    metrics_scrape(m, g);
    buf_clear(&out);
    metrics_put(&out, m);
    assert_null(strstr(out.data, "shoal_source_up{"));
    assert_null(strstr(out.data, "{model=\"m\""));
    buf_done(&out);
    metrics_free(m);
    registry_free(g);
    sim_world_close(&world);
}

static void metrics_histogram_is_cumulative(void **state)
{
    metrics *m = metrics_new();
    buf out = {0};
    metrics_observe_s(m, METRIC_STAGE_S, 0.0004, "m", "queue");
    metrics_observe_s(m, METRIC_STAGE_S, 0.02, "m", "queue");
    metrics_observe_s(m, METRIC_STAGE_S, 100, "m", "queue");
    metrics_put(&out, m);
#define BUCKET(le, n) "shoal_stage_seconds_bucket{model=\"m\",stage=\"queue\",le=\"" le "\"} " n "\n"
    assert_non_null(strstr(out.data, BUCKET("0.00025", "0")));
    assert_non_null(strstr(out.data, BUCKET("0.0005", "1")));
    assert_non_null(strstr(out.data, BUCKET("0.025", "2")));
    assert_non_null(strstr(out.data, BUCKET("30", "2")));
    assert_non_null(strstr(out.data, BUCKET("+Inf", "3")));
    assert_non_null(strstr(out.data, "shoal_stage_seconds_sum{model=\"m\",stage=\"queue\"} 100.0204\n"));
    assert_non_null(strstr(out.data, "shoal_stage_seconds_count{model=\"m\",stage=\"queue\"} 3\n"));
    buf_done(&out);
    metrics_free(m);
}

static void error_body_has_the_openai_form(void **state)
{
    api_error e;
    buf out = {0};
    api_error_bad(&e, "messages", "say \"%s\"", "more");
    api_error_put(&out, &e);
    assert_string_equal(out.data,
                        "{\"error\":{\"message\":\"say \\\"more\\\"\",\"type\":\"invalid_request_error\","
                        "\"param\":\"messages\",\"code\":null}}");
    buf_done(&out);
}

static void error_of_a_model_call_has_its_status(void **state)
{
    static const struct {
        int code, status, retry;
        const char *name;
    } CASES[] = {
        {SHOAL_EINVALID, 400, 0, NULL},
        {SHOAL_ELIMIT, 400, 0, "context_length_exceeded"},
        {SHOAL_ENOTFOUND, 404, 0, "model_not_found"},
        {SHOAL_EFULL, 429, 1, "queue_full"},
        {SHOAL_EUNAVAILABLE, 503, 1, "worker_unavailable"},
        {SHOAL_EDEADLINE, 504, 0, "deadline_exceeded"},
        {SHOAL_EPROTOCOL, 500, 0, "internal_error"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        api_error e;
        call_result r = {.status = CASES[i].code, .message = "why"};
        assert_int_equal(api_error_from_call(&e, &r), CASES[i].status);
        assert_int_equal(e.retry_after_s, CASES[i].retry);
        if (CASES[i].name) assert_string_equal(e.code, CASES[i].name);
    }
}

typedef struct seen {
    size_t n;
    double value, last_bound;
    uint64_t counted;
    char label[16];
} seen;

static void see(void *user, const metric_point *p)
{
    seen *s = user;
    s->n++;
    s->value += p->value;
    for (size_t i = 0; p->counts && i <= p->n_bounds; i++) s->counted += p->counts[i];
    if (p->n_bounds) s->last_bound = metric_bound(p->family, p->n_bounds - 1);
    snprintf(s->label, sizeof s->label, "%s", p->labels[0]);
}

static void metrics_are_visited_series_by_series(void **state)
{
    metrics *m = metrics_new();
    assert_non_null(m);
    metrics_add(m, METRIC_ERRORS, 2, "chat", "a", NULL);
    metrics_add(m, METRIC_ERRORS, 3, "tag", "b", NULL);
    metrics_observe_s(m, METRIC_REQUEST_S, 0.5, "chat", NULL);
    metrics_observe_s(m, METRIC_REQUEST_S, 1000, "chat", NULL);
    seen errors = {0}, times = {0}, none = {0};
    metrics_each(m, METRIC_ERRORS, see, &errors);
    metrics_each(m, METRIC_REQUEST_S, see, &times);
    metrics_each(m, METRIC_GONE, see, &none);
    assert_int_equal(errors.n, 2);
    assert_true(errors.value == 5 && errors.counted == 0);
    assert_string_equal(errors.label, "tag");
    assert_int_equal(times.n, 1);
    assert_int_equal(times.counted, 2);
    assert_true(times.value == 1000.5 && times.last_bound == 30);
    assert_int_equal(none.n, 0);
    assert_string_equal(metrics_family(METRIC_ERRORS)->name, "shoal_errors_total");
    metrics_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(metrics_name_each_family_once),
        cmocka_unit_test(metrics_count_by_labels),
        cmocka_unit_test(metrics_escape_label_values),
        cmocka_unit_test(metrics_are_visited_series_by_series),
        cmocka_unit_test(metrics_histogram_is_cumulative),
        cmocka_unit_test(metrics_show_the_work_of_the_loops_turns),
        cmocka_unit_test(metrics_of_a_replica_go_with_it),
        cmocka_unit_test(error_body_has_the_openai_form),
        cmocka_unit_test(error_of_a_model_call_has_its_status),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
