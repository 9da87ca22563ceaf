/* What an MCP server sends: a message is read or refused with a sentence; a stream has the same events in pieces of any size;
 * tools that are taken are allowed and have a schema; a result's text keeps its bound. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "mcp/mcp_answer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TEXT_BYTES = 64, EVENT_BYTES = 4096, CUT_BYTES = 64 };

static void check_message(const char *text, size_t n)
{
    static const char *tools[] = {"find", "switch_light"};
    const mcp_rule rule = {.name = "s", .tools = tools, .n_tools = 2};
    mcp_message m;
    mcp_tool t;
    shoal_err err = {0};
    bool is_error;
    buf out = {0};
    if (mcp_message_parse(&m, text, n, &err) != 0) {
        if (!*err.message) abort();
        return;
    }
    if (m.answers == (m.method != NULL) || (m.answers && !m.result == !m.error)) abort();
    for (size_t i = 0; i < mcp_tools_count(m.result); i++)
        if (mcp_tool_at(m.result, i, &rule, &t) &&
            ((strcmp(t.name, tools[0]) != 0 && strcmp(t.name, tools[1]) != 0) || !json_is_object(t.schema)))
            abort();
    if (m.result && mcp_result_text(&out, m.result, TEXT_BYTES, &is_error, &err) == 0 && out.len &&
        (out.len > TEXT_BYTES + CUT_BYTES || !utf8_valid(out.data, out.len, NULL)))
        abort();
    buf_done(&out);
    json_decref(m.root);
}

static int note(void *user, const char *data, size_t n)
{
    buf_append(user, data, n);
    buf_putc(user, '\0');
    return 0;
}

static int events_of(buf *out, const char *bytes, size_t n, size_t piece)
{
    mcp_events e = {.most_bytes = EVENT_BYTES};
    int rc = 0;
    for (size_t at = 0; rc == 0 && at < n; at += piece)
        rc = mcp_events_push(&e, bytes + at, n - at < piece ? n - at : piece, note, out);
    mcp_events_done(&e);
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    buf whole = {0}, cut = {0};
    check_message(text, size);
    int a = events_of(&whole, text, size, size ? size : 1),
        b = events_of(&cut, text, size, 1 + (size ? data[0] % 5 : 0));
    bool refused =
        a == SHOAL_ENOMEM || b == SHOAL_ENOMEM || whole.failed || cut.failed; /* memory, by tests/fail */
    if (!refused && (a != b || (a == 0 && (whole.len != cut.len ||
                                           (whole.len && memcmp(whole.data, cut.data, whole.len) != 0)))))
        abort();
    for (size_t at = 0; at < whole.len; at += strlen(whole.data + at) + 1)
        check_message(whole.data + at, strlen(whole.data + at));
    buf_done(&whole);
    buf_done(&cut);
    return 0;
}
