/* service_stage.c: Stage.Run: this worker as some layers of a network whose first stage is elsewhere.
 *
 * The loop thread reads and checks messages; one thread of the stage's own computes, in the order in which
 * they came, and packs the replies; the loop sends them.
 *
 *     loop thread                        stage's thread
 *     run_message ──► queue [step][step] ──► stage_run
 *     deliver     ◄── done  [step]       ◄── rows packed
 */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/progress.h"
#include "base/signal_stack.h"
#include "infer/stage.h"
#include "shoal/v1/stage.pb-c.h"
#include "worker/service.h"
#include "backend/stage_rows.h"

enum { QUEUE_MAX = 128 }; /* steps that wait: more than any first stage has under way */

typedef struct stage_job {
    struct stage_job *next;
    uint64_t owner;                   /* of its stream; 0: the cache is to be emptied */
    Shoal__V1__StageRequest *request; /* what the pages of the items lie in */
    stage_item *items;
    stage_copy *copies;
    seq_mark *marks; /* of all items */
    size_t n_rows;
    rows_wire wire;
    uint8_t *reply; /* packed, once it is computed */
    size_t n_reply;
    shoal_err err; /* code 0: none */
} stage_job;

typedef struct job_list {
    stage_job *head, **tail;
    size_t n;
} job_list;

struct stage_host {
    worker *w;
    stage *stage; /* the backend's */
    stage_facts facts;
    grpc_call *call; /* of the first stage; NULL: there is none */
    uint64_t owner;  /* its number */
    bool open;       /* it has said what it wants */
    rows_wire wire;
    kv_type kv_type;  /* what it keeps keys and values as */
    uint64_t n_steps; /* delivered */
    float *rows;      /* [max_tokens][n_embd]; the stage's thread */
    uv_thread_t thread;
    uv_async_t async;
    uv_mutex_t lock; /* guards what follows; a leaf */
    uv_cond_t wake;
    job_list queue, done;
    bool stopping;
};

/* ---- jobs ------------------------------------------------------------------------------------------- */

static void stage_job_free(stage_job *j)
{
    if (!j) return;
    if (j->request) shoal__v1__stage_request__free_unpacked(j->request, NULL);
    free(j->items);
    free(j->copies);
    free(j->marks);
    free(j->reply);
    free(j);
}

static void stage_push(job_list *l, stage_job *j)
{
    if (!l->head) l->tail = &l->head;
    j->next = NULL;
    *l->tail = j;
    l->tail = &j->next;
    l->n++;
}

static stage_job *pop(job_list *l)
{
    stage_job *j = l->head;
    if (!j) return NULL;
    l->head = j->next;
    l->n--;
    return j;
}

/* ---- the stage's thread ------------------------------------------------------------------------------- */

static int stage_pack_rows(stage_host *h, stage_job *j, size_t n_rows, uint64_t compute_us)
{
    Shoal__V1__StageReply reply = SHOAL__V1__STAGE_REPLY__INIT;
    Shoal__V1__StageRows m = SHOAL__V1__STAGE_ROWS__INIT;
    m.number = j->request->step->number;
    m.compute_us = compute_us;
    m.rows.len = n_rows * rows_wire_bytes(j->wire, h->facts.n_embd);
    m.rows.data = malloc(m.rows.len + 1);
    reply.what_case = SHOAL__V1__STAGE_REPLY__WHAT_ROWS;
    reply.rows = &m;
    if (m.rows.data) {
        rows_wire_put(j->wire, h->rows, n_rows, h->facts.n_embd, m.rows.data);
        j->reply = malloc(protobuf_c_message_get_packed_size(&reply.base));
    }
    if (j->reply) j->n_reply = protobuf_c_message_pack(&reply.base, j->reply);
    free(m.rows.data);
    return j->reply ? 0 : err_nomem(&j->err);
}

static void stage_compute(stage_host *h, stage_job *j)
{
    const Shoal__V1__StageStep *m = j->request->step;
    stage_step step = {
        .copies = j->copies, .n_copies = m->n_copies / 2, .items = j->items, .n_items = m->n_items};
    uint64_t start = clock_ns();
    size_t n = j->n_rows;
    rows_wire_get(j->wire, m->rows.data, n, h->facts.n_embd, h->rows);
    if (stage_run(h->stage, &step, h->rows, n, &j->err) != 0) return;
    if (h->facts.end == h->facts.n_layer) n = stage_keep_wanted(&step, h->rows, h->facts.n_embd);
    stage_pack_rows(h, j, n, (clock_ns() - start) / 1000);
}

