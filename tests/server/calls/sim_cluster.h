/* sim_cluster.h: a cluster of simulated machines under real gateways.
 *
 * Real are the registry, the router, the placement and all decorators of src/server/calls. Simulated are the
 * machines: each has an agent, which starts and stops replicas as it was assigned, starts again those that
 * crashed, ends those that froze, and tells each gateway what it has. A leader looks every SIM_PLAN_MS at the
 * machines that it hears from, plans, and tells the agents; a replica that shall leave does so when another
 * one serves.
 *
 *     sim_cluster c;
 *     sim_cluster_open(&c, seed, &(sim_size){.n_nodes = 12, .n_models = 5, .n_gateways = 2});
 *     env_sim_run(c.world.time, SIM_SETTLE_MS);
 *     sim_fault(&c);                          // something bad, and later its end
 *     calls_generate(c.gateways[0].calls, ...);
 *     sim_cluster_close(&c);
 *
 * A model lives while a replica of it could answer: it runs, and neither it nor its machine is frozen, cut
 * off, or asked to leave. sim_model says since when that has been so without a break. Include once a test
 * file. */
#ifndef TESTS_CALLS_SIM_CLUSTER_H
#define TESTS_CALLS_SIM_CLUSTER_H

#include "base/clock.h"
#include "calls/failover_calls.h"
#include "calls/hedge_calls.h"
#include "calls/replica_calls.h"
#include "calls/retry_calls.h"
#include "calls/silence_calls.h"
#include "cluster/placement.h"
#include "cluster/registry.h"
#include "../../cluster/cluster/sim_workers.h"
#include "sim_reply.h"

enum {
    SIM_GATEWAYS_MAX = 2,
    SIM_WIDTH = 4,      /* calls a replica works on at once, */
    SIM_QUEUE = 16,     /* and holds at most */
    SIM_PLAN_MS = 1000, /* from one plan to the next */
    SIM_LOST_MS = 3000, /* a machine that is not heard of for so long has lost its replicas */
    SIM_SETTLE_MS = 8000,
};
#define SIM_NS_PER_MS 1000000ull
#define SIM_GB        (1ull << 30)

typedef struct sim_size {
    int n_nodes, n_models, n_gateways;
    bool no_hedge;
    bool sites; /* machines stand at SIM_SITES, each gateway at one of them, and models at all of them */
    int replicas_max; /* of the model that is asked most; 0: by the machines there are */
    const char *form; /* the variable that runs one seed of this size; NULL: SHOAL_SIM_SEED */
} sim_size;

static const char *const SIM_SITES[] = {"north", "south", "west"};

typedef struct sim_cluster sim_cluster;

typedef struct sim_model {
    char name[16], digest[24];
    bool generates;
    double fixed_ms, token_ms; /* on a machine of speed 1 */
    size_t n_alive;            /* replicas that could answer */
    uint64_t dead_ns;          /* when there was last none */
    uint64_t late_ns;          /* when a worker that could not read for a while last refused a call */
} sim_model;

typedef enum { SEAT_FREE, SEAT_LOADS, SEAT_RUNS, SEAT_LEAVES } seat_state;

typedef struct sim_node sim_node;

/* Room for one replica on one machine; used again by the next one. */
typedef struct sim_seat {
    sim_node *node;
    sim_model *model;
    char id[48];
    seat_state state;
    bool wanted, alive, told;
    uint64_t generation;
    sim_worker *worker;
    env_timer *timer; /* loading, leaving, or the agent's look at a frozen one */
    unsigned n_jobs;
} sim_seat;

enum { SIM_SEATS = 16 }; /* a machine */

struct sim_node {
    sim_cluster *c;
    node facts;
    char name[16];
    bool up, frozen, cut_in, cut_out, attached;
    double slow, speed;
    uint64_t away_ns;   /* when it was last heard of, while it is not; 0: it is */
    env_timer *healing; /* the end of what befell it */
    sim_seat seats[SIM_SEATS];
};

typedef struct sim_gateway {
    registry *g;
    source *members;
    calls *calls;
} sim_gateway;

