/* pipeline_calls.h: pipelines as chat models: a decorator that answers generations of a pipeline's name by a run of it.
 *
 *     POST /v1/chat/completions {"model": "home", "messages": [...], "tools": [...]}
 *
 * Every API that asks for generations has it thereby, with its own form of texts and calls. The request's last
 * message is the pipeline's input; devices are those that the request names (function_table_devices), else the
 * configuration's. What the pipeline would call is called by the functions that the request offers, or not at all
 * (chat_reply.h). Tokens are those that the models of its stages read and made: none where rules decide.
 *
 * A pipeline that needs a sound, a picture or a table, or has no stage that says anything, is no chat model. */
#ifndef CONVERSE_PIPELINE_CALLS_H
#define CONVERSE_PIPELINE_CALLS_H

#include "calls/calls.h"
#include "config/config.h"
#include "time/env.h"

struct executor;
struct hosts;
struct mcp_client;

typedef struct pipeline_options {
    const gateway_config *config;     /* borrowed, as are all here */
    struct executor *const *executor; /* looked at when a run begins, as are the hosts */
    struct hosts *const *hosts;
    struct mcp_client *const *mcp;
} pipeline_options;

/* The pipeline of that name, where it is a chat model and no model, ensemble or route has its name; else NULL. */
const config_pipeline *pipeline_calls_find(const gateway_config *c, const char *name);

/* Takes inner, and frees it with itself; on failure inner is the caller's still. */
int pipeline_calls_new(calls **ret, const env *env_, calls *inner, const pipeline_options *opts,
                       shoal_err *err);
/* Only look whether their tables can be read. */
int pipeline_calls_check(const gateway_config *c, shoal_err *err);

#endif
