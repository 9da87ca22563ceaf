/* silence_calls.c: a second start for streams that are silent; see silence_calls.h. */
#include "calls/silence_calls.h"

#include <stdio.h>
#include <stdlib.h>

#include "logging/log.h"
#include "calls/decorator.h"
#include "calls/resume.h"

#define N_SIGNS    256 /* lives are numbers in a row: few share a place, and then evidence is lost, no more */
#define GAP_WEIGHT 0.05 /* of the newest gap */
#define BUDGET_MAX 10.0

/* What a life of a replica has said lately, to anybody. Times are by decorator_listening_ns. */
typedef struct life_signs {
    uint64_t life, spoke_ns;
    double gap_ms;     /* mean of what came between two events of a stream */
    unsigned n_beaten; /* second starts that won against it since it last spoke */
} life_signs;

typedef struct silence_calls {
    decorator_calls base;
    silence_options o;
    double budget; /* second starts that are allowed now */
    life_signs signs[N_SIGNS];
} silence_calls;

typedef struct silence_call silence_call;

typedef struct branch { /* one of the two that may carry a stream */
    silence_call *c;
    model_call *inner;           /* NULL: none */
    double expected_ms, step_ms; /* as it began */
} branch;

struct silence_call {
    decorator_call base; /* its inner calls are the branches' */
    silence_calls *b;
    branch branches[2];
    branch *main;
    env_timer *timer;
    bool moved;
    uint64_t spoke_ns;
    /* Its worker was last seen at work, or wanting a core, though the stream says nothing. */
    uint64_t worked_ns;
    uint64_t rival_life; /* whom the second start is against */
    resume log;
};

static branch *rival_of(silence_call *c)
{
    return &c->branches[c->main == &c->branches[0]];
}

/* ---- what is known of a life --------------------------------------------------------------------- */

static life_signs *signs_of(silence_calls *b, uint64_t life)
{
    life_signs *p = &b->signs[life % N_SIGNS];
    if (p->life != life) *p = (life_signs){.life = life};
    return p;
}

static void note_sign(silence_call *c)
{
    uint64_t life = calls_where(c->main->inner).life;
    life_signs *p = signs_of(c->b, life);
    double gap_ms = decorator_listened_ms(&c->b->base, c->spoke_ns);
    if (life == 0) return;
    if (c->log.begun) p->gap_ms += GAP_WEIGHT * (gap_ms - p->gap_ms);
    p->spoke_ns = decorator_listening_ns(&c->b->base);
    p->n_beaten = 0;
}

static double limit_ms(silence_call *c)
{
    double gap_ms = signs_of(c->b, calls_where(c->main->inner).life)->gap_ms;
    if (gap_ms < c->main->step_ms) gap_ms = c->main->step_ms;
    if (!c->log.begun && gap_ms < c->main->expected_ms) gap_ms = c->main->expected_ms;
    if (gap_ms <= 0) return SILENCE_UNKNOWN_MS;
    return 4 * gap_ms > SILENCE_MIN_MS ? 4 * gap_ms : SILENCE_MIN_MS;
}

/* ---- life of a call ------------------------------------------------------------------------------ */

static void cancel_branch(branch *br)
{
    calls_cancel(br->inner);
    br->inner = NULL;
}

static void silence_calls_call_free(silence_call *c)
{
    c->b->base.env->timer_free(c->timer);
    resume_done(&c->log);
    decorator_call_done(&c->base);
    free(c);
}

static void silence_calls_cancel(model_call *call)
{
    silence_call *c = (silence_call *)call;
    cancel_branch(&c->branches[0]);
    cancel_branch(&c->branches[1]);
    silence_calls_call_free(c);
}

static void pause(model_call *call, bool paused)
{
    silence_call *c = (silence_call *)call;
    c->base.paused = paused;
    c->spoke_ns = decorator_listening_ns(&c->b->base);
    calls_pause(c->branches[0].inner, paused);
    calls_pause(c->branches[1].inner, paused);
}

static call_place where(const model_call *call)
{
    return calls_where(((const silence_call *)call)->main->inner);
}

static void silence_calls_finish(silence_call *c, const call_result *ended)
{
    cancel_branch(rival_of(c));
    decorator_call_end(&c->base, ended);
    silence_calls_call_free(c);
}

/* ---- what comes back ----------------------------------------------------------------------------- */

static void note_moved(silence_call *c)
{
    double gap_ms = decorator_listened_ms(&c->b->base, c->spoke_ns);
    signs_of(c->b, c->rival_life)->n_beaten++;
    c->moved = true;
    const char *to = calls_where(c->main->inner).replica_id;
    LOG(LOG_INFO, "calls", "moved", LOG_S("model", c->base.o->model), LOG_S("cause", "silent"),
        LOG_S("to", to), LOG_F("gap_ms", gap_ms), LOG_I("tokens", c->log.n_ids),
        LOG_S("request_id", c->base.o->request_id));
    call_observer_moved(c->b->o.observer, c->base.o,
                        &(call_move){.cause = "silent", .to = to, .gap_ms = gap_ms});
}