struct sim_cluster {
    sim_size size;
    uint64_t seed;
    sim_world world;
    sim_gateway gateways[SIM_GATEWAYS_MAX];
    sim_node *nodes;
    sim_model *models;
    placement_model *wants;
    env_timer *leader;
    call_observer observer;
    size_t n_attempts; /* that were told */
    size_t n_faults, n_moved, n_hedged, n_plans, n_placed, n_seats_moved, n_gaps;
    uint64_t changed_ns; /* when a plan last changed anything */
};

static uint64_t sim_now(const sim_cluster *c)
{
    return c->world.e->now_ns(c->world.e->user);
}

static uint64_t sim_draw(sim_cluster *c, uint64_t below)
{
    return c->world.e->random(c->world.e->user) % below;
}

static void sim_check(const sim_cluster *c, bool ok, const char *what)
{
    if (!ok)
        fail_msg("%s (rerun: %s=%llu build/tests/calls_test_simulation)", what,
                 c->size.form ? c->size.form : "SHOAL_SIM_SEED", (unsigned long long)c->seed);
}

/* ---- what lives ---------------------------------------------------------------------------------- */

static bool sim_node_answers(const sim_node *n)
{
    return n->up && !n->frozen && !n->cut_in && !n->cut_out;
}

static void sim_recount(sim_seat *s)
{
    bool alive = s->state == SEAT_RUNS && sim_node_answers(s->node) && !s->worker->frozen;
    if (alive == s->alive) return;
    s->alive = alive;
    s->model->n_alive += alive ? 1 : (size_t)-1;
    if (!alive && s->model->n_alive == 0) s->model->dead_ns = sim_now(s->node->c);
    if (alive && s->model->n_alive == 1) s->model->dead_ns = sim_now(s->node->c);
}

/* Has a replica of it been there all the time since then? */
static bool sim_lived_since(const sim_model *m, uint64_t ns)
{
    return m->n_alive > 0 && m->dead_ns < ns;
}

/* ---- what a worker does -------------------------------------------------------------------------- */

typedef struct sim_job {
    sim_reply reply;
    bool generates, read;
    double work_ms, step_ms;
    uint64_t sent_ns;
} sim_job;

static void sim_begin(sim_call *c, const void *msg, size_t n)
{
    sim_seat *s = c->ch->to->user;
    sim_job *j = c->job = calloc(1, sizeof *j);
    *j = (sim_job){.generates = strstr(c->path, "/Generate") != NULL,
                   .work_ms = s->model->fixed_ms + s->model->token_ms * (double)n / 4,
                   .step_ms = s->model->token_ms,
                   .sent_ns = sim_now(s->node->c)};
    if (j->generates) {
        Shoal__V1__GenerateRequest *q = shoal__v1__generate_request__unpack(NULL, n, msg);
        assert_non_null(q);
        sim_reply_read(&j->reply, q);
        shoal__v1__generate_request__free_unpacked(q, NULL);
    }
    c->ch->w->e->timer_start(c->answer, SIM_HOP_MS);
}

/* The worker reads the call, and takes it into its queue or refuses it. */
static void sim_take(sim_call *c)
{
    sim_job *j = c->job;
    sim_seat *s = c->ch->to->user;
    uint64_t now = sim_now(s->node->c);
    double crowd = s->n_jobs < SIM_WIDTH ? 1 : (s->n_jobs + 1.0) / SIM_WIDTH;
    double factor = crowd * s->node->slow / s->node->speed;
    if (s->state != SEAT_RUNS) {
        sim_call_end(c, GRPC_UNAVAILABLE, "draining");
    } else if (s->n_jobs == SIM_QUEUE) {
        if (now > j->sent_ns + 2 * SIM_HOP_MS * SIM_NS_PER_MS) s->model->late_ns = now;
        sim_call_end(c, GRPC_RESOURCE_EXHAUSTED, "full");
    } else {
        s->n_jobs++;
        j->read = true;
        j->step_ms *= factor;
        c->ch->w->e->timer_start(c->answer, SIM_HOP_MS + (uint64_t)(j->work_ms * factor));
    }
}

static void sim_say_embedding(sim_call *c)
{
    Shoal__V1__EmbedReply m = SHOAL__V1__EMBED_REPLY__INIT;
    Shoal__V1__Timing t = SHOAL__V1__TIMING__INIT;
    uint8_t bytes[64];
    m.timing = &t;
    c->ev.message(c->ev.user, bytes, shoal__v1__embed_reply__pack(&m, bytes));
}

