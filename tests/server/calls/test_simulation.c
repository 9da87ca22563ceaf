/* A whole cluster in simulated time: real gateways and the real placement over machines that crash, freeze,
 * are cut off, slow down and drain, under calls of many models. No answer is lost while a replica of its
 * model lives, none is changed, placement settles, nobody is run over after a recovery, and a decision looks
 * at few.
 *
 *     SHOAL_SIM_SEED=N     one seed            SHOAL_SIM_SEEDS=N    so many
 *     SHOAL_SIM_FULL=N     1,000 machines, 200 models, 1,000,000 requests: seed N, with figures */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <malloc.h>
#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "logging/log.h"
#include "cluster/route.h"
#include "sim_cluster.h"

/* Under a sanitizer what is done counts, not how often it goes well. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define N_SEEDS 250
#else
#define N_SEEDS 1000
#endif

enum { TICK_MS = 10 };

typedef struct story {
    sim_cluster c;
    size_t n_requests, fault_every_ms;
    uint64_t seconds, end_ns;
    double *zipf; /* [n_models] shares, summed up */
    env_timer *traffic, *faults;
    struct client *clients; /* that are open */
    size_t n_started, n_streams, n_answered, n_left, n_excused, n_refused, n_open;
} story;

typedef struct client {
    struct client *next, *prev;
    story *t;
    sim_model *model;
    model_call *call;
    sim_heard heard;
    uint64_t begun_ns;
    bool leaves;
} client;

/* ---- clients ------------------------------------------------------------------------------------- */

static void client_free(client *me)
{
    if (me->prev)
        me->prev->next = me->next;
    else
        me->t->clients = me->next;
    if (me->next) me->next->prev = me->prev;
    me->t->n_open--;
    free(me);
}

static void end(client *me, const call_result *r)
{
    story *t = me->t;
    if (r->status == 0) {
        sim_check(&t->c, !me->model->generates || sim_heard_all(&me->heard), "an answer lacks a piece");
        t->n_answered++;
    } else if (r->fault == CALL_FAULT_FULL && (r->ms < TICK_MS || me->model->late_ns == sim_now(&t->c))) {
        t->n_refused++; /* as soon as it was read: more was asked than all queues can take */
    } else if (sim_lived_since(me->model, me->begun_ns)) {
        print_message("%s, after %.0f ms: %s (%s)\n", me->model->name,
                      (double)(sim_now(&t->c) - me->begun_ns) / 1e6, r->message, call_fault_name(r->fault));
        sim_check(&t->c, false, "a call was lost while a replica lived");
    } else {
        t->n_excused++;
    }
    client_free(me);
}

static void on_event(void *user, const Shoal__V1__GenerateEvent *ev)
{
    client *me = user;
    sim_heard_event(&me->heard, ev);
    if (!ev->delta || !me->leaves || me->heard.n_said < me->heard.n_tokens / 2) return;
    calls_cancel(me->call);
    me->t->n_left++;
    client_free(me);
}

static void on_stream_end(void *user, const call_result *r)
{
    end(user, r);
}

static void on_reply(void *user, const call_result *r, const Shoal__V1__EmbedReply *reply)
{
    sim_check(&((client *)user)->t->c, (r->status == 0) == (reply != NULL), "a success has no reply");
    end(user, r);
}

static sim_model *draw_model(story *t)
{
    double x = (double)sim_draw(&t->c, 1u << 30) / (1u << 30);
    int low = 0, high = t->c.size.n_models - 1;
    while (low < high) {
        int mid = (low + high) / 2;
        if (t->zipf[mid] > x)
            high = mid;
        else
            low = mid + 1;
    }
    return &t->c.models[low];
}

static void ask(client *me, calls *c)
{
    char text[64];
    snprintf(text, sizeof text, "%u %u", me->heard.seed, me->heard.n_tokens);
    if (me->model->generates) {
        Shoal__V1__GenerateRequest req = SHOAL__V1__GENERATE_REQUEST__INIT;
        calls_generate_events ev = {.user = me, .event = on_event, .end = on_stream_end};
        req.text = text;
        me->call = calls_generate(c, me->model->name, &req, NULL, &ev);
    } else {
        Shoal__V1__EmbedRequest req = SHOAL__V1__EMBED_REQUEST__INIT;
        req.adapter = text;
        me->call = calls_embed(c, me->model->name, &req, NULL, on_reply, me);
    }
    assert_non_null(me->call);
}

