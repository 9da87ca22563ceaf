/* The registry in simulated time: members come, go, come back, fall silent, and nobody walks over them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "logging/log.h"
#include "cluster/registry.h"
#include "cluster/route.h"
#include "sim_workers.h"

typedef struct house {
    sim_world world;
    registry *g;
    source *s;
    int n_added, n_changed, n_dropped, n_nodes;
} house;

static void heard(void *user, const registry_event *e)
{
    house *h = user;
    h->n_added += e->what == REGISTRY_ADD;
    h->n_changed += e->what == REGISTRY_CHANGE;
    h->n_dropped += e->what == REGISTRY_DROP;
    h->n_nodes += e->what == REGISTRY_NODE;
}

static void house_open(house *h)
{
    *h = (house){0};
    log_setup(LOG_OFF, false);
    sim_world_open(&h->world, 1);
    connector how = sim_connector(&h->world);
    assert_int_equal(registry_new_with(&h->g, h->world.e, &how, NULL), 0);
    assert_int_equal(registry_listen(h->g, heard, h, NULL), 0);
    assert_int_equal(source_open(&h->s, h->g, "test", NULL), 0);
}

static void house_close(house *h)
{
    registry_free(h->g);
    sim_world_close(&h->world);
}

static replica *put(house *h, const char *id, uint64_t generation, const char *address)
{
    sim_worker_at(&h->world, address);
    member m = {.id = id, .generation = generation, .model = "m", .address = address};
    assert_int_equal(source_put(h->s, &m, NULL), 0);
    return registry_get(h->g, id);
}

static void run(house *h, uint64_t ms)
{
    env_sim_run(h->world.time, ms);
}

static void registry_finds_members_by_id_and_by_model(void **state)
{
    house h;
    house_open(&h);
    assert_null(registry_find(h.g, "m"));
    replica *a = put(&h, "m/0", 1, "sim:a"), *b = put(&h, "m/1", 1, "sim:b");
    const replica_set *set = registry_find(h.g, "m");
    assert_int_equal(set->n, 2);
    assert_int_equal(set->n_ready, 0);
    assert_int_equal(registry_count(h.g), 2);
    run(&h, 100);
    assert_int_equal(a->state, REPLICA_READY);
    assert_int_equal(b->info->n_parallel, 4);
    assert_int_equal(set->n_ready, 2);
    assert_int_equal(h.n_added, 2);
    source_drop(h.s, "m/0", 1);
    assert_null(registry_get(h.g, "m/0"));
    assert_ptr_equal(registry_get(h.g, "m/1"), b);
    assert_int_equal(set->n_ready, 1);
    assert_ptr_equal(set->replicas[0], b);
    assert_int_equal(h.n_dropped, 1);
    source_drop(h.s, "m/1", 1);
    assert_null(registry_find(h.g, "m"));
    house_close(&h);
}

static replica *put_standby(house *h, const char *id, uint64_t generation, const char *address)
{
    sim_worker_at(&h->world, address);
    member m = {.id = id, .generation = generation, .model = "m", .address = address, .standby = true};
    assert_int_equal(source_put(h->s, &m, NULL), 0);
    return registry_get(h->g, id);
}

/* Exactly these take calls; NULL ends them. */
static void take_calls(house *h, replica *a, replica *b)
{
    const replica_set *set = registry_find(h->g, "m");
    replica *wanted[] = {a, b};
    size_t n = 0;
    for (size_t i = 0; i < 2; i++) {
        bool found = false;
        n += wanted[i] != NULL;
        for (size_t k = 0; wanted[i] && k < set->n_ready; k++) found |= set->replicas[k] == wanted[i];
        if (wanted[i] && !found) fail_msg("%s takes no calls", wanted[i]->id);
        if (wanted[i]) assert_true(route_peek(h->g, wanted[i], h->world.e->now_ns(h->world.e->user)).ready);
    }
    assert_int_equal(set->n_ready, n);
}

/* Nobody has to plan anything first: a standby is asked as soon as one that serves is known to be missing,
 * and no longer than that. */
static void registry_asks_standbys_while_one_that_serves_is_missing(void **state)
{
    house h;
    house_open(&h);
    replica *a = put(&h, "m/0", 1, "sim:a"), *s = put_standby(&h, "m/1", 1, "sim:s");
    sim_worker *wa = sim_worker_at(&h.world, "sim:a"), *ws = sim_worker_at(&h.world, "sim:s");
    run(&h, 1000);
    take_calls(&h, a, NULL);
    sim_kill(&h.world, wa);
    run(&h, 5); /* the time that the loss of a connection needs to come here */
    assert_int_equal(a->state, REPLICA_DOWN);
    take_calls(&h, s, NULL);
    wa->runs = true;
    run(&h, 2000);
    take_calls(&h, a, NULL);
    sim_freeze(&h.world, wa, true);
    run(&h, 1000);
    assert_true(a->silent);
    take_calls(&h, s, NULL);
    sim_freeze(&h.world, ws, true); /* both */
    run(&h, 1000);
    take_calls(&h, NULL, NULL);
    sim_freeze(&h.world, ws, false);
    run(&h, 300);
    take_calls(&h, s, NULL);
    source_drop(h.s, "m/0", 1); /* its machine is given up */
    take_calls(&h, s, NULL);
    sim_freeze(&h.world, wa, false);
    replica *b = put(&h, "m/2", 1, "sim:b"); /* another one takes its place */
    take_calls(&h, s, NULL);
    run(&h, 1000);
    take_calls(&h, b, NULL);
    replica *c = put(&h, "m/3", 1, "sim:c"); /* a second one is wanted, and starts */
    take_calls(&h, b, s);
    run(&h, 1000);
    take_calls(&h, b, c);
    source_drop(h.s, "m/1", 1);
    source_drop(h.s, "m/2", 1);
    source_drop(h.s, "m/3", 1);
    assert_null(registry_find(h.g, "m"));
    house_close(&h);
}

