/* semantic.c: see semantic.h. A lookup is: a vector, then those near to it one after the other, until one may
 * serve. */
#include "answers/semantic.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json/json.h"
#include "logging/log.h"
#include "cache/cache_key.h"
#include "cache/near.h"
#include "request/gateway_state.h"
#include "answers/revalidate.h"
#include "answers/shadow.h"
#include "retrieve/codes.h"
#include "routes/language.h"

#define REST_NS 1000000000u

struct semantic {
    const config_semantic *config;
    near *near;
    double owed;       /* audits */
    uint64_t until_ns; /* nobody is asked before */
};

struct semantic_lookup {
    gateway *g;
    gateway_request *rq; /* NULL: done has come */
    semantic_done done;
    void *user;
    model_call *call;
    char *text;
    char name[96];
    sha256_digest partition;
    near_how how;
    uint64_t start_ns;
    bool hurried;  /* the deadline of its call was the client's, and shorter than the configuration's */
    int8_t *codes; /* [dims]; NULL: there is no vector */
    float scale;
    size_t dims;
    near_found found[NEAR_FOUND_MAX]; /* of a call that is on: the one that is judged comes first */
};

static uint64_t now_ns(const gateway *g)
{
    return env_now_ns(&g->time);
}

/* ---- the verdict --------------------------------------------------------------------------------- */

static void semantic_tell(semantic_lookup *x, const char *result, const char *why, const cache_value *v,
                          double similarity)
{
    gateway *g = x->g;
    metrics_add(g->metrics, METRIC_NEAR, 1, x->name, result, why);
    metrics_observe_s(g->metrics, METRIC_NEAR_S, (double)(now_ns(x->g) - x->start_ns) / 1e9, x->name, NULL);
    if (!v)
        snprintf(x->rq->near_note, sizeof x->rq->near_note, similarity > 0 ? "%s%s%s %.3f" : "%s%s%s", result,
                 *why ? " " : "", why, similarity);
    x->rq = NULL;
    x->done(x->user, v, similarity);
}

static const char *language_of(const char *a, const char *b)
{
    const char *code = language_guess(a, strlen(a));
    return *code ? code : language_guess(b, strlen(b));
}

/* Is it the request that cannot be looked up? A text that is too long for the embedder, or a client without
 * time, says nothing of the model, and others go on asking it. */
static bool is_its_own(const semantic_lookup *x, int status)
{
    return status == SHOAL_EINVALID || status == SHOAL_EFORMAT || status == SHOAL_ELIMIT ||
           status == SHOAL_EUNSUPPORTED || (status == SHOAL_EDEADLINE && x->hurried);
}

/* Its model is missing or late. */
static void pass_by(semantic_lookup *x, const char *why)
{
    x->g->semantic->until_ns = now_ns(x->g) + REST_NS;
    semantic_tell(x, "absent", why, NULL, 0);
}

static void semantic_take(semantic_lookup *x, const near_found *f)
{
    const cache_value *v = cache_peek(x->g->cache, &f->key, now_ns(x->g));
    if (!v) {
        semantic_tell(x, "none", "", NULL, (double)f->cosine);
        return;
    }
    near_touch(x->g->semantic->near, &f->key);
    semantic_tell(x, "near", "", v, (double)f->cosine);
    cache_value_unref(v);
}

static uint64_t until(semantic_lookup *x)
{
    const semantic *l = x->g->semantic;
    uint64_t now = now_ns(x->g), wait = l->config->timeout_ms * 1000000u, deadline = x->rq->deadline_ns;
    uint64_t half = deadline > now ? (deadline - now) / 2 : 0;
    x->hurried = deadline && half < wait;
    return now + (x->hurried ? half : wait);
}

static call_context context_of(semantic_lookup *x)
{
    call_context of = request_context(x->rq, ""), ctx = call_context_named(&of, "cache");
    ctx.deadline_ns = until(x);
    ctx.latency = SHOAL__V1__LATENCY__REALTIME; /* somebody waits */
    return ctx;
}

static void on_judged(void *user, const call_result *r, const Shoal__V1__ClassifyReply *reply)
{
    semantic_lookup *x = user;
    double least = x->g->semantic->config->verify_min;
    x->call = NULL;
    if (is_its_own(x, r->status))
        semantic_tell(x, "absent", "verify", NULL, 0);
    else if (r->status != 0 || reply->n_results != 1 || reply->results[0]->n_labels == 0)
        pass_by(x, "verify");
    else if ((double)reply->results[0]->labels[0]->score >= (least > 0 ? least : SEMANTIC_SCORE))
        semantic_take(x, &x->found[0]);
    else
        semantic_tell(x, "refused", "score", NULL, (double)x->found[0].cosine);
}

