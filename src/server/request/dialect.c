/* dialect.c: whose errors are said where. */
#include "request/dialect.h"

#include <string.h>

#include "dialects/llama.h"
#include "dialects/ollama.h"
#include "dialects/responses.h"
#include "json/json.h"

enum {
    SENTENCES = ENDPOINT_OLLAMA | ENDPOINT_KSERVE, /* {"error": "sentence"} */
    OTHERS = SENTENCES | ENDPOINT_LLAMA | ENDPOINT_RESPONSES
};

/* "/api" of "/api/chat". */
static size_t n_first(const char *path)
{
    return *path ? 1 + strcspn(path + 1, "/") : 0;
}

unsigned dialect_of(const endpoint_table *t, const char *path)
{
    size_t n = n_first(path);
    const endpoint *near = NULL;
    for (size_t i = 0; i < t->n; i++) {
        const endpoint *row = &t->rows[i];
        if (endpoint_path_matches(row->path, path)) return row->takes & OTHERS;
        if (!near && n > 1 && n_first(row->path) == n && memcmp(row->path, path, n) == 0) near = row;
    }
    return near ? near->takes & OTHERS : 0;
}

static void put_sentence(buf *out, const api_error *e)
{
    buf_puts(out, "{\"error\":");
    json_put_string(out, e->message, strlen(e->message));
    buf_putc(out, '}');
}

void dialect_put_error(buf *out, unsigned dialect, const api_error *e)
{
    if (dialect & ENDPOINT_OLLAMA)
        ollama_put_error(out, e->message);
    else if (dialect & ENDPOINT_KSERVE)
        put_sentence(out, e);
    else if (dialect & ENDPOINT_LLAMA)
        llama_put_error(out, e);
    else if (dialect & ENDPOINT_RESPONSES)
        response_put_error(out, e);
    else
        api_error_put(out, e);
}

const char *dialect_no_memory(unsigned dialect)
{
    if (dialect & SENTENCES) return "{\"error\":\"out of memory\"}";
    if (dialect & ENDPOINT_LLAMA)
        return "{\"error\":{\"code\":500,\"message\":\"out of memory\",\"type\":\"server_error\"}}";
    return "{\"error\":{\"message\":\"out of "
           "memory\",\"type\":\"server_error\",\"param\":null,\"code\":null}}";
}
