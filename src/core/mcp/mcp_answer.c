/* mcp_answer.c: see mcp_answer.h. */
#include "mcp/mcp_answer.h"

#include <string.h>

#include "base/utf8.h"
#include "json/json.h"

enum { TOOL_NAME_MAX = 64 };

static int no_message(mcp_message *m, shoal_err *err, const char *why)
{
    json_decref(m->root);
    *m = (mcp_message){0};
    return err_set(err, SHOAL_EPROTOCOL, "what it sent is no message of MCP: %s", why);
}

int mcp_message_parse(mcp_message *ret, const char *text, size_t n, shoal_err *err)
{
    mcp_message m = {0};
    int rc = json_parse(&m.root, text, n, "it", NULL);
    if (rc == SHOAL_ENOMEM) return err_nomem(err);
    if (rc != 0) return no_message(&m, err, "it is no JSON");
    const json_t *id = json_object_get(m.root, "id"), *error = json_object_get(m.root, "error");
    const char *version = json_string_value(json_object_get(m.root, "jsonrpc"));
    m.method = json_string_value(json_object_get(m.root, "method"));
    m.result = json_object_get(m.root, "result");
    if (!version || strcmp(version, "2.0") != 0) return no_message(&m, err, "\"jsonrpc\" is not 2.0");
    if (!m.method) {
        if (!json_is_integer(id)) return no_message(&m, err, "its id is none of ours");
        if (!m.result == !error) return no_message(&m, err, "it has neither a result nor an error, or both");
        if (m.result && !json_is_object(m.result)) return no_message(&m, err, "its result is no object");
        const char *why = json_string_value(json_object_get(error, "message"));
        if (error) m.error = why ? why : "an error without words";
        m.answers = true;
        m.id = json_integer_value(id);
    }
    *ret = m;
    return 0;
}

/* ---- tools -------------------------------------------------------------------------------------------- */

static bool name_ok(const char *s)
{
    size_t n = s ? strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") : 0;
    return n > 0 && n <= TOOL_NAME_MAX && !s[n];
}

static bool is_allowed(const mcp_rule *r, const char *name)
{
    for (size_t i = 0; i < r->n_tools; i++)
        if (strcmp(r->tools[i], name) == 0) return true;
    return false;
}

size_t mcp_tools_count(const json_t *result)
{
    return json_array_size(json_object_get(result, "tools"));
}

bool mcp_tool_at(const json_t *result, size_t i, const mcp_rule *r, mcp_tool *ret)
{
    const json_t *t = json_array_get(json_object_get(result, "tools"), i);
    const char *name = json_string_value(json_object_get(t, "name"));
    const json_t *schema = json_object_get(t, "inputSchema");
    const char *type = json_string_value(json_object_get(schema, "type"));
    if (!name_ok(name) || !is_allowed(r, name) || !type || strcmp(type, "object") != 0) return false;
    *ret = (mcp_tool){name, json_text_of(t, "description"), schema};
    return true;
}

const char *mcp_next_cursor(const json_t *result)
{
    const char *s = json_string_value(json_object_get(result, "nextCursor"));
    return s && *s ? s : NULL;
}

/* ---- results ------------------------------------------------------------------------------------------ */

static void put_cut(buf *out, const char *text, size_t n, size_t most_bytes)
{
    static const char CUT[] = "\n[The rest was cut off.]";
    size_t room = out->len < most_bytes ? most_bytes - out->len : 0;
    if (n <= room) {
        buf_append(out, text, n);
        return;
    }
    while (room && ((unsigned char)text[room] & 0xC0) == 0x80) room--;
    buf_append(out, text, room);
    buf_puts(out, CUT);
}

/* Pictures and sounds are named, not read. */
static bool put_part(buf *out, const json_t *part, size_t most_bytes)
{
    const char *type = json_string_value(json_object_get(part, "type"));
    const json_t *text = json_object_get(part, "text");
    if (!type) return false;
    if (out->len && out->len < most_bytes) buf_putc(out, '\n');
    if (strcmp(type, "text") != 0) {
        buf_puts(out, "[A part that is no text.]");
        return true;
    }
    if (!json_is_string(text)) return false;
    if (out->len <= most_bytes) put_cut(out, json_string_value(text), json_string_length(text), most_bytes);
    return true;
}

int mcp_result_text(buf *out, const json_t *result, size_t most_bytes, bool *ret_is_error, shoal_err *err)
{
    const json_t *content = json_object_get(result, "content"), *part;
    size_t i;
    if (!json_is_array(content)) return err_set(err, SHOAL_EPROTOCOL, "its result has no list \"content\"");
    *ret_is_error = json_is_true(json_object_get(result, "isError"));
    json_array_foreach((json_t *)(uintptr_t)content, i, part)
    {
        if (!put_part(out, part, most_bytes))
            return err_set(err, SHOAL_EPROTOCOL, "content[%zu] of its result is none of MCP's", i);
        if (out->len > most_bytes) break;
    }
    return out->failed ? err_nomem(err) : 0;
}

/* ---- streams ------------------------------------------------------------------------------------------ */

static int end_line(mcp_events *e, int (*fn)(void *user, const char *data, size_t n), void *user)
{
    const char *s = buf_text(&e->line);
    size_t n = e->line.len;
    int rc = 0;
    if (n && s[n - 1] == '\r') n--;
    if (n == 0 && e->data.len) {
        rc = fn(user, e->data.data, e->data.len);
        buf_clear(&e->data);
    } else if (n >= 5 && memcmp(s, "data:", 5) == 0) {
        size_t at = n > 5 && s[5] == ' ' ? 6 : 5;
        if (e->data.len) buf_putc(&e->data, '\n');
        buf_append(&e->data, s + at, n - at);
    }
    buf_clear(&e->line);
    return rc ? rc : e->data.failed ? SHOAL_ENOMEM : e->data.len > e->most_bytes ? SHOAL_ELIMIT : 0;
}

int mcp_events_push(mcp_events *e, const char *bytes, size_t n,
                    int (*fn)(void *user, const char *data, size_t n), void *user)
{
    int rc = 0;
    while (rc == 0 && n > 0) {
        const char *end = memchr(bytes, '\n', n);
        size_t k = end ? (size_t)(end - bytes) : n;
        if (e->line.len + k > e->most_bytes + 16) return SHOAL_ELIMIT;
        if (buf_append(&e->line, bytes, k) != 0) return SHOAL_ENOMEM;
        if (end) rc = end_line(e, fn, user);
        bytes += k + (end != NULL);
        n -= k + (end != NULL);
    }
    return rc;
}

void mcp_events_done(mcp_events *e)
{
    buf_done(&e->line);
    buf_done(&e->data);
}
