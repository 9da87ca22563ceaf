/* stage_tools.c: the functions that a generate stage offers to its model, and whether what it called is
 * whole. */
#include <string.h>

#include "json/json.h"
#include "pipeline/pipeline_tools.h"
#include "stages/stage_write.h"

#define CHOICE(name) SHOAL__V1__GENERATE_REQUEST__TOOL_CHOICE__##name

static Shoal__V1__GenerateRequest__ToolChoice choice_of(const config_stage *st)
{
    const char *word = st->tool_choice ? st->tool_choice : "auto";
    if (pipeline_named_tool(st)) return CHOICE(TOOL_NAMED);
    return strcmp(word, "required") == 0 ? CHOICE(TOOL_REQUIRED)
           : strcmp(word, "none") == 0   ? CHOICE(TOOL_NONE)
                                         : CHOICE(TOOL_AUTO);
}

/* With these devices. SHOAL_ENOMEM, or 0. */
static int offered(const stage_run *s, json_t **ret)
{
    const process_input *in = s->run->in;
    return pipeline_offer_tools(ret, s->stage, in->devices, in->n_devices, NULL);
}

int stage_offer_tools(stage_run *s, Shoal__V1__GenerateRequest *req)
{
    json_t *tools = NULL;
    buf text = {0};
    if (!s->stage->n_tools && !s->stage->tool_choice) return 0; /* it may call what it was trained to */
    int rc = offered(s, &tools);
    bool some = rc == 0 && json_array_size(tools) > 0;
    if (rc == 0 && !some && (choice_of(s->stage) == CHOICE(TOOL_REQUIRED) || pipeline_named_tool(s->stage)))
        rc = err_set(&s->err, SHOAL_EINVALID,
                     "it has to call a tool, and none is for the devices that are there");
    req->tool_choice = some ? choice_of(s->stage) : CHOICE(TOOL_NONE);
    bool calls = req->tool_choice != CHOICE(TOOL_NONE);
    req->parse_tool_calls = calls;
    if (calls) {
        req->constraint = SHOAL__V1__GENERATE_REQUEST__CONSTRAINT__TOOLS;
        req->parallel_tool_calls = s->stage->several_calls;
        if (pipeline_named_tool(s->stage)) req->tool_name = (char *)pipeline_named_tool(s->stage);
        json_put(&text, tools);
        req->tools_json = text.failed ? NULL : arena_strndup(s->run->memory, text.data, text.len);
        if (!req->tools_json) rc = SHOAL_ENOMEM;
    }
    json_decref(tools);
    buf_done(&text);
    return rc;
}

bool stage_calls_are_whole(const stage_run *s)
{
    for (size_t i = 0; s->stage->n_tools && i < s->n_tools; i++) {
        json_t *args = NULL;
        const buf *b = &s->tools[i].arguments;
        if (json_parse(&args, b->data ? b->data : "", b->len, "arguments", NULL) != 0) return false;
        json_decref(args);
    }
    return true;
}