static void arrive(story *t)
{
    client *me = calloc(1, sizeof *me);
    *me = (client){.t = t, .next = t->clients, .model = draw_model(t), .begun_ns = sim_now(&t->c)};
    me->heard =
        (sim_heard){.seed = (uint32_t)sim_draw(&t->c, 1000), .n_tokens = 1 + (uint32_t)sim_draw(&t->c, 20)};
    me->leaves = sim_draw(&t->c, 20) == 0;
    if (t->clients) t->clients->prev = me;
    t->clients = me;
    t->n_open++;
    t->n_started++;
    t->n_streams += me->model->generates;
    ask(me, t->c.gateways[sim_draw(&t->c, (uint64_t)t->c.size.n_gateways)].calls);
}

static void traffic(void *arg)
{
    story *t = arg;
    size_t due = t->n_requests * (sim_now(&t->c) - (t->end_ns - t->seconds * 1000 * SIM_NS_PER_MS)) /
                 (t->seconds * 1000 * SIM_NS_PER_MS);
    while (t->n_started < due) arrive(t);
    if (t->n_started < t->n_requests) t->c.world.e->timer_start(t->traffic, TICK_MS);
}

static void faults(void *arg)
{
    story *t = arg;
    sim_fault(&t->c);
    if (sim_now(&t->c) < t->end_ns)
        t->c.world.e->timer_start(t->faults, 1 + sim_draw(&t->c, 2 * t->fault_every_ms));
}

/* ---- a story ------------------------------------------------------------------------------------- */

static void story_open(story *t, uint64_t seed, const sim_size *size)
{
    double sum = 0;
    sim_cluster_open(&t->c, seed, size);
    t->zipf = calloc((size_t)size->n_models, sizeof *t->zipf);
    for (int i = 0; i < size->n_models; i++) t->zipf[i] = sum += 1.0 / (i + 1);
    for (int i = 0; i < size->n_models; i++) t->zipf[i] /= sum;
    t->traffic = t->c.world.e->timer_new(t->c.world.e->user, traffic, t);
    t->faults = t->c.world.e->timer_new(t->c.world.e->user, faults, t);
    env_sim_run(t->c.world.time, SIM_SETTLE_MS);
    t->end_ns = sim_now(&t->c) + t->seconds * 1000 * SIM_NS_PER_MS;
    t->c.world.e->timer_start(t->traffic, TICK_MS);
    if (t->fault_every_ms) t->c.world.e->timer_start(t->faults, t->fault_every_ms);
}

static void story_close(story *t)
{
    t->c.world.e->timer_free(t->traffic);
    t->c.world.e->timer_free(t->faults);
    sim_cluster_close(&t->c);
    free(t->zipf);
}

/* All is well again: what was asked has been answered, and everything is where it shall stay. */
static void check_whole(story *t)
{
    sim_cluster *c = &t->c;
    sim_check(c, t->n_open == 0, "a call hangs");
    sim_check(c, t->n_started == t->n_requests, "not all was asked");
    sim_check(c, t->n_answered + t->n_left + t->n_excused + t->n_refused == t->n_started,
              "a call ended not once");
    sim_check(c, sim_now(c) - c->changed_ns > 10 * SIM_PLAN_MS * SIM_NS_PER_MS, "placement does not settle");
    sim_check(c, c->n_gaps == 0, "a replica has no place though all machines are there");
    for (int i = 0; i < c->size.n_gateways; i++)
        for (int m = 0; m < c->size.n_models; m++) {
            const replica_set *set = registry_find(c->gateways[i].g, c->models[m].name);
            sim_check(c, set->n_ready == c->wants[m].n_replicas, "a gateway does not use all replicas");
            sim_check(c, set->n == set->n_ready, "a gateway keeps what is gone");
        }
}

static void tell(story *t, uint64_t seed, const sim_size *size)
{
    env_sim *time;
    story_open(t, seed, size);
    time = t->c.world.time;
    env_sim_run(time, t->seconds * 500);
    sim_storm(&t->c, seed % 2 ? 2000 : 6000);
    env_sim_run(time, t->seconds * 500);
    env_sim_run(time, 60000);
    check_whole(t);
}

