#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "base/clock.h"
#include "base/json.h"
#include "gateway/cache.h"
#include "gateway/gateway_internal.h"
#include "gateway/process.h"
#include "gateway/request.h"
#include "router/cache_key.h"

/* One POST /v1/process on its way. It holds at most one of: a run, a place in the cache's line. A
 * leader holds both. The timer runs only in line, where no model call watches the deadline. */
typedef struct job {
    gateway_request *rq; /* NULL once answered or gone */
    process_input in;
    process_calls calls;
    process_run *run;
    cache_ticket *ticket;
    uv_timer_t timer;
    bool timer_used;
} job;

static void on_timer_closed(uv_handle_t *h)
{
    free(h->data);
}

static void job_free(job *j)
{
    process_input_done(&j->in);
    if (j->timer_used)
        uv_close((uv_handle_t *)&j->timer, on_timer_closed);
    else
        free(j);
}

/* Steps out of everything without an answer. */
static void job_abandon(job *j)
{
    process_run_cancel(j->run);
    j->run = NULL;
    cache_ticket *t = j->ticket;
    j->ticket = NULL;
    cache_leave(t);
}

static void on_gone(void *work)
{
    job *j = work;
    job_abandon(j);
    job_free(j);
}

static void answer_error(job *j, const api_error *e)
{
    gateway_request *rq = j->rq;
    job_free(j);
    request_error(rq, e);
}

/* The id and the milliseconds are this request's own; the rest may come from the cache. */
static void answer_body(job *j, const char *state, const char *body, size_t len)
{
    gateway_request *rq = j->rq;
    buf b = {0};
    buf_puts(&b, "{\"id\":");
    json_put_string(&b, rq->id, strlen(rq->id));
    buf_printf(&b, ",\"ms\":%.3f,", clock_ms_since(rq->start_ns));
    buf_append(&b, body + 1, len - 1); /* without its '{' */
    rq->cache_state = state;
    job_free(j);
    request_json(rq, 200, &b);
    buf_done(&b);
}

/* ---- the run's end --------------------------------------------------------------------------- */

static void name_stage(api_error *e, const process_outcome *o)
{
    char own[sizeof e->message];
    memcpy(own, e->message, sizeof own);
    snprintf(e->message, sizeof e->message, "stage '%.64s' (model %.64s): %.350s", o->failed->name,
             o->failed->model, own);
}

/* Waiters share an error only when it says something about the work, not about this request's own
 * deadline: for that the next in line tries. */
static void fail(job *j, const process_outcome *o)
{
    api_error e = {0};
    api_error_from_backend(&e, o->failure);
    name_stage(&e, o);
    cache_ticket *t = j->ticket;
    j->ticket = NULL;
    request_note_result(j->rq, o->failure);
    answer_error(j, &e);
    if (o->failure->status == SHOAL_EDEADLINE)
        cache_leave(t);
    else
        cache_fail(t, e.status, &e, sizeof e);
}

static void on_run_done(void *user, const process_outcome *o)
{
    job *j = user;
    j->run = NULL;
    if (o->failed) {
        fail(j, o);
        return;
    }
    /* 15 digits print a rounded score as it was rounded; the default 17 would show the binary fraction. */
    char *body = json_dumps(o->answer, JSON_COMPACT | JSON_REAL_PRECISION(15));
    cache_ticket *t = j->ticket;
    j->ticket = NULL;
    j->rq->n_prompt_tokens = o->n_prompt_tokens;
    j->rq->n_generated_tokens = o->n_generated_tokens;
    if (!body) {
        api_error e = {0};
        api_error_set(&e, 500, "server_error", "out_of_memory", NULL, "out of memory");
        answer_error(j, &e);
        cache_leave(t);
    } else {
        answer_body(j, j->rq->cache_state, body, strlen(body));
        cache_fill(t, body, strlen(body), clock_ns());
    }
    free(body);
}

static void start_run(job *j)
{
    backend_context ctx = request_context(j->rq, "pipeline");
    if (process_run_start(&j->run, &j->in, &j->calls, &ctx, on_run_done, j, NULL) == 0) return;
    api_error e = {0};
    api_error_set(&e, 500, "server_error", "out_of_memory", NULL, "out of memory");
    cache_ticket *t = j->ticket;
    j->ticket = NULL;
    answer_error(j, &e);
    cache_leave(t);
}