/* The second start's events count from its first new token on: what comes before the first has said as well,
 * if it has said anything. */
static void silence_calls_on_event(const call_events *ev, const ProtobufCMessage *m)
{
    branch *br = ev->user;
    silence_call *c = br->c;
    resume_space space;
    bool wins = br != c->main;
    if (wins && c->log.begun && !resume_grows(c->base.o, m)) return;
    if (wins) {
        cancel_branch(c->main);
        c->main = br;
        note_moved(c);
    } else {
        cancel_branch(rival_of(c));
        note_sign(c);
    }
    c->spoke_ns = decorator_listening_ns(&c->b->base);
    if ((c->moved || c->log.told) && !resume_takes(&c->log, c->base.o, m)) return;
    resume_note(&c->log, c->base.o, m);
    if (c->moved) m = resume_mend(&c->log, c->base.o, m, &space);
    c->base.ev.event(&c->base.ev, m); /* may cancel: c is not touched again */
}

/* What the first said is void: a second start would go on with it. */
static void on_restarted(const call_events *ev)
{
    branch *br = ev->user;
    silence_call *c = br->c;
    if (br != c->main) return; /* nothing of it has been told */
    cancel_branch(rival_of(c));
    c->spoke_ns = decorator_listening_ns(&c->b->base);
    resume_restart(&c->log, !c->base.ev.restarted && (c->log.begun || c->log.told));
    if (c->base.ev.restarted) c->base.ev.restarted(&c->base.ev);
}

/* A second start that fails is forgotten; where the first fails for want of a worker, the second is what is
 * left. */
static void silence_calls_on_end(const call_events *ev, const call_result *r)
{
    branch *br = ev->user;
    silence_call *c = br->c;
    br->inner = NULL;
    if (br != c->main) return;
    if (r->status != 0 && r->fault != CALL_FAULT_NONE && rival_of(c)->inner) {
        c->main = rival_of(c);
        c->moved = true;
    } else {
        silence_calls_finish(c, r);
    }
}

/* ---- silence ------------------------------------------------------------------------------------- */

static bool start_branch(silence_call *c, branch *br, call_order *o, const call_terms *t)
{
    call_events ev = {.user = br,
                      .event = silence_calls_on_event,
                      .end = silence_calls_on_end,
                      .restarted = on_restarted,
                      .takes_back = c->base.ev.takes_back};
    call_estimate out;
    calls_estimate(c->b->base.inner, o, t, &out);
    br->expected_ms = out.status == 0 ? out.expected_ms : 0;
    br->step_ms = out.status == 0 ? out.step_ms : 0;
    br->inner = calls_start(c->b->base.inner, o, t, &ev);
    if (br->inner && c->base.paused) calls_pause(br->inner, true);
    return br->inner != NULL;
}

static call_terms rival_terms(const silence_call *c, const call_place *at)
{
    call_terms t = c->base.terms;
    if (c->log.begun) call_terms_pin(&t, at->identity, at->adapter_digest);
    call_terms_avoid(&t, at->life);
    t.hold_until_ns = 1; /* long ago: now, or not at all */
    return t;
}

/* A worker that was beaten, or does not even answer how it is, and has said nothing since is not slow. Others
 * are asked for a second opinion only now and then, and where there is room for it. */
static bool may_start(silence_call *c, const call_place *at, const call_estimate *out)
{
    silence_calls *b = c->b;
    const life_signs *p = signs_of(b, at->life);
    if ((p->n_beaten > 0 || at->silent) && decorator_listened_ms(&b->base, p->spoke_ns) >= limit_ms(c))
        return true;
    if (b->budget < 1 || out->load >= 1) return false;
    b->budget--;
    return true;
}

static void start_rival(silence_call *c)
{
    call_place at = calls_where(c->main->inner);
    if (at.life == 0 || c->log.broken) return;    /* it waits for a worker, or could not go on elsewhere, */
    if (c->log.begun && !at.exact_resume) return; /* or only with other bytes */
    call_terms t = rival_terms(c, &at);
    call_estimate out;
    calls_estimate(c->b->base.inner, c->base.o, &t, &out);
    if (out.status != 0 || !may_start(c, &at, &out)) return;
    LOG(LOG_INFO, "calls", "silent", LOG_S("model", c->base.o->model), LOG_S("replica", at.replica_id),
        LOG_F("ms", decorator_listened_ms(&c->b->base, c->spoke_ns)),
        LOG_S("request_id", c->base.o->request_id));
    call_order *o = resume_order(&c->log, c->base.o);
    c->rival_life = at.life;
    if (o) start_branch(c, rival_of(c), o, &t); /* without memory there is no second */
    call_order_unref(o);
}

