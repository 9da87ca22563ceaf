/* The bottom of the seam alone: what it does when there is no memory for a call, or nobody for it. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "logging/log.h"
#include "calls/replica_calls.h"
#include "calls/retry_calls.h"
#include "../../cluster/cluster/sim_workers.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HAS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HAS_SANITIZER 1
#endif
#endif

static void never(void *user, const call_result *r, const Shoal__V1__EmbedReply *reply)
{
    _exit(3);
}

/* Take all that malloc can give, down to its smallest piece; small ones that were freed are kept by size. */
static void use_up_memory(void)
{
    setrlimit(RLIMIT_AS, &(struct rlimit){0, 0});
    for (size_t n = 1 << 20; n >= 8; n = n > 2048 ? n / 2 : n - 8)
        for (void *volatile p; (p = malloc(n));) {
        }
}

static int call_without_memory(void)
{
    uv_loop_t loop;
    registry *g;
    calls *c;
    source *src;
    shoal_err err;
    Shoal__V1__TextInput in = SHOAL__V1__TEXT_INPUT__INIT, *list[] = {&in};
    Shoal__V1__EmbedRequest req = SHOAL__V1__EMBED_REQUEST__INIT;
    in.text = "a text";
    req.n_inputs = 1;
    req.inputs = list;
    if (uv_loop_init(&loop) || registry_new(&g, &loop, &err) || replica_calls_new(&c, g, NULL, &err) ||
        retry_calls_new(&c, registry_env(g), c, 0, NULL, &err) || source_open(&src, g, "test", &err) ||
        source_put(src, &(member){.id = "m/0", .model = "m", .address = "unix:/nowhere"}, &err))
        return 2;
    use_up_memory();
    return calls_embed(c, "m", &req, NULL, never, NULL) ? 1 : 0;
}

