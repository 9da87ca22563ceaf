/* registry.c: the indexes of replicas, and the telling of their changes. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/registry_impl.h"
#include "wire/env_uv.h"

static const char *const state_names[] = {
#define REPLICA_STATE_NAME(e, n) n,
    REPLICA_STATE_TABLE(REPLICA_STATE_NAME)
#undef REPLICA_STATE_NAME
};

const char *replica_state_name(replica_state s)
{
    return state_names[s];
}

bool replica_could_not_start(const replica *r)
{
    return (r->state == REPLICA_FAILED || r->state == REPLICA_DOWN) && !r->info && !r->standby;
}

uint64_t registry_now(const registry *g)
{
    return g->e.now_ns(g->e.user);
}

uint64_t registry_listening_ns(const registry *g)
{
    return g->e.listening_ns(g->e.user);
}

const env *registry_env(const registry *g)
{
    return &g->e;
}

const connector *registry_connector(const registry *g)
{
    return &g->how;
}

/* ---- sites --------------------------------------------------------------------------------------- */

int registry_set_site(registry *g, const char *site, const router_spill *spill, shoal_err *err)
{
    char *copy = site && *site ? strdup(site) : NULL;
    if (site && *site && !copy) return err_nomem(err);
    free(g->site);
    g->site = copy;
    g->spill = *spill;
    for (size_t i = 0; i < g->n; i++) registry_sort(g->pollers[i]);
    return 0;
}

const char *registry_site(const registry *g)
{
    return g->site;
}

const router_spill *registry_spill(const registry *g)
{
    return &g->spill;
}

void registry_set_watts(registry *g, double watts)
{
    g->watts = watts;
}

void registry_require_names(registry *g)
{
    g->names_required = true;
}

double registry_watts(const registry *g)
{
    return g->watts;
}

bool registry_is_away(const registry *g, const replica *r)
{
    if (!g->site || !r->node) return false;
    return !r->node->site || strcmp(r->node->site, g->site) != 0;
}

/* ---- references ---------------------------------------------------------------------------------- */

replica *replica_ref(replica *r)
{
    ((health_poller *)r)->n_refs++;
    return r;
}

void replica_unref(replica *r)
{
    health_poller *l = (health_poller *)r;
    if (!l) return;
    assert(l->n_refs > 0);
    if (--l->n_refs > 0) return;
    registry *g = l->g;
    l->next_dead = g->dead;
    g->dead = l;
    g->e.timer_start(g->bury, 0);
}

static void health_poller_done(health_poller *l)
{
    node_unref(l->node);
    health_poller_free(l);
}

static void bury(void *arg)
{
    registry *g = arg;
    while (g->dead) {
        health_poller *l = g->dead;
        g->dead = l->next_dead;
        health_poller_done(l);
    }
}

/* ---- the sets of models -------------------------------------------------------------------------- */

/* The list, or a wider one with its content, that has room for an entry behind n; NULL: out of memory, and
 * the list is as it was. */
static void *with_room(void *list, size_t n, size_t *cap)
{
    if (n < *cap) return list;
    size_t more = *cap ? 2 * *cap : 8;
    void *p = realloc(list, more * sizeof(void *));
    if (p) *cap = more;
    return p;
}

static bool reserve_model(registry *g)
{
    model_set **p = with_room(g->models, g->n_models, &g->models_cap);
    if (p) g->models = p;
    return p != NULL;
}

static bool reserve_replica(registry *g, model_set *s)
{
    health_poller **all = with_room(g->pollers, g->n, &g->cap);
    replica **p = with_room(s->replicas, s->view.n, &s->cap);
    if (all) g->pollers = all;
    if (p) s->view.replicas = s->replicas = p;
    return all && p;
}

static model_set *obtain_set(registry *g, const char *model)
{
    model_set *s = strmap_get(&g->by_model, model);
    if (s) return s;
    s = calloc(1, sizeof *s);
    if (!s) return NULL;
    s->name = strdup(model);
    if (!s->name || !reserve_model(g) || !strmap_put(&g->by_model, s->name, s)) {
        free(s->name);
        free(s);
        return NULL;
    }
    s->view.model = s->name;
    g->models[g->n_models++] = s;
    return s;
}

