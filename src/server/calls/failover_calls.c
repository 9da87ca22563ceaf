/* failover_calls.c: what goes on elsewhere; see failover_calls.h. */
#include "calls/failover_calls.h"

#include <stdio.h>
#include <stdlib.h>

#include "logging/log.h"
#include "calls/poison.h"
#include "calls/feed.h"
#include "calls/poison_list.h"
#include "calls/decorator.h"
#include "calls/resume.h"

#define REST_MS    20    /* between two tries where all queues are full */
#define RESTS_MAX  64    /* resting calls that one turn looks at: those behind come next turn */
#define RECENT_MS  10000 /* deaths so close to each other are told to the next worker */
#define BROKEN_MAX 2     /* replicas that may answer nonsense to one call */

typedef struct failover_calls {
    decorator_calls base;
    failover_options o;
    list_node resting, suspects, refused; /* every call is in one of them or in running */
    struct failover_call *trial;          /* of the suspects the one that runs; it is in running */
    env_timer *timer;                     /* for those that rest, and the next suspect */
    bool ticking;
    env_timer *refuse;
    poison poison;
    poison_list poison_list;
} failover_calls;

typedef struct failover_call {
    decorator_call base; /* no inner while it is not running */
    failover_calls *b;
    uint64_t try_ns, lost_ns; /* lost_ns 0: not moving */
    uint64_t died_ns;         /* the last death */
    const char *cause;
    unsigned n_moves, n_broken; /* the latter since the reply last grew */
    poison_row row;
    resume log;
    bool is_pinned;    /* its terms named an identity when they came */
    bool inexact;      /* what its last replica began, none can go on with */
    bool restarted;    /* the answer began anew, and has not grown since */
    feed_watch upload; /* whose end tells which request this is */
} failover_call;

static bool streams(const failover_call *c)
{
    return CALL_TASKS[c->base.o->task].streams;
}

/* ---- life of a call ------------------------------------------------------------------------------ */

static void wake(failover_calls *b, uint64_t ms)
{
    if (b->ticking && ms > 0) return;
    b->ticking = true;
    b->base.env->timer_start(b->timer, ms);
}

/* The next suspect may run: from the loop, since what runs here may be in the middle of anything. */
static void end_trial(failover_call *c)
{
    if (c->b->trial != c) return;
    c->b->trial = NULL;
    if (list_first(&c->b->suspects, failover_call, base.link)) wake(c->b, 0);
}

static void failover_calls_call_free(failover_call *c)
{
    end_trial(c);
    feed_unwatch(&c->upload);
    resume_done(&c->log);
    decorator_call_done(&c->base);
    free(c);
}

static void failover_calls_cancel(model_call *call)
{
    failover_call *c = (failover_call *)call;
    calls_cancel(c->base.inner);
    failover_calls_call_free(c);
}

static void failover_calls_finish(failover_call *c, const call_result *ended)
{
    call_observer_end(c->b->o.observer, c->base.o, ended);
    decorator_call_end(&c->base, ended);
    failover_calls_call_free(c);
}

static void failover_calls_fail(failover_call *c, int status, call_fault fault, const char *message)
{
    call_result r = call_result_of(c->base.o, status, message);
    r.fault = fault;
    failover_calls_finish(c, &r);
}

/* ---- going on ------------------------------------------------------------------------------------ */

static void failover_calls_on_event(const call_events *ev, const ProtobufCMessage *m);
static void failover_calls_on_end(const call_events *ev, const call_result *r);

static bool try_start(failover_call *c)
{
    call_order *next = resume_order(&c->log, c->base.o);
    c->try_ns = decorator_now_ns(&c->b->base);
    bool started = decorator_call_start(&c->base, next, &c->base.terms, failover_calls_on_event,
                                        failover_calls_on_end, NULL);
    call_order_unref(next);
    return started;
}

