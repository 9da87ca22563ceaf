/* A whole cluster in simulated time: thousands of replicas come, go, die, freeze and return while calls run.
 * No call is given to a replica that was dropped or that it excludes, none is lost while one of its model's
 * replicas lives, and no decision looks at more than a few. SHOAL_SIM_SEED=N runs one seed, SHOAL_SIM_SEEDS=N
 * so many. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/log.h"
#include "cluster/registry.h"
#include "cluster/route.h"
#include "sim_workers.h"

enum {
    LOOKED_MOST = ROUTER_EXACT + ROUTER_SAMPLE + ROUTER_EXCLUDE_MAX,
    RETRY_MS = 20,
    DEADLINE_S = 30,
};

typedef struct plan {
    int n_replicas, n_models, n_calls, seconds;
} plan;

typedef struct place {
    char id[32], model[16], address[24];
    uint64_t generation;
    bool member;
    sim_worker *w;
} place;

typedef struct cluster {
    plan plan;
    uint64_t seed;
    sim_world world;
    registry *g;
    source *s;
    place *places;
    env_timer *faults, *traffic;
    uint64_t end_ns;
    size_t n_started, n_answered, n_given_up, n_tries, n_open, looked_most, n_faults;
} cluster;

typedef struct call {
    cluster *c;
    const char *model;
    uint64_t tried[ROUTER_EXCLUDE_MAX], begun_ns, sent_ns;
    size_t n_tried;
    replica *r;
    uint64_t life;
    env_timer *again;
} call;

static uint64_t now_ns(const cluster *c)
{
    return c->world.e->now_ns(c->world.e->user);
}

static uint64_t draw(cluster *c, uint64_t n)
{
    return c->world.e->random(c->world.e->user) % n;
}

static void check(const cluster *c, bool ok, const char *what)
{
    if (!ok) fail_msg("%s (rerun: SHOAL_SIM_SEED=%llu)", what, (unsigned long long)c->seed);
}

/* ---- calls --------------------------------------------------------------------------------------- */

static void try_call(void *arg);

static void call_free(call *k)
{
    k->c->n_open--;
    replica_unref(k->r);
    k->c->world.e->timer_free(k->again);
    free(k);
}

static void call_ended(void *user, grpc_status status, const char *message)
{
    call *k = user;
    load_leave(&k->r->load, 10, now_ns(k->c));
    if (status == GRPC_OK) {
        cost_learn(&k->r->load.cost, 10, (double)(now_ns(k->c) - k->sent_ns) / 1e6, now_ns(k->c));
        k->c->n_answered++;
        call_free(k);
        return;
    }
    if (k->n_tried < ROUTER_EXCLUDE_MAX) k->tried[k->n_tried++] = k->life;
    k->c->world.e->timer_start(k->again, 0);
}

static void check_pick(call *k, const replica *r, const router_decision *d)
{
    cluster *c = k->c;
    const place *p = NULL;
    for (size_t i = 0; i < k->n_tried; i++) check(c, k->tried[i] != r->life, "a life was picked again");
    check(c, !r->dropped && registry_get(c->g, r->id) == r, "a dropped replica was picked");
    check(c, r->state == REPLICA_READY && !r->silent, "a replica was picked that takes no calls");
    check(c, strcmp(r->model, k->model) == 0, "another model's replica was picked");
    for (int i = 0; i < c->plan.n_replicas && !p; i++)
        if (c->places[i].member && strcmp(c->places[i].id, r->id) == 0) p = &c->places[i];
    check(c, p != NULL, "the picked replica is no member");
    check(c, d->n_looked <= LOOKED_MOST, "a decision looked at too many");
    if (d->n_looked > c->looked_most) c->looked_most = d->n_looked;
}

