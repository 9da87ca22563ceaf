/* toolcall.c: a streamed reply -> text and tool calls.
 *
 * States: TEXT until "<tool_call>", then HEAD until the object's "name" is known and its "arguments"
 * value begins, ARGS while that value streams, TAIL until "</tool_call>". Input is kept in one buffer
 * from the last place that is decided, and decisions look at bytes one by one, so that the way the
 * input is cut cannot matter. What HEAD cannot read comes out as text, marker and all. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "text/chat.h"

#define OPEN  "<tool_call>"
#define CLOSE "</tool_call>"

enum { MAX_HEAD = 4096 };

typedef enum { IN_TEXT, IN_HEAD, IN_ARGS, IN_TAIL } where;

struct toolcall_parser {
    toolcall_sink sink;
    where at;
    buf held;    /* TEXT: white space and what may be a marker; HEAD: all since the marker; TAIL: a marker's
                    start */
    size_t lead; /* HEAD: white space before the marker, dropped if this is a call */
    int count;   /* calls begun */
    int depth;   /* of the arguments' brackets */
    bool in_string, escaped; /* within the arguments */
};

toolcall_parser *toolcall_new(const toolcall_sink *sink)
{
    toolcall_parser *p = calloc(1, sizeof *p);
    if (p) p->sink = *sink;
    return p;
}

void toolcall_free(toolcall_parser *p)
{
    if (!p) return;
    buf_done(&p->held);
    free(p);
}

bool toolcall_is_open(const toolcall_parser *p)
{
    return p->at == IN_HEAD || p->at == IN_ARGS;
}

int toolcall_count(const toolcall_parser *p)
{
    return p->count;
}

static void emit_text(toolcall_parser *p, size_t n)
{
    if (n && p->sink.text) p->sink.text(p->sink.user, p->held.data, n);
    buf_consume(&p->held, n);
}

/* True when s[0..n) is the beginning of `marker`, or all of it. */
static bool begins(const char *s, size_t n, const char *marker)
{
    return n == 0 || (n <= strlen(marker) && !memcmp(s, marker, n)); /* s may be NULL then */
}

/* Held back is white space, then perhaps the start of a marker. */
static void text_byte(toolcall_parser *p, char c)
{
    buf_putc(&p->held, c);
    size_t spaces = 0, n = p->held.len;
    while (spaces < n && isspace((unsigned char)p->held.data[spaces])) spaces++;
    if (begins(p->held.data + spaces, n - spaces, OPEN)) {
        if (n - spaces < strlen(OPEN)) return;
        p->lead = spaces;
        p->at = IN_HEAD;
        return;
    }
    /* No marker: all comes out but what may begin one now, with the white space before it. */
    size_t keep = 0;
    if (c == OPEN[0])
        keep = 1;
    else if (isspace((unsigned char)c))
        keep = 1;
    emit_text(p, n - keep);
}

static size_t skip_space(const char *s, size_t n, size_t at)
{
    while (at < n && isspace((unsigned char)s[at])) at++;
    return at;
}

/* The end of the JSON string that begins at s[at] == '"'; 0 when it is not complete. */
static size_t string_end(const char *s, size_t n, size_t at)
{
    for (size_t i = at + 1; i < n; i++) {
        if (s[i] == '\\')
            i++;
        else if (s[i] == '"')
            return i + 1;
    }
    return 0;
}

/* The end of any complete JSON value at s[at]; 0 when it may go on, SIZE_MAX when it is none. */
static size_t value_end(const char *s, size_t n, size_t at)
{
    int depth = 0;
    if (at >= n) return 0;
    if (s[at] == '"') return string_end(s, n, at);
    if (s[at] != '{' && s[at] != '[') {
        size_t i = at;
        while (i < n && (isalnum((unsigned char)s[i]) || strchr("+-.", s[i]))) i++;
        return i == at ? SIZE_MAX : i == n ? 0 : i;
    }
    for (size_t i = at; i < n; i++) {
        if (s[i] == '"') {
            i = string_end(s, n, i);
            if (i == 0) return 0;
            i--;
        } else if (s[i] == '{' || s[i] == '[') {
            depth++;
        } else if ((s[i] == '}' || s[i] == ']') && --depth == 0) {
            return i + 1;
        }
    }
    return 0;
}

typedef struct head {
    size_t name, name_end, args; /* 0: not seen */
    bool args_done;              /* the arguments came before the name, whole */
    size_t args_end;
} head;

static bool is_key(const char *s, size_t b, size_t e, const char *key)
{
    return e - b == strlen(key) + 2 && !memcmp(s + b + 1, key, e - b - 2);
}

/* Read the object after the marker as far as it goes: 1 when name and the arguments' start are known,
 * 0 when more is needed, -1 when it is no call. */
