/* Arguments of MCP's tools, and lists of models: what is asked is a path of ours with a JSON body, whatever came. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "compat/mcp_tools.h"
#include "json/json.h"
#include "memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const NAMES[] = {"process", "chat",      "classify",    "tag",    "embed",
                                    "rerank",  "fill_mask", "collections", "search", "answer"};

static void check_json(const buf *b)
{
    json_t *v = NULL;
    shoal_err err;
    holds(json_parse(&v, b->len ? b->data : "", b->len, "body", &err) == 0);
    json_decref(v);
}

static void ask(const char *name, const json_t *arguments)
{
    char path[256];
    const char *method;
    api_error e = {0};
    buf body = {0}, text = {0};
    if (mcp_tool_request(mcp_tool_find(name), arguments, &method, path, sizeof path, &body, &e) == 0) {
        holds(strncmp(path, "/v1/", 4) == 0 && !strstr(path, "..") && !strpbrk(path, "?#% "));
        holds(strcmp(method, "POST") == 0 || (strcmp(method, "GET") == 0 && body.len == 0));
        if (body.len) check_json(&body);
    } else {
        holds(e.status >= 400 && *e.message);
    }
    mcp_tool_put_text(&text, mcp_tool_find(name), arguments);
    buf_done(&text);
    buf_done(&body);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t *v = NULL;
    shoal_err err;
    buf list = {0};
    if (json_parse(&v, (const char *)data, size, "arguments", &err) != 0) return 0;
    if (json_is_object(v))
        for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) ask(NAMES[i], v);
    buf_putc(&list, '[');
    mcp_tools_put(&list, v, v);
    buf_putc(&list, ']');
    check_json(&list);
    buf_done(&list);
    json_decref(v);
    return 0;
}