/* The cross-encoder reads both; false: no memory. */
static bool ask_judge(semantic_lookup *x, const near_found *f)
{
    Shoal__V1__TextInput pair = SHOAL__V1__TEXT_INPUT__INIT, *inputs[1] = {&pair};
    Shoal__V1__ClassifyRequest q = SHOAL__V1__CLASSIFY_REQUEST__INIT;
    call_context ctx = context_of(x);
    pair.text = x->text;
    pair.pair = (char *)f->text;
    pair.has_pair = 1;
    q.n_inputs = 1;
    q.inputs = inputs;
    x->found[0] = *f;
    x->call = calls_classify(x->rq->calls, x->g->semantic->config->verify_model, &q, &ctx, on_judged, x);
    return x->call != NULL;
}

/* The nearest that the words allow; why the nearest of all was refused, where none is. */
static void semantic_judge(semantic_lookup *x)
{
    const config_semantic *c = x->g->semantic->config;
    double least = c->min_similarity > 0 ? c->min_similarity : SEMANTIC_SIMILARITY;
    bool asks = c->verify == SEMANTIC_MODEL;
    near_verdict first = NEAR_SAME;
    near_found all[NEAR_FOUND_MAX];
    size_t n = near_find(x->g->semantic->near, &x->partition, x->codes, x->scale, x->dims, least, all,
                         NEAR_FOUND_MAX);
    for (size_t i = 0; i < n; i++) {
        const char *language = language_of(x->text, all[i].text);
        near_verdict v = near_rule_compare(x->text, all[i].text, language, asks ? NEAR_HARD : x->how);
        if (i == 0) first = v;
        if (v != NEAR_SAME) continue;
        if (!asks)
            semantic_take(x, &all[i]);
        else if (!ask_judge(x, &all[i]))
            pass_by(x, "memory");
        return;
    }
    if (n > 0)
        semantic_tell(x, "refused", near_verdict_name(first), NULL, (double)all[0].cosine);
    else
        semantic_tell(x, "none", "", NULL, 0);
}

/* ---- the vector ---------------------------------------------------------------------------------- */

/* Vectors of different identities do not compare. */
static bool shelve(semantic_lookup *x, const char *identity)
{
    cache_key *k = cache_key_new("partition");
    cache_key_str(k, "embeds", identity);
    cache_key_bytes(k, "rest", x->partition.bytes, sizeof x->partition.bytes);
    if (x->rq->settings->number) cache_key_int(k, "settings", (int64_t)x->rq->settings->number);
    return cache_key_end(k, &x->partition);
}

static void on_embedded(void *user, const call_result *r, const Shoal__V1__EmbedReply *reply)
{
    semantic_lookup *x = user;
    x->call = NULL;
    if (is_its_own(x, r->status)) {
        semantic_tell(x, "absent", "embed", NULL, 0);
        return;
    }
    size_t dims = r->status == 0 && reply->n_results == 1 ? reply->results[0]->n_values : 0;
    if (dims == 0 || dims > NEAR_DIMS_MAX) {
        pass_by(x, "embed");
        return;
    }
    int8_t *codes = malloc(dims);
    if (!codes || !shelve(x, r->identity) || !codes_of(reply->results[0]->values, dims, codes, &x->scale)) {
        free(codes);
        semantic_tell(x, "absent", "vector", NULL, 0);
        return;
    }
    x->codes = codes;
    x->dims = dims;
    semantic_judge(x);
}

static bool ask_vector(semantic_lookup *x)
{
    Shoal__V1__TextInput input = SHOAL__V1__TEXT_INPUT__INIT, *inputs[1] = {&input};
    Shoal__V1__EmbedRequest q = SHOAL__V1__EMBED_REQUEST__INIT;
    call_context ctx = context_of(x);
    input.text = x->text;
    q.n_inputs = 1;
    q.inputs = inputs;
    x->call = calls_embed(x->rq->calls, x->g->semantic->config->model, &q, &ctx, on_embedded, x);
    return x->call != NULL;
}

/* Does somebody embed now? A call would wait for a worker that is being restarted. */
static bool is_there(const gateway *g, const char *model)
{
    const replica_set *s = registry_find(g->registry, model);
    return s && s->n_ready > 0;
}

bool semantic_is_for(const gateway_request *rq, const semantic_ask *ask)
{
    const semantic *l = rq->gateway->semantic;
    if (!l || !ask->text || !*ask->text || strlen(ask->text) > NEAR_TEXT_MAX || rq->keeps || rq->background)
        return false;
    for (size_t i = 0; i < l->config->n_of; i++)
        if (strcmp(l->config->of[i], rq->cache_name) == 0) return true;
    return false;
}

semantic_lookup *semantic_start(gateway_request *rq, const semantic_ask *ask, semantic_done done, void *user)
{
    gateway *g = rq->gateway;
    if (now_ns(g) < g->semantic->until_ns || !is_there(g, g->semantic->config->model)) {
        snprintf(rq->near_note, sizeof rq->near_note, "absent embed");
        metrics_add(g->metrics, METRIC_NEAR, 1, rq->cache_name, "absent", "embed");
        return NULL;
    }
    semantic_lookup *x = calloc(1, sizeof *x);
    if (!x) return NULL;
    *x = (semantic_lookup){
        .g = g, .rq = rq, .done = done, .user = user, .partition = ask->partition, .how = ask->how};
    x->start_ns = now_ns(g);
    x->text = strdup(ask->text);
    memcpy(x->name, rq->cache_name, sizeof x->name);
    if (x->text && ask_vector(x)) return x;
    semantic_cancel(x);
    return NULL;
}