static int read_head(const char *s, size_t n, size_t at, head *h)
{
    at = skip_space(s, n, at);
    if (at == n) return 0;
    if (s[at++] != '{') return -1;
    for (;;) {
        at = skip_space(s, n, at);
        if (at == n) return 0;
        if (s[at] == '}') return -1; /* an end without both */
        if (s[at] != '"') return -1;
        size_t key = at, key_end = string_end(s, n, at);
        if (!key_end) return 0;
        at = skip_space(s, n, key_end);
        if (at == n) return 0;
        if (s[at++] != ':') return -1;
        at = skip_space(s, n, at);
        if (at == n) return 0;
        bool args = is_key(s, key, key_end, "arguments") || is_key(s, key, key_end, "parameters");
        if (args && s[at] != '{') return -1;
        if (args && h->name) {
            h->args = at;
            return 1;
        }
        size_t end = value_end(s, n, at);
        if (end == SIZE_MAX) return -1;
        if (end == 0) return 0;
        if (args) {
            h->args = at;
            h->args_end = end;
            h->args_done = true;
        } else if (is_key(s, key, key_end, "name")) {
            if (s[at] != '"') return -1;
            h->name = at;
            h->name_end = end;
        }
        if (h->name && h->args) return 1;
        at = skip_space(s, n, end);
        if (at == n) return 0;
        if (s[at++] != ',') return -1;
    }
}

static void end_call(toolcall_parser *p)
{
    if (p->sink.end) p->sink.end(p->sink.user, p->count - 1);
    p->at = IN_TAIL;
}

/* One byte of the arguments' object; returns true when it was the last. */
static bool args_byte(toolcall_parser *p, char c)
{
    if (p->in_string) {
        if (p->escaped)
            p->escaped = false;
        else if (c == '\\')
            p->escaped = true;
        else if (c == '"')
            p->in_string = false;
        return false;
    }
    if (c == '"')
        p->in_string = true;
    else if (c == '{' || c == '[')
        p->depth++;
    else if (c == '}' || c == ']')
        return --p->depth == 0;
    return false;
}

static bool begin_call(toolcall_parser *p, const head *h)
{
    json_t *name = NULL;
    const char *s = p->held.data;
    int rc = json_parse(&name, s + h->name, h->name_end - h->name, "name", NULL);
    p->held.failed |= rc == SHOAL_ENOMEM; /* no call can begin, and this is no text either */
    if (rc || !json_is_string(name)) {
        json_decref(name);
        return false;
    }
    int index = p->count++;
    if (p->sink.begin) p->sink.begin(p->sink.user, index, json_string_value(name));
    json_decref(name);
    p->depth = 0;
    p->in_string = p->escaped = false;
    return true;
}

static void head_failed(toolcall_parser *p)
{
    p->at = IN_TEXT;
    if (!p->held.failed) emit_text(p, p->held.len);
}

static void head_byte(toolcall_parser *p, char c)
{
    head h = {0};
    buf_putc(&p->held, c);
    bool too_long = p->held.len > p->lead + MAX_HEAD;
    int rc = too_long ? -1 : read_head(p->held.data, p->held.len, p->lead + strlen(OPEN), &h);
    if (rc == 0) return;
    if (rc < 0 || !begin_call(p, &h)) {
        head_failed(p);
        return;
    }
    size_t n = h.args_done ? h.args_end - h.args : 1;
    if (p->sink.arguments) p->sink.arguments(p->sink.user, p->count - 1, p->held.data + h.args, n);
    buf_clear(&p->held);
    p->depth = 1;
    p->at = IN_ARGS;
    if (h.args_done) end_call(p);
}

/* Between the arguments and the end marker only the object's rest is expected; it is dropped. */
static void tail_byte(toolcall_parser *p, char c)
{
    buf_putc(&p->held, c);
    while (p->held.len && !begins(p->held.data, p->held.len, CLOSE)) buf_consume(&p->held, 1);
    if (p->held.len < strlen(CLOSE)) return;
    buf_clear(&p->held);
    p->at = IN_TEXT;
}

int toolcall_push(toolcall_parser *p, const char *s, size_t n)
{
    for (size_t i = 0; i < n && !p->held.failed; i++) {
        if (p->at == IN_TEXT) {
            text_byte(p, s[i]);
        } else if (p->at == IN_HEAD) {
            head_byte(p, s[i]);
        } else if (p->at == IN_TAIL) {
            tail_byte(p, s[i]);
        } else {
            size_t b = i;
            bool last = false;
            while (i < n && !(last = args_byte(p, s[i]))) i++;
            if (p->sink.arguments)
                p->sink.arguments(p->sink.user, p->count - 1, s + b, (last ? i + 1 : n) - b);
            if (last) end_call(p);
        }
    }
    return p->held.failed ? SHOAL_ENOMEM : 0;
}

int toolcall_end(toolcall_parser *p)
{
    if (p->at == IN_TEXT || p->at == IN_HEAD)
        emit_text(p, p->held.len);
    else if (p->at == IN_ARGS)
        end_call(p);
    bool failed = p->held.failed;
    buf_clear(&p->held);
    p->at = IN_TEXT;
    return failed ? SHOAL_ENOMEM : 0;
}