/* What would break out of an answer, a line of the log or the router's arithmetic: it is never ready. */
static void registry_believes_no_nonsense_of_a_worker(void **state)
{
    house h;
    house_open(&h);
    for (int how = 0; how < 6; how++) {
        char id[16], address[16];
        snprintf(id, sizeof id, "m/%d", how);
        snprintf(address, sizeof address, "sim:%d", how);
        replica *r = put(&h, id, 1, address);
        sim_worker *x = sim_worker_at(&h.world, address);
        if (how == 0) strcpy(x->digest, "a\",\"x\":\"");
        if (how == 1) x->version = "1\nlevel=error";
        if (how == 2) x->version = "\xff";
        if (how == 3) x->n_parallel = UINT32_MAX;
        if (how == 4) x->identity = "sha256:d2;engine=shoal;precision=file;numerics=1"; /* not its file's */
        if (how == 5) x->identity = "sha256:d1;engine=\"";
        run(&h, 2000);
        assert_int_not_equal(r->state, REPLICA_READY);
        assert_null(r->info);
        strcpy(x->digest, "d1");
        x->version = x->identity = NULL;
        x->n_parallel = 0;
        run(&h, 2000);
        assert_int_equal(r->state, REPLICA_READY);
    }
    house_close(&h);
}

/* One that is older than identities runs our engine on its file, as this one says that it does. */
static void route_tells_replicas_of_one_file_apart_by_identity(void **state)
{
    static const char CUDA[] = "sha256:d1;engine=cuda;precision=fp16;numerics=1",
                      OURS[] = "sha256:d1;engine=shoal;precision=file;numerics=1";
    house h;
    router_decision d;
    replica *r;
    house_open(&h);
    const char *names[] = {"sim:old", "sim:new", "sim:cuda"};
    for (int i = 0; i < 3; i++) {
        char id[16];
        snprintf(id, sizeof id, "m/%d", i);
        sim_worker *x = sim_worker_at(&h.world, names[i]);
        strcpy(x->digest, "d1");
        x->identity = i == 1 ? OURS : i == 2 ? CUDA : NULL;
        x->exact_resume = i == 1;
        put(&h, id, 1, names[i]);
    }
    run(&h, 100);
    assert_string_equal(registry_get(h.g, "m/0")->info->identity, OURS);
    assert_true(registry_get(h.g, "m/0")->info->exact_resume);
    assert_false(registry_get(h.g, "m/2")->info->exact_resume);
    router_request q = {.identity = CUDA};
    assert_int_equal(route_pick(h.g, "m", "", &q, NULL, &d, &r), 0);
    assert_string_equal(r->id, "m/2");
    q.identity = OURS;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(route_pick(h.g, "m", "", &q, NULL, &d, &r), 0);
        assert_string_not_equal(r->id, "m/2");
        source_drop(h.s, r->id, 1);
    }
    assert_int_equal(route_pick(h.g, "m", "", &q, NULL, &d, &r), SHOAL_EUNAVAILABLE);
    house_close(&h);
}

static void registry_keeps_a_declared_model_without_replicas(void **state)
{
    house h;
    house_open(&h);
    assert_int_equal(registry_declare(h.g, "m", NULL), 0);
    assert_int_equal(registry_find(h.g, "m")->n, 0);
    put(&h, "m/0", 1, "sim:a");
    source_drop(h.s, "m/0", 1);
    assert_int_equal(registry_find(h.g, "m")->n, 0);
    assert_int_equal(registry_count_models(h.g), 1);
    house_close(&h);
}

static void route_finds_the_adapter_that_a_request_wants(void **state)
{
    house h;
    router_decision d;
    replica *r;
    house_open(&h);
    sim_worker_at(&h.world, "sim:a");
    sim_worker_at(&h.world, "sim:b")->adapter_digest = "a1";
    sim_worker_at(&h.world, "sim:c")->adapter_digest = "a2";
    put(&h, "m/0", 1, "sim:a");
    put(&h, "m/1", 1, "sim:b");
    put(&h, "m/2", 1, "sim:c");
    run(&h, 100);
    router_request q = {.adapter_digest = "a2"};
    assert_int_equal(route_pick(h.g, "m", "polite", &q, NULL, &d, &r), 0);
    assert_string_equal(r->id, "m/2");
    assert_int_equal(route_pick(h.g, "m", "rude", &q, NULL, &d, &r), SHOAL_EUNAVAILABLE);
    source_drop(h.s, "m/2", 1);
    assert_int_equal(route_pick(h.g, "m", "polite", &q, NULL, &d, &r), SHOAL_EUNAVAILABLE);
    assert_null(r);
    house_close(&h);
}

static void registry_lets_a_dropped_replica_live_until_its_last_call_left(void **state)
{
    house h;
    house_open(&h);
    replica *r = replica_ref(put(&h, "m/0", 3, "sim:a"));
    run(&h, 100);
    source_drop(h.s, "m/0", 3);
    run(&h, 1000);
    assert_true(r->dropped);
    assert_string_equal(r->id, "m/0");
    assert_true(registry_connector(h.g)->is_connected(r->channel));
    sim_kill(&h.world, sim_worker_at(&h.world, "sim:a")); /* nobody is told of its end */
    int n = h.n_changed;
    run(&h, 1000);
    assert_int_equal(h.n_changed, n);
    replica_unref(r);
    assert_int_equal(h.world.n_channels, 1);
    run(&h, 1);
    assert_int_equal(h.world.n_channels, 0);
    house_close(&h);
}