static void sim_step(sim_call *c)
{
    sim_job *j = c->job;
    sim_words words;
    uint8_t bytes[128];
    if (!j->read) {
        sim_take(c);
        return;
    }
    const Shoal__V1__GenerateEvent *ev = NULL;
    c->ch->w->e->timer_start(c->answer, j->step_ms < 1 ? 1 : (uint64_t)j->step_ms);
    if (c->paused) return;
    if (j->generates) ev = sim_reply_next(&j->reply, &words);
    if (ev) {
        c->ev.message(c->ev.user, bytes, shoal__v1__generate_event__pack(ev, bytes)); /* may free c */
        return;
    }
    if (!j->generates) sim_say_embedding(c);
    sim_call_end(c, GRPC_OK, NULL);
}

static void sim_forget(sim_call *c)
{
    ((sim_seat *)c->ch->to->user)->n_jobs -= ((sim_job *)c->job)->read;
    free(c->job);
}

static void sim_describe(const sim_worker *x, Shoal__V1__ModelInfo *ret)
{
    const sim_seat *s = x->user;
    ret->task = s->model->generates ? "generate" : "embed";
    ret->digest = s->model->digest;
    ret->n_parallel = SIM_WIDTH;
}

static void sim_measure(const sim_worker *x, Shoal__V1__Stats *ret)
{
    const sim_seat *s = x->user;
    double factor = s->node->slow / s->node->speed;
    ret->prefill_fixed_ms = s->model->fixed_ms * factor;
    ret->prefill_token_ms = ret->step_ms = s->model->token_ms * factor;
    ret->decode_tokens_per_s = 1e3 / ret->step_ms;
    ret->decode_stream_ms = ret->step_ms;
}

static const sim_service SIM_SERVICE = {.begin = sim_begin,
                                        .step = sim_step,
                                        .forget = sim_forget,
                                        .describe = sim_describe,
                                        .measure = sim_measure};

/* ---- agents -------------------------------------------------------------------------------------- */

static void seat_tell(sim_seat *s)
{
    static const replica_state SAID[] = {
        [SEAT_LOADS] = REPLICA_STARTING, [SEAT_RUNS] = REPLICA_READY, [SEAT_LEAVES] = REPLICA_DRAINING};
    sim_cluster *c = s->node->c;
    if (!s->node->attached || (s->state == SEAT_FREE && !s->told)) return;
    s->told = s->state != SEAT_FREE;
    for (int i = 0; i < c->size.n_gateways; i++) {
        member m = {.id = s->id,
                    .generation = s->generation,
                    .model = s->model->name,
                    .address = s->worker->address,
                    .node = s->node->name,
                    .state = SAID[s->state]};
        if (s->state == SEAT_FREE)
            source_drop(c->gateways[i].members, s->id, s->generation);
        else
            assert_int_equal(source_put(c->gateways[i].members, &m, NULL), 0);
    }
}

static void seat_set(sim_seat *s, seat_state state, uint64_t ms)
{
    sim_cluster *c = s->node->c;
    s->state = state;
    sim_recount(s);
    if (ms)
        c->world.e->timer_start(s->timer, ms);
    else
        c->world.e->timer_stop(s->timer);
    seat_tell(s);
}

static void seat_load(sim_seat *s)
{
    sim_cluster *c = s->node->c;
    uint64_t bytes = c->wants[s->model - c->models].memory_bytes;
    s->generation++;
    s->worker->frozen = false;
    seat_set(s, SEAT_LOADS, 30 + sim_draw(c, 100) + bytes / (2 * SIM_GB / 1000));
}

static void seat_die(sim_seat *s)
{
    sim_cluster *c = s->node->c;
    sim_kill(&c->world, s->worker);
    s->worker->frozen = false;
}