static void failover_calls_go_on(failover_call *c)
{
    list_move(&c->b->base.running, &c->base.link);
    if (!try_start(c)) failover_calls_fail(c, SHOAL_ENOMEM, CALL_FAULT_NONE, "out of memory");
}

/* The first word after a move. */
static void note_moved(failover_call *c, const char *to)
{
    call_move m = {.cause = c->cause,
                   .to = to,
                   .gap_ms = decorator_ms_since(&c->b->base, c->lost_ns),
                   .restarted = c->restarted};
    c->lost_ns = 0;
    c->restarted = false;
    LOG(LOG_INFO, "calls", "moved", LOG_S("model", c->base.o->model), LOG_S("cause", m.cause),
        LOG_S("to", to), LOG_F("gap_ms", m.gap_ms), LOG_I("tokens", c->log.n_ids),
        LOG_I("restarted", m.restarted), LOG_S("request_id", c->base.o->request_id));
    call_observer_moved(c->b->o.observer, c->base.o, &m);
}

static void rest(failover_call *c)
{
    list_move(&c->b->resting, &c->base.link);
    wake(c->b, REST_MS);
}

static void try_alone(failover_call *c)
{
    c->b->trial = c;
    failover_calls_go_on(c);
}

/* One at a time, and who was tried just now behind those who were not. */
static void try_as_suspect(failover_call *c)
{
    if (!c->b->trial && !list_first(&c->b->suspects, failover_call, base.link)) {
        try_alone(c);
        return;
    }
    list_move(&c->b->suspects, &c->base.link);
    wake(c->b, REST_MS);
}

static bool too_late(failover_call *c)
{
    if (!c->base.o->deadline_ns || decorator_now_ns(&c->b->base) < c->base.o->deadline_ns) return false;
    failover_calls_fail(c, SHOAL_EDEADLINE, CALL_FAULT_NONE,
                        "the deadline passed before another worker could go on");
    return true;
}

static void look_after_suspects(failover_calls *b)
{
    const failover_call *first = NULL; /* of those that go on waiting, in the same order */
    failover_call *c;
    for (int n = RESTS_MAX; n > 0 && (c = list_first(&b->suspects, failover_call, base.link)) != first; n--) {
        if (too_late(c)) continue;
        if (!b->trial) {
            try_alone(c);
            continue;
        }
        if (!first) first = c;
        list_move(&b->suspects, &c->base.link);
    }
}

static void on_tick(void *arg)
{
    failover_calls *b = arg;
    failover_call *c;
    b->ticking = false;
    for (int n = RESTS_MAX; n > 0 && (c = list_first(&b->resting, failover_call, base.link)); n--)
        if (!too_late(c)) failover_calls_go_on(c);
    look_after_suspects(b);
    if (list_first(&b->resting, failover_call, base.link) ||
        list_first(&b->suspects, failover_call, base.link))
        wake(b, REST_MS);
}

/* ---- what comes back ----------------------------------------------------------------------------- */

static void failover_calls_on_event(const call_events *ev, const ProtobufCMessage *m)
{
    failover_call *c = ev->user;
    resume_space space;
    if (c->n_moves && !resume_takes(&c->log, c->base.o, m)) return;
    if (resume_grows(c->base.o, m)) {
        c->n_broken = 0;
        c->row = (poison_row){0};
        end_trial(c);
        if (c->lost_ns) note_moved(c, calls_where(c->base.inner).replica_id);
    }
    resume_note(&c->log, c->base.o, m);
    if (c->n_moves) m = resume_mend(&c->log, c->base.o, m, &space);
    c->base.ev.event(&c->base.ev, m); /* may cancel: c is not touched again */
}

typedef enum verdict { END, GO_ON, TRY_ALONE, ASK_ALL, REST, GIVE_UP, END_BEGUN } verdict;

static bool other_replica_is_there(const failover_call *c)
{
    call_estimate o;
    calls_estimate(c->b->base.inner, c->base.o, &c->base.terms, &o);
    return o.status == 0;
}