static void set_free(model_set *s)
{
    free(s->replicas);
    free(s->name);
    free(s);
}

/* A model that is not declared goes with its last replica. */
static void set_release(registry *g, model_set *s)
{
    size_t i = 0;
    if (s->view.n > 0 || s->n_declared > 0) return;
    strmap_take(&g->by_model, s->name);
    while (g->models[i] != s) i++;
    memmove(&g->models[i], &g->models[i + 1], (--g->n_models - i) * sizeof *g->models);
    set_free(s);
}

static void set_swap(model_set *s, size_t a, size_t b)
{
    replica *ra = s->replicas[a], *rb = s->replicas[b];
    s->replicas[a] = rb;
    s->replicas[b] = ra;
    ((health_poller *)rb)->at = a;
    ((health_poller *)ra)->at = b;
}

/* A set has three parts, in this order; one is moved over the boundary between two of them by changing places
 * with its neighbour there. */
typedef enum part { HERE, AWAY, REST } part;

static part part_of(const health_poller *l)
{
    const replica_set *v = &l->set->view;
    return l->at < v->n_ready - v->n_away ? HERE : l->at < v->n_ready ? AWAY : REST;
}

static void move_back(health_poller *l)
{
    model_set *s = l->set;
    if (part_of(l) == HERE) {
        set_swap(s, l->at, s->view.n_ready - s->view.n_away - 1);
        s->view.n_away++;
    } else {
        set_swap(s, l->at, --s->view.n_ready);
        s->view.n_away--;
    }
}

static void move_forward(health_poller *l)
{
    model_set *s = l->set;
    if (part_of(l) == REST) {
        set_swap(s, l->at, s->view.n_ready++);
        s->view.n_away++;
    } else {
        set_swap(s, l->at, s->view.n_ready - s->view.n_away);
        s->view.n_away--;
    }
}

static void move_to(health_poller *l, part to)
{
    while (part_of(l) < to) move_back(l);
    while (part_of(l) > to) move_forward(l);
}

/* Standbys are asked as soon as one of those that serve does not answer, and until all of them do. */
static bool lacks_one(const model_set *s)
{
    return s->n_answering < s->n_serving || s->n_answering == 0;
}

static part registry_place_of(const health_poller *l)
{
    bool takes = l->r.state == REPLICA_READY && !l->r.silent && (!l->r.standby || l->r.stands_in);
    return !takes ? REST : registry_is_away(l->g, &l->r) ? AWAY : HERE;
}

static void count_registry(health_poller *l, bool serves, bool answers)
{
    model_set *s = l->set;
    s->n_serving += (size_t)serves - (size_t)l->serves;
    s->n_answering += (size_t)answers - (size_t)l->answers;
    l->serves = serves;
    l->answers = answers;
}

/* A standby that is to begin or to end taking calls; NULL: there is none. */
static health_poller *misplaced_standby(const model_set *s)
{
    for (size_t i = 0; i < s->view.n; i++)
        if (s->replicas[i]->standby && s->replicas[i]->stands_in != lacks_one(s))
            return (health_poller *)s->replicas[i];
    return NULL;
}

static void sort_standbys(model_set *s)
{
    if (s->n_serving == s->view.n) return;
    for (health_poller *l; (l = misplaced_standby(s));) {
        l->r.stands_in = !l->r.stands_in;
        move_to(l, registry_place_of(l));
    }
}

void registry_sort(health_poller *l)
{
    model_set *s = l->set;
    if (!s) return;
    bool lacked = lacks_one(s), serves = !l->r.standby;
    count_registry(l, serves, serves && l->r.state == REPLICA_READY && !l->r.silent);
    l->r.stands_in = l->r.standby && lacks_one(s);
    move_to(l, registry_place_of(l));
    if (lacks_one(s) != lacked) sort_standbys(s);
}

static void set_remove(health_poller *l)
{
    model_set *s = l->set;
    move_to(l, REST);
    set_swap(s, l->at, s->view.n - 1);
    s->view.n--;
    count_registry(l, false, false);
    l->set = NULL;
    sort_standbys(s);
    set_release(l->g, s);
}