/* Whatever it was that took its time. */
static void seat_due(void *arg)
{
    sim_seat *s = arg;
    sim_cluster *c = s->node->c;
    if (s->node->frozen) { /* the agent, too */
        c->world.e->timer_start(s->timer, 100);
        return;
    }
    switch (s->state) {
    case SEAT_FREE: break;
    case SEAT_LOADS:
        s->worker->runs = true;
        s->worker->cut_in = s->node->cut_in;
        s->worker->cut_out = s->node->cut_out;
        seat_set(s, SEAT_RUNS, 0);
        break;
    case SEAT_RUNS: /* it froze */
        seat_set(s, SEAT_LOADS, 0);
        seat_die(s);
        seat_load(s);
        break;
    case SEAT_LEAVES:
        seat_die(s);
        seat_set(s, SEAT_FREE, 0);
        break;
    }
}

static void seat_crash(sim_seat *s)
{
    seat_set(s, SEAT_LOADS, 0);
    seat_die(s);
    seat_load(s);
}

/* A call that has not ended; NULL: none is left. */
static sim_call *seat_call(const sim_seat *s)
{
    for (sim_channel *ch = s->worker->channels; ch; ch = ch->next)
        for (sim_call *c = ch->calls; c; c = c->next)
            if (c->job) return c;
    return NULL;
}

/* What it has in hand it gives back. An end may start and end other calls. */
static void seat_leave(sim_seat *s)
{
    seat_set(s, SEAT_LEAVES, 300);
    for (sim_call *c; (c = seat_call(s));) sim_call_end(c, GRPC_UNAVAILABLE, "draining");
}

static sim_seat *seat_for(sim_node *n, sim_model *m)
{
    sim_seat *s = n->seats;
    while (s < n->seats + SIM_SEATS && (s->state != SEAT_FREE || s->wanted || s->told)) s++;
    assert_true(s < n->seats + SIM_SEATS);
    s->model = m;
    snprintf(s->id, sizeof s->id, "%s/%s/%d", n->name, m->name, (int)(s - n->seats));
    return s;
}

/* Where this agent speaks to the leader and the gateways. */
static bool agent_is_linked(const sim_node *n)
{
    return n->up && !n->frozen && !n->cut_in && !n->cut_out;
}

static void agent_tell(sim_node *n)
{
    n->attached = true;
    for (int i = 0; i < n->c->size.n_gateways; i++)
        assert_int_equal(source_put_node(n->c->gateways[i].members, &n->facts, NULL), 0);
    for (sim_seat *s = n->seats; s < n->seats + SIM_SEATS; s++)
        if (s->model) seat_tell(s);
}

/* ---- the leader ---------------------------------------------------------------------------------- */

/* A machine that was not heard of for long has lost its replicas in the leader's eyes. */
static bool leader_counts(const sim_cluster *c, const sim_node *n)
{
    if (agent_is_linked(n)) return true;
    return n->away_ns && sim_now(c) - n->away_ns < SIM_LOST_MS * SIM_NS_PER_MS;
}

typedef struct sim_view { /* what the leader knows */
    node *nodes;
    sim_node **at;
    placement_now *now;
    size_t n_nodes, n_now;
} sim_view;

static void view_open(sim_view *v, sim_cluster *c)
{
    size_t n = (size_t)c->size.n_nodes;
    *v = (sim_view){.nodes = calloc(n, sizeof *v->nodes),
                    .at = calloc(n, sizeof *v->at),
                    .now = calloc(n * SIM_SEATS, sizeof *v->now)};
    for (sim_node *x = c->nodes; x < c->nodes + n; x++) {
        bool counts = leader_counts(c, x);
        if (counts) {
            v->at[v->n_nodes] = x;
            v->nodes[v->n_nodes++] = x->facts;
        }
        for (sim_seat *s = x->seats; s < x->seats + SIM_SEATS; s++)
            if (s->wanted) v->now[v->n_now++] = (placement_now){.model = s->model->name, .node = x->name};
    }
}

static void view_close(sim_view *v)
{
    free(v->nodes);
    free(v->at);
    free(v->now);
}

static sim_seat *find_wanted(sim_node *n, const char *model)
{
    for (sim_seat *s = n->seats; s < n->seats + SIM_SEATS; s++)
        if (s->wanted && strcmp(s->model->name, model) == 0) return s;
    return NULL;
}

static sim_node *find_machine(sim_cluster *c, const char *name)
{
    return &c->nodes[atoi(name + 1)];
}

