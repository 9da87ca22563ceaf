/* find.c: see find.h. */
#include "retrieve/find.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "retrieve/codes.h"

struct find {
    executor_job job;
    const char *owner; /* of `mem` */
    executor *executor;
    calls *calls;
    call_context ctx;
    arena *mem; /* of all strings below */
    const char *collection, *text, *rerank;
    find_mode mode;
    filter filter;
    size_t k, n_wanted; /* results; and how many the search gives, more with a reranker */
    store_collection c;
    int8_t *codes;
    float scale;
    size_t dims;
    char digest[CALL_DIGEST_BYTES];
    search_answer answer;
    char degraded[320];
    model_call *call;
    bool gone, working;
    void *user;
    void (*done)(void *user, const find_result *r);
};

bool find_mode_parse(const char *word, find_mode *ret)
{
    static const char *const WORDS[] = {
#define FIND_WORD(e, word) [e] = word,
        FIND_MODE_TABLE(FIND_WORD)
#undef FIND_WORD
    };
    for (size_t i = 0; i < sizeof WORDS / sizeof *WORDS; i++) {
        if (strcmp(WORDS[i], word) != 0) continue;
        *ret = (find_mode)i;
        return true;
    }
    return false;
}

static void find_free(find *f)
{
    calls_cancel(f->call);
    search_done(&f->answer);
    filter_done(&f->filter);
    free(f->codes);
    arena_free(f->mem);
    free(f);
}

static void end_find(find *f, int status, const char *message, const call_result *failed)
{
    find_result r = {.status = status, .message = message, .failed = failed};
    if (status == 0) {
        r.v = f->answer.v;
        r.n = f->answer.n < f->k ? f->answer.n : f->k;
        r.degraded = *f->degraded ? f->degraded : NULL;
    }
    f->done(f->user, &r);
    find_free(f);
}

void find_cancel(find *f)
{
    if (!f) return;
    f->gone = true;
    if (f->working)
        executor_cancel(f->executor, &f->job);
    else
        find_free(f);
}

static void submit(find *f, int (*work)(executor_job *, const executor_tools *, shoal_err *),
                   void (*done)(executor_job *))
{
    f->working = true;
    f->job = (executor_job){.work = work, .done = done, .queue = EXECUTOR_READS, .owner = f->owner};
    executor_submit(f->executor, &f->job);
}

/* Back from a thread. False: it is over, and freed. */
static bool is_back(find *f)
{
    f->working = false;
    if (f->gone) {
        find_free(f);
        return false;
    }
    if (f->job.rc == 0) return true;
    shoal_err err = f->job.err;
    end_find(f, f->job.rc, err.message, NULL);
    return false;
}

/* ---- a better order --------------------------------------------------------------------------------- */

static int by_score(const void *x, const void *y)
{
    const search_hit *a = x, *b = y;
    if (a->found.score != b->found.score) return a->found.score > b->found.score ? -1 : 1;
    if (a->found.document != b->found.document) return a->found.document < b->found.document ? -1 : 1;
    return a->found.ordinal < b->found.ordinal ? -1 : a->found.ordinal > b->found.ordinal;
}

static void on_ranked(void *user, const call_result *r, const Shoal__V1__ClassifyReply *reply)
{
    find *f = user;
    f->call = NULL;
    bool wrong =
        r->status == SHOAL_ENOTFOUND || r->status == SHOAL_EUNSUPPORTED || r->status == SHOAL_EINVALID;
    if (wrong || r->status == SHOAL_ENOMEM) {
        end_find(f, r->status, r->message, r);
        return;
    }
    if (r->status != 0 || reply->n_results != f->answer.n) {
        snprintf(f->degraded, sizeof f->degraded, "not reranked: %.250s",
                 r->status ? r->message : "the answer is none");
        end_find(f, 0, "", NULL);
        return;
    }
    for (size_t i = 0; i < f->answer.n; i++) {
        const Shoal__V1__Classification *c = reply->results[i];
        float score = c->n_labels ? c->labels[0]->score : 0;
        f->answer.v[i].found.score = isfinite(score) ? score : 0;
    }
    qsort(f->answer.v, f->answer.n, sizeof *f->answer.v, by_score);
    end_find(f, 0, "", NULL);
}

static void start_rerank(find *f)
{
    Shoal__V1__TextInput all[FIND_RERANK_MAX], *list[FIND_RERANK_MAX];
    Shoal__V1__ClassifyRequest req = SHOAL__V1__CLASSIFY_REQUEST__INIT;
    if (f->answer.n > FIND_RERANK_MAX) f->answer.n = FIND_RERANK_MAX;
    for (size_t i = 0; i < f->answer.n; i++) {
        all[i] = (Shoal__V1__TextInput)SHOAL__V1__TEXT_INPUT__INIT;
        all[i].text = (char *)f->text;
        all[i].pair = (char *)f->answer.v[i].piece.text;
        all[i].has_pair = 1;
        list[i] = &all[i];
    }
    req.inputs = list;
    req.n_inputs = f->answer.n;
    f->call = calls_classify(f->calls, f->rerank, &req, &f->ctx, on_ranked, f);
    if (!f->call) end_find(f, SHOAL_ENOMEM, "out of memory", NULL);
}

/* ---- the search ------------------------------------------------------------------------------------- */