/* ---- the cache ------------------------------------------------------------------------------- */

static void on_turn(void *user, cache_outcome outcome, const cache_value *v)
{
    job *j = user;
    if (j->timer_used) uv_timer_stop(&j->timer);
    if (outcome == CACHE_LEAD) {
        j->rq->cache_state = "miss";
        start_run(j);
        return;
    }
    j->ticket = NULL;
    if (outcome == CACHE_HIT) {
        answer_body(j, "shared", v->data, v->len);
        return;
    }
    api_error e = {0};
    if (v && v->len == sizeof e)
        memcpy(&e, v->data, sizeof e);
    else
        api_error_set(&e, 500, "server_error", "out_of_memory", NULL, "out of memory");
    answer_error(j, &e);
}

static void on_deadline(uv_timer_t *timer)
{
    job *j = timer->data;
    api_error e = {0};
    backend_result late = {.status = SHOAL_EDEADLINE,
                           .message = "the deadline passed while an identical request was computed",
                           .model = "",
                           .replica_id = "",
                           .version = "",
                           .quantisation = "",
                           .digest = ""};
    api_error_from_backend(&e, &late);
    job_abandon(j);
    answer_error(j, &e);
}

static void watch_deadline(job *j)
{
    uint64_t now = clock_ns(), deadline = j->rq->deadline_ns;
    if (!deadline || uv_timer_init(j->rq->gateway->loop, &j->timer) != 0) return;
    j->timer_used = true;
    j->timer.data = j;
    uv_timer_start(&j->timer, on_deadline, deadline > now ? (deadline - now + 999999) / 1000000 : 0, 0);
}

static void key_devices(cache_key *k, const process_input *in)
{
    for (size_t i = 0; i < in->n_devices; i++) {
        cache_key_str(k, "device.id", in->devices[i].id);
        cache_key_str(k, "device.name", in->devices[i].name);
        cache_key_str(k, "device.state", in->devices[i].state);
    }
}

/* The pipeline's own settings are fixed while this process lives, so its name stands for them; what
 * may change under it are the models. False: not cacheable now. */
static bool make_key(const job *j, sha256_digest *ret)
{
    const config_pipeline *p = j->in.pipeline;
    if (!j->rq->cache || !pipeline_is_deterministic(p)) return false;
    cache_key *k = cache_key_new("process");
    cache_key_str(k, "pipeline", p->name);
    bool known = true;
    for (unsigned i = 0; i < p->n_stages && known; i++) {
        const replica *r = backend_find(j->rq->backend, p->stages[i].model, NULL);
        known = r && r->info;
        if (known) cache_key_str(k, "digest", r->info->digest);
    }
    cache_key_str(k, "input", j->in.text);
    cache_key_str(k, "context", j->in.context);
    key_devices(k, &j->in);
    return cache_key_end(k, ret) && known;
}

static void begin(job *j)
{
    sha256_digest key;
    const cache_value *v = NULL;
    if (request_wants_fresh(j->rq) || !make_key(j, &key)) {
        start_run(j);
        return;
    }
    switch (cache_lookup(j->rq->cache, &key, clock_ns(), on_turn, j, &j->ticket, &v)) {
    case CACHE_HIT:
        answer_body(j, "hit", v->data, v->len);
        cache_value_unref(v);
        break;
    case CACHE_JOIN: watch_deadline(j); break;
    default: j->rq->cache_state = "miss"; start_run(j);
    }
}

void process_handle(gateway_request *rq)
{
    size_t len;
    const char *body = http_body(rq->http, &len);
    api_error e = {0};
    job *j = calloc(1, sizeof *j);
    if (!j) {
        api_error_set(&e, 500, "server_error", "out_of_memory", NULL, "out of memory");
        request_error(rq, &e);
        return;
    }
    *j = (job){.rq = rq,
               .calls = {rq->backend, backend_classify, backend_tag, backend_generate, backend_cancel}};
    if (process_parse(&j->in, rq->config, body, len, &e)) {
        answer_error(j, &e);
        return;
    }
    request_watch(rq, on_gone, j);
    begin(j);
}