/* All has been said, and only the end is missing. */
static void finish_whole(silence_call *c)
{
    call_place at = calls_where(c->main->inner);
    call_result r = call_result_of(c->base.o, 0, "");
    r.life = at.life;
    if (at.life) {
        r.replica_id = at.replica_id, r.digest = at.digest, r.adapter_digest = at.adapter_digest;
        r.identity = at.identity, r.exact_resume = at.exact_resume;
    }
    const Shoal__V1__ModelInfo *said = calls_info(c->b->base.inner, c->base.o->model, NULL);
    if (said) r.version = said->version, r.quantisation = said->quantisation;
    decorator_call_end(&c->base, &r);
    silence_calls_cancel(&c->base.base);
}

/* The worker has not been asked all, or nobody else could be. */
static bool nobody_is_silent(const silence_call *c)
{
    const call_feed *f = c->base.o->feed;
    return f && !c->log.done && !(call_feed_is_ended(f) && call_feed_is_kept(f));
}

/* For how long nothing shows that the stream goes on: neither a message, nor its worker at work. */
static double silent_ms(const silence_call *c)
{
    return decorator_listened_ms(&c->b->base, c->worked_ns > c->spoke_ns ? c->worked_ns : c->spoke_ns);
}

/* A worker that computes or waits for a core is not silent, and a second start would take cores from it. But
 * one may have lost this stream alone. */
static bool works(silence_call *c)
{
    call_place at = calls_where(c->main->inner);
    if (decorator_listened_ms(&c->b->base, c->spoke_ns) >= SILENCE_WORKING_MS || !call_place_works(&at))
        return false;
    c->worked_ns = decorator_listening_ns(&c->b->base);
    return true;
}

static void on_timer(void *arg)
{
    silence_call *c = arg;
    if (nobody_is_silent(c)) c->spoke_ns = decorator_listening_ns(&c->b->base);
    double limit = limit_ms(c), silent = silent_ms(c);
    bool due = silent >= limit && !c->base.paused;
    if (due && !c->log.done && works(c)) due = false, silent = 0;
    if (due && c->log.done) {
        finish_whole(c);
        return;
    }
    if (due && !rival_of(c)->inner) start_rival(c);
    double next = due || c->base.paused ? limit : limit - silent;
    c->b->base.env->timer_start(c->timer, (uint64_t)next + 1);
}

/* ---- the seam ------------------------------------------------------------------------------------ */

static silence_call *call_new(silence_calls *b, call_order *o, const call_terms *t, const call_events *ev)
{
    silence_call *c = malloc(sizeof *c);
    if (!c) return NULL;
    *c = (silence_call){.b = b};
    c->timer = b->base.env->timer_new(b->base.env->user, on_timer, c);
    if (!c->timer) {
        free(c);
        return NULL;
    }
    decorator_call_init(&c->base, &b->base.base, o, t, ev);
    c->spoke_ns = decorator_listening_ns(&b->base);
    c->branches[0].c = c->branches[1].c = c;
    c->main = &c->branches[0];
    return c;
}

static model_call *silence_calls_start(calls *base, call_order *o, const call_terms *t, const call_events *ev)
{
    silence_calls *b = (silence_calls *)base;
    bool watched = CALL_TASKS[o->task].streams && CALL_TASKS[o->task].flags & CALL_WAITS;
    silence_call *c = watched ? call_new(b, o, t, ev) : NULL;
    if (!c) return calls_start(b->base.inner, o, t, ev);
    if (!start_branch(c, c->main, o, t)) {
        silence_calls_call_free(c);
        return NULL;
    }
    if (b->budget < BUDGET_MAX) b->budget += SILENCE_SHARE;
    b->base.env->timer_start(c->timer, (uint64_t)limit_ms(c) + 1);
    return &c->base.base;
}

static const calls_ops OPS = {.start = silence_calls_start,
                              .pause = pause,
                              .cancel = silence_calls_cancel,
                              .where = where,
                              .estimate = decorator_estimate,
                              .info = decorator_info,
                              .free = decorator_free};

int silence_calls_new(calls **ret, const env *env_, calls *inner, const silence_options *opts, shoal_err *err)
{
    silence_calls *b = calloc(1, sizeof *b);
    if (!b) return err_nomem(err);
    decorator_calls_init(&b->base, &OPS, env_, inner);
    b->o = *opts;
    b->budget = 1;
    *ret = &b->base.base;
    return 0;
}
