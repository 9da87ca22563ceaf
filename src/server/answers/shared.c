/* shared.c: one computation for identical requests; see shared.h. A job may be gone when one of its functions
 * returns, so nothing touches it afterwards; its ticket is taken out before it is freed. */
#include "answers/shared.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "access/auth.h"
#include "request/admission.h"
#include "request/gateway_state.h"
#include "answers/revalidate.h"
#include "request/routed.h"

/* ---- the end ------------------------------------------------------------------------------------- */

/* What was asked by likeness is over. */
static void forget_near(shared_job *s)
{
    semantic_cancel(s->lookup);
    free((char *)s->near.text);
    s->lookup = NULL;
    s->near.text = NULL;
}

shared_end shared_detach(shared_job *s)
{
    gateway_request *rq = s->rq;
    shared_end end = {.gateway = rq->gateway,
                      .ticket = s->ticket,
                      .key = s->key,
                      .lookup = s->lookup,
                      .audited = revalidate_take_audited(rq),
                      .text = s->ops->text,
                      .passes = s->strange || s->cut || s->n_rolls != rq->gateway->n_rolls};
    s->ticket = NULL;
    s->lookup = NULL;
    forget_near(s);
    memcpy(end.trace, rq->ensemble, sizeof end.trace);
    memcpy(end.name, rq->cache_name, sizeof end.name);
    if (*rq->degraded.wanted) shared_leave(&end); /* another model's answer is nobody else's */
    return end;
}

bool shared_wants(const shared_end *end)
{
    return end->ticket || end->audited;
}

static void shared_put_text(const shared_end *end, buf *out, const char *packed, size_t len)
{
    if (end->text)
        end->text(out, packed, len);
    else
        buf_append(out, packed, len);
}

/* The answer that went out, and the one that was computed after all. */
static void audit(shared_end *end, const buf *packed)
{
    buf a = {0}, b = {0};
    const char *kept = end->audited->data;
    size_t n_trace = strlen(kept) + 1;
    shared_put_text(end, &a, kept + n_trace, end->audited->len - n_trace);
    shared_put_text(end, &b, packed->data, packed->len);
    if (!a.failed && !b.failed)
        semantic_audited(end->gateway, end->name, a.data ? a.data : "", b.data ? b.data : "");
    buf_done(&a);
    buf_done(&b);
}

/* What is kept: the trace, a NUL, and the answer as its endpoint packs it. */
void shared_publish(shared_end *end, const buf *packed)
{
    buf all = {.failed = packed->failed};
    if (end->audited && !packed->failed) audit(end, packed);
    if (end->ticket && !all.failed) {
        buf_append(&all, end->trace, strlen(end->trace) + 1);
        if (!all.failed) buf_append(&all, packed->data, packed->len);
    }
    if (end->ticket && !all.failed) {
        cache_ticket *t = end->ticket;
        bool kept = false;
        end->ticket = NULL;
        if (end->passes)
            cache_pass(t, all.data, all.len);
        else
            kept = cache_fill(t, all.data, all.len, env_now_ns(&end->gateway->time));
        if (kept && end->lookup) {
            semantic_keep(end->lookup, &end->key);
            end->lookup = NULL;
        }
    }
    buf_done(&all);
    shared_leave(end);
}

void shared_leave(shared_end *end)
{
    cache_ticket *t = end->ticket;
    end->ticket = NULL;
    semantic_cancel(end->lookup);
    end->lookup = NULL;
    cache_value_unref(end->audited);
    end->audited = NULL;
    cache_leave(t);
}

void shared_heard(shared_job *s, const char *identity)
{
    if (identity && *identity && *s->identity && strcmp(identity, s->identity) != 0) s->strange = true;
}

/* Another request has its own deadline, and may find memory. */
static bool is_ours_alone(const api_error *e)
{
    return e->status == 504 || (e->code && strcmp(e->code, "out_of_memory") == 0);
}

/* The model refuses what it was asked, and would again. One that makes workers die is asked about by odds. */
static bool is_the_same_again(const api_error *e)
{
    return e->status == 400 || e->status == 413;
}

void shared_fail(shared_job *s, const api_error *e)
{
    shared_end end = shared_detach(s);
    gateway_request *rq = s->rq;
    s->ops->free(s);
    request_error(rq, e);
    cache_ticket *t = end.ticket;
    if (!is_ours_alone(e)) end.ticket = NULL;
    shared_leave(&end);
    if (!is_ours_alone(e))
        cache_fail(t, e->status, e, sizeof *e, !end.passes && is_the_same_again(e),
                   env_now_ns(&end.gateway->time));
}