static void no_answer_is_lost_while_a_replica_lives(void **state)
{
    const char *one = getenv("SHOAL_SIM_SEED"), *many = getenv("SHOAL_SIM_SEEDS");
    uint64_t n = many ? strtoull(many, NULL, 10) : N_SEEDS, first = one ? strtoull(one, NULL, 10) : 1;
    size_t n_requests = 0, n_faults = 0, n_excused = 0, n_moved = 0, n_hedged = 0, n_refused = 0,
           n_attempts = 0;
    log_setup(getenv("SHOAL_SIM_LOG") ? LOG_DEBUG : LOG_OFF, false);
    for (uint64_t seed = first; seed < first + (one ? 1 : n); seed++) {
        story t = {.n_requests = 400, .seconds = 10, .fault_every_ms = 150};
        tell(&t, seed, &(sim_size){.n_nodes = 12, .n_models = 5, .n_gateways = 2, .sites = seed % 2});
        n_requests += t.n_started;
        n_faults += t.c.n_faults;
        n_excused += t.n_excused;
        n_moved += t.c.n_moved;
        n_hedged += t.c.n_hedged;
        n_attempts += t.c.n_attempts;
        n_refused += t.n_refused;
        story_close(&t);
    }
    print_message("%zu requests, %zu faults, %zu moved, %zu hedged; nobody could answer %zu, full were %zu\n",
                  n_requests, n_faults, n_moved, n_hedged, n_excused, n_refused);
    if (one) return;
    assert_true(20 * n_excused < n_requests);
    assert_true(100 * n_refused < n_requests);
    assert_true(n_moved > n_requests / 100);
    assert_true(n_attempts >= n_requests); /* each was at a replica, or at more than one */
    assert_true(n_faults > 20 * n);
}

/* ---- machines that vanish ------------------------------------------------------------------------- */

static size_t count_older(const story *t, uint64_t ns)
{
    size_t n = 0;
    for (const client *me = t->clients; me; me = me->next) n += me->begun_ns <= ns;
    return n;
}

/* Machines vanish for good, half a second apart, and are given up later. A call that was under way there is
 * answered elsewhere long before its machine is given up, unary or not, though no second call is made of
 * those that are merely slow; and where no replica was left, it waits for one. */
static void calls_leave_machines_that_vanish(void **state)
{
    size_t n_under_way = 0, n_excused = 0;
    log_setup(getenv("SHOAL_SIM_LOG") ? LOG_DEBUG : LOG_OFF, false);
    for (uint64_t seed = 1; seed <= 100; seed++) {
        story t = {.n_requests = 1500, .seconds = 10};
        story_open(&t, seed, &(sim_size){.n_nodes = 9, .n_models = 4, .n_gateways = 1, .no_hedge = true});
        env_sim_run(t.c.world.time, 3000);
        for (int i = 0; i < 3; i++) {
            uint64_t at_ns = sim_now(&t.c);
            sim_vanish(&t.c.nodes[i]);
            n_under_way += count_older(&t, at_ns);
            env_sim_run(t.c.world.time, 2500);
            for (const client *me = t.clients; me; me = me->next)
                sim_check(&t.c,
                          me->begun_ns > at_ns || me->model->n_alive == 0 || me->model->dead_ns >= at_ns,
                          "a call stays with a machine that vanished");
        }
        for (int i = 0; i < 3; i++) sim_detach(&t.c.nodes[i]);
        env_sim_run(t.c.world.time, 60000);
        sim_check(&t.c, t.n_open == 0, "a call hangs");
        n_excused += t.n_excused; /* without a deadline it waits two seconds for a replica */
        story_close(&t);
    }
    print_message("%zu calls were under way, of 150000 asked %zu found no replica alive\n", n_under_way,
                  n_excused);
    assert_true(n_under_way > 500 && n_excused < 1500);
}

/* ---- sites ---------------------------------------------------------------------------------------- */

static size_t count_spilled(const registry *g)
{
    size_t n = 0;
    for (size_t i = 0; i < registry_count(g); i++) n += registry_at(g, i)->load.n_spilled;
    return n;
}

/* One gateway, and more calls than its site has machines for at times. Then it is cut off from all other
 * sites: it loses nothing and asks nobody there, be they as many as they like; and they are asked again when
 * they are back. */
static void a_site_goes_on_alone(void **state)
{
    size_t n_before = 0, n_asked = 0;
    log_setup(getenv("SHOAL_SIM_LOG") ? LOG_DEBUG : LOG_OFF, false);
    for (uint64_t seed = 1; seed <= 50; seed++) {
        story t = {.n_requests = 1200, .seconds = 12};
        story_open(&t, seed, &(sim_size){.n_nodes = 9, .n_models = 3, .n_gateways = 1, .sites = true});
        env_sim_run(t.c.world.time, 4000);
        n_before += count_spilled(t.c.gateways[0].g);
        n_asked += t.n_started;
        sim_part(&t.c, 4000);
        env_sim_run(t.c.world.time, 1000); /* by now it has seen that they are silent */
        size_t n_cut = count_spilled(t.c.gateways[0].g);
        env_sim_run(t.c.world.time, 2900);
        sim_check(&t.c, count_spilled(t.c.gateways[0].g) == n_cut, "one that was cut off was asked");
        env_sim_run(t.c.world.time, 64100);
        sim_check(&t.c, t.n_excused == 0, "a site lost an answer for want of another");
        check_whole(&t);
        story_close(&t);
    }
    print_message("with all sites there %zu of %zu calls went to another\n", n_before, n_asked);
    assert_true(n_before > 0 && n_before < n_asked / 4);
}