static void a_call_without_memory_is_refused(void **state)
{
#ifdef HAS_SANITIZER
    skip();
#endif
    pid_t pid = fork();
    if (pid == 0) _exit(call_without_memory());
    int status = 0;
    waitpid(pid, &status, 0);
    if (!WIFEXITED(status)) fail_msg("killed by signal %d", WTERMSIG(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

typedef struct ending {
    int status;
    char message[256];
} ending;

static void on_end(void *user, const call_result *r, const Shoal__V1__EmbedReply *reply)
{
    ending *e = user;
    e->status = r->status;
    snprintf(e->message, sizeof e->message, "%s", r->message);
}

static ending ask(uv_loop_t *loop, calls *c)
{
    Shoal__V1__EmbedRequest req = SHOAL__V1__EMBED_REQUEST__INIT;
    ending e = {.status = 1};
    assert_non_null(calls_embed(c, "m", &req, &(call_context){.deadline_ns = UINT64_MAX}, on_end, &e));
    while (e.status == 1) uv_run(loop, UV_RUN_ONCE);
    return e;
}

/* Both with a deadline that never comes. */
static void calls_of_a_model_that_is_given_up_are_told_so_and_of_none_that_there_is_none(void **state)
{
    uv_loop_t loop;
    registry *g;
    calls *c;
    assert_int_equal(uv_loop_init(&loop), 0);
    assert_int_equal(registry_new(&g, &loop, NULL), 0);
    assert_int_equal(replica_calls_new(&c, g, NULL, NULL), 0);
    assert_int_equal(retry_calls_new(&c, registry_env(g), c, 0, NULL, NULL), 0);
    assert_int_equal(registry_declare(g, "m", NULL), 0);
    registry_give_up(g, "m", "pi has left", false);
    ending e = ask(&loop, c);
    assert_int_equal(e.status, SHOAL_EUNAVAILABLE);
    assert_string_equal(e.message, "the model m is not served now: pi has left");
    registry_undeclare(g, "m");
    e = ask(&loop, c);
    assert_int_equal(e.status, SHOAL_ENOTFOUND);
    assert_string_equal(e.message, "the model 'm' does not exist here");
    calls_free(c);
    registry_free(g);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
}

/* ---- capabilities -------------------------------------------------------------------------------- */

static void begin(sim_call *c, const void *msg, size_t n)
{
    c->ch->w->e->timer_start(c->answer, SIM_HOP_MS);
}

static void describe(const sim_worker *x, Shoal__V1__ModelInfo *ret)
{
    ret->task = "generate";
    ret->capabilities = x->user;
}

static void measure(const sim_worker *x, Shoal__V1__Stats *ret) {}

static const sim_service SERVICE = {.begin = begin, .describe = describe, .measure = measure};

static void on_generate_event(void *user, const Shoal__V1__GenerateEvent *ev) {}

static void on_generated(void *user, const call_result *r)
{
    on_end(user, r, NULL);
}

static void on_weighed(void *user, const call_result *r, const Shoal__V1__LikelihoodReply *reply)
{
    on_end(user, r, NULL);
}

static model_call *call_that_needs(calls *c, unsigned need, ending *e)
{
    Shoal__V1__GenerateRequest g = SHOAL__V1__GENERATE_REQUEST__INIT;
    Shoal__V1__LikelihoodRequest l = SHOAL__V1__LIKELIHOOD_REQUEST__INIT;
    const calls_generate_events events = {.event = on_generate_event, .end = on_generated, .user = e};
    const calls_vote_events votes = {.event = on_generate_event, .end = on_generated, .user = e};
    *e = (ending){.status = 1};
    if (need == ROUTER_LIKELIHOOD) return calls_likelihood(c, "m", &l, NULL, on_weighed, e);
    if (need == ROUTER_BALLOTS) return calls_vote(c, "m", &g, NULL, &votes);
    if (need == ROUTER_BEAMS) g.n_beams = 2;
    if (need == ROUTER_GRAMMAR) g.constraint = SHOAL__V1__GENERATE_REQUEST__CONSTRAINT__JSON_OBJECT;
    if (need == ROUTER_ADAPTERS) g.adapter = "polite";
    if (need == ROUTER_TEMPLATES) g.chat_template = "a";
    return calls_generate(c, "m", &g, NULL, &events);
}

typedef struct capable_world {
    sim_world world;
    connector how;
    registry *g;
    source *s;
    calls *c;
} capable_world;

static void capable_open(capable_world *h)
{
    log_setup(LOG_OFF, false);
    sim_world_open(&h->world, 1);
    h->world.service = &SERVICE;
    h->how = sim_connector(&h->world);
    assert_int_equal(registry_new_with(&h->g, h->world.e, &h->how, NULL), 0);
    assert_int_equal(source_open(&h->s, h->g, "test", NULL), 0);
    assert_int_equal(replica_calls_new(&h->c, h->g, NULL, NULL), 0);
}

static void capable_close(capable_world *h)
{
    calls_free(h->c);
    registry_free(h->g);
    sim_world_close(&h->world);
}

static void capable_put(capable_world *h, const char *id, const char *address, Shoal__V1__Capabilities *can)
{
    sim_worker_at(&h->world, address)->user = can;
    const member m = {.id = id, .model = "m", .address = address};
    assert_int_equal(source_put(h->s, &m, NULL), 0);
    env_sim_run(h->world.time, 100);
}

static const struct {
    unsigned bit;
    const char *name;
} CAPABILITIES[] = {
#define CAPABILITY_ROW(e, name, what) {e, #name " (" what ")"},
    ROUTER_CAPABILITY_TABLE(CAPABILITY_ROW)
#undef CAPABILITY_ROW
};

static void lack(Shoal__V1__Capabilities *to, unsigned bit)
{
    shoal__v1__capabilities__init(to);
#define CAPABILITY_SET(e, name, what) to->name = bit != e;
    ROUTER_CAPABILITY_TABLE(CAPABILITY_SET)
#undef CAPABILITY_SET
}

static void a_call_goes_to_who_has_the_capability_and_else_says_which_is_missing(void **state)
{
    assert_int_equal(shoal__v1__capabilities__descriptor.n_fields,
                     sizeof CAPABILITIES / sizeof *CAPABILITIES);
    for (size_t i = 0; i < sizeof CAPABILITIES / sizeof *CAPABILITIES; i++) {
        capable_world h;
        Shoal__V1__Capabilities lacks, has;
        ending e;
        char want[200];
        lack(&lacks, CAPABILITIES[i].bit);
        lack(&has, 0);
        capable_open(&h);
        capable_put(&h, "m/0", "sim:lacks", &lacks);
        assert_non_null(call_that_needs(h.c, CAPABILITIES[i].bit, &e));
        env_sim_run(h.world.time, 100);
        snprintf(want, sizeof want, "no replica of m has what this request needs: %s", CAPABILITIES[i].name);
        assert_int_equal(e.status, SHOAL_EUNSUPPORTED);
        assert_string_equal(e.message, want);
        assert_non_null(call_that_needs(h.c, 0, &e)); /* another request may go there */
        env_sim_run(h.world.time, 100);
        assert_int_equal(e.status, 0);
        assert_int_equal(sim_worker_at(&h.world, "sim:lacks")->n_calls, 1);
        capable_put(&h, "m/1", "sim:has", &has);
        for (int k = 0; k < 3; k++) {
            assert_non_null(call_that_needs(h.c, CAPABILITIES[i].bit, &e));
            env_sim_run(h.world.time, 100);
        }
        assert_int_equal(sim_worker_at(&h.world, "sim:lacks")->n_calls, 1);
        assert_int_equal(sim_worker_at(&h.world, "sim:has")->n_calls, 3);
        capable_close(&h);
    }
}

static void who_is_older_than_capabilities_may_have_them(void **state)
{
    capable_world h;
    ending e;
    capable_open(&h);
    capable_put(&h, "m/0", "sim:old", NULL);
    assert_non_null(call_that_needs(h.c, ROUTER_BEAMS, &e));
    env_sim_run(h.world.time, 100);
    assert_int_equal(e.status, 0);
    capable_close(&h);
}

static void a_capable_replica_that_starts_is_waited_for(void **state)
{
    capable_world h;
    Shoal__V1__Capabilities lacks;
    Shoal__V1__GenerateRequest g = SHOAL__V1__GENERATE_REQUEST__INIT;
    call_estimate estimate;
    g.n_beams = 2;
    lack(&lacks, ROUTER_BEAMS);
    capable_open(&h);
    capable_put(&h, "m/0", "sim:lacks", &lacks);
    call_order *o = call_order_new(CALL_GENERATE, "m", &g.base, NULL);
    calls_estimate(h.c, o, &(call_terms){0}, &estimate);
    assert_int_equal(estimate.status, SHOAL_EUNSUPPORTED);
    assert_false(estimate.may_return);
    sim_worker_at(&h.world, "sim:later")->runs = false;
    capable_put(&h, "m/1", "sim:later", NULL);
    calls_estimate(h.c, o, &(call_terms){0}, &estimate);
    assert_int_equal(estimate.status, SHOAL_EUNAVAILABLE);
    assert_true(estimate.may_return);
    call_order_unref(o);
    capable_close(&h);
}

static void the_needs_of_a_request_go_with_its_copies(void **state)
{
    Shoal__V1__GenerateRequest g = SHOAL__V1__GENERATE_REQUEST__INIT;
    g.n_beams = 4;
    call_order *o = call_order_new(CALL_GENERATE, "m", &g.base, NULL);
    call_order *copies[] = {call_order_for(o, "n"), call_order_more(o, &g.base, 0),
                            call_order_routed(o, "n", &(call_context){0})};
    call_order *vote = call_order_as(o, CALL_VOTE, NULL);
    assert_int_equal(o->needs, ROUTER_BEAMS);
    assert_int_equal(vote->needs, ROUTER_BEAMS | ROUTER_BALLOTS);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(copies[i]->needs, ROUTER_BEAMS);
        call_order_unref(copies[i]);
    }
    call_order_unref(vote);
    call_order_unref(o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_of_a_model_that_is_given_up_are_told_so_and_of_none_that_there_is_none),
        cmocka_unit_test(a_call_goes_to_who_has_the_capability_and_else_says_which_is_missing),
        cmocka_unit_test(who_is_older_than_capabilities_may_have_them),
        cmocka_unit_test(a_capable_replica_that_starts_is_waited_for),
        cmocka_unit_test(the_needs_of_a_request_go_with_its_copies),
        cmocka_unit_test(a_call_without_memory_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