void shared_fail_nomem(shared_job *s)
{
    api_error e;
    api_error_nomem(&e);
    shared_fail(s, &e);
}

/* The client has left. Whoever waits for the same answer takes over; our calls stop at once. */
static void shared_on_gone(void *work)
{
    shared_job *s = work;
    shared_end end = shared_detach(s);
    s->ops->free(s);
    shared_leave(&end);
}

/* A waiter that its deadline reached first: the computation goes on for the others. */
static void on_deadline(void *work)
{
    call_result late = {.status = SHOAL_EDEADLINE,
                        .message = "the deadline passed while an identical request was computed"};
    api_error e;
    api_error_from_call(&e, &late);
    shared_fail(work, &e);
}

/* ---- answering ----------------------------------------------------------------------------------- */

static void compute(shared_job *s, const char *state)
{
    s->rq->cache_state = state;
    s->ops->compute(s);
}

static void shared_answer(shared_job *s, const cache_value *v, const char *state)
{
    size_t n_trace = strlen(v->data);
    forget_near(s);
    s->rq->cache_state = state;
    buf_copy_str(s->rq->ensemble, sizeof s->rq->ensemble, v->data);
    s->ops->answer(s, v->data + n_trace + 1, v->len - n_trace - 1);
}

/* An error that another request met: v holds its api_error, or is NULL when there was no memory to keep it.
 */
static void fail_as(shared_job *s, const cache_value *v, const char *state)
{
    api_error e;
    if (v && v->len == sizeof e)
        memcpy(&e, v->data, sizeof e);
    else
        api_error_set(&e, 503, "service_unavailable", "worker_unavailable", NULL,
                      "the computation failed; send it again");
    s->rq->cache_state = state;
    shared_fail(s, &e);
}

/* ---- by likeness --------------------------------------------------------------------------------- */

/* Those who wait for the same compute for themselves, or find it in the same way. */
static void answer_near(shared_job *s, const cache_value *v, double similarity)
{
    gateway_request *rq = s->rq;
    cache_ticket *t = s->ticket;
    s->ticket = NULL;
    snprintf(rq->cache_text, sizeof rq->cache_text, "near %.3f", similarity);
    if (semantic_is_audited(rq->gateway->semantic)) revalidate_start(rq, BACKGROUND_AUDIT, v);
    shared_answer(s, v, rq->cache_text);
    cache_leave(t);
}

static void on_looked(void *user, const cache_value *v, double similarity)
{
    shared_job *s = user;
    if (v)
        answer_near(s, v, similarity);
    else
        compute(s, "miss");
}

/* The work is ours. Something like it may have been asked before. */
static void lead(shared_job *s)
{
    s->lookup = s->near.text && s->ticket ? semantic_start(s->rq, &s->near, on_looked, s) : NULL;
    if (!s->lookup) compute(s, "miss");
}

static void on_turn(void *user, cache_outcome outcome, const cache_value *v)
{
    shared_job *s = user;
    request_on_deadline(s->rq, NULL);
    if (outcome == CACHE_LEAD) { /* the ticket stays ours */
        lead(s);
        return;
    }
    s->ticket = NULL; /* the cache has freed it */
    if (outcome == CACHE_HIT)
        shared_answer(s, v, "shared");
    else
        fail_as(s, v, "shared");
}

static void answer_kept(shared_job *s, const cache_found *f, bool stale)
{
    s->rq->age_s = f->age_ns / 1000000000u;
    if (f->refresh) revalidate_start(s->rq, BACKGROUND_REFRESH, NULL);
    if (f->value->status == 200)
        shared_answer(s, f->value, stale ? "stale" : "hit");
    else
        fail_as(s, f->value, "negative");
    cache_value_unref(f->value);
}

/* Nothing is kept, and the request wanted nothing else; or another background request makes the answer anew. */
static void shared_refuse(shared_job *s)
{
    api_error e;
    api_error_set(&e, 504, "invalid_request_error", "not_cached", "cache-control",
                  "this answer is not in the cache, and cache-control says only-if-cached");
    shared_fail(s, &e);
}

/* ---- the start ----------------------------------------------------------------------------------- */

enum { TAGS = PROVENANCE_TAGS + CACHE_DIRECTIVES_TAGS + 1, TAG_BYTES = PROVENANCE_TAG_BYTES };

typedef struct tag_list {
    size_t n;
    const char *at[TAGS];
    char own[CACHE_DIRECTIVES_TAGS + 1][TAG_BYTES];
} tag_list;