const replica_set *registry_find(const registry *g, const char *model)
{
    return strmap_get(&g->by_model, model);
}

int registry_declare(registry *g, const char *model, shoal_err *err)
{
    model_set *s = obtain_set(g, model);
    if (!s) return err_nomem(err);
    s->n_declared++;
    return 0;
}

void registry_undeclare(registry *g, const char *model)
{
    model_set *s = strmap_get(&g->by_model, model);
    if (!s || s->n_declared == 0) return;
    s->n_declared--;
    set_release(g, s);
}

void registry_give_up(registry *g, const char *model, const char *why, bool lasting)
{
    model_set *s = strmap_get(&g->by_model, model);
    if (!s || s->view.n > 0) return;
    snprintf(s->absent, sizeof s->absent, "%s", why);
    s->view.absent = s->absent;
    s->view.lasting = lasting;
}

static void end_absence(model_set *s)
{
    s->view.absent = NULL;
    s->view.lasting = false;
}

void registry_expect(registry *g, const char *model)
{
    model_set *s = strmap_get(&g->by_model, model);
    if (s) end_absence(s);
}

int registry_vary(registry *g, const char *model, bool varies, bool rests, shoal_err *err)
{
    model_set *s = rests ? obtain_set(g, model) : strmap_get(&g->by_model, model);
    if (!s) return rests ? err_nomem(err) : 0;
    if (rests && !s->view.rests) s->n_declared++;
    bool undeclare = !rests && s->view.rests;
    s->view.varies = varies;
    s->view.rests = rests;
    if (undeclare) registry_undeclare(g, s->name);
    return 0;
}

size_t registry_count_models(const registry *g)
{
    return g->n_models;
}

const replica_set *registry_model_at(const registry *g, size_t i)
{
    return &g->models[i]->view;
}

/* ---- the list and the ids ------------------------------------------------------------------------ */

int registry_insert(registry *g, health_poller *l, shoal_err *err)
{
    model_set *s = obtain_set(g, l->r.model);
    if (!s || !reserve_replica(g, s) || !strmap_put(&g->by_id, l->r.id, l)) {
        if (s) set_release(g, s);
        return err_nomem(err);
    }
    g->pollers[g->n++] = l;
    l->set = s;
    l->at = s->view.n++;
    s->replicas[l->at] = &l->r;
    end_absence(s);
    return 0;
}

void registry_remove(registry *g, health_poller *l)
{
    size_t i = 0;
    while (g->pollers[i] != l) i++;
    memmove(&g->pollers[i], &g->pollers[i + 1], (--g->n - i) * sizeof *g->pollers);
    if (strmap_get(&g->by_id, l->r.id) == l) strmap_take(&g->by_id, l->r.id); /* its successor may be in */
    set_remove(l);
    health_poller_leave(l);
    registry_tell(g, &(registry_event){.what = REGISTRY_DROP, .replica = &l->r});
    replica_unref(&l->r);
}

replica *registry_get(const registry *g, const char *id)
{
    return strmap_get(&g->by_id, id); /* a health_poller begins with its replica */
}

const node *registry_node(const registry *g, const char *name)
{
    return strmap_get(&g->nodes, name);
}

size_t registry_count(const registry *g)
{
    return g->n;
}

replica *registry_at(const registry *g, size_t i)
{
    return &g->pollers[i]->r;
}

bool registry_is_missing(const replica_set *s)
{
    bool guests = s->n > 0, failed = false;
    for (size_t i = 0; i < s->n; i++) {
        const replica *r = s->replicas[i];
        if (r->state == REPLICA_READY && !r->standby) return false; /* a silent one may be slow alone */
        guests &= r->guest;
        failed |= r->state == REPLICA_FAILED;
    }
    return !guests && (!s->rests || failed || s->absent);
}

/* The one of a model's replicas whose state says most of why none takes calls. */
static const replica *telling_replica(const replica_set *s)
{
    const replica *found = NULL;
    for (size_t i = 0; i < s->n; i++)
        if (!found || s->replicas[i]->state > found->state) found = s->replicas[i];
    return found;
}

