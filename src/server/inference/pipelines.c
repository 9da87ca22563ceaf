/* pipelines.c: a run of process.c as an endpoint: the cache key, the answer, the error that names its stage.
 */
#include "inference/pipelines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "json/json.h"
#include "json/json_put.h"
#include "base/sha256.h"
#include "messages/multipart.h"
#include "request/admission.h"
#include "request/gateway_state.h"
#include "process/process.h"
#include "process/process_events.h"
#include "answers/shared.h"

typedef struct process_job { /* one POST /v1/process; dies with the request */
    shared_job shared;       /* first: shared.h takes the job by it */
    process_input in;
    process_run *run;
    process_watch watch;
    bool rests; /* the client does not keep up */
    buf out;    /* events of one write; its memory is used redispatch */
    char owner[REQUEST_OWNER_SIZE];
} process_job;

static void pipelines_job_free(void *job)
{
    process_job *j = job;
    gateway_request *rq = j->shared.rq;
    if (j->run) process_run_spent(j->run, &rq->n_prompt_tokens, &rq->n_generated_tokens); /* it is cut */
    process_run_cancel(j->run);
    process_input_done(&j->in);
    buf_done(&j->out);
    free(j);
}

/* ---- a stream -------------------------------------------------------------------------------- */

static void pipelines_go_on(void *job)
{
    process_job *j = job;
    j->rests = false;
    process_run_pause(j->run, false);
}

/* What has no memory is told in the end: this is no place to end a run. */
static void pipelines_flush(process_job *j)
{
    gateway_request *rq = j->shared.rq;
    if (j->out.failed) return;
    if (!rq->streaming) request_stream_begin(rq);
    request_stream_write(rq, &j->out);
    buf_clear(&j->out);
    if (j->rests || !j->run || !request_stream_is_full(rq)) return;
    j->rests = true;
    process_run_pause(j->run, true);
    request_on_room(rq, pipelines_go_on);
}

static void on_stage(void *user, const char *entry)
{
    process_job *j = user;
    process_events_stage(&j->out, entry);
    pipelines_flush(j);
}

static void on_text(void *user, const char *text, size_t n)
{
    process_job *j = user;
    process_events_text(&j->out, text, n);
    pipelines_flush(j);
}

static void stream_end(process_job *j, const char *body, size_t len)
{
    gateway_request *rq = j->shared.rq;
    process_events_answer(&j->out, rq->id, request_ms(rq), body, len);
    if (j->out.failed) {
        shared_fail_nomem(&j->shared);
        return;
    }
    pipelines_flush(j);
    pipelines_job_free(j);
    request_stream_end(rq);
}

/* The id and the milliseconds are this request's own; the rest may come from the cache. */
static void job_answer(process_job *j, const char *body, size_t len)
{
    gateway_request *rq = j->shared.rq;
    buf b = {0};
    if (j->in.stream) {
        stream_end(j, body, len);
        return;
    }
    buf_putc(&b, '{');
    json_put_text(&b, "id", rq->id);
    buf_printf(&b, ",\"ms\":%.3f,", request_ms(rq));
    buf_append(&b, body + 1, len - 1); /* without its '{' */
    pipelines_job_free(j);
    request_json(rq, 200, &b);
    buf_done(&b);
}

static void answer_cached(void *job, const char *packed, size_t len)
{
    process_job *j = job;
    process_note_turn(&j->in, packed, len);
    if (j->in.stream) process_events_replay(&j->out, packed, len);
    job_answer(job, packed, len);
}

/* ---- the run --------------------------------------------------------------------------------- */

static void name_stage(api_error *e, const process_outcome *o)
{
    char own[sizeof e->message];
    memcpy(own, e->message, sizeof own);
    if (o->failed->model)
        snprintf(e->message, sizeof e->message, "stage '%.64s' (model %.64s): %.350s", o->failed->name,
                 o->failed->model, own);
    else
        snprintf(e->message, sizeof e->message, "stage '%.64s': %.350s", o->failed->name, own);
}