/* A replica that cannot do what another could: it sent nonsense, ended without a last event, or refuses to go
 * on with what another has begun (it has less room). */
static bool is_broken(const failover_call *c, const call_result *r)
{
    if (r->fault == CALL_FAULT_NONSENSE) return c->log.begun; /* else retry has asked the others */
    if (r->status == 0) return true;
    return c->n_moves > 0 && c->log.begun && r->fault == CALL_FAULT_NONE &&
           (r->status == SHOAL_EINVALID || r->status == SHOAL_ELIMIT || r->status == SHOAL_EUNSUPPORTED);
}

/* Nobody else is there: then also whoever lost it before, who lives still if only the link to him was cut. */
static void ask_all(failover_call *c)
{
    c->base.terms.n_avoid = 0;
    failover_calls_go_on(c);
}

/* For the worker that goes on: where they die like flies it computes few replies again at a time. */
static void count_death(failover_call *c)
{
    uint64_t now = decorator_now_ns(&c->b->base);
    if (now - c->died_ns >= RECENT_MS * 1000000ull) c->log.n_deaths = 0;
    c->log.n_deaths++;
    c->died_ns = now;
}

static verdict judge_death(failover_call *c, const call_result *r)
{
    count_death(c);
    poison_note(&c->b->poison, &c->row, r->life, c->try_ns, decorator_now_ns(&c->b->base));
    if (poison_is_proven(&c->row)) return GIVE_UP;
    return poison_is_suspect(&c->row) ? TRY_ALONE : GO_ON;
}

/* What was begun is not given up because nobody is there for a moment, nor expected: layers that are dealt
 * out anew. */
static verdict judge_absence(const failover_call *c, const call_result *r)
{
    if (c->n_moves == 0) return END;
    if (c->base.terms.n_avoid > 0) return ASK_ALL;
    bool may_wait = decorator_now_ns(c->base.b) < c->base.terms.hold_until_ns;
    return r->status == SHOAL_EUNAVAILABLE && may_wait ? REST : END;
}

static verdict failover_calls_judge(failover_call *c, const call_result *r)
{
    if (!(CALL_TASKS[c->base.o->task].flags & CALL_WAITS) || c->log.broken) return END;
    if (is_broken(c, r)) {
        call_terms_avoid(&c->base.terms, r->life);
        return ++c->n_broken <= BROKEN_MAX && other_replica_is_there(c) ? GO_ON : END;
    }
    switch (r->fault) {
    case CALL_FAULT_FULL: return c->n_moves ? REST : END;
    case CALL_FAULT_ABSENT: return judge_absence(c, r);
    case CALL_FAULT_LEAVES: return GO_ON;
    case CALL_FAULT_LOST: return judge_death(c, r);
    default: return END;
    }
}

/* Who has the same bits must go on with what was begun, and live. */
static void set_terms(failover_call *c, const call_result *r)
{
    uint64_t wait_ms = c->b->o.wait_ms ? c->b->o.wait_ms : FAILOVER_WAIT_MS;
    uint64_t now = decorator_now_ns(&c->b->base);
    call_terms_avoid(&c->base.terms, r->life);
    if (c->log.begun) call_terms_pin(&c->base.terms, r->identity, r->adapter_digest);
    c->base.terms.hold_until_ns = c->base.o->deadline_ns ? c->base.o->deadline_ns : now + wait_ms * 1000000u;
    if (c->base.terms.patience_ms && !c->log.begun)
        c->base.terms.hold_until_ns = now + c->base.terms.patience_ms * 1000000u;
    c->cause = call_fault_name(r->fault == CALL_FAULT_NONE ? CALL_FAULT_NONSENSE : r->fault);
    if (!c->lost_ns) c->lost_ns = now;
    c->n_moves++;
}

/* ---- beginning anew ------------------------------------------------------------------------------ */

static bool is_there(const failover_call *c, const call_terms *t)
{
    call_estimate o;
    calls_estimate(c->b->base.inner, c->base.o, t, &o);
    return o.status == 0;
}

