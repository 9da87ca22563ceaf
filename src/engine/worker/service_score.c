/* service_score.c: Score and ClassifyImage.
 *
 * Both block (trees compute where they are called, networks wait for their engine) and may take a while over
 * a large file, so each runs on a thread of the loop's pool, a large one as a long job; the loop thread sends
 * what it has made. A call that has gone, or is late, is noticed at the next rows. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/utf8.h"
#include "shoal/v1/worker.pb-c.h"
#include "worker/service.h"

enum { MAX_BLOCKING = 64, REPLY_MAX_BYTES = 12 << 20 };
enum { LIGHT_CSV_BYTES = 256 << 10, LIGHT_PIXELS = 2 << 20 }; /* some ten milliseconds each */
#define PICTURE_WORK_MAX ((size_t)16 << 20)                   /* pixels times scans of a picture */

typedef struct block_call block_call;

typedef struct block_kind {
    const char *method;
    model_task task;
    const ProtobufCMessageDescriptor *request;
    int (*run)(block_call *b, shoal_err *err); /* on a thread of the pool: fills b->reply */
    bool (*is_heavy)(const block_call *b);
} block_kind;

struct block_call {
    pool_job work; /* first */
    const block_kind *kind;
    worker *w;
    grpc_call *call; /* NULL once answered or gone */
    call_trace trace;
    atomic_bool gone;
    uint64_t deadline_ns;
    ProtobufCMessage *request, *reply; /* reply: in mem */
    arena *mem;
    Shoal__V1__Timing *timing; /* a part of the reply */
    double queue_ms, compute_ms, cpu_ms;
    size_t n_items, n_bytes; /* of the reply so far */
    Shoal__V1__ScoredRow **rows;
    size_t cap;
    shoal_err err; /* code 0: it went well */
};

static void block_free(block_call *b)
{
    if (b->request) protobuf_c_message_free_unpacked(b->request, NULL);
    arena_free(b->mem);
    free(b->rows);
    free(b);
}

/* ---- Score: on a thread of the pool -------------------------------------------------------------------- */

static int score_may_go_on(void *user, shoal_err *err)
{
    const block_call *b = user;
    char when[48];
    snprintf(when, sizeof when, "after %zu scores", b->n_items);
    return service_may_go_on(&b->gone, b->deadline_ns, when, err);
}

static int grow_rows(block_call *b, shoal_err *err)
{
    if (b->n_items < b->cap) return 0;
    size_t cap = b->cap ? 2 * b->cap : 256;
    Shoal__V1__ScoredRow **rows = realloc(b->rows, cap * sizeof *rows);
    if (!rows) return err_nomem(err);
    b->rows = rows;
    b->cap = cap;
    return 0;
}

static double *copy_doubles(arena *a, const double *v, size_t n)
{
    double *ret = arena_alloc(a, n * sizeof *ret);
    if (ret) memcpy(ret, v, n * sizeof *ret);
    return ret;
}

static int score_add_row(const scorer_row *r, void *user, shoal_err *err)
{
    block_call *b = user;
    const backend_about *about = &b->w->backend.about;
    int rc = score_may_go_on(b, err);
    if (rc == 0) rc = grow_rows(b, err);
    if (rc != 0) return rc;
    size_t n_scores = r->classes ? about->n_labels : about->n_raw;
    b->n_bytes +=
        strlen(r->item.sensor) + strlen(r->item.time) + (n_scores + about->n_raw) * sizeof(double) + 32;
    if (b->n_bytes > REPLY_MAX_BYTES)
        return err_set(err, SHOAL_ELIMIT, "more than %zu scores are too many for one answer: send fewer rows",
                       b->n_items);
    Shoal__V1__ScoredRow *m = arena_alloc(b->mem, sizeof *m);
    if (!m) return err_nomem(err);
    *m = (Shoal__V1__ScoredRow)SHOAL__V1__SCORED_ROW__INIT;
    m->sensor = arena_strdup(b->mem, r->item.sensor);
    m->time = arena_strdup(b->mem, r->item.time);
    m->line = (uint32_t)r->item.line;
    m->row = (uint32_t)r->item.row;
    if (r->classes) m->label = (char *)about->labels[r->best];
    m->scores = copy_doubles(b->mem, r->classes ? r->classes : r->score, m->n_scores = n_scores);
    m->raw = copy_doubles(b->mem, r->raw, m->n_raw = about->n_raw);
    if (!m->sensor || !m->time || !m->scores || !m->raw) return err_nomem(err);
    b->rows[b->n_items++] = m;
    return 0;
}

