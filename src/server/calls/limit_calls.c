/* limit_calls.c: see limit_calls.h. */
#include "calls/limit_calls.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "calls/decorator.h"

typedef struct limit_calls {
    decorator_calls base;
    reply_limits limits;
    const route_book *book; /* NULL: there are no routes */
} limit_calls;

typedef struct limit_call {
    decorator_call base;
    limit_calls *b;
    reply_limits own; /* of the route; 0: the server's */
    env_timer *timer;
    Shoal__V1__Done so_far; /* what the end would say of the reply */
    bool began, done;       /* a token has come; the reply is whole, and only the end is to come */
    uint64_t last_ns;       /* when the last one came, by the listening clock; at first the start */
    uint64_t taken_ms;      /* of reply_ms, up to run_ns: not while it was paused */
    uint64_t run_ns;
    bool *gone; /* set where it is cancelled meanwhile */
} limit_call;

static void limit_calls_call_free(limit_call *c)
{
    c->b->base.env->timer_free(c->timer);
    decorator_call_done(&c->base);
    free(c);
}

static void limit_calls_cancel(model_call *call)
{
    limit_call *c = (limit_call *)call;
    if (c->gone) *c->gone = true;
    calls_cancel(c->base.inner);
    limit_calls_call_free(c);
}

/* ---- the limits ---------------------------------------------------------------------------------- */

typedef struct limit {
    const char *key; /* of the configuration; NULL: there is none */
    uint64_t ms;
    double left_ms;
} limit;

/* own_ms: the route's, which counts in place of the server's. */
static void add_limit(limit *nearest, const char *key, uint64_t own_ms, uint64_t ms, double used_ms)
{
    if (own_ms) ms = own_ms;
    if (ms == 0 || (nearest->key && nearest->left_ms <= (double)ms - used_ms)) return;
    *nearest = (limit){key, ms, (double)ms - used_ms};
}

static limit nearest_limit(const limit_call *c)
{
    const reply_limits *l = &c->b->limits, *own = &c->own;
    limit nearest = {0};
    double silent = decorator_listened_ms(&c->b->base, c->last_ns);
    if (!c->began) {
        const char *key = own->first_token_ms ? "first_token_ms of the route" : "first_token_ms";
        add_limit(&nearest, key, own->first_token_ms, l->first_token_ms, silent);
        return nearest;
    }
    add_limit(&nearest, "token_gap_ms", own->token_gap_ms, l->token_gap_ms, silent);
    add_limit(&nearest, "reply_ms", own->reply_ms, l->reply_ms,
              (double)c->taken_ms + decorator_listened_ms(&c->b->base, c->run_ns));
    return nearest;
}

static void limit_calls_watch(limit_call *c)
{
    limit next = nearest_limit(c);
    if (next.key && !c->base.paused)
        c->b->base.env->timer_start(c->timer, next.left_ms > 0 ? (uint64_t)next.left_ms + 1 : 0);
}

/* ---- the end ------------------------------------------------------------------------------------- */

/* Who had the call: its place dies when it is cancelled. */
typedef struct owner {
    char model[96], replica_id[128], digest[CALL_DIGEST_BYTES], adapter_digest[CALL_DIGEST_BYTES];
    char identity[BIT_IDENTITY_BYTES];
} owner;

static const char *limit_calls_copy(char *to, size_t size, const char *s)
{
    buf_copy_str(to, size, s ? s : "");
    return to;
}

/* The result names the owner, and borrows its strings. */
static call_result result_of(const limit_call *c, int status, const char *why, owner *by)
{
    call_result r = call_result_of(c->base.o, status, why);
    call_place at = calls_where(c->base.inner);
    if (!at.life) return r;
    if (at.model && *at.model) r.model = limit_calls_copy(by->model, sizeof by->model, at.model);
    r.replica_id = limit_calls_copy(by->replica_id, sizeof by->replica_id, at.replica_id);
    r.digest = limit_calls_copy(by->digest, sizeof by->digest, at.digest);
    r.identity = limit_calls_copy(by->identity, sizeof by->identity, at.identity);
    r.exact_resume = at.exact_resume;
    r.adapter_digest = limit_calls_copy(by->adapter_digest, sizeof by->adapter_digest, at.adapter_digest);
    r.life = at.life;
    const Shoal__V1__ModelInfo *info = calls_info(c->b->base.inner, r.model, NULL);
    if (info) r.version = info->version;
    if (info) r.quantisation = info->quantisation;
    return r;
}

static void end_with_what_there_is(limit_call *c)
{
    Shoal__V1__GenerateEvent e = SHOAL__V1__GENERATE_EVENT__INIT;
    owner by;
    call_result r = result_of(c, 0, "", &by);
    decorator_call *base = &c->base;
    bool gone = false;
    r.cut = true;
    calls_cancel(base->inner);
    base->inner = NULL;
    c->so_far.finish = "length";
    e.done = &c->so_far;
    c->gone = &gone;
    base->ev.event(&base->ev, &e.base);
    if (gone) return;
    decorator_call_end(base, &r);
    limit_calls_call_free(c);
}