static void registry_ignores_news_of_an_older_life(void **state)
{
    house h;
    house_open(&h);
    replica *r = put(&h, "m/0", 7, "sim:a");
    run(&h, 100);
    source_drop(h.s, "m/0", 6);
    assert_ptr_equal(registry_get(h.g, "m/0"), r);
    member old = {.id = "m/0", .generation = 6, .model = "m", .address = "sim:a", .state = REPLICA_FAILED};
    source_put(h.s, &old, NULL);
    assert_int_equal(r->state, REPLICA_READY);
    assert_int_equal(r->generation, 7);
    int n = h.n_changed;
    put(&h, "m/0", 7, "sim:a"); /* the same again */
    assert_int_equal(h.n_changed, n);
    house_close(&h);
}

static void registry_makes_a_new_life_of_a_restarted_worker(void **state)
{
    house h;
    house_open(&h);
    replica *r = put(&h, "m/0", 1, "sim:a");
    sim_worker *w = sim_worker_at(&h.world, "sim:a");
    run(&h, 100);
    uint64_t life = r->life;
    sim_kill(&h.world, w);
    assert_int_equal(r->state, REPLICA_DOWN);
    assert_int_equal(registry_find(h.g, "m")->n_ready, 0);
    run(&h, 500);
    assert_int_equal(r->state, REPLICA_DOWN);
    w->runs = true;
    put(&h, "m/0", 2, "sim:a");
    run(&h, 50);
    assert_int_equal(r->state, REPLICA_READY);
    assert_int_equal(r->generation, 2);
    assert_true(r->life != life);
    assert_ptr_equal(registry_get(h.g, "m/0"), r);
    house_close(&h);
}

static void registry_tells_who_could_not_start_from_who_is_started_again(void **state)
{
    house h;
    house_open(&h);
    replica *served = put(&h, "m/0", 1, "sim:a");
    run(&h, 100);
    assert_false(replica_could_not_start(served));
    sim_kill(&h.world, sim_worker_at(&h.world, "sim:a"));
    assert_int_equal(served->state, REPLICA_DOWN);
    assert_false(replica_could_not_start(served));
    member m = {.id = "m/1", .generation = 1, .model = "m", .address = "sim:nobody"};
    assert_int_equal(source_put(h.s, &m, NULL), 0);
    const replica *new = registry_get(h.g, "m/1");
    assert_false(replica_could_not_start(new)); /* it is starting */
    m.state = REPLICA_DOWN;
    assert_int_equal(source_put(h.s, &m, NULL), 0);
    assert_true(replica_could_not_start(new));
    m.state = REPLICA_FAILED;
    assert_int_equal(source_put(h.s, &m, NULL), 0);
    assert_true(replica_could_not_start(new));
    m.standby = true;
    assert_int_equal(source_put(h.s, &m, NULL), 0);
    assert_int_equal(new->state, REPLICA_FAILED);
    assert_false(replica_could_not_start(new));
    house_close(&h);
}

static void registry_counts_the_lives_that_its_source_does_not(void **state)
{
    house h;
    house_open(&h);
    replica *r = put(&h, "m/0", 0, "sim:a");
    sim_worker *w = sim_worker_at(&h.world, "sim:a");
    run(&h, 100);
    uint64_t first = r->generation;
    assert_int_equal(r->state, REPLICA_READY);
    sim_kill(&h.world, w);
    run(&h, 100);
    w->runs = true;
    run(&h, 1500); /* nobody says that it is back: it is looked for once a second */
    assert_int_equal(r->state, REPLICA_READY);
    assert_true(r->generation > first);
    source_drop(h.s, "m/0", 0);
    assert_null(registry_get(h.g, "m/0"));
    house_close(&h);
}

static void registry_makes_another_replica_of_one_that_moved(void **state)
{
    house h;
    house_open(&h);
    replica *r = replica_ref(put(&h, "m/0", 1, "sim:a"));
    run(&h, 100);
    r->load.cost.n = 5;
    replica *moved = put(&h, "m/0", 2, "sim:b");
    assert_ptr_not_equal(moved, r);
    assert_true(r->dropped);
    assert_true(moved->load.cost.n == 5);
    assert_int_equal(registry_find(h.g, "m")->n, 1);
    run(&h, 100);
    assert_int_equal(moved->state, REPLICA_READY);
    replica_unref(r);
    house_close(&h);
}

static void registry_polls_who_has_nothing_to_do_less_often(void **state)
{
    house h;
    house_open(&h);
    replica *r = put(&h, "m/0", 1, "sim:a");
    sim_worker *w = sim_worker_at(&h.world, "sim:a");
    run(&h, 1000);
    unsigned before = w->n_polls;
    run(&h, 2000);
    assert_int_equal(w->n_polls - before, 4);
    load_begin(&r->load, 1, h.world.e->now_ns(h.world.e->user));
    replica_gets_call(r);
    before = w->n_polls;
    run(&h, 200); /* it may hang with it */
    assert_int_equal(w->n_polls - before, 1);
    run(&h, 2000);
    assert_int_equal(w->n_polls - before, 11);
    load_leave(&r->load, 1, h.world.e->now_ns(h.world.e->user));
    house_close(&h);
}