static void try_call(void *arg)
{
    call *k = arg;
    cluster *c = k->c;
    uint64_t life_ns = now_ns(c) - k->begun_ns;
    router_request q = {.n_tokens = 10, .exclude = k->tried, .n_exclude = k->n_tried};
    router_decision d;
    replica *r;
    if (life_ns > DEADLINE_S * 1000000000ull) {
        c->n_given_up++;
        call_free(k);
        return;
    }
    c->n_tries++;
    if (route_pick(c->g, k->model, &q, &d, &r) != 0) {
        check(c, d.n_looked <= LOOKED_MOST, "a refusal looked at too many");
        k->n_tried = 0; /* all that live have refused: wait, and try anybody */
        c->world.e->timer_start(k->again, RETRY_MS);
        return;
    }
    check_pick(k, r, &d);
    replica_unref(k->r);
    k->r = replica_ref(r);
    k->life = r->life;
    k->sent_ns = now_ns(c);
    grpc_client_events ev = {.user = k, .end = call_ended};
    load_begin(&r->load, 10, now_ns(c));
    uint64_t deadline = now_ns(c) + 3 * 1000000000ull;
    if (registry_reach(c->g)->start(r->channel, "/work", "", 0, NULL, 0, deadline, &ev)) return;
    load_leave(&r->load, 10, now_ns(c));
    c->world.e->timer_start(k->again, RETRY_MS);
}

static void start_call(cluster *c)
{
    call *k = calloc(1, sizeof *k);
    k->c = c;
    k->model = c->places[draw(c, (uint64_t)c->plan.n_replicas)].model;
    k->begun_ns = now_ns(c);
    k->again = c->world.e->timer_new(c->world.e->user, try_call, k);
    c->n_started++;
    c->n_open++;
    try_call(k);
}

static void traffic(void *arg)
{
    cluster *c = arg;
    int per_tick = c->plan.n_calls / (c->plan.seconds * 100) + 1;
    for (int i = 0; i < per_tick; i++) start_call(c);
    if (now_ns(c) < c->end_ns) c->world.e->timer_start(c->traffic, 10);
}

/* ---- members and faults -------------------------------------------------------------------------- */

static void put(cluster *c, place *p)
{
    member m = {.id = p->id, .generation = p->generation, .model = p->model, .address = p->address};
    assert_int_equal(source_put(c->s, &m, NULL), 0);
    p->member = true;
}

/* The first of each model stays whole, so that no call may be lost. */
static void hurt(cluster *c, place *p)
{
    c->n_faults++;
    switch (draw(c, 6)) {
    case 0: sim_kill(&c->world, p->w); break;
    case 1:
        if (!p->w->runs) p->generation++;
        p->w->runs = true;
        if (p->member) put(c, p);
        break;
    case 2: sim_freeze(&c->world, p->w, !p->w->frozen); break;
    case 3:
        if (p->member) source_drop(c->s, p->id, p->generation);
        p->member = false;
        break;
    case 4:
        p->generation++;
        put(c, p);
        break;
    case 5: source_drop(c->s, p->id, p->generation - 1); break; /* late news */
    }
}

static void faults(void *arg)
{
    cluster *c = arg;
    int n = c->plan.n_replicas / 40 + 1;
    for (int i = 0; i < n; i++) {
        place *p = &c->places[draw(c, (uint64_t)c->plan.n_replicas)];
        if (p - c->places >= c->plan.n_models) hurt(c, p);
    }
    if (now_ns(c) < c->end_ns) c->world.e->timer_start(c->faults, 100);
}

/* A whole rack goes and comes back at once. */
static void storm(cluster *c, bool away)
{
    for (int i = c->plan.n_models; i < c->plan.n_replicas; i += 2) {
        place *p = &c->places[i];
        if (away) {
            sim_kill(&c->world, p->w);
            continue;
        }
        p->w->runs = true;
        p->generation++;
        put(c, p);
    }
}

static void cluster_open(cluster *c, uint64_t seed, plan plan)
{
    *c = (cluster){.plan = plan, .seed = seed};
    log_setup(LOG_OFF, false);
    sim_world_open(&c->world, seed);
    reach how = sim_reach(&c->world);
    const env *e = c->world.e;
    assert_int_equal(registry_new_with(&c->g, e, &how, NULL), 0);
    assert_int_equal(source_open(&c->s, c->g, "sim", NULL), 0);
    c->places = calloc((size_t)plan.n_replicas, sizeof *c->places);
    for (int i = 0; i < plan.n_replicas; i++) {
        place *p = &c->places[i];
        snprintf(p->model, sizeof p->model, "m%d", i % plan.n_models);
        snprintf(p->id, sizeof p->id, "n%d/%s", i / plan.n_models, p->model);
        snprintf(p->address, sizeof p->address, "sim:%d", i);
        p->w = sim_worker_at(&c->world, p->address);
        p->w->call_ms = 1 + draw(c, 300);
        p->generation = 1;
        put(c, p);
    }
    source_synced(c->s);
    c->faults = e->timer_new(e->user, faults, c);
    c->traffic = e->timer_new(e->user, traffic, c);
    c->end_ns = now_ns(c) + (uint64_t)plan.seconds * 1000000000ull;
    e->timer_start(c->faults, 1000);
    e->timer_start(c->traffic, 500);
}

