/* toolcall.c: a streamed reply -> text and tool calls.
 *
 *     TEXT ──marker──► HEAD ──name known, arguments begin──► ARGS ──► REST ──► BETWEEN ──close──► TEXT
 *                       └──► CALL (Python, braces: until the call is whole) ─────┘  └─ a call ─► HEAD
 *
 * Input is kept in one buffer from the last place that is decided, and decisions look at bytes one by one, so
 * that the way the input is cut cannot matter. What HEAD or CALL cannot read comes out as text, marker and
 * all. A syntax without a marker begins in HEAD and never comes back there from TEXT. */
#include "text/toolcall.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

enum { MAX_HEAD = 4096, MAX_NAME = 256, MAX_CALL = 64 << 10, MAX_UNSURE = 16 << 10 };

typedef enum { IN_TEXT, IN_HEAD, IN_ARGS, IN_CALL, IN_REST, IN_BETWEEN } where;

struct toolcall_parser {
    toolcall_sink sink;
    const toolcall_syntax *syntax;
    char **offered; /* names, n_offered of them; any name will do when `any` */
    size_t n_offered;
    bool any;
    where at;
    buf held;      /* TEXT: white space and what may be a marker; HEAD, CALL: all since before the marker;
                      BETWEEN: what may be the closing marker */
    size_t spaces; /* TEXT: so much of `held` is white space */
    size_t body;   /* HEAD, CALL: where the call itself begins, past the marker */
    bool start;    /* HEAD: the reply's beginning, where a marker may yet come */
    bool list;     /* within "[...]" around calls */
    bool unsure;   /* the calls that come are whole before sink.may lets them begin */
    int count;     /* calls begun */
    int depth;     /* of brackets: within the arguments, the call or the rest of its object */
    char quote;    /* within a text of these: what ends it, else 0 */
    bool escaped;
    size_t name, name_end; /* CALL: of `held` */
};

/* ---- life ---------------------------------------------------------------------------------------- */

static bool copy_names(toolcall_parser *p, const json_t *tools)
{
    size_t i;
    json_t *tool;
    p->offered = calloc(json_array_size(tools) + 1, sizeof *p->offered);
    if (!p->offered) return false;
    json_array_foreach(tools, i, tool)
    {
        const char *name = json_string_value(json_object_get(json_object_get(tool, "function"), "name"));
        if (!name) continue;
        p->offered[p->n_offered] = strdup(name);
        if (!p->offered[p->n_offered]) return false;
        p->n_offered++;
    }
    return true;
}

toolcall_parser *toolcall_new(const toolcall_sink *sink, const toolcall_syntax *syntax, const json_t *tools)
{
    toolcall_parser *p = calloc(1, sizeof *p);
    if (!p) return NULL;
    p->sink = *sink;
    p->syntax = syntax;
    p->any = !tools;
    p->start = !*syntax->open && tools;
    p->unsure = p->start && sink->may;
    p->at = p->start ? IN_HEAD : IN_TEXT;
    if (tools && !copy_names(p, tools)) {
        toolcall_free(p);
        return NULL;
    }
    return p;
}

void toolcall_free(toolcall_parser *p)
{
    if (!p) return;
    for (size_t i = 0; i < p->n_offered; i++) free(p->offered[i]);
    free(p->offered);
    buf_done(&p->held);
    free(p);
}

bool toolcall_is_open(const toolcall_parser *p)
{
    return (p->at == IN_HEAD && !p->start) || p->at == IN_ARGS || p->at == IN_CALL || p->at == IN_REST;
}

int toolcall_count(const toolcall_parser *p)
{
    return p->count;
}

static bool is_offered(const toolcall_parser *p, const char *name, size_t n)
{
    for (size_t i = 0; i < p->n_offered; i++)
        if (strlen(p->offered[i]) == n && memcmp(p->offered[i], name, n) == 0) return true;
    return p->any && n > 0;
}

/* ---- text ---------------------------------------------------------------------------------------- */

static void emit_text(toolcall_parser *p, size_t n)
{
    if (n && p->sink.text) p->sink.text(p->sink.user, p->held.data, n);
    buf_consume(&p->held, n);
}