/* ---- the whole size ------------------------------------------------------------------------------- */

static double cpu_s(void)
{
    return (double)clock() / CLOCKS_PER_SEC;
}

/* A tenth of the whole size, or all of it. */
static void large_clusters_lose_nothing(void **state)
{
    const char *full = getenv("SHOAL_SIM_FULL"), *seed = full ? full : "1";
    story t = {.n_requests = full ? 1000000 : 20000, .seconds = full ? 200 : 20, .fault_every_ms = 50};
    sim_size size = {.n_nodes = full ? 1000 : 100, .n_models = full ? 200 : 20, .n_gateways = 2};
    double begun = cpu_s();
    if (full) size.form = "SHOAL_SIM_FULL";
    log_setup(LOG_OFF, false);
    tell(&t, strtoull(seed, NULL, 10), &size);
    size_t n_replicas = registry_count(t.c.gateways[0].g);
    print_message(
        "seed %s: %zu requests (%zu streams), %zu replicas, %zu faults and a storm: %zu answered, %zu left, "
        "%zu had nobody, %zu were refused as full, 0 lost; %zu moved, %zu hedged; %zu plans, %zu seats "
        "placed, settled %.0f s after the last fault; %.1f s of CPU\n",
        seed, t.n_started, t.n_streams, n_replicas, t.c.n_faults, t.n_answered, t.n_left, t.n_excused,
        t.n_refused, t.c.n_moved, t.c.n_hedged, t.c.n_plans, t.c.n_placed,
        t.c.changed_ns > t.end_ns ? (double)(t.c.changed_ns - t.end_ns) / 1e9 : 0, cpu_s() - begun);
    story_close(&t);
}

/* ---- after a recovery ------------------------------------------------------------------------------ */

typedef struct share { /* of the calls of one second */
    unsigned n, most, n_used;
    double peak; /* the most that one replica got, over the mean */
} share;

static share share_a_second(story *t, unsigned n_replicas)
{
    share r = {0};
    sim_node *end = t->c.nodes + t->c.size.n_nodes;
    for (sim_node *x = t->c.nodes; x < end; x++)
        for (sim_seat *s = x->seats; s < x->seats + SIM_SEATS; s++) s->worker->n_calls = 0;
    env_sim_run(t->c.world.time, 1000);
    for (sim_node *x = t->c.nodes; x < end; x++)
        for (sim_seat *s = x->seats; s < x->seats + SIM_SEATS; s++) {
            unsigned n = s->worker->n_calls;
            r.most = n > r.most ? n : r.most;
            r.n += n;
            r.n_used += n > 0;
        }
    r.peak = (double)r.most * n_replicas / r.n;
    return r;
}

/* Half of n machines come back at once, alike and unknown: they are used from the first second on, and none
 * gets much more of it than one gets of any other second. */
static void recover(int n)
{
    story t = {.n_requests = 300 * (size_t)n, .seconds = 20};
    double before = 0, after = 0;
    log_setup(LOG_OFF, false);
    story_open(&t, 3, &(sim_size){.n_nodes = n, .n_models = 1, .n_gateways = 2, .replicas_max = n});
    for (int i = 0; i < n; i++) t.c.nodes[i].speed = 1;
    env_sim_run(t.c.world.time, 3000);
    for (int i = 0; i < 5; i++) before = fmax(before, share_a_second(&t, (unsigned)n).peak);
    sim_storm(&t.c, 2000);
    env_sim_run(t.c.world.time, 4500); /* booted, loaded, and connected again */
    for (int i = 0; i < 5; i++) {
        share s = share_a_second(&t, (unsigned)n);
        after = fmax(after, s.peak);
        sim_check(&t.c, s.n > 12 * (unsigned)n, "there was no traffic");
        sim_check(&t.c, n <= ROUTER_EXACT || s.n_used >= (unsigned)n * 9 / 10,
                  "those who came back get no calls");
    }
    print_message(
        "the most that one of %d got of a second's calls, over the mean: %.1f before half of them went, "
        "%.1f after they were back\n",
        n, before, after);
    sim_check(&t.c, after < 1.5 * before && (n <= ROUTER_EXACT || after < 5), "somebody was run over");
    env_sim_run(t.c.world.time, 60000);
    check_whole(&t);
    sim_check(&t.c, t.n_refused == 0, "a queue was full");
    story_close(&t);
}