void registry_say_missing(const replica_set *s, char *ret, size_t size)
{
    const replica *r = telling_replica(s);
    bool why = r && *r->reason;
    if (!r)
        snprintf(ret, size, "%s",
                 s->absent  ? s->absent
                 : s->rests ? "the next request loads it"
                            : "no machine has started it yet");
    else if (r->state == REPLICA_FAILED || r->state == REPLICA_DOWN)
        snprintf(ret, size, "its worker %s%s%s", r->state == REPLICA_FAILED ? "failed" : "is being restarted",
                 why ? ": " : "", r->reason);
    else if (r->state == REPLICA_READY)
        snprintf(ret, size, "its only worker is a standby");
    else
        snprintf(ret, size, "its worker is %s%s%s", replica_state_name(r->state), why ? ": " : "", r->reason);
}

bool registry_all_ready(const registry *g)
{
    for (const source *s = g->sources; s; s = s->next)
        if (!s->synced) return false;
    for (size_t i = 0; i < g->n_models; i++)
        if (registry_is_missing(&g->models[i]->view)) return false;
    for (size_t i = 0; i < g->n; i++) {
        const replica *r = &g->pollers[i]->r;
        bool is_due = !r->guest && !g->pollers[i]->set->view.varies;
        if (is_due && r->state != REPLICA_READY && strcmp(r->source, "agent") == 0) return false;
    }
    return true;
}

/* ---- listeners ----------------------------------------------------------------------------------- */

int registry_listen(registry *g, registry_event_fn fn, void *user, shoal_err *err)
{
    listener *l = malloc(sizeof *l), **at = &g->listeners;
    if (!l) return err_nomem(err);
    *l = (listener){.fn = fn, .user = user};
    while (*at) at = &(*at)->next;
    *at = l;
    return 0;
}

static void sweep_listeners(registry *g)
{
    for (listener **at = &g->listeners; *at;) {
        listener *l = *at;
        if (l->fn) {
            at = &l->next;
            continue;
        }
        *at = l->next;
        free(l);
    }
}

void registry_unlisten(registry *g, registry_event_fn fn, void *user)
{
    for (listener *l = g->listeners; l; l = l->next)
        if (l->fn == fn && l->user == user) l->fn = NULL;
    if (g->n_telling == 0) sweep_listeners(g);
}

void registry_tell(registry *g, const registry_event *e)
{
    if (e->replica) replica_ref(e->replica); /* one of them may drop it */
    g->n_telling++;
    for (listener *l = g->listeners; l; l = l->next)
        if (l->fn) l->fn(l->user, e);
    if (--g->n_telling == 0) sweep_listeners(g);
    replica_unref(e->replica);
}

/* ---- life ---------------------------------------------------------------------------------------- */

int registry_new_with(registry **ret, const env *e, const connector *how, shoal_err *err)
{
    registry *g = calloc(1, sizeof *g);
    if (!g) return err_nomem(err);
    g->e = *e;
    g->how = *how;
    g->bury = e->timer_new(e->user, bury, g);
    if (!g->bury) {
        free(g);
        return err_nomem(err);
    }
    *ret = g;
    return 0;
}

int registry_new(registry **ret, uv_loop_t *loop, shoal_err *err)
{
    env e = env_uv(loop);
    connector how = connector_grpc(loop);
    return registry_new_with(ret, &e, &how, err);
}

void registry_free(registry *g)
{
    if (!g) return;
    bury(g);
    for (size_t i = 0; i < g->n; i++) health_poller_done(g->pollers[i]);
    for (size_t i = 0; i < g->n_models; i++) set_free(g->models[i]);
    for (listener *l = g->listeners, *next; l; l = next) {
        next = l->next;
        free(l);
    }
    registry_free_sources(g);
    strmap_done(&g->by_id);
    strmap_done(&g->by_model);
    g->e.timer_free(g->bury);
    free(g->pollers);
    free(g->models);
    free(g->site);
    free(g);
}
