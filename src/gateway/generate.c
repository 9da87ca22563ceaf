#include "gateway/generate.h"

#include <stdlib.h>

#include "base/clock.h"
#include "gateway/answer.h"
#include "gateway/cache.h"
#include "gateway/choose.h"
#include "gateway/openai.h"

/* One request being answered: as many model calls as it has choices. Dies with the request. */
typedef struct gen_job gen_job;

typedef struct gen_branch { /* one choice's call */
    gen_job *job;
    size_t k;
    backend_call *call; /* NULL when it has ended */
    bool done;          /* the worker said how it finished */
} gen_branch;

struct gen_job {
    gateway_request *rq;
    gen_spec *spec;
    gen_answer answer;
    answer_form form;
    cache_ticket *ticket; /* NULL: not sharing */
    gen_branch *branches;
    size_t n_branches, n_open;
    bool saw_token;
    buf out; /* events of one write; its memory is used again */
};

static void job_free(gen_job *j)
{
    for (size_t k = 0; k < j->n_branches; k++) backend_cancel(j->branches[k].call);
    gen_answer_done(&j->answer);
    gen_spec_free(j->spec);
    free(j->branches);
    buf_done(&j->out);
    free(j);
}

/* The client has left. Whoever waits for the same answer takes over; our calls stop at once. */
static void on_gone(void *work)
{
    gen_job *j = work;
    cache_ticket *t = j->ticket;
    job_free(j);
    cache_leave(t);
}

static void job_fail(gen_job *j, const api_error *e)
{
    cache_ticket *t = j->ticket;
    gateway_request *rq = j->rq;
    job_free(j);
    request_error(rq, e);
    if (e->status == 504)
        cache_leave(t); /* our deadline is not that of those who wait */
    else
        cache_fail(t, e->status, e, sizeof *e);
}

/* A waiter that its deadline reached first: the computation goes on for the others. */
static void on_deadline(void *work)
{
    gen_job *j = work;
    cache_ticket *t = j->ticket;
    gateway_request *rq = j->rq;
    api_error e;
    api_error_from_backend(&e,
                           &(backend_result){.status = SHOAL_EDEADLINE, .message = "the deadline passed"});
    job_free(j);
    request_error(rq, &e);
    cache_leave(t);
}

/* ---- the answer ---------------------------------------------------------------------------------- */

static void begin_stream(gen_job *j)
{
    if (!j->rq->streaming) request_stream_begin(j->rq);
}

static void flush(gen_job *j)
{
    request_stream_write(j->rq, &j->out);
    buf_clear(&j->out);
}

static void note_usage(gen_job *j)
{
    j->rq->n_prompt_tokens = j->answer.n_prompt;
    j->rq->n_generated_tokens = j->answer.n_generated;
}

/* Everything is there: end the reply. `job` is freed. */
static void job_answer(gen_job *j)
{
    gateway_request *rq = j->rq;
    note_usage(j);
    if (j->spec->stream) {
        begin_stream(j);
        answer_put_end(&j->out, &j->form, &j->answer);
        flush(j);
        job_free(j);
        request_stream_end(rq);
        return;
    }
    buf_clear(&j->out);
    answer_put(&j->out, &j->form, &j->answer);
    buf body = j->out;
    j->out = (buf){0};
    job_free(j);
    request_json(rq, 200, &body);
    buf_done(&body);
}

static void job_complete(gen_job *j)
{
    cache_ticket *t = j->ticket;
    buf packed = {0};
    j->ticket = NULL;
    if (t) gen_answer_pack(&packed, &j->answer);
    job_answer(j);
    if (packed.failed)
        cache_leave(t);
    else
        cache_fill(t, packed.data, packed.len, clock_ns());
    buf_done(&packed);
}

/* From the cache or from another request's computation. */
static void answer_from(gen_job *j, const cache_value *v, const char *state)
{
    j->rq->cache_state = state;
    gen_answer_done(&j->answer);
    if (gen_answer_unpack(&j->answer, v->data, v->len) != 0) {
        api_error e;
        api_error_set(&e, 500, "server_error", "out_of_memory", NULL, "out of memory");
        job_fail(j, &e);
        return;
    }
    for (size_t k = 0; j->spec->stream && k < j->answer.n; k++) {
        answer_put_replay(&j->out, &j->form, &j->answer, k);
        answer_put_finish(&j->out, &j->form, &j->answer, k);
    }
    job_answer(j);
}

/* ---- the calls ----------------------------------------------------------------------------------- */

static void observe(gen_job *j, const char *stage, double ms)
{
    metrics_observe_s(j->rq->metrics, METRIC_STAGE_S, ms / 1000, j->rq->model, stage);
}

static void on_started(gen_job *j, size_t k)
{
    if (!j->spec->stream) return;
    begin_stream(j);
    answer_put_role(&j->out, &j->form, &j->answer, k);
}

static void on_delta(gen_job *j, size_t k, const Shoal__V1__Delta *d)
{
    if (!j->saw_token) {
        j->saw_token = true;
        observe(j, "first_token", clock_ms_since(j->rq->start_ns));
    }
    gen_answer_add(&j->answer, j->spec, k, d);
    if (!j->spec->stream || j->spec->forced_tool) return;
    begin_stream(j);
    answer_put_delta(&j->out, &j->form, &j->answer, j->spec, k, d);
}