/* A picture or a table exceeds no context. */
static void say_too_large(api_error *e, const config_stage *failed)
{
    medium m = stage_kind_medium(failed->kind);
    if (m != MEDIUM_IMAGE && m != MEDIUM_CSV) return;
    e->status = 413;
    e->code = "request_too_large";
}

/* A host of the configuration is no worker of ours, and a list that is too long exceeds no context. */
static void say_whose_fault(api_error *e, const process_outcome *o)
{
    int status = o->failure->status;
    bool host = o->failed->kind->id == STAGE_HTTP || (o->failed->n_mcp && o->failure->message &&
                                                      strncmp(o->failure->message, "MCP server", 10) == 0);
    if (host && status != SHOAL_EINVALID && status != SHOAL_ENOMEM && status != SHOAL_EDEADLINE) {
        e->status = 502;
        e->type = "service_unavailable";
        e->code = "host_failed";
        e->retry_after_s = 0;
    } else if (pipeline_each(o->failed) && status == SHOAL_ELIMIT && !*o->failure->replica_id) {
        e->code = "pipeline_limit";
    }
}

static void on_run_done(void *user, const process_outcome *o)
{
    process_job *j = user;
    api_error e;
    j->run = NULL;
    if (o->failed) {
        api_error_from_call(&e, o->failure);
        if (o->failure->status == SHOAL_ELIMIT) say_too_large(&e, o->failed);
        say_whose_fault(&e, o);
        name_stage(&e, o);
        request_note_result(j->shared.rq, o->failure);
        shared_fail(&j->shared, &e);
        return;
    }
    process_note_turn(&j->in, o->answer->data, o->answer->len);
    if (o->degraded) j->shared.rq->degraded = *o->degraded;
    shared_end end = shared_detach(&j->shared);
    j->shared.rq->n_prompt_tokens = o->n_prompt_tokens;
    j->shared.rq->n_generated_tokens = o->n_generated_tokens;
    job_answer(j, o->answer->data, o->answer->len);
    buf kept = *o->answer;
    kept.failed =
        o->partial || o->asks; /* whoever asks next may find all stages well, or is asked back himself */
    shared_publish(&end, &kept);
}

static void start_run(void *job)
{
    process_job *j = job;
    call_context ctx = request_context(j->shared.rq, "pipeline");
    if (process_run_start(&j->run, &j->in, j->shared.rq->calls, &ctx, on_run_done, j, NULL) == 0) return;
    api_error e;
    api_error_nomem(&e);
    shared_fail(&j->shared, &e);
}

/* ---- the request ----------------------------------------------------------------------------- */

/* False: out of memory. */
static bool key_devices(cache_key *k, const process_input *in)
{
    const sha256_digest *d = &in->pipeline->devices_digest;
    sha256_digest own;
    if (in->devices != in->pipeline->devices) {
        if (!devices_digest(in->devices, in->n_devices, &own)) return false;
        d = &own;
    }
    cache_key_bytes(k, "devices", d->bytes, sizeof d->bytes);
    return true;
}

/* The end of a key, where all of it could be made. */
static bool end_key(cache_key *k, bool whole, sha256_digest *ret)
{
    if (whole) return cache_key_end(k, ret);
    cache_key_free(k);
    return false;
}

/* The pipeline's own settings are fixed while this process lives, so its name stands for them; what
 * may change under it are the models. False: not cacheable now. */
static bool make_key(const gateway_request *rq, const process_input *in, provenance *by, sha256_digest *ret)
{
    const config_pipeline *p = in->pipeline;
    provenance_join(by, "pipeline", p->name);
    for (unsigned i = 0; i < p->n_stages; i++)
        if (p->stages[i].model) provenance_add(by, rq, p->stages[i].model, p->stages[i].adapter);
    bool known = provenance_end(by);
    if (!known || by->reads_clock || !pipeline_is_deterministic(p)) return false;
    if (in->confirm || in->asked_by) return false; /* an answer counts once */
    cache_key *k = cache_key_new("process");
    cache_key_str(k, "provenance", by->identity);
    cache_key_str(k, "input", in->text);
    cache_key_str(k, "subject", in->subject ? in->subject : "");
    for (int m = 0; m < N_MEDIA; m++)
        if (in->files[m].data)
            cache_key_bytes(k, medium_name((medium)m), in->files[m].data, in->files[m].len);
    cache_key_str(k, "context", in->context);
    return end_key(k, key_devices(k, in), ret);
}