/* The same terms for replicas of any bits. */
static call_terms terms_of_anybody(const failover_call *c)
{
    call_terms t = c->base.terms;
    *t.identity = *t.adapter_digest = '\0';
    return t;
}

/* Nobody can go on with what has begun: its engine cannot, or those who could are not there while others are.
 */
static bool cannot_go_on(const failover_call *c)
{
    call_terms any = terms_of_anybody(c);
    if (!c->log.begun || c->n_moves == 0) return false;
    if (c->inexact) return true;
    return !is_there(c, &c->base.terms) && is_there(c, &any);
}

/* Not where the client has the beginning already from elsewhere, or has heard what it would have to forget. */
static bool may_restart(const failover_call *c)
{
    if (c->is_pinned || c->base.o->resumes) return false;
    return !c->log.grown || c->base.ev.takes_back;
}

static void restart(failover_call *c)
{
    LOG(LOG_INFO, "calls", "restarted", LOG_S("model", c->base.o->model), LOG_S("cause", c->cause),
        LOG_I("tokens", c->log.n_ids), LOG_S("request_id", c->base.o->request_id));
    c->base.terms = terms_of_anybody(c);
    resume_restart(&c->log, !c->base.ev.restarted);
    c->inexact = false;
    c->restarted = true;
    if (c->base.ev.restarted) c->base.ev.restarted(&c->base.ev);
}

static void end_begun(failover_call *c)
{
    char text[320];
    snprintf(text, sizeof text,
             "the worker of %.64s that began this answer stopped, and those that are left run another file, "
             "engine or precision and would go on with other words; send the request again",
             c->base.o->model);
    failover_calls_fail(c, SHOAL_EUNAVAILABLE, CALL_FAULT_UNLIKE, text);
}

static void failover_calls_refuse(failover_call *c)
{
    char text[320];
    snprintf(text, sizeof text,
             "this request is refused for a while: worker after worker of %.64s stopped as it worked on it; "
             "change it, and see the log for how they died",
             c->base.o->model);
    failover_calls_fail(c, SHOAL_EUNAVAILABLE, CALL_FAULT_KILLS, text);
}

static void failover_calls_give_up(failover_call *c)
{
    LOG(LOG_ERROR, "calls", "quarantined", LOG_S("model", c->base.o->model),
        LOG_S("task", CALL_TASKS[c->base.o->task].name), LOG_I("deaths", c->row.n),
        LOG_I("ms", FAILOVER_QUARANTINE_MS), LOG_S("request_id", c->base.o->request_id));
    poison_list_add(&c->b->poison_list, c->base.o,
                    decorator_now_ns(&c->b->base) + FAILOVER_QUARANTINE_MS * 1000000ull);
    failover_calls_refuse(c);
}

static void failover_calls_on_end(const call_events *ev, const call_result *r)
{
    failover_call *c = ev->user;
    c->base.inner = NULL;
    call_result whole = *r;
    if (c->log.done && r->status != 0) { /* the answer is there; only its trailers are lost */
        whole.status = 0;
        whole.message = "";
        r = &whole;
    }
    bool well = r->status == 0 && (!streams(c) || c->log.done);
    if (well && c->lost_ns) note_moved(c, r->replica_id);
    if (r->life && r->identity && *r->identity) c->inexact = !r->exact_resume;
    verdict v = well ? END : failover_calls_judge(c, r);
    if (v == GO_ON || v == TRY_ALONE) set_terms(c, r);
    end_trial(c);
    bool lost = v != GIVE_UP && (v != END || r->fault == CALL_FAULT_ABSENT);
    if (!well && lost && cannot_go_on(c)) {
        if (may_restart(c)) {
            restart(c);
            if (v != TRY_ALONE) v = GO_ON;
        } else if (c->inexact || v == END) {
            v = END_BEGUN;
        }
    }
    switch (v) {
    case END: failover_calls_finish(c, r); break;
    case GO_ON: failover_calls_go_on(c); break;
    case TRY_ALONE: try_as_suspect(c); break;
    case ASK_ALL: ask_all(c); break;
    case REST: rest(c); break;
    case GIVE_UP: failover_calls_give_up(c); break;
    case END_BEGUN: end_begun(c); break;
    }
}

