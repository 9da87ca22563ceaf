/* rerank_calls.c: the calls of a rerank, each of which tells one candidate of its run; see rerank_calls.h. */
#include "ensemble/rerank_calls.h"

#include <stdlib.h>
#include <string.h>

#include "json/sampling.h"
#include "ensemble/rerank_run.h"

typedef struct rerank_call {
    decorator_call base; /* its inner calls are its run's */
    struct shared *s;
    size_t choice;
    env_timer *timer;     /* from the loop: it begins to tell, or goes on when a pause ends */
    response_buffer play; /* a reading of the chosen candidate's events; their bytes are the run's */
    bool plays;
    bool *gone; /* set when the call is freed, while an event is told */
} rerank_call;

/* A run and the calls that wait for it, by their choice. */
typedef struct shared {
    rerank_run *r;
    rerank_call *calls[RERANK_CANDIDATES_MAX];
    size_t n_calls, n_choices;
} shared;

/* ---- life ---------------------------------------------------------------------------------------- */

static void shared_free(shared *s)
{
    if (!s) return;
    rerank_run_free(s->r);
    free(s);
}

static void rerank_calls_call_free(rerank_call *c)
{
    shared *s = c->s;
    if (c->gone) *c->gone = true;
    c->base.b->env->timer_free(c->timer);
    decorator_call_done(&c->base);
    s->calls[c->choice] = NULL;
    if (--s->n_calls == 0) shared_free(s);
    free(c);
}

static void rerank_calls_cancel(model_call *call)
{
    rerank_calls_call_free((rerank_call *)call);
}

static void rerank_calls_pause(model_call *call, bool paused)
{
    rerank_call *c = (rerank_call *)call;
    c->base.paused = paused;
    if (!paused && c->s->r->at == RERANK_DECIDED) c->base.b->env->timer_start(c->timer, 0);
}

/* ---- telling ------------------------------------------------------------------------------------- */

static void rerank_calls_finish(rerank_call *c, const call_result *ended)
{
    const rerank_run *r = c->s->r;
    call_result res = *ended;
    res.trace = r->trace;
    if (*r->why && res.status == 0) res.wanted = r->rule->name, res.why = r->why;
    decorator_call_end(&c->base, &res);
    rerank_calls_call_free(c);
}

static void rerank_calls_fail_nomem(rerank_call *c)
{
    call_result none = call_result_of(c->base.o, SHOAL_ENOMEM, "out of memory");
    rerank_calls_finish(c, &none);
}

/* False: whoever asked has left, and c is gone. */
static bool rerank_calls_tell(rerank_call *c, const Shoal__V1__GenerateEvent *ev)
{
    bool gone = false;
    Shoal__V1__GenerateEvent more = *ev;
    Shoal__V1__Done done;
    if (ev->done && c->choice == 0) { /* what nobody hears was generated all the same */
        done = *ev->done;
        done.n_generated += rerank_run_unheard(c->s->r);
        more.done = &done;
    }
    c->gone = &gone;
    c->base.ev.event(&c->base.ev, &more.base);
    if (!gone) c->gone = NULL;
    return !gone;
}

static void play(rerank_call *c, const candidate *k)
{
    call_result res;
    ProtobufCMessage *reply;
    while (!c->base.paused && response_buffer_has_more(&c->play)) {
        ProtobufCMessage *m = response_buffer_next(&c->play, c->base.o);
        if (!m) {
            rerank_calls_fail_nomem(c);
            return;
        }
        bool here = rerank_calls_tell(c, (Shoal__V1__GenerateEvent *)m);
        response_buffer_free(m);
        if (!here) return;
    }
    if (c->base.paused) return;
    response_buffer_result(&k->kept, c->base.o, &res, &reply);
    rerank_calls_finish(c, &res);
    response_buffer_free(reply);
}

static void rerank_calls_on_timer(void *arg)
{
    rerank_call *c = arg;
    call_result failure;
    const candidate *k = rerank_run_choice(c->s->r, c->choice, &failure);
    if (!k) {
        rerank_calls_finish(c, &failure);
        return;
    }
    if (!c->plays) c->play = k->kept;
    c->plays = true;
    play(c, k);
}

static void on_decided(void *user)
{
    shared *s = user;
    for (size_t i = 0; i < s->n_choices; i++)
        if (s->calls[i]) s->calls[i]->base.b->env->timer_start(s->calls[i]->timer, 0);
}

/* ---- the seam ------------------------------------------------------------------------------------ */

/* The request as all choices of it have it: theirs differ in number and seed. */
static size_t take_choice(Shoal__V1__GenerateRequest *req, size_t *ret_n)
{
    size_t n = req->of_choices, choice = req->choice;
    bool one = n < 2 || n > RERANK_CANDIDATES_MAX || choice >= n;
    *ret_n = one ? 1 : n;
    if (one) choice = 0;
    if (req->sampling) req->sampling->seed = sampling_seed(req->sampling->seed, 0, (uint32_t)choice);
    req->choice = req->of_choices = 0;
    return choice;
}

static bool pack(const Shoal__V1__GenerateRequest *req, buf *ret)
{
    size_t n = shoal__v1__generate_request__get_packed_size(req);
    if (buf_reserve(ret, n + 1) != 0) return false;
    ret->len = shoal__v1__generate_request__pack(req, (uint8_t *)ret->data);
    return true;
}