/* True when s[0..n) is the beginning of `marker`, or all of it. */
static bool begins(const char *s, size_t n, const char *marker)
{
    return marker && *marker && n <= strlen(marker) && (n == 0 || !memcmp(s, marker, n));
}

/* The other marker counts where tools are offered: "```json" begins many texts. */
static const char *also(const toolcall_parser *p)
{
    return p->any ? NULL : p->syntax->also;
}

static bool may_open(const toolcall_parser *p, const char *s, size_t n)
{
    return begins(s, n, p->syntax->open) || begins(s, n, also(p));
}

static bool is_marker(const char *s, size_t n, const char *marker)
{
    return marker && *marker && n == strlen(marker) && !memcmp(s, marker, n);
}

/* Held back is white space, then perhaps the start of a marker. */
static void text_byte(toolcall_parser *p, char c)
{
    bool space = isspace((unsigned char)c);
    if (p->held.len == p->spaces && space) p->spaces++;
    buf_putc(&p->held, c);
    if (p->held.failed) return;
    const char *s = p->held.data + p->spaces;
    size_t n = p->held.len - p->spaces;
    if (n == 0 || may_open(p, s, n)) {
        if (!is_marker(s, n, p->syntax->open) && !is_marker(s, n, also(p))) return;
        p->unsure = p->sink.may && !is_marker(s, n, p->syntax->open);
        p->body = p->held.len;
        p->at = IN_HEAD;
        return;
    }
    /* No marker: all comes out but what may begin one now, with the white space before it. */
    size_t keep = n - 1;
    while (keep > 0 && !may_open(p, s + n - keep, keep)) keep--;
    if (space) keep = 1;
    emit_text(p, p->held.len - keep);
    p->spaces = space;
}

static void to_text(toolcall_parser *p)
{
    p->at = IN_TEXT;
    p->spaces = 0;
    p->body = 0;
    p->list = p->start = p->unsure = false;
}

/* What is held turned out to be no call. */
static void give_up(toolcall_parser *p)
{
    to_text(p);
    if (!p->held.failed) emit_text(p, p->held.len);
}

/* ---- JSON heads ---------------------------------------------------------------------------------- */

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

/* Read the object at s[at] == '{' as far as it goes: 1 when name and the arguments' start are known, 0 when
 * more is needed, -1 when it is no call. */
