/* serve_tools.c: see serve_tools.h. */
#include "serve/serve_tools.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json/json.h"
#include "grammar/grammar_tools.h"
#include "pipeline/pipeline_tools.h"

/* As a worker would before the reply begins, but for the tokens. */
static int compile(const char *tools_json, shoal_err *err)
{
    const grammar_spec spec = {.kind = GRAMMAR_TOOLS, .tools_json = tools_json, .mode = TOOLS_REQUIRED};
    nfa *a = nfa_new();
    int start, rc = a ? tools_compile(a, &spec, &start, err) : err_nomem(err);
    if (rc == 0 && !nfa_seal(a)) rc = err_set(err, SHOAL_ELIMIT, "tools: too large");
    nfa_free(a);
    return rc;
}

/* "tools/3/function/parameters/properties/a: ..." stands in the configuration's tools[3].parameters. */
static int blame(const gateway_config *c, size_t i, unsigned stage, const shoal_err *why, shoal_err *err)
{
    static const char PREFIX[] = "tools/";
    const char *at = strncmp(why->message, PREFIX, strlen(PREFIX)) == 0 ? why->message + strlen(PREFIX) : "0";
    return config_fail(c, err, "pipelines[%zu].stages[%u].tools[%lu].parameters: %s", i, stage,
                       strtoul(at, NULL, 10), why->message);
}

int serve_tools_check(const gateway_config *c, size_t i, shoal_err *err)
{
    const config_pipeline *p = &c->pipelines[i];
    int rc = 0;
    for (unsigned k = 0; rc == 0 && k < p->n_stages; k++) {
        json_t *tools = NULL;
        buf text = {0};
        shoal_err why;
        if (!p->stages[k].n_tools) continue;
        rc = pipeline_all_tools(&tools, &p->stages[k], err);
        if (rc == 0 && json_put(&text, tools) != 0) rc = err_nomem(err);
        if (rc == 0 && compile(text.data, &why) != 0)
            rc = why.code == SHOAL_ENOMEM ? err_nomem(err) : blame(c, i, k, &why, err);
        json_decref(tools);
        buf_done(&text);
    }
    return rc;
}