static int check_csv(const ProtobufCBinaryData *csv, shoal_err *err)
{
    size_t bad;
    const char *text = csv->len ? (const char *)csv->data : "";
    if (memchr(text, '\0', csv->len)) return err_set(err, SHOAL_EINVALID, "the CSV holds a NUL byte");
    if (!utf8_valid(text, csv->len, &bad))
        return err_set(err, SHOAL_EINVALID, "the CSV is not UTF-8 at byte %zu", bad);
    return 0;
}

static int run_score(block_call *b, shoal_err *err)
{
    const ProtobufCBinaryData *text = &((Shoal__V1__ScoreRequest *)b->request)->csv;
    Shoal__V1__ScoreReply *m = arena_alloc(b->mem, sizeof *m);
    const backend *be = &b->w->backend;
    preprocessor_totals totals;
    csv *c = NULL;
    if (!m) return err_nomem(err);
    int rc = check_csv(text, err);
    if (rc == 0) rc = csv_over(&c, text->len ? (const char *)text->data : "", text->len, "the CSV", err);
    if (rc == 0) csv_set_cancel(c, &(cancel_check){score_may_go_on, b});
    if (rc == 0) rc = be->ops->score(be->state, c, b->deadline_ns, score_add_row, b, &totals, err);
    csv_close(c);
    /* Whatever is wrong with the text is wrong with the request. */
    if (rc == SHOAL_EFORMAT) rc = err->code = SHOAL_EINVALID;
    if (rc != 0) return rc;
    *m = (Shoal__V1__ScoreReply)SHOAL__V1__SCORE_REPLY__INIT;
    m->rows = b->rows;
    m->n_rows = b->n_items;
    m->labels = (char **)be->about.labels;
    m->n_labels = be->about.n_labels;
    m->n_read = totals.n_rows;
    m->n_sensors = (uint32_t)totals.n_sensors;
    m->timing = b->timing;
    b->reply = &m->base;
    return 0;
}

/* ---- ClassifyImage: likewise --------------------------------------------------------------------------- */

static int score_make_pixels(block_call *b, float **ret, shoal_err *err)
{
    const ProtobufCBinaryData *image = &((Shoal__V1__ImageRequest *)b->request)->image;
    image_limits limits = {.max_work = PICTURE_WORK_MAX, .cancel = {score_may_go_on, b}};
    int rc = b->w->backend.ops->pixels(b->w->backend.state, image->data, image->len, &limits, ret, err);
    /* A broken picture is the request's, as is one of another kind. */
    if (rc == SHOAL_EFORMAT || rc == SHOAL_EUNSUPPORTED) rc = err->code = SHOAL_EINVALID;
    return rc;
}

static bool picture_is_heavy(const block_call *b)
{
    const ProtobufCBinaryData *image = &((Shoal__V1__ImageRequest *)b->request)->image;
    return image_cost(image->data, image->len) > LIGHT_PIXELS;
}

static bool csv_is_heavy(const block_call *b)
{
    return ((Shoal__V1__ScoreRequest *)b->request)->csv.len > LIGHT_CSV_BYTES;
}

static int run_image(block_call *b, shoal_err *err)
{
    const backend *be = &b->w->backend;
    float *logits = arena_alloc(b->mem, (be->about.n_labels + 1) * sizeof *logits);
    if (!logits) return err_nomem(err);
    float *px = NULL;
    int rc = score_make_pixels(b, &px, err);
    if (rc == 0)
        rc = be->ops->classify_image(be->state, px, b->deadline_ns, &(cancel_check){score_may_go_on, b},
                                     logits, err);
    free(px);
    if (rc != 0) return rc;
    Shoal__V1__ClassifyReply *m = service_classify_reply(b->w, b->mem, logits);
    if (!m) return err_nomem(err);
    m->timing = b->timing;
    b->reply = &m->base;
    b->n_items = 1;
    return 0;
}

static void score_run(pool_job *work)
{
    block_call *b = (block_call *)work;
    uint64_t score_start = clock_ns(), cpu_start = clock_thread_cpu_ns();
    b->queue_ms = clock_ms_since(b->trace.start_ns);
    b->err.code = score_may_go_on(b, &b->err);
    if (b->err.code == 0) b->err.code = b->kind->run(b, &b->err);
    b->compute_ms = clock_ms_since(score_start);
    b->cpu_ms = (double)(clock_thread_cpu_ns() - cpu_start) / 1e6;
}

/* ---- the loop thread ----------------------------------------------------------------------------------- */