/* Those who leave do so when somebody else is there. */
static void let_leave(sim_cluster *c)
{
    for (sim_node *n = c->nodes; n < c->nodes + c->size.n_nodes; n++)
        for (sim_seat *s = n->seats; s < n->seats + SIM_SEATS && agent_is_linked(n); s++) {
            if (s->wanted || s->state == SEAT_FREE || s->state == SEAT_LEAVES) continue;
            if (s->state == SEAT_LOADS)
                seat_set(s, SEAT_FREE, 0);
            else if (s->model->n_alive > 1)
                seat_leave(s);
        }
}

static void follow(sim_cluster *c, const sim_view *v, const placement *p)
{
    for (size_t i = 0; i < p->n_leavers; i++) {
        sim_seat *s = find_wanted(find_machine(c, p->leavers[i].node), p->leavers[i].model);
        sim_check(c, s != NULL, "the plan lets leave what is not there");
        s->wanted = false;
    }
    for (size_t i = 0; i < p->n_assignments; i++) {
        if (p->assignments[i].why == PLACEMENT_STAYS) continue;
        sim_node *n = v->at[p->assignments[i].node];
        sim_seat *s = seat_for(n, &c->models[p->assignments[i].model]);
        s->wanted = true;
        c->n_placed++;
        if (agent_is_linked(n)) seat_load(s);
    }
}

/* A machine that was away when it was told hears it now. */
static void start_missing(sim_cluster *c)
{
    for (sim_node *n = c->nodes; n < c->nodes + c->size.n_nodes; n++)
        for (sim_seat *s = n->seats; s < n->seats + SIM_SEATS && agent_is_linked(n); s++)
            if (s->wanted && s->state == SEAT_FREE) seat_load(s);
}

static void check_plan(const sim_cluster *c, const sim_view *v, const placement *p)
{
    uint64_t *taken = calloc(v->n_nodes + 1, sizeof *taken);
    for (size_t i = 0; i < p->n_assignments; i++)
        taken[p->assignments[i].node] += c->wants[p->assignments[i].model].memory_bytes;
    for (size_t i = 0; i < v->n_nodes; i++)
        sim_check(c, taken[i] <= placement_budget_bytes(&v->nodes[i]),
                  "a machine is planned over its memory");
    free(taken);
}

static void lead(void *arg)
{
    sim_cluster *c = arg;
    sim_view v;
    placement p;
    view_open(&v, c);
    assert_int_equal(
        placement_plan(&p, v.nodes, v.n_nodes, c->wants, (size_t)c->size.n_models, v.now, v.n_now, NULL), 0);
    check_plan(c, &v, &p);
    size_t before = c->n_placed;
    follow(c, &v, &p);
    c->n_plans++;
    c->n_gaps = p.n_gaps;
    c->n_seats_moved += p.n_leavers;
    if (c->n_placed > before || p.n_leavers) c->changed_ns = sim_now(c);
    placement_done(&p);
    view_close(&v);
    start_missing(c);
    let_leave(c);
    c->world.e->timer_start(c->leader, SIM_PLAN_MS);
}

/* ---- faults -------------------------------------------------------------------------------------- */

static void node_recount(sim_node *n)
{
    for (sim_seat *s = n->seats; s < n->seats + SIM_SEATS; s++)
        if (s->model) sim_recount(s);
}

/* The link of its agent, as the leader and the gateways see it. */
static void node_note_link(sim_node *n)
{
    bool linked = agent_is_linked(n);
    if (!linked && !n->away_ns) n->away_ns = sim_now(n->c);
    if (linked) n->away_ns = 0;
    n->attached = linked;
    node_recount(n);
    if (linked) agent_tell(n);
}

static void node_pass_on(sim_node *n)
{
    for (sim_seat *s = n->seats; s < n->seats + SIM_SEATS; s++) {
        if (!s->model) continue;
        sim_cut(&n->c->world, s->worker, n->cut_in, n->cut_out);
        if (s->state == SEAT_RUNS || s->state == SEAT_LEAVES) sim_freeze(&n->c->world, s->worker, n->frozen);
    }
    node_note_link(n);
}

static void node_crash(sim_node *n, uint64_t ms)
{
    n->up = false;
    n->frozen = n->cut_in = n->cut_out = false;
    node_note_link(n);
    for (sim_seat *s = n->seats; s < n->seats + SIM_SEATS; s++) {
        if (!s->model || s->state == SEAT_FREE) continue;
        s->state = SEAT_FREE; /* nobody is told: the machine is gone */
        n->c->world.e->timer_stop(s->timer);
        sim_recount(s);
        seat_die(s);
    }
    n->c->world.e->timer_start(n->healing, ms);
}