static void registry_sends_nothing_to_a_silent_worker(void **state)
{
    house h;
    house_open(&h);
    replica *r = put(&h, "m/0", 1, "sim:a");
    sim_worker *w = sim_worker_at(&h.world, "sim:a");
    const replica_set *set = registry_find(h.g, "m");
    run(&h, 1000);
    assert_true(w->n_polls >= 2);
    sim_freeze(&h.world, w, true);
    run(&h, 1000);
    assert_true(r->silent);
    assert_int_equal(r->state, REPLICA_READY);
    assert_int_equal(set->n_ready, 0);
    sim_freeze(&h.world, w, false);
    run(&h, 200);
    assert_false(r->silent);
    assert_int_equal(set->n_ready, 1);
    sim_freeze(&h.world, w, true);
    run(&h, 11000); /* it does something, as far as can be seen from here, but for too long */
    assert_int_equal(r->state, REPLICA_DOWN);
    sim_freeze(&h.world, w, false);
    run(&h, 6000);
    assert_int_equal(r->state, REPLICA_READY);
    house_close(&h);
}

static void registry_counts_no_silence_while_it_stood_still(void **state)
{
    house h;
    house_open(&h);
    replica *r = put(&h, "m/0", 1, "sim:a");
    sim_worker *w = sim_worker_at(&h.world, "sim:a");
    run(&h, 1000);
    sim_freeze(&h.world, w, true);
    run(&h, 250); /* a poll is under way */
    for (int i = 0; i < 20; i++) {
        env_sim_stall(h.world.time, 1000);
        run(&h, 1);
    }
    assert_false(r->silent);
    assert_int_equal(r->state, REPLICA_READY);
    run(&h, 500);
    assert_true(r->silent);
    house_close(&h);
}

static bool at_work;

static bool is_at_work(void *worker)
{
    return at_work;
}

static void registry_gives_up_nobody_whom_an_agent_watches(void **state)
{
    house h;
    house_open(&h);
    sim_worker *w = sim_worker_at(&h.world, "sim:a");
    member m = {.id = "m/0",
                .generation = 1,
                .model = "m",
                .address = "sim:a",
                .process = {1, .is_at_work = is_at_work}};
    assert_int_equal(source_put(h.s, &m, NULL), 0);
    replica *r = registry_get(h.g, "m/0");
    run(&h, 1000);
    sim_freeze(&h.world, w, true);
    run(&h, 60000);
    assert_true(r->silent);
    assert_int_equal(r->state, REPLICA_READY);
    at_work = true;
    assert_true(replica_is_at_work(r));
    at_work = false;
    assert_false(replica_is_at_work(r));
    sim_freeze(&h.world, w, false);
    run(&h, 500);
    assert_false(r->silent);
    house_close(&h);
}

static void count_silent(void *user, const registry_event *e)
{
    *(int *)user += e->what == REGISTRY_SILENT;
}

/* Whoever has calls there hears after a second that they are to move: of a worker whose process nobody watches, which somebody
 * else started, and not of one that an agent will end. */
static void registry_tells_of_calls_at_a_worker_that_nobody_watches(void **state)
{
    for (int watched = 0; watched < 2; watched++) {
        house h;
        int n = 0;
        house_open(&h);
        sim_worker *w = sim_worker_at(&h.world, "sim:a");
        member m = {.id = "m/0",
                    .generation = 1,
                    .model = "m",
                    .address = "sim:a",
                    .process = {1, .is_at_work = watched ? is_at_work : NULL}};
        at_work = false;
        assert_int_equal(source_put(h.s, &m, NULL), 0);
        assert_int_equal(registry_listen(h.g, count_silent, &n, NULL), 0);
        run(&h, 1000);
        sim_freeze(&h.world, w, true);
        run(&h, 900);
        assert_int_equal(n, 0);
        run(&h, 1000);
        assert_int_equal(n > 0, !watched);
        registry_unlisten(h.g, count_silent, &n);
        house_close(&h);
    }
}

/* The worker goes with the agent, though somebody else still speaks of the replica. */
static void registry_asks_no_agent_that_is_gone(void **state)
{
    house h;
    house_open(&h);
    source *other;
    assert_int_equal(source_open(&other, h.g, "other", NULL), 0);
    sim_worker_at(&h.world, "sim:a");
    member m = {.id = "m/0",
                .generation = 1,
                .model = "m",
                .address = "sim:a",
                .process = {1, .is_at_work = is_at_work}};
    assert_int_equal(source_put(h.s, &m, NULL), 0);
    m.process = (process){0};
    assert_int_equal(source_put(other, &m, NULL), 0);
    replica *r = registry_get(h.g, "m/0");
    at_work = true;
    assert_true(replica_is_at_work(r));
    source_drop(h.s, "m/0", 1);
    assert_ptr_equal(registry_get(h.g, "m/0"), r);
    assert_string_equal(r->source, "other");
    assert_false(replica_is_at_work(r));
    house_close(&h);
}

/* Of a worker on another machine: what it says of itself. */
static void registry_knows_who_waits_for_cores(void **state)
{
    house h;
    house_open(&h);
    replica *r = put(&h, "m/0", 1, "sim:a");
    sim_worker *w = sim_worker_at(&h.world, "sim:a");
    run(&h, 1000);
    assert_false(replica_is_at_work(r));
    for (int i = 0; i < 5; i++) {
        w->run_delay_ms += 50; /* of 200 */
        run(&h, 200);
    }
    assert_true(replica_is_at_work(r));
    sim_freeze(&h.world, w, true);
    run(&h, 1000);
    assert_true(replica_is_at_work(r));
    run(&h, 1500); /* but not for ever */
    assert_false(replica_is_at_work(r));
    sim_freeze(&h.world, w, false);
    run(&h, 1000);
    assert_false(replica_is_at_work(r));
    house_close(&h);
}

