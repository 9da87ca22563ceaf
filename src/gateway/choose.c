/* choose.c: from the "model" of a request to a model that is configured here; see choose.h. A wrong task is
 * refused before any work, with the endpoint that would take the model. */
#include "gateway/choose.h"

#include <string.h>

/* Which endpoint serves a task, for a message that helps. */
static const char *endpoint_of(const char *task)
{
    static const struct {
        const char *task, *path;
    } ROWS[] = {
        {"generate", "/v1/chat/completions or /v1/completions"},
        {"classify", "/v1/classify"},
        {"tag", "/v1/tag"},
        {"embed", "/v1/embeddings"},
        {"seq2seq", "/v1/completions, /v1/translate or /v1/summarize"},
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++)
        if (strcmp(ROWS[i].task, task) == 0) return ROWS[i].path;
    return "/v1/models";
}

/* A reranker is a classifier of one label, and may be asked as either. */
static bool does(const Shoal__V1__ModelInfo *info, const char *task)
{
    if (strcmp(task, CHOOSE_COMPLETES) == 0)
        return strcmp(info->task, "generate") == 0 || strcmp(info->task, "seq2seq") == 0;
    if (strcmp(task, "rerank") == 0) return strcmp(info->task, "classify") == 0 && info->n_labels == 1;
    return strcmp(info->task, task) == 0;
}

/* The one model with this task. */
static int choose_only(gateway_request *rq, const char *task, const char **ret_name, api_error *e)
{
    registry *g = backend_registry(rq->backend);
    const char *found = NULL;
    for (size_t i = 0; i < registry_count(g); i++) {
        const replica *r = registry_at(g, i);
        if (!r->info || !does(r->info, task) || (found && strcmp(found, r->model) == 0)) continue;
        if (found)
            return api_error_bad(e, "model",
                                 "several models do this task (%.64s, %.64s): name one in \"model\"", found,
                                 r->model);
        found = r->model;
    }
    if (!found)
        return api_error_bad(e, "model", "\"model\" must name a model: none that does this task is up");
    *ret_name = found;
    return 0;
}

int choose_model(gateway_request *rq, const char *task, const char **ret_name,
                 const Shoal__V1__ModelInfo **ret_info, api_error *e)
{
    bool known;
    int rc = *ret_name ? 0 : choose_only(rq, task, ret_name, e);
    if (rc != 0) return rc;
    const replica *r = backend_find(rq->backend, *ret_name, &known);
    if (!known) return api_error_no_model(e, *ret_name);
    const Shoal__V1__ModelInfo *info = r ? r->info : NULL;
    if (info && !does(info, task))
        return api_error_set(e, 400, "invalid_request_error", "wrong_task", "model",
                             "the model %.64s does \"%.16s\", which is asked at %s", *ret_name, info->task,
                             endpoint_of(info->task));
    request_note_model(rq, *ret_name, info ? info->version : "", info ? info->quantisation : "");
    *ret_info = info;
    return 0;
}