static void collect_tags(tag_list *l, const gateway_request *rq, const provenance *by)
{
    l->n = 0;
    size_t n_own = 0;
    for (size_t i = 0; i < by->n_tags; i++) l->at[l->n++] = by->tags[i];
    if (rq->routed) snprintf(l->own[n_own++], TAG_BYTES, "route:%.100s", rq->routed->route->name);
    for (size_t i = 0; i < rq->directives.n_tags; i++)
        snprintf(l->own[n_own++], TAG_BYTES, "tag:%s", rq->directives.tags[i]);
    for (size_t i = 0; i < n_own; i++) l->at[l->n++] = l->own[i];
}

/* What was answered to one API key is its own, and what by one configuration is not another one's answer. */
static bool scope_key(sha256_digest *key, const gateway_request *rq)
{
    bool shared = rq->config->cache.shared || rq->config->n_api_keys == 0;
    if (shared && rq->settings->number == 0) return true;
    cache_key *k = cache_key_new("scope");
    /* By the key's digest: a request that the gateway makes for a key shows none (batches). */
    if (!shared && rq->key)
        cache_key_bytes(k, "api_key", rq->key->use->digest.bytes, sizeof rq->key->use->digest.bytes);
    else if (!shared)
        cache_key_str(k, "authorization", admission_credential(rq));
    if (rq->settings->number) cache_key_int(k, "settings", (int64_t)rq->settings->number);
    cache_key_bytes(k, "key", key->bytes, sizeof key->bytes);
    return cache_key_end(k, key);
}

static const char *text_after(const char *tag)
{
    return strchr(tag, ':') + 1;
}

/* Of whom it is counted: of the name that was asked for. */
static void note_whom(gateway_request *rq, const provenance *by)
{
    static const char *const KINDS[] = {"pipeline", "ensemble"};
    const char *name = rq->model;
    rq->cache_of = "model";
    for (size_t i = 0; i < by->n_tags; i++)
        for (size_t k = 0; k < 2; k++)
            if (strncmp(by->tags[i], KINDS[k], strlen(KINDS[k])) == 0 && rq->cache_of[0] == 'm') {
                rq->cache_of = KINDS[k];
                name = text_after(by->tags[i]);
            }
    if (rq->routed) {
        rq->cache_of = "route";
        name = rq->routed->route->name;
    }
    buf_copy_str(rq->cache_name, sizeof rq->cache_name, name);
}

static void look_up(shared_job *s, const shared_terms *terms, const sha256_digest *key)
{
    gateway_request *rq = s->rq;
    const cache_directives *w = &rq->directives;
    tag_list tags;
    cache_found f;
    collect_tags(&tags, rq, terms->by);
    cache_ask ask = {.key = key,
                     .tags = tags.at,
                     .n_tags = tags.n,
                     .limits_age = w->limits_age,
                     .max_age_ns = w->max_age_s * 1000000000u,
                     .takes_stale = revalidate_can(rq),
                     .only_kept = w->only_if_cached,
                     .refresh = rq->background == BACKGROUND_REFRESH};
    cache_outcome o = cache_lookup(rq->cache, &ask, request_now_ns(rq), on_turn, s, &f);
    s->ticket = f.ticket;
    switch (o) {
    case CACHE_HIT:
    case CACHE_STALE: answer_kept(s, &f, o == CACHE_STALE); break;
    case CACHE_LEAD: lead(s); break;
    case CACHE_NONE: shared_refuse(s); break;
    default: request_on_deadline(rq, on_deadline); break;
    }
}

/* Without memory it is looked up by its key alone. */
static void keep_near(shared_job *s, const semantic_ask *near)
{
    if (!semantic_is_for(s->rq, near)) return;
    s->near = *near;
    s->near.text = scope_key(&s->near.partition, s->rq) ? strdup(near->text) : NULL;
}

void shared_start(shared_job *s, const shared_ops *ops, gateway_request *rq, const shared_terms *terms)
{
    *s = (shared_job){.ops = ops, .rq = rq, .n_rolls = rq->gateway->n_rolls};
    request_watch(rq, shared_on_gone, s);
    sha256_digest key;
    bool alone = !terms || rq->directives.fresh || rq->background == BACKGROUND_AUDIT;
    if (terms) note_whom(rq, terms->by);
    if (!alone) {
        key = terms->key;
        alone = !scope_key(&key, rq);
    }
    if (alone) {
        if (rq->directives.only_if_cached)
            shared_refuse(s);
        else
            compute(s, NULL);
        return;
    }
    memcpy(s->identity, terms->by->file, sizeof s->identity);
    s->key = key;
    keep_near(s, &terms->near);
    look_up(s, terms, &key);
}