/* A few are all looked at for each call, and the fastest of the idle ones gets the most; of many some are. */
static void nobody_is_run_over_after_a_recovery(void **state)
{
    recover(20);
    recover(200);
}

/* ---- how work and memory grow ---------------------------------------------------------------------- */

static int stub_open(void *user, grpc_channel **ret, const char *address, const grpc_channel_events *ev,
                     shoal_err *err)
{
    *ret = user;
    ev->connected(ev->user);
    return 0;
}

static bool stub_is_connected(const grpc_channel *ch)
{
    return true;
}

static void stub_close(grpc_channel *ch) {}

static void stub_cancel(grpc_client_call *c) {}

/* Describe is answered at once; nothing else ever is. */
static grpc_client_call *stub_start(grpc_channel *ch, const char *path, const void *msg, size_t n,
                                    const http_header *metadata, size_t n_metadata, uint64_t deadline_ns,
                                    const grpc_client_events *ev)
{
    Shoal__V1__ModelInfo m = SHOAL__V1__MODEL_INFO__INIT;
    uint8_t bytes[64];
    m.task = "embed";
    m.digest = "d";
    ev->message(ev->user, bytes, shoal__v1__model_info__pack(&m, bytes));
    ev->end(ev->user, GRPC_OK, NULL);
    return NULL;
}

static size_t bytes_in_use(void)
{
    return mallinfo2().uordblks;
}

typedef struct growth {
    size_t looked_most, bytes_each;
    double ns_each;
} growth;

static growth grow(size_t n)
{
    enum { PICKS = 20000 };
    env_sim *time = env_sim_new(1);
    connector how = {.open = stub_open,
                     .is_connected = stub_is_connected,
                     .close = stub_close,
                     .start = stub_start,
                     .cancel = stub_cancel,
                     .user = time};
    registry *g;
    source *s;
    growth r = {0};
    size_t before = bytes_in_use();
    assert_int_equal(registry_new_with(&g, env_sim_env(time), &how, NULL), 0);
    assert_int_equal(source_open(&s, g, "table", NULL), 0);
    for (size_t i = 0; i < n; i++) {
        char id[32];
        snprintf(id, sizeof id, "node-%zu/m", i);
        member m = {.id = id, .generation = 1, .model = "m", .address = "relay:far.example:7000/node/m"};
        assert_int_equal(source_put(s, &m, NULL), 0);
    }
    assert_int_equal(registry_find(g, "m")->n_ready, n);
    r.bytes_each = (bytes_in_use() - before) / n;
    double begun = cpu_s();
    for (int i = 0; i < PICKS; i++) {
        router_request q = {.n_tokens = 10};
        router_decision d;
        replica *x;
        assert_int_equal(route_pick(g, "m", "", &q, NULL, &d, &x), 0);
        r.looked_most = d.n_looked > r.looked_most ? d.n_looked : r.looked_most;
        load_begin(&x->load, 10, registry_env(g)->now_ns(registry_env(g)->user));
    }
    r.ns_each = (cpu_s() - begun) * 1e9 / PICKS;
    source_close(s);
    registry_free(g);
    env_sim_free(time);
    return r;
}

static void work_and_memory_do_not_grow_with_the_cluster(void **state)
{
    log_setup(LOG_OFF, false);
    for (size_t n = 10; n <= 10000; n *= 10) {
        growth r = grow(n);
        print_message(
            "%zu replicas: a decision looks at %zu at most and takes %.0f ns; %zu bytes a replica\n", n,
            r.looked_most, r.ns_each, r.bytes_each);
        assert_true(r.looked_most <= ROUTER_EXACT);
        assert_true(n <= ROUTER_EXACT || r.looked_most <= ROUTER_SAMPLE);
        assert_true(r.bytes_each < 4096);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_answer_is_lost_while_a_replica_lives),
        cmocka_unit_test(calls_leave_machines_that_vanish),
        cmocka_unit_test(a_site_goes_on_alone),
        cmocka_unit_test(nobody_is_run_over_after_a_recovery),
        cmocka_unit_test(work_and_memory_do_not_grow_with_the_cluster),
        cmocka_unit_test(large_clusters_lose_nothing),
    };
    return cmocka_run_group_tests_name("simulation", tests, NULL, NULL);
}
