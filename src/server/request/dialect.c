/* dialect.c: whose errors are said where. */
#include "request/dialect.h"

#include <string.h>

#include "dialects/anthropic.h"
#include "dialects/llama.h"
#include "dialects/ollama.h"
#include "dialects/responses.h"
#include "json/json.h"

enum {
    SENTENCES = ENDPOINT_OLLAMA | ENDPOINT_KSERVE, /* {"error": "sentence"} */
    OTHERS = SENTENCES | ENDPOINT_LLAMA | ENDPOINT_RESPONSES | ENDPOINT_ANTHROPIC | ENDPOINT_RPC
};

/* How many leading segments of the path a row's path has, too. */
static size_t n_shared(const char *row, const char *path)
{
    size_t n = 0;
    while (*row == '/' && *path == '/') {
        size_t of_row = 1 + strcspn(row + 1, "/"), of_path = 1 + strcspn(path + 1, "/");
        bool any = of_row == 2 && row[1] == '*';
        if (of_path == 1 || (!any && (of_row != of_path || memcmp(row, path, of_row) != 0))) break;
        row += of_row;
        path += of_path;
        n++;
    }
    return n;
}

unsigned dialect_of(const endpoint_table *t, const char *path)
{
    const endpoint *near = NULL;
    size_t most = 0;
    for (size_t i = 0; i < t->n; i++) {
        const endpoint *row = &t->rows[i];
        if (endpoint_path_matches(row->path, path)) return row->takes & OTHERS;
        size_t n = n_shared(row->path, path);
        if (n > most) near = row, most = n;
    }
    return near ? near->takes & OTHERS : 0;
}

static void put_sentence(buf *out, const api_error *e)
{
    buf_puts(out, "{\"error\":");
    json_put_string(out, e->message, strlen(e->message));
    buf_putc(out, '}');
}

/* JSON-RPC 2.0, section 5.1: of the server, and of a request whose id is not known here. */
static void put_rpc_error(buf *out, const api_error *e)
{
    buf_puts(out, "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32000,\"message\":");
    json_put_string(out, e->message, strlen(e->message));
    buf_puts(out, "}}");
}

void dialect_put_error(buf *out, unsigned dialect, const api_error *e, const char *request_id)
{
    if (dialect & ENDPOINT_ANTHROPIC)
        anthropic_put_error(out, e, request_id);
    else if (dialect & ENDPOINT_OLLAMA)
        ollama_put_error(out, e->message);
    else if (dialect & ENDPOINT_KSERVE)
        put_sentence(out, e);
    else if (dialect & ENDPOINT_LLAMA)
        llama_put_error(out, e);
    else if (dialect & ENDPOINT_RESPONSES)
        response_put_error(out, e);
    else if (dialect & ENDPOINT_RPC)
        put_rpc_error(out, e);
    else
        api_error_put(out, e);
}

const char *dialect_error_event(unsigned dialect)
{
    return dialect & ENDPOINT_ANTHROPIC ? "error" : "";
}

const char *dialect_no_memory(unsigned dialect)
{
    if (dialect & ENDPOINT_ANTHROPIC)
        return "{\"type\":\"error\",\"error\":{\"type\":\"api_error\",\"message\":\"out of "
               "memory\"},\"request_id\":null}";
    if (dialect & ENDPOINT_RPC)
        return "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32603,\"message\":\"out of memory\"}}";
    if (dialect & SENTENCES) return "{\"error\":\"out of memory\"}";
    if (dialect & ENDPOINT_LLAMA)
        return "{\"error\":{\"code\":500,\"message\":\"out of memory\",\"type\":\"server_error\"}}";
    return "{\"error\":{\"message\":\"out of "
           "memory\",\"type\":\"server_error\",\"param\":null,\"code\":null}}";
}