static void end_empty(limit_call *c, const limit *which)
{
    char text[160];
    snprintf(text, sizeof text, "no token came within %llu ms (%s)", (unsigned long long)which->ms,
             which->key);
    owner by;
    call_result r = result_of(c, SHOAL_EDEADLINE, text, &by);
    calls_cancel(c->base.inner);
    c->base.inner = NULL;
    decorator_call_end(&c->base, &r);
    limit_calls_call_free(c);
}

static void on_timer(void *arg)
{
    limit_call *c = arg;
    limit next = nearest_limit(c);
    if (!next.key || c->base.paused || c->done) return;
    if (next.left_ms > 0)
        limit_calls_watch(c);
    else if (c->began)
        end_with_what_there_is(c);
    else
        end_empty(c, &next);
}

/* ---- what comes ---------------------------------------------------------------------------------- */

static void note_token(limit_call *c)
{
    bool first = !c->began;
    c->began = true;
    c->last_ns = decorator_listening_ns(&c->b->base);
    if (first)
        limit_calls_watch(
            c); /* under the other limits; from then on the timer finds last_ns newer and goes on */
}

static void limit_calls_on_event(const call_events *ev, const ProtobufCMessage *m)
{
    limit_call *c = ev->user;
    const Shoal__V1__GenerateEvent *e = (const Shoal__V1__GenerateEvent *)m;
    if (e->started) c->so_far.n_prompt = e->started->n_prompt;
    if (e->progress) c->so_far.n_cached = e->progress->n_cached;
    if (e->delta) c->so_far.n_generated += (uint32_t)e->delta->n_ids;
    c->done |= e->done != NULL;
    bool is_token = e->delta && e->delta->n_ids > 0; /* a prompt that is given back has no ids */
    if (is_token || e->refined) note_token(c);
    c->base.ev.event(&c->base.ev, m); /* may cancel: c is not touched again */
}

/* Its first token may take as long as a first token takes. */
static void on_restarted(const call_events *ev)
{
    limit_call *c = ev->user;
    c->so_far = (Shoal__V1__Done)SHOAL__V1__DONE__INIT;
    c->began = c->done = false;
    c->last_ns = decorator_listening_ns(&c->b->base);
    limit_calls_watch(c);
    decorator_restarted(ev);
}

static void limit_calls_on_end(const call_events *ev, const call_result *r)
{
    limit_call *c = ev->user;
    c->base.inner = NULL;
    decorator_call_end(&c->base, r);
    limit_calls_call_free(c);
}

static void pause(model_call *call, bool paused)
{
    limit_call *c = (limit_call *)call;
    if (paused && !c->base.paused) c->taken_ms += (uint64_t)decorator_listened_ms(&c->b->base, c->run_ns);
    decorator_pause(call, paused);
    c->last_ns = c->run_ns = decorator_listening_ns(&c->b->base);
    limit_calls_watch(c);
}

/* Endpoints have resolved the route, and say its limits; a stage of a pipeline names it. */
static reply_limits own_limits(const limit_calls *b, const call_order *o)
{
    const config_route *route = b->book ? route_find(b->book, o->model) : NULL;
    return route ? route->limits : o->limits;
}

static limit_call *call_new(limit_calls *b, call_order *o, const call_terms *t, const call_events *ev)
{
    limit_call *c = malloc(sizeof *c);
    if (!c) return NULL;
    *c = (limit_call){.b = b, .own = own_limits(b, o), .so_far = SHOAL__V1__DONE__INIT};
    c->timer = b->base.env->timer_new(b->base.env->user, on_timer, c);
    if (!c->timer) {
        free(c);
        return NULL;
    }
    decorator_call_init(&c->base, &b->base.base, o, t, ev);
    c->last_ns = c->run_ns = decorator_listening_ns(&b->base);
    return c;
}

static model_call *limit_calls_start(calls *base, call_order *o, const call_terms *t, const call_events *ev)
{
    limit_calls *b = (limit_calls *)base;
    if (o->task != CALL_GENERATE && o->task != CALL_VOTE) return calls_start(b->base.inner, o, t, ev);
    limit_call *c = call_new(b, o, t, ev);
    if (!c) return NULL;
    if (!decorator_call_start(&c->base, o, &c->base.terms, limit_calls_on_event, limit_calls_on_end,
                              on_restarted)) {
        limit_calls_call_free(c);
        return NULL;
    }
    limit_calls_watch(c);
    return &c->base.base;
}

static const calls_ops OPS = {.start = limit_calls_start,
                              .pause = pause,
                              .cancel = limit_calls_cancel,
                              .where = decorator_where,
                              .estimate = decorator_estimate,
                              .info = decorator_info,
                              .free = decorator_free};

int limit_calls_new(calls **ret, const env *env_, calls *inner, const reply_limits *limits,
                    const route_book *book, shoal_err *err)
{
    limit_calls *b = calloc(1, sizeof *b);
    if (!b) return err_nomem(err);
    decorator_calls_init(&b->base, &OPS, env_, inner);
    b->limits = *limits;
    b->book = book;
    *ret = &b->base.base;
    return 0;
}