static void on_done(gen_job *j, gen_branch *br, const Shoal__V1__Done *d)
{
    br->done = true;
    gen_answer_close(&j->answer, j->spec, br->k, d);
    observe(j, "queue", d->queue_ms);
    observe(j, "prefill", d->prefill_ms);
    observe(j, "decode", d->decode_ms);
    if (!j->spec->stream) return;
    begin_stream(j);
    if (j->spec->forced_tool) answer_put_replay(&j->out, &j->form, &j->answer, br->k);
    answer_put_finish(&j->out, &j->form, &j->answer, br->k);
}

static void on_event(void *user, const Shoal__V1__GenerateEvent *ev)
{
    gen_branch *br = user;
    gen_job *j = br->job;
    if (ev->started) on_started(j, br->k);
    if (ev->delta) on_delta(j, br->k, ev->delta);
    if (ev->done) on_done(j, br, ev->done);
    if (j->out.len) flush(j);
}

static void on_end(void *user, const backend_result *r)
{
    gen_branch *br = user;
    gen_job *j = br->job;
    br->call = NULL;
    request_note_result(j->rq, r);
    if (r->status != 0 || !br->done) {
        backend_result failed = *r;
        api_error e;
        if (r->status == 0) {
            failed.status = SHOAL_EPROTOCOL;
            failed.message = "the worker ended without a result";
        }
        api_error_from_backend(&e, &failed);
        job_fail(j, &e);
        return;
    }
    observe(j, "total", r->ms);
    if (--j->n_open == 0) job_complete(j);
}

static void start_calls(gen_job *j)
{
    backend_context ctx = request_context(j->rq, "endpoint");
    j->n_open = j->n_branches;
    for (size_t k = 0; k < j->n_branches; k++) {
        Shoal__V1__GenerateRequest req;
        Shoal__V1__Sampling sampling;
        gen_branch *br = &j->branches[k];
        backend_generate_events ev = {.user = br, .event = on_event, .end = on_end};
        *br = (gen_branch){.job = j, .k = k};
        gen_spec_fill(j->spec, k, &req, &sampling);
        br->call = backend_generate(j->rq->backend, j->spec->model, &req, &ctx, &ev);
    }
}

static void on_turn(void *user, cache_outcome outcome, const cache_value *v)
{
    gen_job *j = user;
    request_on_deadline(j->rq, NULL);
    if (outcome == CACHE_LEAD) { /* the ticket stays ours */
        j->rq->cache_state = "miss";
        start_calls(j);
        return;
    }
    j->ticket = NULL;
    if (outcome == CACHE_HIT) {
        answer_from(j, v, "shared");
        return;
    }
    api_error e;
    j->rq->cache_state = "shared";
    api_error_shared(&e, v);
    job_fail(j, &e);
}

/* ---- the start ----------------------------------------------------------------------------------- */

static void job_start(gen_job *j, const char *digest)
{
    sha256_digest key;
    const cache_value *v = NULL;
    if (request_wants_fresh(j->rq) || !digest || !*digest || !gen_spec_key(j->spec, digest, &key)) {
        start_calls(j);
        return;
    }
    switch (cache_lookup(j->rq->cache, &key, clock_ns(), on_turn, j, &j->ticket, &v)) {
    case CACHE_HIT:
        answer_from(j, v, "hit");
        cache_value_unref(v);
        break;
    case CACHE_LEAD:
        j->rq->cache_state = "miss";
        start_calls(j);
        break;
    default: request_on_deadline(j->rq, on_deadline); break;
    }
}

/* Takes spec; NULL when out of memory (then spec is freed). */
static gen_job *job_new(gateway_request *rq, gen_spec *spec, const char *digest)
{
    gen_job *j = calloc(1, sizeof *j);
    if (!j) {
        gen_spec_free(spec);
        return NULL;
    }
    j->rq = rq;
    j->spec = spec;
    j->n_branches = gen_spec_choices(spec);
    j->branches = calloc(j->n_branches, sizeof *j->branches);
    if (!j->branches || gen_answer_init(&j->answer, j->n_branches) != 0) {
        if (!j->branches) j->n_branches = 0;
        job_free(j);
        return NULL;
    }
    answer_form_init(&j->form, spec, digest);
    request_watch(rq, on_gone, j);
    return j;
}

static void handle(gateway_request *rq, int (*parse)(gen_spec **, const char *, size_t, api_error *))
{
    api_error e;
    gen_spec *spec = NULL;
    const Shoal__V1__ModelInfo *info = NULL;
    size_t len;
    const char *body = http_body(rq->http, &len);
    if (parse(&spec, body, len, &e) != 0 || choose_model(rq, "generate", &spec->model, &info, &e) != 0) {
        gen_spec_free(spec);
        request_error(rq, &e);
        return;
    }
    const char *digest = info ? info->digest : NULL;
    gen_job *j = job_new(rq, spec, digest);
    if (j) {
        job_start(j, digest);
        return;
    }
    api_error_set(&e, 500, "server_error", "out_of_memory", NULL, "out of memory");
    request_error(rq, &e);
}

void chat_handle(gateway_request *rq)
{
    handle(rq, gen_spec_parse_chat);
}

void completions_handle(gateway_request *rq)
{
    handle(rq, gen_spec_parse_completion);
}