static void stage_thread_main(void *arg)
{
    signal_stack_open();
    stage_host *h = arg;
    uv_mutex_lock(&h->lock);
    while (!h->stopping) {
        stage_job *j = pop(&h->queue);
        if (!j) {
            uv_cond_wait(&h->wake, &h->lock);
            continue;
        }
        uv_mutex_unlock(&h->lock);
        progress_begin();
        if (j->owner)
            stage_compute(h, j);
        else
            stage_reset(h->stage);
        progress_end();
        uv_mutex_lock(&h->lock);
        stage_push(&h->done, j);
        uv_async_send(&h->async);
    }
    uv_mutex_unlock(&h->lock);
}

static void stage_submit(stage_host *h, stage_job *j)
{
    uv_mutex_lock(&h->lock);
    stage_push(&h->queue, j);
    uv_cond_signal(&h->wake);
    uv_mutex_unlock(&h->lock);
}

/* ---- the loop thread ---------------------------------------------------------------------------------- */

/* What it has asked for and nobody waits for any more is not computed: the next one begins at once, and does
 * not find the queue full of it. */
static void forget_owner(stage_host *h)
{
    h->call = NULL;
    h->open = false;
    uv_mutex_lock(&h->lock);
    job_list left = h->queue;
    h->queue = (job_list){0};
    uv_mutex_unlock(&h->lock);
    for (stage_job *j; (j = pop(&left));) stage_job_free(j);
}

static void stage_refuse(stage_host *h, const shoal_err *err)
{
    grpc_call *c = h->call;
    LOG(LOG_WARN, "worker", "stage_refused", LOG_S("model", h->w->name),
        LOG_S("error", shoal_err_name(err->code)), LOG_S("message", err->message));
    forget_owner(h);
    grpc_call_end(c, grpc_status_from_err(err->code), err->message);
}

static void stage_deliver(uv_async_t *a)
{
    stage_host *h = a->data;
    uv_mutex_lock(&h->lock);
    job_list done = h->done;
    h->done = (job_list){0};
    uv_mutex_unlock(&h->lock);
    for (stage_job *j; (j = pop(&done)); stage_job_free(j)) {
        if (!h->call || j->owner != h->owner) continue;
        h->n_steps++;
        if (j->err.code != 0)
            stage_refuse(h, &j->err);
        else
            grpc_call_send(h->call, j->reply, j->n_reply);
    }
}

static int stage_open_stream(stage_host *h, const Shoal__V1__StageOpen *m, shoal_err *err)
{
    const stage_facts *f = &h->facts;
    if (h->open) return err_set(err, SHOAL_EINVALID, "the stream was opened already");
    if (strcmp(m->digest, h->w->digest) != 0)
        return err_set(err, SHOAL_EINVALID, "the first stage has another model: digest %.12s, here %.12s",
                       m->digest, h->w->digest);
    if (rows_wire_bytes((rows_wire)m->wire, f->n_embd) == 0)
        return err_set(err, SHOAL_EINVALID, "rows of kind %d are not known here", (int)m->wire);
    kv_type here = h->kv_type;
    if (strcmp(m->kv_type, kv_type_name(here)) != 0)
        return err_set(
            err, SHOAL_EINVALID,
            "the first stage keeps keys and values as %.16s, this one as %s: give all the same --kv-type",
            *m->kv_type ? m->kv_type : "its weights ask", here ? kv_type_name(here) : "its weights ask");
    h->wire = (rows_wire)m->wire;
    Shoal__V1__StageReply reply = SHOAL__V1__STAGE_REPLY__INIT;
    Shoal__V1__StageReady r = SHOAL__V1__STAGE_READY__INIT;
    r.first = (uint32_t)f->first;
    r.end = (uint32_t)f->end;
    r.n_layer = (uint32_t)f->n_layer;
    r.n_embd = (uint32_t)f->n_embd;
    r.n_ctx = (uint32_t)f->n_ctx;
    r.n_pages = (uint32_t)f->n_pages;
    r.max_items = (uint32_t)f->max_items;
    r.max_tokens = (uint32_t)f->max_tokens;
    reply.what_case = SHOAL__V1__STAGE_REPLY__WHAT_READY;
    reply.ready = &r;
    h->open = true;
    return service_call_send(h->w, h->call, &reply.base) == 0 ? 0 : err_nomem(err);
}