static int read_head(const char *s, size_t n, size_t at, head *h)
{
    at++;
    for (;;) {
        at = skip_space(s, n, at);
        if (at == n) return 0;
        if (s[at] != '"') return -1; /* an end without both, among others */
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

/* ---- calls --------------------------------------------------------------------------------------- */

static void begin(toolcall_parser *p, const char *name)
{
    if (p->sink.begin) p->sink.begin(p->sink.user, p->count, name);
    p->count++;
    p->start = false;
}

static void arguments(toolcall_parser *p, const char *s, size_t n)
{
    if (p->sink.arguments) p->sink.arguments(p->sink.user, p->count - 1, s, n);
}

static void end_call(toolcall_parser *p, where next)
{
    if (p->sink.end) p->sink.end(p->sink.user, p->count - 1);
    p->at = next;
}

/* The name at held[from..to), plain; false when it is not offered or memory is short. */
static bool begin_plain(toolcall_parser *p, size_t from, size_t to)
{
    char name[MAX_NAME + 1];
    size_t n = to - from;
    if (n > MAX_NAME || !is_offered(p, p->held.data + from, n)) return false;
    memcpy(name, p->held.data + from, n);
    name[n] = '\0';
    begin(p, name);
    return true;
}

static bool begin_json(toolcall_parser *p, const head *h)
{
    json_t *name = NULL;
    int rc = json_parse(&name, p->held.data + h->name, h->name_end - h->name, "name", NULL);
    p->held.failed |= rc == SHOAL_ENOMEM; /* no call can begin, and this is no text either */
    bool ok =
        rc == 0 && json_is_string(name) && is_offered(p, json_string_value(name), json_string_length(name));
    if (ok) begin(p, json_string_value(name));
    json_decref(name);
    return ok;
}

/* Arguments stream from `at` of what is held, where their first '{' is the last byte. */
static void stream_from(toolcall_parser *p, size_t at)
{
    arguments(p, p->held.data + at, 1);
    p->depth = 1;
    p->quote = 0;
    p->escaped = false;
    p->at = IN_ARGS;
}

/* The one beginning of a reply that the grammar takes for a call: from here on it sees to the arguments. */
static bool is_canonical(const toolcall_parser *p, const head *h)
{
    buf text = {0};
    if (!p->start) return false;
    buf_printf(&text, "{\"name\": %.*s, \"%s\": {", (int)(h->name_end - h->name), p->held.data + h->name,
               p->syntax->arguments ? p->syntax->arguments : "");
    bool same = !text.failed && text.len == p->held.len && memcmp(text.data, p->held.data, text.len) == 0;
    buf_done(&text);
    return same;
}

static bool may_begin(const toolcall_parser *p, const char *name, const char *json, size_t n)
{
    return !p->unsure || p->sink.may(p->sink.user, name, json, n);
}

/* The same of a call that has to be whole: its object ends where what is held does. */
static int whole_json(toolcall_parser *p, size_t at)
{
    const char *s = p->held.data;
    size_t n = p->held.len, end = s[n - 1] == '}' ? value_end(s, n, at) : 0;
    json_t *call = NULL;
    buf args = {0};
    if (end == 0) return n - at > MAX_UNSURE ? -1 : 0;
    int rc = json_parse(&call, s + at, end - at, "call", NULL);
    const json_t *given = json_object_get(call, "arguments");
    const char *name = json_string_value(json_object_get(call, "name"));
    if (!given) given = json_object_get(call, "parameters");
    if (rc == 0 && json_is_object(given)) json_put(&args, given);
    p->held.failed |= rc == SHOAL_ENOMEM || args.failed;
    bool ok = args.len > 0 && !args.failed && name && is_offered(p, name, strlen(name)) &&
              may_begin(p, name, args.data, args.len);
    if (ok) {
        begin(p, name);
        arguments(p, args.data, args.len);
        end_call(p, IN_BETWEEN);
    }
    json_decref(call);
    buf_done(&args);
    return ok ? 1 : -1;
}

/* 1: the call has begun, 0: more is needed, -1: it is none. */
static int json_head(toolcall_parser *p, size_t at)
{
    head h = {0};
    size_t most = p->unsure ? MAX_UNSURE : MAX_HEAD;
    int rc = p->held.len - at > most ? -1 : read_head(p->held.data, p->held.len, at, &h);
    if (rc <= 0) return rc;
    if (p->unsure && !is_canonical(p, &h)) return whole_json(p, at);
    if (!begin_json(p, &h)) return -1;
    p->unsure = false;
    if (h.args_done) {
        arguments(p, p->held.data + h.args, h.args_end - h.args);
        p->depth = 1;
        end_call(p, IN_REST);
    } else {
        stream_from(p, h.args);
    }
    return 1;
}

static size_t name_end(const char *s, size_t n, size_t at)
{
    while (at < n && (isalnum((unsigned char)s[at]) || strchr("_.-", s[at]))) at++;
    return at;
}

/* f[ARGS]{..., perhaps with an id before it: f[CALL_ID]abc[ARGS]{... */
static int args_head(toolcall_parser *p, size_t at)
{
    const char *s = p->held.data;
    size_t n = p->held.len, end = name_end(s, n, at);
    if (end - at > MAX_NAME || n - at > MAX_HEAD || (end == at && end < n)) return -1;
    if (end == n || s[n - 1] != '{')
        return end < n && s[end] != '[' && !isspace((unsigned char)s[end]) ? -1 : 0;
    if (!begin_plain(p, at, end)) return -1;
    stream_from(p, n - 1);
    return 1;
}

/* f( or call:f{ : the call is read whole. */
static int whole_head(toolcall_parser *p, size_t at)
{
    static const char CALL[] = "call:";
    const char *s = p->held.data;
    size_t n = p->held.len;
    if (p->syntax->form == CALL_BRACES) {
        size_t have = n - at < strlen(CALL) ? n - at : strlen(CALL);
        if (memcmp(s + at, CALL, have) != 0) return -1;
        if (n - at <= strlen(CALL)) return 0;
        at += strlen(CALL);
    }
    size_t end = name_end(s, n, at);
    if (end - at > MAX_NAME) return -1;
    if (end == n) return 0;
    bool opens = s[end] == (p->syntax->form == CALL_BRACES ? '{' : '(');
    if (!opens || !is_offered(p, s + at, end - at)) return -1;
    p->name = at;
    p->name_end = end;
    p->depth = 1;
    p->quote = 0;
    p->escaped = false;
    p->at = IN_CALL;
    return 1;
}

/* At the reply's beginning the marker may be there or not: *ret_at past it. False while that is open. */
static bool past_marker(const toolcall_parser *p, size_t *ret_at)
{
    const char *s = p->held.data, *also = p->syntax->also;
    size_t n = p->held.len, at = skip_space(s, n, p->body);
    if (p->start && also && begins(s + at, n - at < strlen(also) ? n - at : strlen(also), also)) {
        if (n - at < strlen(also)) return false;
        at = skip_space(s, n, at + strlen(also));
    }
    *ret_at = at;
    return at < n;
}

static void head_byte(toolcall_parser *p, char c)
{
    size_t at, n;
    buf_putc(&p->held, c);
    if (p->held.failed) return;
    n = p->held.len;
    int rc = n - p->body > (p->unsure ? MAX_UNSURE : MAX_HEAD) + MAX_NAME ? -1 : 0;
    bool known = rc == 0 && past_marker(p, &at);
    const char *s = p->held.data;
    bool list = p->list;
    if (known && !list && s[at] == '[') {
        list = true;
        at = skip_space(s, n, at + 1);
        known = at < n;
    }
    if (known && s[at] == '{')
        rc = json_head(p, at);
    else if (known && p->syntax->form == CALL_ARGS)
        rc = args_head(p, at);
    else if (known && p->syntax->form != CALL_JSON)
        rc = whole_head(p, at);
    else if (known)
        rc = -1;
    if (rc < 0) give_up(p);
    if (rc <= 0) return;
    p->list = list;
    if (p->at != IN_CALL) buf_clear(&p->held);
}

/* ---- within a call ------------------------------------------------------------------------------- */

/* One byte of JSON within brackets; true when it closed the last. */
static bool json_byte(toolcall_parser *p, char c)
{
    if (p->escaped)
        p->escaped = false;
    else if (p->quote && c == '\\')
        p->escaped = true;
    else if (c == '"')
        p->quote = p->quote ? 0 : c;
    else if (!p->quote && (c == '{' || c == '['))
        p->depth++;
    else if (!p->quote && (c == '}' || c == ']'))
        return --p->depth == 0;
    return false;
}

/* The same of a call in Python, whose texts have two kinds of quotes. */
static bool python_byte(toolcall_parser *p, char c)
{
    if (p->escaped)
        p->escaped = false;
    else if (p->quote && c == '\\')
        p->escaped = true;
    else if (p->quote)
        p->quote = c == p->quote ? 0 : p->quote;
    else if (c == '"' || c == '\'')
        p->quote = c;
    else if (strchr("([{", c) && c)
        p->depth++;
    else if (strchr(")]}", c) && c)
        return --p->depth == 0;
    return false;
}

/* The same with texts between two markers; c is the last byte held. */
static bool braces_byte(toolcall_parser *p, char c)
{
    size_t mark = strlen(p->syntax->middle);
    bool marker = c == '>' && p->held.len - p->name_end > mark &&
                  !memcmp(p->held.data + p->held.len - mark, p->syntax->middle, mark);
    if (marker)
        p->quote = p->quote ? 0 : c;
    else if (!p->quote && (c == '{' || c == '['))
        p->depth++;
    else if (!p->quote && (c == '}' || c == ']'))
        return --p->depth == 0;
    return false;
}

static bool whole_call_may_begin(const toolcall_parser *p, const buf *json)
{
    char name[MAX_NAME + 1];
    memcpy(name, p->held.data + p->name, p->name_end - p->name);
    name[p->name_end - p->name] = '\0';
    return may_begin(p, name, json->data ? json->data : "", json->len);
}

static void call_byte(toolcall_parser *p, char c)
{
    buf_putc(&p->held, c);
    if (p->held.failed) return;
    bool braces = p->syntax->form == CALL_BRACES, whole = braces ? braces_byte(p, c) : python_byte(p, c);
    if (p->held.len - p->name > MAX_CALL) {
        give_up(p);
        return;
    }
    if (!whole) return;
    buf json = {0};
    size_t from = p->name_end + 1;
    bool ok = toolcall_arguments(&json, p->syntax->form, p->held.data + from, p->held.len - 1 - from);
    p->held.failed |= json.failed;
    ok = ok && !json.failed && whole_call_may_begin(p, &json);
    if (ok && begin_plain(p, p->name, p->name_end)) {
        arguments(p, json.data, json.len);
        end_call(p, IN_BETWEEN);
        buf_clear(&p->held);
    } else {
        give_up(p);
    }
    buf_done(&json);
}

/* ---- behind a call ------------------------------------------------------------------------------- */

/* The closing marker ends it all, whatever is still open. */
static bool closes(toolcall_parser *p, char c)
{
    const char *close = p->syntax->close;
    if (!*close) return false;
    buf_putc(&p->held, c);
    while (p->held.len && !begins(p->held.data, p->held.len, close)) buf_consume(&p->held, 1);
    if (p->held.len < strlen(close)) return false;
    buf_clear(&p->held);
    to_text(p);
    return true;
}

/* The rest of a call's object, behind its arguments: dropped. */
static void rest_byte(toolcall_parser *p, char c)
{
    if (!p->quote && closes(p, c)) return;
    if (!json_byte(p, c)) return;
    buf_clear(&p->held);
    p->at = IN_BETWEEN;
}

/* Commas and white space are dropped, then comes another call, the list's end, or the closing marker; a
 * syntax without one ends where something else comes. */
static void between_byte(toolcall_parser *p, char c)
{
    bool closed = *p->syntax->close != '\0', python = p->syntax->form == CALL_PYTHON;
    bool first = p->held.len == 0;
    if (first && (isspace((unsigned char)c) || c == ',' || c == ';')) return;
    if (first && c == ']' && p->list) {
        p->list = false;
        return;
    }
    bool another = c == '{' || (python && (isalpha((unsigned char)c) || c == '_')) ||
                   (p->syntax->form == CALL_BRACES && c == 'c');
    bool may = closed || p->list || (c == '{' && p->syntax->form == CALL_JSON && !*p->syntax->open);
    if (first && another && may) {
        p->body = 0;
        p->at = IN_HEAD;
        head_byte(p, c);
    } else if (closed) {
        closes(p, c);
    } else {
        to_text(p);
        text_byte(p, c);
    }
}

/* ---- the stream ---------------------------------------------------------------------------------- */

static size_t args_bytes(toolcall_parser *p, const char *s, size_t n)
{
    size_t i = 0;
    bool last = false;
    while (i < n && !last) last = json_byte(p, s[i++]);
    arguments(p, s, i);
    if (!last) return i;
    p->depth = 1; /* of the object that the arguments are part of */
    end_call(p, p->syntax->form == CALL_ARGS ? IN_BETWEEN : IN_REST);
    return i;
}

int toolcall_push(toolcall_parser *p, const char *s, size_t n)
{
    for (size_t i = 0; i < n && !p->held.failed;) {
        switch (p->at) {
        case IN_TEXT: text_byte(p, s[i++]); break;
        case IN_HEAD: head_byte(p, s[i++]); break;
        case IN_ARGS: i += args_bytes(p, s + i, n - i); break;
        case IN_CALL: call_byte(p, s[i++]); break;
        case IN_REST: rest_byte(p, s[i++]); break;
        case IN_BETWEEN: between_byte(p, s[i++]); break;
        }
    }
    return p->held.failed ? SHOAL_ENOMEM : 0;
}

int toolcall_end(toolcall_parser *p)
{
    if (p->at == IN_TEXT || p->at == IN_HEAD || p->at == IN_CALL)
        emit_text(p, p->held.len);
    else if (p->at == IN_ARGS)
        end_call(p, IN_TEXT);
    bool failed = p->held.failed;
    buf_clear(&p->held);
    to_text(p);
    return failed ? SHOAL_ENOMEM : 0;
}