/* ---- the seam ------------------------------------------------------------------------------------ */

static void on_refused(void *arg)
{
    failover_calls *b = arg;
    list_node now; /* those that are refused now, not those that their callbacks start */
    list_init(&now);
    for (failover_call *c; (c = list_first(&b->refused, failover_call, base.link));)
        list_move(&now, &c->base.link);
    for (failover_call *c; (c = list_first(&now, failover_call, base.link));) failover_calls_refuse(c);
}

static bool is_on_poison_list(const failover_call *c)
{
    return poison_list_until(&c->b->poison_list, c->base.o, decorator_now_ns(c->base.b)) != 0;
}

/* From the loop, as every end comes. */
static void refuse_soon(failover_call *c)
{
    list_move(&c->b->refused, &c->base.link);
    c->b->base.env->timer_start(c->b->refuse, 0);
}

/* All of the upload is here, and no worker has the end of it, without which none begins. */
static void on_uploaded(void *user)
{
    failover_call *c = user;
    feed_unwatch(&c->upload);
    if (!is_on_poison_list(c)) return;
    calls_cancel(c->base.inner);
    c->base.inner = NULL;
    end_trial(c);
    refuse_soon(c);
}

static model_call *failover_calls_start(calls *base, call_order *o, const call_terms *t,
                                        const call_events *ev)
{
    failover_calls *b = (failover_calls *)base;
    failover_call *c = malloc(sizeof *c);
    if (!c) return NULL;
    *c = (failover_call){.b = b, .is_pinned = *t->identity};
    decorator_call_init(&c->base, base, o, t, ev);
    if (is_on_poison_list(c)) {
        refuse_soon(c);
        return &c->base.base;
    }
    if (o->feed && !call_feed_is_ended(o->feed)) feed_watch_end(&c->upload, o->feed, on_uploaded, c);
    if (try_start(c)) return &c->base.base;
    failover_calls_call_free(c);
    return NULL;
}

void failover_calls_note_death(calls *failover, uint64_t life)
{
    failover_calls *b = (failover_calls *)failover;
    poison_note_death(&b->poison, life, decorator_now_ns(&b->base));
}

static void failover_calls_free(calls *base)
{
    failover_calls *b = (failover_calls *)base;
    list_node *all[] = {&b->base.running, &b->resting, &b->suspects, &b->refused};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) decorator_cancel_all(all[i]);
    b->base.env->timer_free(b->timer);
    b->base.env->timer_free(b->refuse);
    decorator_calls_done(&b->base);
    free(b);
}

static const calls_ops OPS = {.start = failover_calls_start,
                              .pause = decorator_pause,
                              .cancel = failover_calls_cancel,
                              .where = decorator_where,
                              .estimate = decorator_estimate,
                              .info = decorator_info,
                              .free = failover_calls_free};

int failover_calls_new(calls **ret, const env *env_, calls *inner, const failover_options *opts,
                       shoal_err *err)
{
    failover_calls *b = calloc(1, sizeof *b);
    if (!b) return err_nomem(err);
    decorator_calls_init(&b->base, &OPS, env_, inner);
    b->o = *opts;
    b->poison.begun_ns = decorator_now_ns(&b->base);
    list_init(&b->resting);
    list_init(&b->suspects);
    list_init(&b->refused);
    b->timer = env_->timer_new(env_->user, on_tick, b);
    b->refuse = env_->timer_new(env_->user, on_refused, b);
    if (!b->timer || !b->refuse) {
        env_->timer_free(b->timer);
        env_->timer_free(b->refuse);
        free(b);
        return err_nomem(err);
    }
    *ret = &b->base.base;
    return 0;
}
