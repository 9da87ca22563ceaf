/* process_http.c: POST /v1/process around a run of process.c: the cache key, the answer, the error that names
 * its stage. Loop thread. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/sha256.h"
#include "gateway/process.h"
#include "gateway/shared.h"
#include "router/cache_key.h"

typedef struct process_job { /* one POST /v1/process; dies with the request */
    shared_job shared;       /* first: shared.h takes the job by it */
    process_input in;
    process_calls calls;
    process_run *run;
} process_job;

static void job_free(void *job)
{
    process_job *j = job;
    process_run_cancel(j->run);
    process_input_done(&j->in);
    free(j);
}

/* The id and the milliseconds are this request's own; the rest may come from the cache. */
static void job_answer(process_job *j, const char *body, size_t len)
{
    gateway_request *rq = j->shared.rq;
    buf b = {0};
    buf_puts(&b, "{\"id\":");
    json_put_string(&b, rq->id, strlen(rq->id));
    buf_printf(&b, ",\"ms\":%.3f,", clock_ms_since(rq->start_ns));
    buf_append(&b, body + 1, len - 1); /* without its '{' */
    job_free(j);
    request_json(rq, 200, &b);
    buf_done(&b);
}

static void answer_cached(void *job, const cache_value *v)
{
    job_answer(job, v->data, v->len);
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

static void on_run_done(void *user, const process_outcome *o)
{
    process_job *j = user;
    api_error e;
    j->run = NULL;
    if (o->failed) {
        api_error_from_backend(&e, o->failure);
        name_stage(&e, o);
        request_note_result(j->shared.rq, o->failure);
        shared_fail(&j->shared, &e);
        return;
    }
    /* 15 digits print a rounded score as it was rounded; the default 17 would show the binary fraction. */
    buf body = {0};
    if (json_put_digits(&body, o->answer, 15) != 0) {
        buf_done(&body);
        api_error_nomem(&e);
        shared_fail(&j->shared, &e);
        return;
    }
    cache_ticket *t = shared_detach(&j->shared);
    j->shared.rq->n_prompt_tokens = o->n_prompt_tokens;
    j->shared.rq->n_generated_tokens = o->n_generated_tokens;
    job_answer(j, body.data, body.len);
    buf kept = body;
    kept.failed = o->partial; /* whoever asks next may find all stages well */
    shared_publish(t, &kept);
    buf_done(&body);
}

static void start_run(void *job)
{
    process_job *j = job;
    backend_context ctx = request_context(j->shared.rq, "pipeline");
    if (process_run_start(&j->run, &j->in, &j->calls, &ctx, on_run_done, j, NULL) == 0) return;
    api_error e;
    api_error_nomem(&e);
    shared_fail(&j->shared, &e);
}

/* ---- the request ----------------------------------------------------------------------------- */

static void key_devices(cache_key *k, const process_input *in)
{
    for (size_t i = 0; i < in->n_devices; i++) {
        cache_key_str(k, "device.id", in->devices[i].id);
        cache_key_str(k, "device.name", in->devices[i].name);
        cache_key_str(k, "device.state", in->devices[i].state);
        cache_key_str(k, "device.area", in->devices[i].area ? in->devices[i].area : "");
        for (size_t j = 0; j < in->devices[i].n_aliases; j++)
            cache_key_str(k, "device.alias", in->devices[i].aliases[j]);
    }
}

/* The pipeline's own settings are fixed while this process lives, so its name stands for them; what
 * may change under it are the models. False: not cacheable now. */
static bool make_key(const process_input *in, backend *b, sha256_digest *ret)
{
    const config_pipeline *p = in->pipeline;
    if (!pipeline_is_deterministic(p)) return false;
    cache_key *k = cache_key_new("process");
    cache_key_str(k, "pipeline", p->name);
    bool known = true;
    for (unsigned i = 0; i < p->n_stages && known; i++) {
        if (!p->stages[i].model) continue;
        const replica *r = backend_find(b, p->stages[i].model, NULL);
        known = r && r->info && !r->info->template_reads_clock; /* then tomorrow's answer is another */
        if (known) cache_key_str(k, "digest", r->info->digest);
    }
    cache_key_str(k, "input", in->text);
    cache_key_str(k, "context", in->context);
    key_devices(k, in);
    return cache_key_end(k, ret) && known;
}

static const shared_ops OPS = {.compute = start_run, .answer = answer_cached, .free = job_free};

void process_handle(gateway_request *rq)
{
    size_t len;
    const char *body = http_body(rq->http, &len);
    api_error e;
    process_job *j = calloc(1, sizeof *j);
    int rc = j ? process_parse(&j->in, rq->config, body, len, &e) : api_error_nomem(&e);
    if (rc) {
        free(j);
        request_error(rq, &e);
        return;
    }
    j->calls = (process_calls){.b = rq->backend,
                               .classify = backend_classify,
                               .tag = backend_tag,
                               .embed = backend_embed,
                               .fill_mask = backend_fill_mask,
                               .generate = backend_generate,
                               .cancel = backend_cancel};
    sha256_digest key;
    bool cacheable = make_key(&j->in, rq->backend, &key);
    shared_start(&j->shared, &OPS, rq, cacheable ? &key : NULL);
}
