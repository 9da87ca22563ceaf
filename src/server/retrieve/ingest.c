/* ingest.c: the loop's part of an ingestion: pieces to the model in batches, vectors back; see ingest.h. */
#include "retrieve/ingest.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "retrieve/codes.h"
#include "retrieve/ingest_impl.h"

enum { BATCH_PIECES = 16 };

static const char *const STATUS_WORDS[] = {
#define INGEST_WORD(e, word) [e] = word,
    INGEST_STATUS_TABLE(INGEST_WORD)
#undef INGEST_WORD
};

const char *ingest_status_word(ingest_status s)
{
    return STATUS_WORDS[s];
}

typedef struct ingest_batch { /* one call: neighbouring pieces of one document */
    ingest *in;
    ingest_document *d;
    size_t first, n;
    model_call *call;
    struct ingest_batch *next;
} ingest_batch;

/* ---- the end ---------------------------------------------------------------------------------------- */

static void ingest_free(ingest *in)
{
    executor *d = in->executor;
    size_t n_places = in->n_running;
    executor_embed_leave(d, &in->turn);
    for (ingest_batch *b = in->batches, *next; b; b = next) {
        next = b->next;
        calls_cancel(b->call);
        free(b);
    }
    ingest_documents_done(in);
    json_decref(in->root);
    buf_done(&in->body);
    arena_free(in->mem);
    free(in);
    executor_embed_end(d, n_places);
}

static void ingest_end(ingest *in, int status, const char *message, const call_result *failed)
{
    ingest_result r = {.status = status, .message = message, .failed = failed};
    ingest_outcome *list = status == 0 ? calloc(in->n, sizeof *list) : NULL;
    if (status == 0 && !list) {
        r.status = SHOAL_ENOMEM; /* it is on disk, but nobody can be told what */
        r.message = "out of memory";
    }
    for (size_t i = 0; list && i < in->n; i++) list[i] = in->v[i].outcome;
    r.v = list;
    r.n = list ? in->n : 0;
    in->done(in->user, &r);
    free(list);
    ingest_free(in);
}

void ingest_cancel(ingest *in)
{
    if (!in) return;
    in->gone = true;
    if (in->working)
        executor_cancel(in->executor, &in->job); /* it is freed when the thread is done with it */
    else
        ingest_free(in);
}

static void submit(ingest *in, int (*work)(executor_job *, const executor_tools *, shoal_err *),
                   void (*done)(executor_job *), executor_queue queue)
{
    in->working = true;
    in->job = (executor_job){.work = work, .done = done, .queue = queue, .owner = in->owner};
    executor_submit(in->executor, &in->job);
}

/* Back from a thread. False: it is over, and freed. */
static bool is_back(ingest *in)
{
    in->working = false;
    if (in->gone) {
        ingest_free(in);
        return false;
    }
    if (in->job.rc == 0) return true;
    shoal_err err = in->job.err;
    ingest_end(in, in->job.rc, err.message, NULL);
    return false;
}

/* ---- embedding -------------------------------------------------------------------------------------- */

static void ingest_go_on(ingest *in);

static void drop_batch(ingest_batch *b)
{
    ingest *in = b->in;
    for (ingest_batch **at = &in->batches; *at; at = &(*at)->next) {
        if (*at != b) continue;
        *at = b->next;
        break;
    }
    in->n_running--;
    free(b);
    executor_embed_end(in->executor, 1);
}

/* Room for the document's vectors, once their length is known. */
static bool ingest_make_room(ingest *in, ingest_document *d)
{
    size_t n = d->cut.n, bytes;
    if (d->scales) return true;
    float *scales = calloc(n, sizeof *scales);
    int8_t *codes = size_mul(n, in->dims, &bytes) ? NULL : calloc(1, bytes);
    if (!scales || !codes) {
        free(scales);
        free(codes);
        return false;
    }
    d->scales = scales;
    d->codes = codes;
    return true;
}