static void registry_follows_what_an_agent_says(void **state)
{
    house h;
    house_open(&h);
    sim_worker_at(&h.world, "sim:a");
    member m = {.id = "m/0", .generation = 1, .model = "m", .address = "sim:a", .process = {.pid = 4}};
    assert_int_equal(source_put(h.s, &m, NULL), 0);
    replica *r = registry_get(h.g, "m/0");
    run(&h, 100);
    assert_int_equal(r->process.pid, 4);
    m.state = REPLICA_DRAINING;
    source_put(h.s, &m, NULL);
    assert_int_equal(r->state, REPLICA_DRAINING);
    assert_int_equal(registry_find(h.g, "m")->n_ready, 0);
    m.state = REPLICA_READY;
    source_put(h.s, &m, NULL);
    run(&h, 100);
    assert_int_equal(r->state, REPLICA_READY);
    m.state = REPLICA_FAILED;
    m.reason = "wrong digest";
    source_put(h.s, &m, NULL);
    assert_int_equal(r->state, REPLICA_FAILED);
    assert_string_equal(r->reason, "wrong digest");
    m.id = "m/1";
    m.state = REPLICA_STARTING;
    m.address = "nowhere";
    source_put(h.s, &m, NULL);
    run(&h, 10);
    assert_int_equal(registry_get(h.g, "m/1")->state, REPLICA_FAILED);
    assert_int_equal(source_put(h.s, &(member){.id = "m/2", .model = "m"}, NULL), SHOAL_EINVALID);
    house_close(&h);
}

static void registry_is_ready_when_all_sources_and_replicas_are(void **state)
{
    house h;
    source *other;
    house_open(&h);
    put(&h, "m/0", 1, "sim:a");
    run(&h, 100);
    assert_false(registry_all_ready(h.g));
    source_synced(h.s);
    assert_true(registry_all_ready(h.g));
    assert_int_equal(source_open(&other, h.g, "other", NULL), 0);
    assert_false(registry_all_ready(h.g));
    source_away(other, "connection refused");
    assert_string_equal(source_trouble(other), "connection refused");
    assert_string_equal(source_name(registry_source_at(h.g, 1)), "other");
    source_synced(other);
    assert_string_equal(source_trouble(other), "");
    assert_true(registry_all_ready(h.g));
    member m = {.id = "m/1", .generation = 1, .model = "m", .address = "sim:nobody", .state = REPLICA_DOWN};
    assert_int_equal(source_put(h.s, &m, NULL), 0);
    run(&h, 100);
    assert_int_not_equal(registry_get(h.g, "m/1")->state, REPLICA_READY);
    assert_true(registry_all_ready(h.g)); /* somebody else serves m */
    m.id = "n/0", m.model = "n";
    assert_int_equal(source_put(h.s, &m, NULL), 0);
    run(&h, 100);
    assert_false(registry_all_ready(h.g)); /* and nobody n */
    source_close(other);
    house_close(&h);
}

static void is_missing_because(const house *h, const char *model, const char *want)
{
    char why[300];
    const replica_set *s = registry_find(h->g, model);
    assert_true(registry_is_missing(s));
    registry_say_missing(s, why, sizeof why);
    assert_string_equal(why, want);
}

static void registry_says_why_a_model_is_missing(void **state)
{
    house h;
    house_open(&h);
    source_synced(h.s);
    assert_true(registry_all_ready(h.g));
    assert_int_equal(registry_declare(h.g, "m", NULL), 0);
    assert_false(registry_all_ready(h.g));
    is_missing_because(&h, "m", "no machine has started it yet");
    registry_give_up(h.g, "m", "it lacks a label (attic)", true);
    is_missing_because(&h, "m", "it lacks a label (attic)");
    assert_true(registry_find(h.g, "m")->lasting);
    registry_expect(h.g, "m");
    assert_null(registry_find(h.g, "m")->absent);
    assert_false(registry_find(h.g, "m")->lasting);
    registry_give_up(h.g, "m", "again", true);
    member m = {
        .id = "m/0", .generation = 1, .model = "m", .state = REPLICA_FAILED, .reason = "wrong digest"};
    m.address = "sim:a";
    assert_int_equal(source_put(h.s, &m, NULL), 0);
    is_missing_because(&h, "m", "its worker failed: wrong digest");
    assert_false(registry_find(h.g, "m")->lasting);
    source_drop(h.s, "m/0", 1);
    is_missing_because(&h, "m", "no machine has started it yet");
    m.id = "g/0", m.model = "g", m.guest = true; /* a request has loaded it */
    assert_int_equal(source_put(h.s, &m, NULL), 0);
    assert_false(registry_is_missing(registry_find(h.g, "g")));
    put(&h, "m/1", 1, "sim:a");
    run(&h, 100);
    assert_false(registry_is_missing(registry_find(h.g, "m")));
    registry_undeclare(h.g, "m");
    house_close(&h);
}