static int work_search(executor_job *j, const executor_tools *t, shoal_err *err)
{
    find *f = (find *)j; /* its first member */
    search_ask ask = {.collection = f->collection,
                      .text = f->text,
                      .codes = f->codes,
                      .dims = f->dims,
                      .scale = f->scale,
                      .model_digest = f->digest,
                      .no_words = f->mode == FIND_MEANING,
                      .filter = &f->filter,
                      .k = f->n_wanted};
    int rc = search_run(&f->answer, t->store, t->vectors, &ask, err);
    if (rc != SHOAL_ELIMIT || f->mode != FIND_HYBRID) return rc;
    snprintf(f->degraded, sizeof f->degraded, "found by words alone: %.250s", err->message);
    search_done(&f->answer);
    ask.codes = NULL; /* its vectors do not fit into memory */
    return search_run(&f->answer, t->store, t->vectors, &ask, err);
}

static void on_searched(executor_job *j)
{
    find *f = (find *)j;
    if (!is_back(f)) return;
    if (f->rerank && f->answer.n > 0)
        start_rerank(f);
    else
        end_find(f, 0, "", NULL);
}

/* ---- the vector ------------------------------------------------------------------------------------- */

/* 0, or why the answer is none. */
static int keep_vector(find *f, const call_result *r, const Shoal__V1__EmbedReply *reply)
{
    if (reply->n_results != 1 || reply->results[0]->n_values == 0 ||
        reply->results[0]->n_values > CODES_DIMS_MAX)
        return SHOAL_EPROTOCOL;
    f->dims = reply->results[0]->n_values;
    f->codes = malloc(f->dims);
    if (!f->codes) return SHOAL_ENOMEM;
    codes_of(reply->results[0]->values, f->dims, f->codes, &f->scale);
    snprintf(f->digest, sizeof f->digest, "%s", r->digest);
    return 0;
}

static void on_embedded(void *user, const call_result *r, const Shoal__V1__EmbedReply *reply)
{
    find *f = user;
    f->call = NULL;
    bool ours = r->status == SHOAL_EDEADLINE || r->status == SHOAL_ENOMEM; /* fewer models would not help */
    if (r->status != 0 && (f->mode == FIND_MEANING || ours)) {
        end_find(f, r->status, r->message, r);
        return;
    }
    if (r->status != 0) {
        snprintf(f->degraded, sizeof f->degraded, "found by words alone: %.250s", r->message);
    } else {
        int rc = keep_vector(f, r, reply);
        if (rc != 0) {
            end_find(f, rc,
                     rc == SHOAL_ENOMEM ? "out of memory"
                                        : "the worker sent other vectors than it was asked for",
                     NULL);
            return;
        }
    }
    submit(f, work_search, on_searched);
}

static void start_embed(find *f)
{
    Shoal__V1__TextInput one = SHOAL__V1__TEXT_INPUT__INIT, *list[] = {&one};
    Shoal__V1__EmbedRequest req = SHOAL__V1__EMBED_REQUEST__INIT;
    one.text = (char *)f->text;
    req.inputs = list;
    req.n_inputs = 1;
    f->call = calls_embed(f->calls, f->c.model, &req, &f->ctx, on_embedded, f);
    if (!f->call) end_find(f, SHOAL_ENOMEM, "out of memory", NULL);
}

static int work_look(executor_job *j, const executor_tools *t, shoal_err *err)
{
    find *f = (find *)j;
    return store_find(t->store, f->collection, f->mem, &f->c, err);
}

static void on_looked(executor_job *j)
{
    find *f = (find *)j;
    if (!is_back(f)) return;
    if (f->mode == FIND_MEANING && !*f->c.model)
        end_find(f, SHOAL_EINVALID, "the collection has no vectors: search it by \"text\"", NULL);
    else if (f->mode == FIND_WORDS || f->c.dims == 0)
        submit(f, work_search, on_searched);
    else
        start_embed(f);
}

/* ---- the start -------------------------------------------------------------------------------------- */

static bool find_copy(find *f, const find_ask *ask)
{
    f->mem = arena_new(0);
    if (!f->mem) return false;
    f->collection = arena_strdup(f->mem, ask->collection);
    f->text = arena_strdup(f->mem, ask->text);
    f->owner = arena_strdup(f->mem, ask->owner ? ask->owner : "");
    f->rerank = ask->rerank ? arena_strdup(f->mem, ask->rerank) : NULL;
    return f->collection && f->text && f->owner && (!ask->rerank || f->rerank) &&
           call_context_keep(&f->ctx, ask->ctx, "retrieval", f->mem);
}

int find_start(find **ret, const find_ask *ask, shoal_err *err)
{
    find *f = calloc(1, sizeof *f);
    if (!f) return err_nomem(err);
    *f = (find){.executor = ask->executor,
                .calls = ask->calls,
                .mode = ask->mode,
                .k = ask->k,
                .user = ask->user,
                .done = ask->done};
    f->n_wanted = ask->rerank && ask->k < FIND_RERANK_MAX ? FIND_RERANK_MAX : ask->k;
    int rc = find_copy(f, ask) ? filter_parse(&f->filter, ask->filters, err) : err_nomem(err);
    if (rc != 0) {
        find_free(f);
        return rc;
    }
    submit(f, work_look, on_looked);
    *ret = f;
    return 0;
}