/* 0, or why the answer is none: *ret_why. */
static int keep_vectors(ingest *in, const ingest_batch *b, const call_result *r,
                        const Shoal__V1__EmbedReply *reply, const char **ret_why)
{
    *ret_why = "the worker sent other vectors than it was asked for";
    if (!reply || reply->n_results != b->n || reply->results[0]->n_values == 0) return SHOAL_EPROTOCOL;
    size_t dims = reply->results[0]->n_values;
    if (in->dims == 0) {
        if (dims > CODES_DIMS_MAX) return SHOAL_EPROTOCOL;
        in->dims = (uint32_t)dims;
        snprintf(in->model_digest, sizeof in->model_digest, "%s", r->digest);
    }
    if (strcmp(in->model_digest, r->digest) != 0) {
        *ret_why = "the model's file changed while the documents were read; send them again";
        return SHOAL_EUNAVAILABLE;
    }
    if (!ingest_make_room(in, b->d)) {
        *ret_why = "out of memory";
        return SHOAL_ENOMEM;
    }
    for (size_t i = 0; i < b->n; i++) {
        const Shoal__V1__Embedding *e = reply->results[i];
        if (e->n_values != in->dims) return SHOAL_EPROTOCOL;
        codes_of(e->values, in->dims, b->d->codes + (b->first + i) * in->dims, &b->d->scales[b->first + i]);
    }
    b->d->n_embedded += b->n;
    return 0;
}

static void on_embedded(void *user, const call_result *r, const Shoal__V1__EmbedReply *reply)
{
    ingest_batch *b = user;
    ingest *in = b->in;
    const char *why;
    b->call = NULL;
    if (r->status == SHOAL_ELIMIT) {
        b->d->too_long = true; /* the rest of it is not asked for any more */
    } else if (r->status != 0) {
        ingest_end(in, r->status, r->message, r);
        return;
    } else if (!b->d->too_long) {
        int rc = keep_vectors(in, b, r, reply, &why);
        if (rc != 0) {
            ingest_end(in, rc, why, NULL);
            return;
        }
    }
    executor_embed_leave(in->executor, &in->turn); /* who gets the place that is free now is called within */
    drop_batch(b);
    ingest_go_on(in);
}

/* What the model reads of a piece: under a short heading, if there is one. */
static char *words_of(ingest *in, const ingest_document *d, size_t i, arena *mem)
{
    const piece *p = &d->cut.v[i];
    size_t n = p->end - p->start, n_title = strlen(p->title);
    if (n_title == 0 || n_title + n > d->piece_bytes + d->piece_bytes / 4)
        return arena_strndup(mem, d->plain.text.data + p->start, n);
    return arena_printf(mem, "%s: %.*s", p->title, (int)n, d->plain.text.data + p->start);
}

static model_call *call_model(ingest *in, ingest_batch *b)
{
    Shoal__V1__TextInput all[BATCH_PIECES], *list[BATCH_PIECES];
    Shoal__V1__EmbedRequest req = SHOAL__V1__EMBED_REQUEST__INIT;
    arena *mem = arena_new(0); /* the call copies what it is given */
    bool fine = mem;
    for (size_t i = 0; fine && i < b->n; i++) {
        all[i] = (Shoal__V1__TextInput)SHOAL__V1__TEXT_INPUT__INIT;
        all[i].text = words_of(in, b->d, b->first + i, mem);
        list[i] = &all[i];
        fine = all[i].text;
    }
    req.inputs = list;
    req.n_inputs = b->n;
    model_call *call = fine ? calls_embed(in->calls, in->c.model, &req, &in->ctx, on_embedded, b) : NULL;
    arena_free(mem);
    return call;
}