/* /readyz waits for one replica of a model whose number follows the load, and for none of one that rests. */
static void registry_waits_for_no_replica_that_the_load_brings(void **state)
{
    house h;
    house_open(&h);
    source *agent;
    assert_int_equal(source_open(&agent, h.g, "agent", NULL), 0);
    source_synced(h.s);
    source_synced(agent);
    assert_int_equal(registry_vary(h.g, "m", true, false, NULL), 0);
    assert_null(registry_find(h.g, "m")); /* nobody has heard of it */
    put(&h, "m/0", 1, "sim:a");
    run(&h, 100);
    member m = {.id = "m/1", .generation = 1, .model = "m", .address = "sim:nobody", .state = REPLICA_DOWN};
    assert_int_equal(source_put(agent, &m, NULL), 0);
    run(&h, 100);
    assert_false(registry_all_ready(h.g));
    assert_int_equal(registry_vary(h.g, "m", true, false, NULL), 0);
    assert_true(registry_all_ready(h.g));
    source_drop(h.s, "m/0", 1);
    assert_false(registry_all_ready(h.g)); /* one is waited for */
    assert_int_equal(registry_vary(h.g, "m", true, true, NULL), 0);
    assert_true(registry_all_ready(h.g));
    source_drop(agent, "m/1", 1);
    assert_true(registry_all_ready(h.g));
    assert_non_null(registry_find(h.g, "m")); /* known, without any */
    registry_give_up(h.g, "m", "its memory is taken (attic)", true);
    is_missing_because(&h, "m", "its memory is taken (attic)");
    registry_expect(h.g, "m");
    m.state = REPLICA_FAILED;
    m.reason = "wrong digest";
    assert_int_equal(source_put(agent, &m, NULL), 0);
    is_missing_because(&h, "m", "its worker failed: wrong digest");
    source_drop(agent, "m/1", 1);
    assert_int_equal(registry_vary(h.g, "m", false, false, NULL), 0);
    assert_null(registry_find(h.g, "m"));
    source_close(agent);
    house_close(&h);
}

static void registry_gives_an_id_to_the_source_of_its_newest_life(void **state)
{
    house h;
    source *other;
    house_open(&h);
    assert_int_equal(source_open(&other, h.g, "other", NULL), 0);
    replica *r = put(&h, "m/0", 5, "sim:a");
    member m = {.id = "m/0", .generation = 5, .model = "m", .address = "sim:b"};
    assert_int_equal(source_put(other, &m, NULL), 0);
    assert_string_equal(r->address, "sim:a"); /* it says nothing new */
    source_drop(other, "m/0", 5);
    assert_ptr_equal(registry_get(h.g, "m/0"), r);
    m.generation = 6;
    m.address = "sim:a";
    assert_int_equal(source_put(other, &m, NULL), 0);
    source_drop(h.s, "m/0", 6);
    assert_ptr_equal(registry_get(h.g, "m/0"), r);
    source_close(other);
    assert_null(registry_get(h.g, "m/0"));
    house_close(&h);
}

/* A machine that joined under the name of a model here, and says that its replica "0" is the newest. */
static void registry_lets_no_machine_take_the_replicas_of_another(void **state)
{
    house h;
    source *other;
    shoal_err err;
    house_open(&h);
    assert_int_equal(source_open(&other, h.g, "agents", NULL), 0);
    replica *r = put(&h, "m/0", 5, "sim:a");
    node n = {.name = "m"};
    assert_int_equal(source_put_node(other, &n, NULL), 0);
    member m = {.id = "m/0", .generation = UINT64_MAX, .model = "m", .address = "sim:b", .node = "m"};
    assert_int_equal(source_put(other, &m, &err), SHOAL_EINVALID);
    assert_string_equal(err.message, "m/0 is another machine's");
    source_drop(other, "m/0", UINT64_MAX);
    source_drop_node(other, "m");
    assert_ptr_equal(registry_get(h.g, "m/0"), r);
    assert_string_equal(r->address, "sim:a");
    source_close(other);
    assert_ptr_equal(registry_get(h.g, "m/0"), r);
    house_close(&h);
}

/* The machine attaches to another gateway: who has the newer epoch speaks for it and for what is on it. */
static void registry_hands_a_machine_on_from_one_source_to_another(void **state)
{
    house h;
    source *own;
    house_open(&h); /* its source is another gateway's word */
    assert_int_equal(source_open(&own, h.g, "agents", NULL), 0);
    node n = {.name = "pi", .site = "attic", .epoch = 5};
    member m = {.id = "pi/m/0", .generation = 3, .model = "m", .address = "sim:a", .node = "pi"};
    sim_worker_at(&h.world, "sim:a");
    assert_int_equal(source_put_node(h.s, &n, NULL), 0);
    assert_int_equal(source_put(h.s, &m, NULL), 0);
    run(&h, 100);
    replica *r = registry_get(h.g, "pi/m/0");
    n.site = "cellar";
    n.epoch = 6;
    assert_int_equal(source_put_node(own, &n, NULL), 0);
    assert_int_equal(source_put(own, &m, NULL), 0);
    assert_string_equal(registry_node_source(h.g, "pi"), "agents");
    assert_string_equal(r->source, "agents");
    n.site = "attic"; /* old news */
    n.epoch = 5;
    assert_int_equal(source_put_node(h.s, &n, NULL), 0);
    assert_int_equal(source_put(h.s, &m, NULL), 0);
    assert_string_equal(r->node->site, "cellar");
    assert_string_equal(r->source, "agents");
    source_drop_node(own, "pi"); /* it has left; the other still says that it is there */
    assert_string_equal(registry_node_source(h.g, "pi"), "test");
    assert_ptr_equal(registry_get(h.g, "pi/m/0"), r);
    assert_string_equal(r->source, "test");
    assert_int_equal(r->state, REPLICA_READY);
    assert_int_equal(h.n_dropped, 0);
    source_drop(h.s, "pi/m/0", 3);
    assert_null(registry_get(h.g, "pi/m/0"));
    source_drop_node(h.s, "pi");
    assert_null(registry_node(h.g, "pi"));
    source_close(own);
    house_close(&h);
}

