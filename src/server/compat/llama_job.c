/* llama_job.c: whom a request means, and a request that takes one call of a worker; see llama_impl.h. Loop thread. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compat/llama_impl.h"
#include "json/json.h"
#include "messages/fields.h"
#include "messages/query.h"
#include "request/admission.h"
#include "request/gateway_state.h"
#include "request/model_resolve.h"
#include "request/routed.h"
#include "tasks/task.h"

/* ---- whom a request means ------------------------------------------------------------------------ */

void llama_base(const char *model, char ret[LLAMA_NAME_MAX])
{
    snprintf(ret, LLAMA_NAME_MAX, "%.*s", (int)strcspn(model, ":"), model);
}

int llama_choose(gateway_request *rq, const char *given, const char *task, char ret[LLAMA_NAME_MAX],
                 api_error *e)
{
    char base[LLAMA_NAME_MAX];
    const Shoal__V1__ModelInfo *info;
    bool known;
    given = given ? model_resolve_alias(rq, given) : model_resolve_first(rq, task);
    if (!given) {
        int rc = model_resolve(rq, task, &given, &info, e);
        if (rc == 0) snprintf(ret, LLAMA_NAME_MAX, "%s", given);
        return rc;
    }
    if (routed_find(rq, given))
        return api_error_bad(e, "model",
                             "%.64s is a route, whose models have tokens of their own: name a model", given);
    if (strlen(given) >= LLAMA_NAME_MAX) return api_error_no_model(e, given);
    llama_base(given, base);
    calls_info(rq->calls, base, &known);
    if (!registry_find(rq->registry, base) &&
        pipeline_find(rq->config->pipelines, rq->config->n_pipelines, base))
        return api_error_bad(
            e, "model", "%.64s is a pipeline, whose stages write prompts of their own: name a model", given);
    if (!known) return api_error_no_model(e, given);
    strcpy(ret, given);
    return admission_may_use(rq, given, e);
}

/* Do all models that generate and that the key may use have one vocabulary? */
static bool has_one_vocabulary(const gateway_request *rq)
{
    const char *first = NULL;
    for (size_t i = 0; i < registry_count(rq->registry); i++) {
        const replica *r = registry_at(rq->registry, i);
        if (!r->info || !task_fits("generate", r->info->task, r->info->n_labels)) continue;
        if (!admission_shows(rq, r->model)) continue;
        if (first && strcmp(first, r->info->vocabulary) != 0) return false;
        first = r->info->vocabulary;
    }
    return true;
}

int llama_choose_tokenizer(gateway_request *rq, const char *given, char ret[LLAMA_NAME_MAX], api_error *e)
{
    const Shoal__V1__ModelInfo *info;
    if (given || has_one_vocabulary(rq)) return llama_choose(rq, given, "generate", ret, e);
    int rc = model_resolve(rq, "generate", &given, &info, e); /* which names them, or knows the only one */
    if (rc == 0) snprintf(ret, LLAMA_NAME_MAX, "%s", given);
    return rc;
}

int llama_choose_by_query(gateway_request *rq, char ret[LLAMA_NAME_MAX], api_error *e)
{
    char *name = NULL;
    int rc = query_value(request_query(rq), "model", &name, e);
    if (rc == 0) rc = llama_choose(rq, name && *name ? name : NULL, "generate", ret, e);
    free(name);
    return rc;
}

/* ---- one call ------------------------------------------------------------------------------------ */

static void about_job_free(about_job *j)
{
    calls_cancel(j->call);
    json_drop(j->root);
    openai_spec_free(j->spec);
    free(j->ids);
    free(j);
}

static void about_job_on_gone(void *work)
{
    about_job_free(work);
}

about_job *about_job_new(gateway_request *rq)
{
    about_job *j = calloc(1, sizeof *j);
    if (!j) {
        api_error e;
        api_error_nomem(&e);
        request_error(rq, &e);
        return NULL;
    }
    j->rq = rq;
    request_watch(rq, about_job_on_gone, j);
    return j;
}

/* Its request is to be answered; j is gone. */
static gateway_request *about_job_end(about_job *j)
{
    gateway_request *rq = j->rq;
    request_watch(rq, NULL, NULL);
    about_job_free(j);
    return rq;
}

void about_job_fail(about_job *j, const api_error *e)
{
    request_error(about_job_end(j), e);
}

int about_job_read(about_job *j, api_error *e)
{
    size_t n;
    const char *body = request_body(j->rq, &n);
    return fields_parse(&j->root, body, n, e);
}

/* Whom it means. */
int about_job_choose(about_job *j, api_error *e)
{
    const char *given = NULL;
    int rc = fields_str(j->root, "model", &given, e);
    return rc == 0 ? llama_choose(j->rq, given && *given ? given : NULL, "generate", j->model, e) : rc;
}

/* True when the call went well; else j is gone. */
bool about_job_went_well(about_job *j, const call_result *r)
{
    api_error e;
    j->call = NULL;
    request_note_result(j->rq, r);
    if (r->status == 0) return true;
    api_error_from_call(&e, r);
    about_job_fail(j, &e);
    return false;
}

/* The call has begun, or there was no memory for it. */
void about_job_await(about_job *j)
{
    api_error e;
    if (j->call) return;
    api_error_nomem(&e);
    about_job_fail(j, &e);
}

void about_job_reply(about_job *j, buf *out)
{
    request_json(about_job_end(j), 200, out);
    buf_done(out);
}