/* What it says and does; not how it came to that. */
static void put_answer_text(buf *out, const char *packed, size_t len)
{
    static const char *const SAYS[] = {"text", "tool_call", "tool_calls"};
    json_t *o = NULL;
    if (json_parse(&o, packed, len, "an answer", NULL) != 0) return;
    for (size_t i = 0; i < sizeof SAYS / sizeof *SAYS; i++) {
        const json_t *v = json_object_get(o, SAYS[i]);
        if (v) json_put(out, v);
        buf_putc(out, '\n');
    }
    json_decref(o);
}

static const shared_ops OPS = {
    .compute = start_run, .answer = answer_cached, .free = pipelines_job_free, .text = put_answer_text};

/* A pipeline may act: one lamp is not all lamps. */
static void make_near(const process_input *in, const provenance *by, semantic_ask *ret)
{
    cache_key *k = cache_key_new("process");
    cache_key_str(k, "provenance", by->identity);
    cache_key_str(k, "context", in->context);
    if (!end_key(k, key_devices(k, in), &ret->partition)) return;
    for (int m = 0; m < N_MEDIA; m++)
        if (in->files[m].data) return;
    if (in->subject) return;
    *ret = (semantic_ask){.text = in->text, .partition = ret->partition, .how = NEAR_EXACT};
}

/* What a form brings stays in the request's body, which outlives the job. */
static int pipelines_parse(process_input *ret, const gateway_request *rq, api_error *e)
{
    size_t len;
    const char *body = request_body(rq, &len), *type = request_header(rq, "content-type");
    if (rq->max_cost > 0 || rq->max_energy_j > 0)
        return api_error_bad(
            e, "pipeline",
            "x-shoal-max-cost and x-shoal-max-energy-j choose among the models of a route, and a "
            "pipeline is none: leave them out");
    if (type && (strncasecmp(type, "audio/", 6) == 0 || strncasecmp(type, "image/", 6) == 0 ||
                 strncasecmp(type, "text/csv", 8) == 0))
        return api_error_set(
            e, 415, "invalid_request_error", "unsupported_media_type", NULL,
            "the content type must be application/json, or multipart/form-data with the file "
            "as a part");
    return multipart_is_form(type) ? process_parse_form(ret, rq->config, type, body, len, e)
                                   : process_parse(ret, rq->config, body, len, e);
}

void pipelines_process(gateway_request *rq)
{
    api_error e;
    process_job *j = calloc(1, sizeof *j);
    int rc = j ? pipelines_parse(&j->in, rq, &e) : api_error_nomem(&e);
    if (!rc && (rc = admission_may_use(rq, j->in.pipeline->name, &e))) process_input_done(&j->in);
    if (!rc) rq->pipeline = j->in.pipeline->name;
    if (!rc) j->in.confirms = &rq->gateway->confirms;
    if (!rc) j->in.turns = &rq->gateway->turns;
    if (!rc) j->in.time = &rq->gateway->time;
    if (!rc) j->in.owner = request_owner(rq, j->owner);
    if (!rc && (rc = process_take_answer(&j->in, &e))) process_input_done(&j->in);
    if (rc) {
        free(j);
        request_error(rq, &e);
        return;
    }
    j->in.executor = rq->gateway->executor;
    j->in.hosts = rq->settings->hosts;
    j->in.mcp = rq->settings->mcp;
    j->watch = (process_watch){.user = j, .stage = on_stage, .text = on_text};
    if (j->in.stream) j->in.watch = &j->watch;
    provenance by = {0};
    shared_terms terms = {.by = &by};
    bool cacheable = make_key(rq, &j->in, &by, &terms.key);
    if (cacheable) make_near(&j->in, &by, &terms.near);
    shared_start(&j->shared, &OPS, rq, cacheable ? &terms : NULL);
}