/* After a while all is as it was; a link may have lost its connections meanwhile, the workers live on. */
static void node_heal(void *arg)
{
    sim_node *n = arg;
    bool reset = (n->cut_in || n->cut_out) && sim_draw(n->c, 2);
    bool booted = !n->up;
    n->up = true;
    n->frozen = n->cut_in = n->cut_out = n->facts.draining = false;
    n->slow = 1;
    node_pass_on(n);
    for (sim_seat *s = n->seats; s < n->seats + SIM_SEATS; s++) {
        if (!s->model) continue;
        if (booted && s->wanted) seat_load(s);
        if (reset) sim_break(s->worker);
    }
}

static void node_suffer(sim_node *n, uint64_t ms)
{
    node_pass_on(n);
    n->c->world.e->timer_start(n->healing, ms);
}

static void worker_freeze(sim_seat *s)
{
    sim_freeze(&s->node->c->world, s->worker, true);
    sim_recount(s);
    s->node->c->world.e->timer_start(s->timer, 900);
}

static void late_news(sim_seat *s)
{
    sim_cluster *c = s->node->c;
    for (int i = 0; i < c->size.n_gateways; i++)
        source_drop(c->gateways[i].members, s->id, s->generation - 1);
}

/* Something happens to one machine, or to one worker on it. */
static void sim_fault(sim_cluster *c)
{
    sim_node *n = &c->nodes[sim_draw(c, (uint64_t)c->size.n_nodes)];
    sim_seat *s = &n->seats[sim_draw(c, 4)];
    bool whole = sim_node_answers(n) && n->slow == 1 && !n->facts.draining;
    bool runs = s->state == SEAT_RUNS && !s->worker->frozen;
    uint64_t kind = sim_draw(c, 12), ms = 200 + sim_draw(c, 5000);
    if (sim_draw(c, 10) == 0) ms += 10000; /* so long that it is given up */
    if (!whole || (kind < 5 && !runs)) return;
    c->n_faults++;
    switch (kind) {
    case 0:
    case 1:
    case 2: seat_crash(s); break;
    case 3: worker_freeze(s); break;
    case 4: late_news(s); break;
    case 5: node_crash(n, 1000 + ms); break;
    case 6:
        n->frozen = true;
        node_suffer(n, ms);
        break;
    case 7:
    case 8:
    case 9:
        n->cut_in = kind != 8;
        n->cut_out = kind != 7;
        node_suffer(n, ms);
        break;
    case 10:
        n->slow = 2 + (double)sim_draw(c, 8);
        node_suffer(n, ms);
        break;
    case 11:
        n->facts.draining = true;
        node_suffer(n, 3000 + ms);
        break;
    }
}

/* The machine loses its power: nothing says so, and it does not come back. */
static void sim_vanish(sim_node *n)
{
    n->cut_in = n->cut_out = true;
    node_pass_on(n);
}

/* The gateways have given it up. */
static void sim_detach(sim_node *n)
{
    for (int i = 0; i < n->c->size.n_gateways; i++)
        source_drop_node(n->c->gateways[i].members, n->facts.name);
}

/* The link between the first site and all others breaks. */
static void sim_part(sim_cluster *c, uint64_t ms)
{
    for (sim_node *n = c->nodes; n < c->nodes + c->size.n_nodes; n++) {
        if (strcmp(n->facts.site, SIM_SITES[0]) == 0) continue;
        n->cut_in = n->cut_out = true;
        node_suffer(n, ms);
    }
}

/* Every second machine is gone at once, and all of them are back at once. */
static void sim_storm(sim_cluster *c, uint64_t ms)
{
    for (int i = 0; i < c->size.n_nodes; i += 2) node_crash(&c->nodes[i], ms);
}

/* ---- life ---------------------------------------------------------------------------------------- */