/* The run of another choice of the same request. */
static shared *find_shared(const rerank_calls *b, const rerank_rule *rule, const call_order *o,
                           const buf *key, size_t choice)
{
    list_each (r, &b->runs, rerank_run, link) {
        shared *s = r->user;
        bool same = r->rule == rule && strcmp(r->o->request_id, o->request_id) == 0 &&
                    r->o->deadline_ns == o->deadline_ns && r->key.len == key->len &&
                    (key->len == 0 || memcmp(r->key.data, key->data, key->len) == 0);
        if (same && choice < s->n_choices && !s->calls[choice]) return s;
    }
    return NULL;
}

/* Takes req and key. */
static shared *shared_new(rerank_calls *b, const rerank_rule *rule, call_order *o, const call_terms *t,
                          Shoal__V1__GenerateRequest *req, buf *key, size_t n_choices)
{
    shared *s = calloc(1, sizeof *s);
    if (s) {
        s->n_choices = n_choices;
        s->r = rerank_run_new(b, rule, o, t, req, n_choices);
    } else {
        shoal__v1__generate_request__free_unpacked(req, NULL);
    }
    if (!s || !s->r) {
        buf_done(key);
        free(s);
        return NULL;
    }
    s->r->key = *key;
    s->r->user = s;
    s->r->decided = on_decided;
    return s;
}

/* The run for a choice of this request, begun if need be. NULL: out of memory. */
static shared *rerank_calls_join(rerank_calls *b, const rerank_rule *rule, call_order *o, const call_terms *t,
                                 size_t *ret_choice)
{
    Shoal__V1__GenerateRequest *req = (Shoal__V1__GenerateRequest *)call_order_request(o);
    buf key = {0};
    size_t n = 1;
    if (!req) return NULL;
    *ret_choice = take_choice(req, &n);
    if (n > 1 && !pack(req, &key)) {
        shoal__v1__generate_request__free_unpacked(req, NULL);
        return NULL;
    }
    shared *s = n > 1 ? find_shared(b, rule, o, &key, *ret_choice) : NULL;
    if (!s) return shared_new(b, rule, o, t, req, &key, n);
    shoal__v1__generate_request__free_unpacked(req, NULL);
    buf_done(&key);
    return s;
}

static model_call *rerank_calls_start(calls *base, call_order *o, const call_terms *t, const call_events *ev)
{
    rerank_calls *b = (rerank_calls *)base;
    const rerank_rule *rule = decorator_rule_of(b, o->model);
    if (!rule) return calls_start(b->base.inner, o, t, ev);
    if (o->task != CALL_GENERATE) return decorator_start_for(&b->base, o, rule->members[0].model, t, ev);
    rerank_call *c = calloc(1, sizeof *c);
    if (!c) return NULL;
    c->timer = b->base.env->timer_new(b->base.env->user, rerank_calls_on_timer, c);
    c->s = c->timer ? rerank_calls_join(b, rule, o, t, &c->choice) : NULL;
    if (!c->s) {
        b->base.env->timer_free(c->timer);
        free(c);
        return NULL;
    }
    c->s->calls[c->choice] = c;
    c->s->n_calls++;
    decorator_call_init(&c->base, base, o, t, ev);
    if (c->s->r->at == RERANK_DECIDED) b->base.env->timer_start(c->timer, 0);
    return &c->base.base;
}

static call_place rerank_calls_where(const model_call *call)
{
    const rerank_call *c = (const rerank_call *)call;
    rerank_run *r = c->s->r;
    call_result failure;
    const candidate *k = r->at == RERANK_DECIDED ? rerank_run_choice(r, c->choice, &failure) : NULL;
    if (!k) return (call_place){0};
    const call_result *res = &k->kept.result;
    call_place p = call_place_of(res, k->m->model);
    p.trace = r->trace;
    if (*r->why) p.wanted = r->rule->name, p.why = r->why;
    return p;
}

static void rerank_calls_estimate(calls *base, const call_order *o, const call_terms *t, call_estimate *ret)
{
    const rerank_rule *rule = decorator_rule_of((rerank_calls *)base, o->model);
    decorator_estimate_for((decorator_calls *)base, o, rule ? rule->members[0].model : NULL, t, ret);
}

static const Shoal__V1__ModelInfo *rerank_calls_info(calls *base, const char *model, bool *ret_known)
{
    rerank_calls *b = (rerank_calls *)base;
    const rerank_rule *rule = decorator_rule_of(b, model);
    return calls_info(b->base.inner, rule ? rule->members[0].model : model, ret_known);
}

static const calls_ops OPS = {.start = rerank_calls_start,
                              .pause = rerank_calls_pause,
                              .cancel = rerank_calls_cancel,
                              .where = rerank_calls_where,
                              .estimate = rerank_calls_estimate,
                              .info = rerank_calls_info,
                              .free = decorator_free};

int rerank_calls_new(calls **ret, const env *env_, calls *inner, const rerank_options *opts, shoal_err *err)
{
    rerank_calls *b = calloc(1, sizeof *b);
    if (!b) return err_nomem(err);
    decorator_calls_init(&b->base, &OPS, env_, inner);
    list_init(&b->runs);
    b->o = *opts;
    *ret = &b->base.base;
    return 0;
}