/* Sizes are checked here, what they mean in stage_run. */
static int stage_read_step(const stage_host *h, stage_job *j, shoal_err *err)
{
    const Shoal__V1__StageStep *m = j->request->step;
    size_t row = rows_wire_bytes(h->wire, h->facts.n_embd);
    j->n_rows = m->rows.len / row;
    if (m->rows.len % row != 0 || j->n_rows > h->facts.max_tokens || m->n_items > h->facts.max_items ||
        m->n_copies % 2 != 0 || m->n_copies / 2 > h->facts.max_items)
        return err_set(err, SHOAL_EINVALID,
                       "a step of %zu bytes of rows, %zu items and %zu copies; there is room for %zu rows of "
                       "%zu bytes and %zu items",
                       m->rows.len, m->n_items, m->n_copies / 2, h->facts.max_tokens, row,
                       h->facts.max_items);
    j->wire = h->wire;
    j->items = calloc(m->n_items + 1, sizeof *j->items);
    j->copies = calloc(m->n_copies / 2 + 1, sizeof *j->copies);
    size_t n_marks = 0;
    for (size_t i = 0; i < m->n_items; i++) n_marks += m->items[i]->n_marks / 2;
    j->marks = calloc(n_marks + 1, sizeof *j->marks);
    if (!j->items || !j->copies || !j->marks) return err_nomem(err);
    n_marks = 0;
    for (size_t i = 0; i < m->n_items; i++) {
        const Shoal__V1__StageItem *it = m->items[i];
        seq_mark *marks = j->marks + n_marks;
        for (size_t k = 0; k < it->n_marks / 2; k++)
            j->marks[n_marks++] = (seq_mark){.position = it->marks[2 * k], .state = it->marks[2 * k + 1]};
        j->items[i] = (stage_item){.pages = it->pages,
                                   .n_pages = it->n_pages,
                                   .position = it->position,
                                   .n = it->n,
                                   .n_out = it->n_out,
                                   .state = it->state,
                                   .marks = marks,
                                   .n_marks = it->n_marks / 2};
    }
    for (size_t i = 0; i < m->n_copies / 2; i++)
        j->copies[i] = (stage_copy){.from = m->copies[2 * i], .to = m->copies[2 * i + 1]};
    return 0;
}

static int stage_take_step(stage_host *h, stage_job *j, shoal_err *err)
{
    if (!h->open) return err_set(err, SHOAL_EINVALID, "a step came before the stream was opened");
    int rc = stage_read_step(h, j, err);
    if (rc != 0) return rc;
    uv_mutex_lock(&h->lock);
    bool full = h->queue.n >= QUEUE_MAX;
    uv_mutex_unlock(&h->lock);
    if (full) return err_set(err, SHOAL_EFULL, "%d steps wait already", (int)QUEUE_MAX);
    stage_submit(h, j);
    return 0;
}

static void run_message(void *user, grpc_call *c, const uint8_t *msg, size_t n)
{
    stage_host *h = ((worker *)user)->stage_host;
    ProtobufCMessage *m = NULL;
    shoal_err err;
    if (!h || c != h->call) return;
    stage_job *j = calloc(1, sizeof *j);
    int rc =
        j ? service_call_unpack(&shoal__v1__stage_request__descriptor, msg, n, &m, &err) : err_nomem(&err);
    if (rc == 0) {
        j->request = (Shoal__V1__StageRequest *)m;
        j->owner = h->owner;
    }
    bool step = rc == 0 && j->request->what_case == SHOAL__V1__STAGE_REQUEST__WHAT_STEP;
    if (step)
        rc = stage_take_step(h, j, &err);
    else if (rc == 0 && j->request->what_case == SHOAL__V1__STAGE_REQUEST__WHAT_OPEN)
        rc = stage_open_stream(h, j->request->open, &err);
    else if (rc == 0)
        rc = err_set(&err, SHOAL_EINVALID, "the message says nothing that is known here");
    if (!step || rc != 0) stage_job_free(j);
    if (rc != 0) stage_refuse(h, &err);
}