/* A source that says no more of what another speaks for takes nothing away; neither does its end. */
static void registry_forgets_who_says_no_more(void **state)
{
    house h;
    source *own;
    house_open(&h);
    assert_int_equal(source_open(&own, h.g, "agents", NULL), 0);
    node n = {.name = "pi", .epoch = 1};
    member m = {.id = "pi/m/0", .generation = 3, .model = "m", .address = "sim:a", .node = "pi"};
    sim_worker_at(&h.world, "sim:a");
    assert_int_equal(source_put_node(own, &n, NULL), 0);
    assert_int_equal(source_put(own, &m, NULL), 0);
    assert_int_equal(source_put_node(h.s, &n, NULL), 0);
    assert_int_equal(source_put(h.s, &m, NULL), 0);
    source_drop(h.s, "pi/m/0", 3);
    source_drop_node(h.s, "pi");
    assert_non_null(registry_get(h.g, "pi/m/0"));
    source_close(own);
    assert_null(registry_get(h.g, "pi/m/0"));
    assert_null(registry_node(h.g, "pi"));
    house_close(&h);
}

static void registry_shows_the_newest_facts_of_a_node(void **state)
{
    house h;
    house_open(&h);
    const char *labels[] = {"kitchen", "quiet"};
    node n = {.name = "pi", .site = "home", .n_cores = 4, .labels = labels, .n_labels = 2};
    assert_int_equal(source_put_node(h.s, &n, NULL), 0);
    sim_worker_at(&h.world, "sim:a");
    member m = {.id = "pi/m/0", .generation = 1, .model = "m", .address = "sim:a", .node = "pi"};
    assert_int_equal(source_put(h.s, &m, NULL), 0);
    replica *r = replica_ref(registry_get(h.g, "pi/m/0"));
    assert_true(node_has_label(r->node, "quiet"));
    n.n_labels = 1;
    n.on_battery = true;
    assert_int_equal(source_put_node(h.s, &n, NULL), 0);
    assert_true(r->node->on_battery);
    assert_false(node_has_label(r->node, "quiet"));
    assert_ptr_equal(registry_node(h.g, "pi"), r->node);
    assert_int_equal(source_put_node(h.s, &(node){0}, NULL), SHOAL_EINVALID);
    source_drop_node(h.s, "pi");
    assert_null(registry_node(h.g, "pi"));
    assert_null(registry_get(h.g, "pi/m/0"));
    assert_true(r->dropped);
    assert_string_equal(r->node->name, "pi"); /* a call there may still name it */
    assert_int_equal(h.n_nodes, 3);
    replica_unref(r);
    house_close(&h);
}

/* ---- sites --------------------------------------------------------------------------------------- */

static void put_at_site(house *h, const char *name, const char *site)
{
    char id[40], address[40];
    node n = {.name = name, .site = site};
    snprintf(id, sizeof id, "%s/m", name);
    snprintf(address, sizeof address, "sim:%s", name);
    sim_worker_at(&h->world, address);
    assert_int_equal(source_put_node(h->s, &n, NULL), 0);
    member m = {.id = id, .generation = 1, .model = "m", .address = address, .node = name};
    assert_int_equal(source_put(h->s, &m, NULL), 0);
}

/* The order that registry.h promises: those here, those away, those that take no calls. */
static void check_order(house *h, size_t n_here, size_t n_away)
{
    const replica_set *s = registry_find(h->g, "m");
    if (s->n_away != n_away || s->n_ready != n_here + n_away)
        fail_msg("%zu here and %zu away, not %zu and %zu", s->n_ready - s->n_away, s->n_away, n_here, n_away);
    for (size_t i = 0; i < s->n; i++) {
        const replica *r = s->replicas[i];
        bool takes = r->state == REPLICA_READY && !r->silent;
        assert_int_equal(takes, i < s->n_ready);
        if (takes) assert_int_equal(registry_is_away(h->g, r), i >= n_here);
    }
}

static void registry_puts_the_replicas_of_its_site_first(void **state)
{
    static const char *const names[] = {"a", "b", "c", "d", "e"};
    static const char *const sites[] = {"garden", "home", NULL, "home", "garden"};
    house h;
    house_open(&h);
    for (int i = 0; i < 5; i++) put_at_site(&h, names[i], sites[i]);
    put(&h, "m/0", 1, "sim:own"); /* of this machine */
    sim_worker_at(&h.world, "sim:own");
    run(&h, 3000);
    check_order(&h, 6, 0); /* sites play no part */
    router_spill rule = {0};
    assert_int_equal(registry_set_site(h.g, "home", &rule, NULL), 0);
    check_order(&h, 3, 3);
    put_at_site(&h, "b", "garden"); /* a machine was carried over */
    check_order(&h, 2, 4);
    put_at_site(&h, "c", "home");
    check_order(&h, 3, 3);
    sim_freeze(&h.world, sim_worker_at(&h.world, "sim:d"), true); /* one here and one away fall silent */
    sim_freeze(&h.world, sim_worker_at(&h.world, "sim:e"), true);
    run(&h, 1000);
    check_order(&h, 2, 2);
    source_drop_node(h.s, "a");
    check_order(&h, 2, 1);
    sim_freeze(&h.world, sim_worker_at(&h.world, "sim:d"), false);
    sim_freeze(&h.world, sim_worker_at(&h.world, "sim:e"), false);
    run(&h, 1000);
    check_order(&h, 3, 2);
    assert_int_equal(registry_set_site(h.g, "garden", &rule, NULL), 0);
    check_order(&h, 3, 2); /* m/0, b, e; away c, d */
    assert_int_equal(registry_set_site(h.g, "", &rule, NULL), 0);
    check_order(&h, 5, 0);
    house_close(&h);
}