/* What is told of an attempt makes sense, whatever befell it. */
static void sim_on_attempt(void *user, const call_order *o, const call_attempt *a)
{
    sim_cluster *c = user;
    c->n_attempts++;
    sim_check(c, a->start_ns > 0 && a->end_ns >= a->start_ns && a->end_ns <= sim_now(c),
              "an attempt's times are wrong");
    sim_check(c, *a->replica_id && *a->identity, "an attempt is told of nobody");
    sim_check(c, a->status == 0 || a->fault != CALL_FAULT_ABSENT, "an attempt was made of nobody");
    if (a->status == 0 && CALL_TASKS[o->task].streams)
        sim_check(c, a->n_phases == 3, "a stream ended without times");
}

static void sim_on_moved(void *user, const call_order *o, const call_move *m)
{
    ((sim_cluster *)user)->n_moved++;
}

static void sim_on_hedged(void *user, const call_order *o, bool won)
{
    ((sim_cluster *)user)->n_hedged++;
}

/* ---- what the router chose ------------------------------------------------------------------------ */

/* Calls pass through: each that was given to a replica is looked at as it begins. */
typedef struct watch {
    calls base;
    calls *inner;
    sim_gateway *w;
    const sim_cluster *c;
} watch;

static model_call *watch_start(calls *base, call_order *o, const call_terms *t, const call_events *ev)
{
    watch *x = (watch *)base;
    model_call *call = calls_start(x->inner, o, t, ev);
    call_place at = calls_where(call);
    if (at.life == 0) return call;
    const replica *r = registry_get(x->w->g, at.replica_id);
    sim_check(x->c, r && !r->dropped && r->life == at.life, "a replica was picked that is gone");
    sim_check(x->c, r->state == REPLICA_READY && !r->silent, "a replica was picked that takes no calls");
    sim_check(x->c, strcmp(r->model, o->model) == 0, "another model's replica was picked");
    sim_check(x->c, !call_terms_avoids(t, at.life), "a life was picked that the call avoids");
    sim_check(x->c, !*t->identity || strcmp(t->identity, at.identity) == 0, "other bits were picked");
    return call;
}

static void watch_look(calls *base, const call_order *o, const call_terms *t, call_estimate *ret)
{
    calls_estimate(((watch *)base)->inner, o, t, ret);
}

static const Shoal__V1__ModelInfo *watch_info(calls *base, const char *model, bool *ret_known)
{
    return calls_info(((watch *)base)->inner, model, ret_known);
}

static void watch_free(calls *base)
{
    calls_free(((watch *)base)->inner);
    free(base);
}

static calls *watch_new(sim_gateway *w, const sim_cluster *c)
{
    static const calls_ops OPS = {
        .start = watch_start, .estimate = watch_look, .info = watch_info, .free = watch_free};
    watch *x = calloc(1, sizeof *x);
    *x = (watch){.base = {&OPS}, .inner = w->calls, .w = w, .c = c};
    return &x->base;
}

/* As the gateway stacks them. */
static void sim_gateway_open(sim_gateway *w, sim_cluster *c)
{
    const env *e = c->world.e;
    connector how = sim_connector(&c->world);
    failover_options failover = {.observer = &c->observer};
    hedge_options hedge = {.observer = &c->observer};
    silence_options silence = {.observer = &c->observer};
    c->observer =
        (call_observer){.user = c, .attempt = sim_on_attempt, .moved = sim_on_moved, .hedged = sim_on_hedged};
    assert_int_equal(registry_new_with(&w->g, e, &how, NULL), 0);
    if (c->size.sites)
        assert_int_equal(registry_set_site(w->g, SIM_SITES[(w - c->gateways) % 3], &(router_spill){0}, NULL),
                         0);
    assert_int_equal(source_open(&w->members, w->g, "sim", NULL), 0);
    assert_int_equal(replica_calls_new(&w->calls, w->g, &c->observer, NULL), 0);
    w->calls = watch_new(w, c);
    assert_int_equal(retry_calls_new(&w->calls, e, w->calls, 0, NULL, NULL), 0);
    assert_int_equal(failover_calls_new(&w->calls, e, w->calls, &failover, NULL), 0);
    if (!c->size.no_hedge) assert_int_equal(hedge_calls_new(&w->calls, e, w->calls, &hedge, NULL), 0);
    assert_int_equal(silence_calls_new(&w->calls, e, w->calls, &silence, NULL), 0);
    for (int i = 0; i < c->size.n_models; i++)
        assert_int_equal(registry_declare(w->g, c->models[i].name, NULL), 0);
    source_synced(w->members);
}