void semantic_cancel(semantic_lookup *x)
{
    if (!x) return;
    calls_cancel(x->call);
    free(x->text);
    free(x->codes);
    free(x);
}

void semantic_keep(semantic_lookup *x, const sha256_digest *key)
{
    if (x->codes) near_add(x->g->semantic->near, &x->partition, key, x->codes, x->scale, x->dims, x->text);
    semantic_cancel(x);
}

/* ---- audits -------------------------------------------------------------------------------------- */

bool semantic_is_audited(semantic *l)
{
    l->owed += l->config->audit_share;
    if (l->owed < 1) return false;
    l->owed -= 1;
    return true;
}

void semantic_audited(gateway *g, const char *name, const char *a, const char *b)
{
    const char *result = strcmp(a, b) == 0 ? "same" : "other";
    metrics_add(g->metrics, METRIC_NEAR_AUDIT, 1, name, result, NULL);
    metrics_add(g->metrics, METRIC_NEAR_LIKENESS, shadow_likeness(a, b), name, NULL, NULL);
    LOG(LOG_INFO, "cache", "audited", LOG_S("of", name), LOG_S("result", result),
        LOG_F("likeness", shadow_likeness(a, b)));
}

/* ---- life ---------------------------------------------------------------------------------------- */

static void on_dropped(void *user, const sha256_digest *key)
{
    near_drop(((semantic *)user)->near, key);
}

int semantic_open(semantic **ret, gateway *g, shoal_err *err)
{
    const config_semantic *c = &g->config->cache.semantic;
    isa set;
    if (!c->model) return 0;
    int rc = isa_choose(&set, err);
    semantic *l = rc == 0 ? calloc(1, sizeof *l) : NULL;
    if (rc == 0 && !l) rc = err_nomem(err);
    if (rc != 0) return rc;
    l->config = c;
    rc = near_new(&l->near, set, (size_t)c->max_entries, (size_t)c->bytes, err);
    if (rc != 0) {
        free(l);
        return rc;
    }
    cache_on_drop(g->cache, on_dropped, l);
    *ret = l;
    return 0;
}

void semantic_free(semantic *l)
{
    if (!l) return;
    near_free(l->near);
    free(l);
}

/* ---- telling ------------------------------------------------------------------------------------- */

static double sum_of(const metrics *m, metric_id id, const char *result)
{
    const char *const *l;
    double n = 0;
    for (size_t i = 0; (l = metrics_labels(m, id, i)); i++)
        if (strcmp(l[1], result) == 0) n += metrics_get(m, id, l[0], l[1], l[2]);
    return n;
}

static void put_refused(buf *out, const metrics *m)
{
    bool first = true;
    buf_puts(out, ",\"refused\":{");
    for (int v = 0; v <= NEAR_TOO_LONG + 1; v++) {
        const char *why = v <= NEAR_TOO_LONG ? near_verdict_name((near_verdict)v) : "score";
        const char *const *l;
        double n = 0;
        for (size_t i = 0; (l = metrics_labels(m, METRIC_NEAR, i)); i++)
            if (strcmp(l[1], "refused") == 0 && strcmp(l[2], why) == 0)
                n += metrics_get(m, METRIC_NEAR, l[0], l[1], l[2]);
        if (n > 0) buf_printf(out, "%s\"%s\":%.0f", first ? "" : ",", why, n);
        if (n > 0) first = false;
    }
    buf_putc(out, '}');
}

void semantic_put(buf *out, const gateway *g)
{
    const semantic *l = g->semantic;
    if (!l) return;
    const metrics *m = g->metrics;
    double same = sum_of(m, METRIC_NEAR_AUDIT, "same"), other = sum_of(m, METRIC_NEAR_AUDIT, "other");
    buf_puts(out, ",\"semantic\":{\"model\":");
    json_put_string(out, l->config->model, strlen(l->config->model));
    buf_printf(out, ",\"entries\":%zu,\"bytes\":%zu,\"near\":%.0f,\"none\":%.0f,\"absent\":%.0f",
               near_count(l->near), near_bytes(l->near), sum_of(m, METRIC_NEAR, "near"),
               sum_of(m, METRIC_NEAR, "none"), sum_of(m, METRIC_NEAR, "absent"));
    put_refused(out, m);
    buf_printf(out, ",\"audited\":%.0f,\"differed\":%.0f", same + other, other);
    if (same + other > 0) buf_printf(out, ",\"false_hit_rate\":%.4f", other / (same + other));
    buf_putc(out, '}');
}
