/* config_cache.c: what the rows of a cache cannot say; see config_cache.h. */
#include "config/config_cache.h"

#include <string.h>

#include "config/config.h"

static bool is_asked(const gateway_config *c, const char *name)
{
    return config_answers(c, name) || pipeline_find(c->pipelines, c->n_pipelines, name) ||
           route_find(&c->book, name);
}

int config_check_cache(const gateway_config *c, shoal_err *err)
{
    const config_semantic *s = &c->cache.semantic;
    if (!s->model) return 0;
    if (c->cache.bytes == 0)
        return err_set(err, SHOAL_EINVALID,
                       "cache.semantic: nothing is kept that could be found (cache.mb is 0)");
    if (!config_find_model(c, s->model))
        return err_set(err, SHOAL_EINVALID, "cache.semantic.model: '%s' is not among the models of this file",
                       s->model);
    if (s->verify == SEMANTIC_MODEL && !config_find_model(c, s->verify_model))
        return err_set(err, SHOAL_EINVALID,
                       "cache.semantic.verify.model: '%s' is not among the models of this file",
                       s->verify_model);
    for (size_t i = 0; i < s->n_of; i++)
        if (!is_asked(c, s->of[i]))
            return err_set(
                err, SHOAL_EINVALID,
                "cache.semantic.of[%zu]: '%s' is no route, pipeline, ensemble or model of this file", i,
                s->of[i]);
    return 0;
}

static bool config_cache_is(const char *a, const char *b)
{
    return a && strcmp(a, b) == 0;
}

const char *config_cache_misfit(const config_cache *c, const char *model, const char *task,
                                const char **ret_field)
{
    const config_semantic *s = &c->semantic;
    bool ranks = strcmp(task, "rerank") == 0 || strcmp(task, "classify") == 0;
    *ret_field = config_cache_is(s->model, model) ? "cache.semantic.model" : "cache.semantic.verify.model";
    if (config_cache_is(s->model, model) && strcmp(task, "embed") != 0) return "embed";
    return s->model && config_cache_is(s->verify_model, model) && !ranks ? "rerank" : NULL;
}

bool config_cache_uses(const config_cache *c, const char *model)
{
    return c->semantic.model &&
           (config_cache_is(c->semantic.model, model) || config_cache_is(c->semantic.verify_model, model));
}