static void run_begin(void *user, grpc_call *c)
{
    worker *w = user;
    stage_host *h = w->stage_host;
    if (!h) {
        grpc_call_end(c, GRPC_UNIMPLEMENTED, "this worker is no stage of a model: it has all layers");
        return;
    }
    stage_job *reset = h->call || w->draining ? NULL : calloc(1, sizeof *reset);
    if (!reset) {
        grpc_call_end(c, GRPC_UNAVAILABLE, h->call ? "another first stage uses this one" : "shutting down");
        return;
    }
    stage_submit(h, reset); /* what the one before left */
    h->call = c;
    h->owner++;
    LOG(LOG_INFO, "worker", "stage_taken", LOG_S("model", w->name), LOG_I("first", h->facts.first),
        LOG_I("end", h->facts.end));
}

static void run_ended(void *user, grpc_call *c)
{
    stage_host *h = ((worker *)user)->stage_host;
    if (h && h->call == c) forget_owner(h);
    grpc_call_end(c, GRPC_OK, NULL);
}

static void run_cancelled(void *user, grpc_call *c)
{
    stage_host *h = ((worker *)user)->stage_host;
    if (!h || h->call != c) return;
    LOG(LOG_INFO, "worker", "stage_left", LOG_S("model", h->w->name));
    forget_owner(h);
}

const grpc_stream_method service_stage_methods[SERVICE_N_STAGE_METHODS] = {{.path = "/shoal.v1.Stage/Run",
                                                                            .max_message = 128u << 20,
                                                                            .begin = run_begin,
                                                                            .message = run_message,
                                                                            .ended = run_ended,
                                                                            .cancelled = run_cancelled}};

void service_stage_drain(worker *w)
{
    stage_host *h = w->stage_host;
    if (!h || !h->call) return;
    grpc_call *c = h->call;
    forget_owner(h);
    grpc_call_end(c, GRPC_UNAVAILABLE, "shutting down");
}

void service_stage_stats(const worker *w, engine_stats *ret)
{
    const stage_host *h = w->stage_host;
    *ret = (engine_stats){.kv_pages_total = h->facts.n_pages, .n_steps = h->n_steps};
}

/* ---- life --------------------------------------------------------------------------------------------- */

int service_stage_open(worker *w, kv_type kept, shoal_err *err)
{
    stage_host *h = calloc(1, sizeof *h);
    if (!h) return err_nomem(err);
    h->w = w;
    h->kv_type = kept;
    h->stage = w->backend.ops->stage(w->backend.state);
    stage_get_facts(h->stage, &h->facts);
    size_t n;
    bool absurd = size_mul(h->facts.max_tokens, h->facts.n_embd, &n) != 0;
    h->rows = absurd ? NULL : mem_calloc64(n, sizeof *h->rows);
    int rc = h->rows ? 0 : err_nomem(err);
    if (rc == 0 && uv_async_init(w->loop, &h->async, stage_deliver) != 0) rc = err_nomem(err);
    if (rc != 0) {
        free(h->rows);
        free(h);
        return rc;
    }
    h->async.data = h;
    uv_mutex_init(&h->lock);
    uv_cond_init(&h->wake);
    if (uv_thread_create(&h->thread, stage_thread_main, h) != 0) {
        h->stopping = true;
        rc = err_set(err, SHOAL_ENOMEM, "the stage's thread could not be started");
    }
    w->stage_host = h;
    return rc;
}

static void async_closed(uv_handle_t *a)
{
    stage_host *h = a->data;
    uv_mutex_destroy(&h->lock);
    uv_cond_destroy(&h->wake);
    free(h->rows);
    free(h);
}

void service_stage_close(worker *w)
{
    stage_host *h = w->stage_host;
    if (!h) return;
    w->stage_host = NULL;
    uv_mutex_lock(&h->lock);
    bool runs = !h->stopping;
    h->stopping = true;
    uv_cond_signal(&h->wake);
    uv_mutex_unlock(&h->lock);
    if (runs) uv_thread_join(&h->thread);
    for (stage_job *j; (j = pop(&h->queue));) stage_job_free(j);
    for (stage_job *j; (j = pop(&h->done));) stage_job_free(j);
    uv_close((uv_handle_t *)&h->async, async_closed);
}