static void cluster_close(cluster *c)
{
    c->world.e->timer_free(c->faults);
    c->world.e->timer_free(c->traffic);
    for (size_t i = 0; i < registry_count(c->g); i++) {
        const load *l = &registry_at(c->g, i)->load;
        check(c, l->n_in_flight == 0 && l->n_tokens_in_flight == 0, "a load was miscounted");
    }
    source_close(c->s);
    assert_int_equal(registry_count(c->g), 0);
    assert_int_equal(registry_count_models(c->g), 0);
    registry_free(c->g);
    sim_world_close(&c->world);
    free(c->places);
}

static void run_cluster(uint64_t seed, plan plan)
{
    cluster c;
    cluster_open(&c, seed, plan);
    env_sim_run(c.world.time, (uint64_t)plan.seconds * 500);
    storm(&c, true);
    env_sim_run(c.world.time, 2000);
    storm(&c, false);
    env_sim_run(c.world.time, (uint64_t)plan.seconds * 500 + DEADLINE_S * 1000);
    check(&c, c.n_open == 0, "a call hangs");
    check(&c, c.n_given_up == 0, "a call was lost while a replica of its model lived");
    check(&c, c.n_answered == c.n_started, "a call was answered not once");
    check(&c, c.n_faults > 100, "nothing happened");
    print_message("seed %llu: %zu calls, %zu tries, %zu faults, %zu looked at most\n",
                  (unsigned long long)seed, c.n_started, c.n_tries, c.n_faults, c.looked_most);
    cluster_close(&c);
}

static void cluster_loses_no_call_while_a_replica_lives(void **state)
{
    const char *one = getenv("SHOAL_SIM_SEED"), *many = getenv("SHOAL_SIM_SEEDS");
    uint64_t n = many ? strtoull(many, NULL, 10) : 20, first = one ? strtoull(one, NULL, 10) : 1;
    for (uint64_t seed = first; seed < first + (one ? 1 : n); seed++)
        run_cluster(seed, (plan){.n_replicas = 120, .n_models = 6, .n_calls = 10000, .seconds = 20});
}

static void cluster_of_thousands_decides_as_quickly(void **state)
{
    run_cluster(7, (plan){.n_replicas = 4000, .n_models = 20, .n_calls = 20000, .seconds = 10});
}

/* After half of the replicas come back at once, they get calls, and none gets them all. */
static void cluster_has_no_herd_after_a_recovery(void **state)
{
    cluster c;
    cluster_open(&c, 3, (plan){.n_replicas = 400, .n_models = 1, .n_calls = 40000, .seconds = 20});
    c.world.e->timer_stop(c.faults);
    for (int i = 0; i < 400; i++) c.places[i].w->call_ms = 40;
    env_sim_run(c.world.time, 5000);
    storm(&c, true);
    env_sim_run(c.world.time, 2000);
    storm(&c, false);
    for (int i = 0; i < 400; i++) c.places[i].w->n_calls = 0;
    env_sim_run(c.world.time, 5000);
    unsigned most = 0, n = 0, n_used = 0;
    for (int i = 0; i < 400; i++) {
        unsigned k = c.places[i].w->n_calls;
        most = k > most ? k : most;
        n += k;
        n_used += k > 0;
    }
    check(&c, n > 8000, "there was no traffic");
    if (most > 3 * n / 400 || n_used < 390)
        fail_msg("of %u calls one replica got %u, %u got any", n, most, n_used);
    env_sim_run(c.world.time, 60000);
    cluster_close(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cluster_loses_no_call_while_a_replica_lives),
        cmocka_unit_test(cluster_of_thousands_decides_as_quickly),
        cmocka_unit_test(cluster_has_no_herd_after_a_recovery),
    };
    return cmocka_run_group_tests_name("simulation", tests, NULL, NULL);
}