static void registry_measures_how_far_away_a_worker_is(void **state)
{
    house h;
    house_open(&h);
    put_at_site(&h, "a", "garden");
    run(&h, 3000);
    replica *r = registry_get(h.g, "a/m");
    if (r->rtt_ms < SIM_HOP_MS || r->rtt_ms > 2 * SIM_HOP_MS) fail_msg("%g ms", r->rtt_ms);
    house_close(&h);
}

/* ---- listeners ----------------------------------------------------------------------------------- */

enum { MANY_EARS = 100 };

typedef struct ear {
    house *h;
    int n;
    bool leaves, drops, puts;
} ear;

static void ear_hears(void *user, const registry_event *e)
{
    ear *x = user;
    x->n++;
    if (x->leaves) registry_unlisten(x->h->g, ear_hears, x);
    if (x->drops && e->what == REGISTRY_CHANGE) source_drop(x->h->s, e->replica->id, e->replica->generation);
    if (x->puts && e->what == REGISTRY_DROP) put(x->h, e->replica->id, e->replica->generation + 1, "sim:a");
}

static void registry_tells_all_listeners_however_many(void **state)
{
    house h;
    ear ears[MANY_EARS] = {0};
    house_open(&h);
    for (int i = 0; i < MANY_EARS; i++) {
        ears[i] = (ear){.h = &h, .leaves = i % 3 == 0};
        assert_int_equal(registry_listen(h.g, ear_hears, &ears[i], NULL), 0);
    }
    put(&h, "m/0", 1, "sim:a"); /* ADD */
    for (int i = 0; i < MANY_EARS; i++) assert_int_equal(ears[i].n, 1);
    source_drop(h.s, "m/0", 1);
    for (int i = 0; i < MANY_EARS; i++) assert_int_equal(ears[i].n, i % 3 ? 2 : 1);
    house_close(&h);
}

static void registry_bears_listeners_that_drop_and_put(void **state)
{
    house h;
    house_open(&h);
    ear dropper = {.h = &h, .drops = true}, putter = {.h = &h, .puts = true}, last = {.h = &h};
    assert_int_equal(registry_listen(h.g, ear_hears, &dropper, NULL), 0);
    assert_int_equal(registry_listen(h.g, ear_hears, &putter, NULL), 0);
    assert_int_equal(registry_listen(h.g, ear_hears, &last, NULL), 0);
    put(&h, "m/0", 1, "sim:a");
    run(&h, 1000);
    assert_true(last.n > 10);
    assert_non_null(registry_get(h.g, "m/0"));
    assert_true(h.world.n_channels <= 3);
    house_close(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(registry_finds_members_by_id_and_by_model),
        cmocka_unit_test(registry_asks_standbys_while_one_that_serves_is_missing),
        cmocka_unit_test(registry_keeps_a_declared_model_without_replicas),
        cmocka_unit_test(route_finds_the_adapter_that_a_request_wants),
        cmocka_unit_test(route_tells_replicas_of_one_file_apart_by_identity),
        cmocka_unit_test(registry_lets_a_dropped_replica_live_until_its_last_call_left),
        cmocka_unit_test(registry_ignores_news_of_an_older_life),
        cmocka_unit_test(registry_makes_a_new_life_of_a_restarted_worker),
        cmocka_unit_test(registry_tells_who_could_not_start_from_who_is_started_again),
        cmocka_unit_test(registry_counts_the_lives_that_its_source_does_not),
        cmocka_unit_test(registry_makes_another_replica_of_one_that_moved),
        cmocka_unit_test(registry_polls_who_has_nothing_to_do_less_often),
        cmocka_unit_test(registry_sends_nothing_to_a_silent_worker),
        cmocka_unit_test(registry_tells_of_calls_at_a_worker_that_nobody_watches),
        cmocka_unit_test(registry_counts_no_silence_while_it_stood_still),
        cmocka_unit_test(registry_gives_up_nobody_whom_an_agent_watches),
        cmocka_unit_test(registry_asks_no_agent_that_is_gone),
        cmocka_unit_test(registry_knows_who_waits_for_cores),
        cmocka_unit_test(registry_follows_what_an_agent_says),
        cmocka_unit_test(registry_is_ready_when_all_sources_and_replicas_are),
        cmocka_unit_test(registry_says_why_a_model_is_missing),
        cmocka_unit_test(registry_waits_for_no_replica_that_the_load_brings),
        cmocka_unit_test(registry_gives_an_id_to_the_source_of_its_newest_life),
        cmocka_unit_test(registry_believes_no_nonsense_of_a_worker),
        cmocka_unit_test(registry_lets_no_machine_take_the_replicas_of_another),
        cmocka_unit_test(registry_hands_a_machine_on_from_one_source_to_another),
        cmocka_unit_test(registry_forgets_who_says_no_more),
        cmocka_unit_test(registry_shows_the_newest_facts_of_a_node),
        cmocka_unit_test(registry_puts_the_replicas_of_its_site_first),
        cmocka_unit_test(registry_measures_how_far_away_a_worker_is),
        cmocka_unit_test(registry_tells_all_listeners_however_many),
        cmocka_unit_test(registry_bears_listeners_that_drop_and_put),
    };
    return cmocka_run_group_tests_name("registry", tests, NULL, NULL);
}