static void sim_node_open(sim_node *n, sim_cluster *c, int i)
{
    *n = (sim_node){.c = c, .up = true, .slow = 1, .speed = 0.5 + (double)sim_draw(c, 16) / 8};
    snprintf(n->name, sizeof n->name, "n%d", i);
    n->facts = (node){.name = n->name,
                      .site = SIM_SITES[i % 3],
                      .n_cores = 4,
                      .memory_bytes = (4 + sim_draw(c, 12)) * SIM_GB,
                      .bytes_per_s = 2e10 * n->speed};
    n->healing = c->world.e->timer_new(c->world.e->user, node_heal, n);
    for (int k = 0; k < SIM_SEATS; k++) {
        sim_seat *s = &n->seats[k];
        char address[40];
        snprintf(address, sizeof address, "sim:%s/%d", n->name, k);
        s->node = n;
        s->worker = sim_worker_at(&c->world, address);
        s->worker->runs = false;
        s->worker->user = s;
        s->timer = c->world.e->timer_new(c->world.e->user, seat_due, s);
    }
    agent_tell(n);
}

/* What is asked more has more replicas, but at least two; sizes and costs are unlike. */
static void sim_model_open(sim_model *m, placement_model *want, sim_cluster *c, int i)
{
    int most = c->size.replicas_max ? c->size.replicas_max : c->size.n_nodes / 2, n = most / (i + 1);
    *m = (sim_model){.generates = i % 3 == 1,
                     .fixed_ms = 2 + (double)sim_draw(c, 20),
                     .token_ms = 0.5 + (double)sim_draw(c, 20) / 4};
    snprintf(m->name, sizeof m->name, "m%d", i);
    snprintf(m->digest, sizeof m->digest, "d%d", i);
    *want = (placement_model){.name = m->name,
                              .n_replicas = n > 2 ? (unsigned)n : 2,
                              .memory_bytes = SIM_GB + sim_draw(c, 3) * SIM_GB / 4};
    if (c->size.sites) want->spread = PLACEMENT_BY_SITE;
    if (c->size.sites && want->n_replicas < 3) want->n_replicas = 3;
}

static void sim_cluster_open(sim_cluster *c, uint64_t seed, const sim_size *size)
{
    *c = (sim_cluster){.seed = seed, .size = *size};
    sim_world_open(&c->world, seed);
    c->world.service = &SIM_SERVICE;
    c->models = calloc((size_t)size->n_models, sizeof *c->models);
    c->wants = calloc((size_t)size->n_models, sizeof *c->wants);
    c->nodes = calloc((size_t)size->n_nodes, sizeof *c->nodes);
    for (int i = 0; i < size->n_models; i++) sim_model_open(&c->models[i], &c->wants[i], c, i);
    for (int i = 0; i < size->n_gateways; i++) sim_gateway_open(&c->gateways[i], c);
    for (int i = 0; i < size->n_nodes; i++) sim_node_open(&c->nodes[i], c, i);
    c->leader = c->world.e->timer_new(c->world.e->user, lead, c);
    lead(c);
}

static void check_loads(const sim_cluster *c, const registry *g)
{
    for (size_t i = 0; i < registry_count(g); i++) {
        const load *l = &registry_at(g, i)->load;
        sim_check(c, l->n_in_flight == 0 && l->n_tokens_in_flight == 0, "a load was miscounted");
    }
}

static void sim_cluster_close(sim_cluster *c)
{
    for (int i = 0; i < c->size.n_gateways; i++) {
        check_loads(c, c->gateways[i].g);
        calls_free(c->gateways[i].calls);
        source_close(c->gateways[i].members);
        registry_free(c->gateways[i].g);
    }
    for (sim_node *n = c->nodes; n < c->nodes + c->size.n_nodes; n++) {
        c->world.e->timer_free(n->healing);
        for (int k = 0; k < SIM_SEATS; k++) c->world.e->timer_free(n->seats[k].timer);
    }
    c->world.e->timer_free(c->leader);
    sim_world_close(&c->world);
    free(c->nodes);
    free(c->models);
    free(c->wants);
}

#endif