static void score_answer(block_call *b)
{
    grpc_call *c = b->call;
    b->call = NULL;
    b->timing->queue_ms = b->queue_ms;
    b->timing->compute_ms = b->compute_ms;
    b->timing->cpu_ms = b->cpu_ms;
    if (b->err.code == 0 && service_call_send(b->w, c, b->reply) != 0) err_nomem(&b->err);
    if (b->err.code != 0) {
        b->w->blocking.n_failed++;
        service_call_refuse(b->w, c, &b->trace, &b->err);
        return;
    }
    LOG(LOG_INFO, "worker", "call_done", LOG_S("request_id", b->trace.request_id),
        LOG_S("trace_id", b->trace.trace_id), LOG_S("method", b->trace.method), LOG_S("model", b->w->name),
        LOG_S("version", b->w->backend.about.version),
        LOG_S("quantisation", b->w->backend.about.quantisation), LOG_I("scores", b->n_items),
        LOG_F("queue_ms", b->queue_ms), LOG_F("compute_ms", b->compute_ms),
        LOG_F("ms", clock_ms_since(b->trace.start_ns)));
    grpc_call_end(c, GRPC_OK, NULL);
}

static void score_has_run(pool_job *work, bool ran)
{
    block_call *b = (block_call *)work;
    worker *w = b->w;
    /* Nobody but a closing engine cancels a live call. */
    if (b->call && b->err.code == SHOAL_ECANCELLED)
        err_set(&b->err, SHOAL_EUNAVAILABLE, "the worker is shutting down");
    if (b->call) score_answer(b);
    block_free(b);
    service_blocking_ended(w);
}

static void score_call_gone(void *user, grpc_call *c)
{
    block_call *b = user;
    b->call = NULL;
    b->w->blocking.n_cancelled++;
    atomic_store(&b->gone, true);
    LOG(LOG_INFO, "worker", "call_cancelled", LOG_S("request_id", b->trace.request_id),
        LOG_S("trace_id", b->trace.trace_id), LOG_S("method", b->trace.method), LOG_S("model", b->w->name));
    pool_drop(&b->w->pool, &b->work); /* may free it */
}

static int score_prepare(block_call *b, const uint8_t *msg, size_t n, shoal_err *err)
{
    int rc = service_call_admit(b->w, b->kind->task, err);
    if (rc == 0 && b->w->blocking.n >= MAX_BLOCKING)
        rc =
            err_set(err, SHOAL_EFULL, "%s has %d calls under way: try again later", b->w->name, MAX_BLOCKING);
    if (rc == 0) rc = service_call_unpack(b->kind->request, msg, n, &b->request, err);
    if (rc != 0) return rc;
    b->mem = arena_new(65536);
    b->timing = b->mem ? arena_alloc(b->mem, sizeof *b->timing) : NULL;
    if (!b->timing) return err_nomem(err);
    *b->timing = (Shoal__V1__Timing)SHOAL__V1__TIMING__INIT;
    pool_start(&b->w->pool, &b->work, b->kind->is_heavy(b), score_run, score_has_run);
    return 0;
}

static void score_start(worker *w, grpc_call *c, const block_kind *kind, const uint8_t *msg, size_t n)
{
    block_call *b = calloc(1, sizeof *b);
    if (!b) {
        grpc_call_end(c, GRPC_RESOURCE_EXHAUSTED, "out of memory");
        return;
    }
    b->kind = kind;
    b->w = w;
    b->call = c;
    b->deadline_ns = grpc_call_deadline_ns(c);
    service_call_begin(w, c, kind->method, &b->trace);
    shoal_err err;
    if (score_prepare(b, msg, n, &err) != 0) {
        service_call_refuse(w, c, &b->trace, &err);
        block_free(b);
        return;
    }
    w->blocking.n++;
    w->blocking.n_scored++;
    grpc_call_on_cancel(c, score_call_gone, b);
}

void service_score(void *user, grpc_call *c, const uint8_t *msg, size_t n)
{
    static const block_kind KIND = {"Score", TASK_SCORE, &shoal__v1__score_request__descriptor, run_score,
                                    csv_is_heavy};
    score_start(user, c, &KIND, msg, n);
}

void service_classify_image(void *user, grpc_call *c, const uint8_t *msg, size_t n)
{
    static const block_kind KIND = {"ClassifyImage", TASK_IMAGE, &shoal__v1__image_request__descriptor,
                                    run_image, picture_is_heavy};
    score_start(user, c, &KIND, msg, n);
}