/* False: out of memory. */
static bool start_batch(ingest *in, ingest_document *d)
{
    ingest_batch *b = calloc(1, sizeof *b);
    if (!b) return false;
    size_t left = d->cut.n - d->n_asked;
    *b =
        (ingest_batch){.in = in, .d = d, .first = d->n_asked, .n = left < BATCH_PIECES ? left : BATCH_PIECES};
    b->call = call_model(in, b);
    if (!b->call) {
        free(b);
        return false;
    }
    d->n_asked += b->n;
    b->next = in->batches;
    in->batches = b;
    in->n_running++;
    return true;
}

static ingest_document *next_document(const ingest *in)
{
    for (size_t i = 0; i < in->n; i++) {
        ingest_document *d = &in->v[i];
        if (ingest_is_new(d) && !d->too_long && d->n_asked < d->cut.n) return d;
    }
    return NULL;
}

/* ---- one step after the other ----------------------------------------------------------------------- */

static void on_written(executor_job *j)
{
    ingest *in = (ingest *)j;
    if (is_back(in)) ingest_end(in, 0, "", NULL);
}

static void on_recut(executor_job *j)
{
    ingest *in = (ingest *)j;
    if (is_back(in)) ingest_go_on(in);
}

static bool any_too_long(const ingest *in)
{
    for (size_t i = 0; i < in->n; i++)
        if (in->v[i].too_long) return true;
    return false;
}

/* Vectors of a cut that is not the last are nobody's. */
static void forget_vectors(ingest *in)
{
    for (size_t i = 0; i < in->n; i++) {
        ingest_document *d = &in->v[i];
        if (!d->too_long) continue;
        free(d->scales);
        free(d->codes);
        d->scales = NULL;
        d->codes = NULL;
    }
}

static bool any_new(const ingest *in)
{
    for (size_t i = 0; i < in->n; i++)
        if (ingest_is_new(&in->v[i])) return true;
    return false;
}

static void ingest_go_on(ingest *in)
{
    ingest_document *d;
    bool embeds = *in->c.model;
    while (embeds && (d = next_document(in)) && executor_embed_begin(in->executor, &in->turn)) {
        if (start_batch(in, d)) continue;
        executor_embed_end(in->executor, 1);
        ingest_end(in, SHOAL_ENOMEM, "out of memory", NULL);
        return;
    }
    if (in->n_running > 0 || in->turn.waits) return;
    if (any_too_long(in)) {
        forget_vectors(in);
        submit(in, ingest_recut, on_recut, EXECUTOR_INDEXING);
    } else if (any_new(in)) {
        submit(in, ingest_write, on_written, EXECUTOR_WRITES);
    } else {
        ingest_end(in, 0, "", NULL);
    }
}

static void on_turn(executor_turn *t)
{
    ingest_go_on((ingest *)(void *)((char *)t - offsetof(ingest, turn)));
}

static void on_read(executor_job *j)
{
    ingest *in = (ingest *)j;
    if (is_back(in)) ingest_go_on(in);
}

ingest *ingest_start(const ingest_ask *ask)
{
    ingest *in = calloc(1, sizeof *in);
    if (!in) return NULL;
    *in = (ingest){.executor = ask->executor,
                   .calls = ask->calls,
                   .created = ask->created,
                   .turn = {.fn = on_turn},
                   .user = ask->user,
                   .done = ask->done,
                   .mem = arena_new(0)};
    bool fine =
        in->mem && buf_append(&in->body, ask->body, ask->n_body) == 0 && buf_reserve(&in->body, 1) == 0;
    if (fine) {
        in->collection_name = arena_strdup(in->mem, ask->collection);
        in->owner = arena_strdup(in->mem, ask->owner ? ask->owner : "");
        fine =
            in->collection_name && in->owner && call_context_keep(&in->ctx, ask->ctx, "documents", in->mem);
    }
    if (!fine) {
        ingest_free(in);
        return NULL;
    }
    submit(in, ingest_read, on_read, EXECUTOR_INDEXING);
    return in;
}
