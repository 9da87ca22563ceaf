/* toolcall.c: a streamed reply -> text and tool calls.
 *
 *     TEXT ──marker──► HEAD ──name known, arguments begin──► ARGS ──► REST ──► BETWEEN ──close──► TEXT
 *                       ├──► TAGS (one argument after the other) ──────────────┤  └─ a call ─► HEAD
 *                       └──► CALL (Python, braces: until the call is whole) ─────┘
 *
 * Input is kept in one buffer from the last place that is decided, and decisions look at bytes one by one, so
 * that the way the input is cut cannot matter. What HEAD or CALL cannot read comes out as text, marker and
 * all. A syntax with a `first` begins in HEAD and never comes back there from TEXT without a marker. */
#include "chat/toolcall.h"

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json/json.h"

enum { MAX_HEAD = 4096, MAX_NAME = 256, MAX_CALL = 64 << 10, MAX_UNSURE = 16 << 10 };

typedef enum { IN_TEXT, IN_HEAD, IN_ARGS, IN_TAGS, IN_CALL, IN_REST, IN_BETWEEN } where;

/* Where a marker stands in the row. */
enum { OPEN, ALSO, ALSO_2, CALL, N_OPENING };

struct toolcall_parser {
    toolcall_sink sink;
    const toolcall_syntax *syntax;
    json_t *tools; /* those on offer; NULL: any name will do */
    bool any;
    where at;
    buf held;      /* TEXT: white space and what may be a marker; HEAD, CALL: all since before the marker;
                      BETWEEN: what may be the closing marker */
    size_t spaces; /* TEXT: so much of `held` is white space */
    size_t body;   /* HEAD, CALL: where the call itself begins, past the marker */
    bool start;    /* HEAD: the reply's beginning, where a marker may yet come */
    bool list;     /* within "[...]" around calls */
    bool called;   /* HEAD: what stands before a name has been read */
    bool framed;   /* the calls are between `open` and `close` */
    bool unsure;   /* the calls that come are whole before sink.may lets them begin */
    bool waits;    /* ARGS, TAGS: such a call is being read: */
    buf raw, json; /* ... its text from the marker on, and its arguments */
    char function[MAX_NAME + 1]; /* of the call that has begun */
    int count;                   /* calls begun */
    int depth;                   /* of brackets: within the arguments, the call or the rest of its object */
    char quote;                  /* within a text of these: what ends it, else 0 */
    bool escaped;
    size_t name, name_end; /* CALL: of `held` */
    enum { TAG_GAP, TAG_KEY, TAG_MARK, TAG_VALUE } tag;
    char key[MAX_NAME + 1];
    int is_text;  /* of the value: toolcall_value */
    json_t *seen; /* the arguments that came */
};

/* ---- life ---------------------------------------------------------------------------------------- */

toolcall_parser *toolcall_new(const toolcall_sink *sink, const toolcall_syntax *syntax, const json_t *tools)
{
    toolcall_parser *p = calloc(1, sizeof *p);
    if (!p) return NULL;
    p->sink = *sink;
    p->syntax = syntax;
    p->tools = json_incref((json_t *)(uintptr_t)tools);
    p->any = !tools;
    p->start = syntax->first && tools;
    p->unsure = p->start && sink->may;
    p->at = p->start ? IN_HEAD : IN_TEXT;
    return p;
}

void toolcall_free(toolcall_parser *p)
{
    if (!p) return;
    json_decref(p->tools);
    json_decref(p->seen);
    buf_done(&p->held);
    buf_done(&p->raw);
    buf_done(&p->json);
    free(p);
}

bool toolcall_is_open(const toolcall_parser *p)
{
    return (p->at == IN_HEAD && !p->start) || p->at == IN_ARGS || p->at == IN_TAGS || p->at == IN_CALL ||
           p->at == IN_REST;
}

int toolcall_count(const toolcall_parser *p)
{
    return p->count;
}

/* Its "function", NULL: it is not on offer. */
static const json_t *find_function(const toolcall_parser *p, const char *name, size_t n)
{
    size_t i;
    json_t *tool;
    json_array_foreach(p->tools, i, tool)
    {
        const json_t *f = json_object_get(tool, "function");
        const char *own = json_string_value(json_object_get(f, "name"));
        if (own && strlen(own) == n && memcmp(own, name, n) == 0) return f;
    }
    return NULL;
}

static bool is_offered(const toolcall_parser *p, const char *name, size_t n)
{
    return n > 0 && (p->any || find_function(p, name, n));
}

static void push_byte(toolcall_parser *p, char c);
static void gap_byte(toolcall_parser *p);

/* ---- text ---------------------------------------------------------------------------------------- */

/* buf_clear forgets that memory was refused, which toolcall_push still has to tell. */
static void drop_held(toolcall_parser *p)
{
    bool failed = p->held.failed;
    buf_clear(&p->held);
    p->held.failed = failed;
}

static void emit_text(toolcall_parser *p, size_t n)
{
    if (n && p->sink.text) p->sink.text(p->sink.user, p->held.data, n);
    buf_consume(&p->held, n);
}

/* True when s[0..n) is the beginning of `marker`, or all of it. */
static bool toolcall_begins(const char *s, size_t n, const char *marker)
{
    return marker && *marker && n <= strlen(marker) && (n == 0 || !memcmp(s, marker, n));
}

/* The markers other than the row's first count where tools are offered: "```json" begins many texts. */
static const char *opening(const toolcall_parser *p, int which)
{
    const toolcall_syntax *s = p->syntax;
    switch (which) {
    case OPEN: return s->open;
    case ALSO:
    case ALSO_2: return p->any ? NULL : s->also[which - ALSO];
    default: return p->any ? NULL : s->call;
    }
}

static bool may_open(const toolcall_parser *p, const char *s, size_t n)
{
    for (int i = 0; i < N_OPENING; i++)
        if (toolcall_begins(s, n, opening(p, i))) return true;
    return false;
}

static bool is_marker(const char *s, size_t n, const char *marker)
{
    return marker && *marker && n == strlen(marker) && !memcmp(s, marker, n);
}

static void toolcall_enter(toolcall_parser *p, int marker)
{
    p->unsure = p->sink.may && marker != OPEN;
    p->called = marker == CALL;
    p->framed = marker == OPEN;
    p->body = p->held.len;
    p->at = IN_HEAD;
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
    for (int i = 0; i < N_OPENING; i++) {
        if (!is_marker(s, n, opening(p, i))) continue;
        toolcall_enter(p, i);
        return;
    }
    if (n == 0 || may_open(p, s, n)) return;
    /* No marker: all comes out but what may begin one now, with the white space before it. */
    size_t keep = n - 1;
    while (keep > 0 && !may_open(p, s + n - keep, keep)) keep--;
    bool only_space = space && keep == 0;
    if (only_space) keep = 1;
    emit_text(p, p->held.len - keep);
    p->spaces = only_space;
}

static void to_text(toolcall_parser *p)
{
    p->at = IN_TEXT;
    p->spaces = 0;
    p->body = 0;
    p->list = p->start = p->unsure = p->called = p->framed = false;
}

/* What has been held is text, in which a marker may stand. */
static void read_again(toolcall_parser *p)
{
    buf text = p->held;
    p->held = (buf){0};
    to_text(p);
    for (size_t i = 0; i < text.len && !p->held.failed; i++) push_byte(p, text.data[i]);
    p->held.failed |= text.failed;
    buf_done(&text);
}

/* What is held turned out to be no call. */
static void toolcall_give_up(toolcall_parser *p)
{
    if (p->start && *p->syntax->open) {
        read_again(p);
        return;
    }
    to_text(p);
    if (!p->held.failed) emit_text(p, p->held.len);
}

static const char *past_space(const char *s)
{
    while (s && isspace((unsigned char)*s)) s++;
    return s;
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
static int toolcall_read_head(const toolcall_syntax *syntax, const char *s, size_t n, size_t at, head *h)
{
    const char *name_key = syntax->name_key ? syntax->name_key : "name";
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
        } else if (is_key(s, key, key_end, "name") || is_key(s, key, key_end, name_key)) {
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

/* The same of {"f": {...}}. */
static int read_keyed(const char *s, size_t n, size_t at, head *h)
{
    at = skip_space(s, n, at + 1);
    if (at == n) return 0;
    if (s[at] != '"') return -1;
    h->name = at;
    h->name_end = string_end(s, n, at);
    if (!h->name_end) {
        h->name = 0;
        return 0;
    }
    at = skip_space(s, n, h->name_end);
    if (at == n) return 0;
    if (s[at++] != ':') return -1;
    at = skip_space(s, n, at);
    if (at == n) return 0;
    h->args = at;
    return s[at] == '{' ? 1 : -1;
}

/* ---- calls --------------------------------------------------------------------------------------- */

/* Is this call only looked at for now? */
static bool is_kept(const toolcall_parser *p)
{
    return p->unsure && (p->syntax->form == CALL_ARGS || p->syntax->form == CALL_TAGS);
}

static void tell_begin(toolcall_parser *p)
{
    if (p->sink.begin) p->sink.begin(p->sink.user, p->count, p->function);
    p->count++;
}

static void toolcall_begin(toolcall_parser *p, const char *name)
{
    snprintf(p->function, sizeof p->function, "%s", name);
    p->start = false;
    p->waits = is_kept(p);
    buf_clear(&p->json);
    if (!p->waits) tell_begin(p);
}

static void arguments(toolcall_parser *p, const char *s, size_t n)
{
    if (p->waits)
        buf_append(&p->json, s, n);
    else if (p->sink.arguments)
        p->sink.arguments(p->sink.user, p->count - 1, s, n);
    p->held.failed |= p->json.failed;
}

static bool may_begin(const toolcall_parser *p, const char *name, const char *json, size_t n)
{
    return !p->unsure || p->sink.may(p->sink.user, name, json, n);
}

/* A call that was only looked at is whole, or cut: it comes out as a call, or (false) as the text that it
 * was. */
static bool toolcall_settle(toolcall_parser *p, bool cut)
{
    bool ok = cut || may_begin(p, p->function, p->json.data ? p->json.data : "", p->json.len);
    p->waits = false;
    if (!ok) {
        if (p->raw.len && p->sink.text) p->sink.text(p->sink.user, p->raw.data, p->raw.len);
        return false;
    }
    tell_begin(p);
    if (p->json.len) arguments(p, p->json.data, p->json.len);
    if (p->sink.end) p->sink.end(p->sink.user, p->count - 1);
    return true;
}

static void end_call(toolcall_parser *p, where next)
{
    bool settles = p->waits, ok = !settles || toolcall_settle(p, false);
    if (!settles && p->sink.end) p->sink.end(p->sink.user, p->count - 1);
    p->at = next;
    if (!ok) to_text(p);
}

/* The name at held[from..to), plain; false when it is not offered or memory is short. */
static bool begin_plain(toolcall_parser *p, size_t from, size_t to)
{
    char name[MAX_NAME + 1];
    size_t n = to - from;
    if (n > MAX_NAME || !is_offered(p, p->held.data + from, n)) return false;
    memcpy(name, p->held.data + from, n);
    name[n] = '\0';
    toolcall_begin(p, name);
    return true;
}

static bool begin_json(toolcall_parser *p, const head *h)
{
    json_t *name = NULL;
    int rc = json_parse(&name, p->held.data + h->name, h->name_end - h->name, "name", NULL);
    p->held.failed |= rc == SHOAL_ENOMEM; /* no call can begin, and this is no text either */
    bool ok =
        rc == 0 && json_is_string(name) && is_offered(p, json_string_value(name), json_string_length(name));
    if (ok) toolcall_begin(p, json_string_value(name));
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
    if (!name && p->syntax->name_key) name = json_string_value(json_object_get(call, p->syntax->name_key));
    if (!given) given = json_object_get(call, "parameters");
    if (rc == 0 && json_is_object(given)) json_put(&args, given);
    p->held.failed |= rc == SHOAL_ENOMEM || args.failed;
    bool ok = args.len > 0 && !args.failed && name && is_offered(p, name, strlen(name)) &&
              may_begin(p, name, args.data, args.len);
    if (ok) {
        toolcall_begin(p, name);
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
    bool keyed = p->syntax->form == CALL_KEYED;
    int rc = p->held.len - at > most ? -1
             : keyed                 ? read_keyed(p->held.data, p->held.len, at, &h)
                                     : toolcall_read_head(p->syntax, p->held.data, p->held.len, at, &h);
    if (rc <= 0) return rc;
    if (p->unsure && !keyed && !is_canonical(p, &h)) return whole_json(p, at);
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

/* How far s is like `pattern`, in which "#" are digits and white space is any or none: 1 all of it, which
 * ends at *ret_at; 0 as far as it goes; -1 not at all. */
static int like(const char *pattern, const char *s, size_t n, size_t *ret_at)
{
    size_t at = *ret_at;
    for (;; pattern++) {
        bool space = isspace((unsigned char)*pattern);
        while (isspace((unsigned char)*pattern)) pattern++;
        if (space) at = skip_space(s, n, at);
        if (!*pattern) break;
        if (at == n) return 0;
        if (*pattern == '#') {
            while (at < n && isdigit((unsigned char)s[at])) at++;
        } else if (s[at++] != *pattern) {
            return -1;
        }
    }
    *ret_at = at;
    return 1;
}

/* What stands before a name, which is then at *ret_at; 1, 0, -1 as above. */
static int before_name(const toolcall_parser *p, size_t *ret_at)
{
    const char *call = p->called ? "" : p->syntax->call;
    int rc = *call ? like(call, p->held.data, p->held.len, ret_at) : 1;
    if (rc == 1 && *ret_at == p->held.len) rc = 0;
    return rc;
}

/* f[ARGS]{...; where the marker is of several parts there may be others between: f[CALL_ID]abc[ARGS]{... */
static int args_head(toolcall_parser *p, size_t at)
{
    int rc = before_name(p, &at);
    const char *s = p->held.data, *middle = p->syntax->middle;
    size_t n = p->held.len, end = name_end(s, n, at), args = end;
    if (rc <= 0) return rc;
    if (end - at > MAX_NAME || n - at > MAX_HEAD || (end == at && end < n)) return -1;
    if (end == n) return 0;
    if (strpbrk(middle, "[<")) {
        if (!strchr("[<: \n", s[end])) return -1;
        if (s[n - 1] != '{') return 0;
        args = n - 1;
    } else {
        rc = like(middle, s, n, &args);
        if (rc <= 0) return rc;
        args = skip_space(s, n, args);
        if (args == n) return 0;
        if (s[args] != '{') return -1;
    }
    if (!begin_plain(p, at, end)) return -1;
    stream_from(p, args);
    return 1;
}

/* <function=f> */
static int tags_head(toolcall_parser *p, size_t at)
{
    int rc = before_name(p, &at);
    const char *s = p->held.data;
    size_t n = p->held.len, end = name_end(s, n, at), after = end;
    if (rc <= 0) return rc;
    if (end - at > MAX_NAME || n - at > MAX_HEAD || (end == at && end < n)) return -1;
    if (end == n) return 0;
    rc = like(p->syntax->middle, s, n, &after);
    if (rc <= 0) return rc;
    if (!*past_space(p->syntax->middle) && s[end] != '<' && !isspace((unsigned char)s[end])) return -1;
    if (!begin_plain(p, at, end)) return -1;
    json_decref(p->seen);
    p->seen = json_object();
    p->held.failed |= !p->seen;
    p->tag = TAG_GAP;
    p->at = IN_TAGS;
    p->body = after; /* what stands there is the first argument's */
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

/* At the reply's beginning the other marker may be there or not, then what the row says: *ret_at past both.
 * 1, 0, -1 as at like(). */
static int past_marker(const toolcall_parser *p, size_t *ret_at)
{
    const char *s = p->held.data, *also = p->syntax->also[0], *first = p->syntax->first;
    size_t n = p->held.len, at = skip_space(s, n, p->body);
    if (p->start && also && toolcall_begins(s + at, n - at < strlen(also) ? n - at : strlen(also), also)) {
        if (n - at < strlen(also)) return 0;
        at = skip_space(s, n, at + strlen(also));
    } else if (p->start && *first) {
        size_t from = at;
        int rc = like(first, s, n, &at);
        if (rc <= 0) return rc;
        if (*first == '[') at = from; /* the list itself */
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
    int rc = n - p->body > (p->unsure ? MAX_UNSURE : MAX_HEAD) + MAX_NAME ? -1 : past_marker(p, &at);
    const char *s = p->held.data;
    bool list = p->list, known = rc == 1;
    toolcall_form form = p->syntax->form;
    if (known && !list && s[at] == '[' && form != CALL_TAGS) {
        list = true;
        at = skip_space(s, n, at + 1);
        known = at < n;
    }
    if (rc == 1) rc = 0;
    if (known && form == CALL_TAGS)
        rc = tags_head(p, at);
    else if (known && s[at] == '{')
        rc = json_head(p, at);
    else if (known && form == CALL_ARGS)
        rc = args_head(p, at);
    else if (known && form != CALL_JSON && form != CALL_KEYED)
        rc = whole_head(p, at);
    else if (known)
        rc = -1;
    if (rc < 0) toolcall_give_up(p);
    if (rc <= 0) return;
    p->list = list;
    if (p->at != IN_CALL && p->at != IN_BETWEEN && p->waits) {
        buf_clear(&p->raw);
        buf_append(&p->raw, s, n);
        p->held.failed |= p->raw.failed;
    }
    if (p->at == IN_TAGS)
        buf_consume(&p->held, p->body);
    else if (p->at != IN_CALL)
        drop_held(p);
    if (p->at == IN_TAGS) gap_byte(p);
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
    size_t mark = strlen(p->syntax->quote);
    bool marker = c == '>' && p->held.len - p->name_end > mark &&
                  !memcmp(p->held.data + p->held.len - mark, p->syntax->quote, mark);
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
        toolcall_give_up(p);
        return;
    }
    if (!whole) return;
    buf json = {0};
    size_t from = p->name_end + 1;
    bool ok = toolcall_arguments(&json, p->syntax, p->held.data + from, p->held.len - 1 - from);
    p->held.failed |= json.failed;
    ok = ok && !json.failed && whole_call_may_begin(p, &json);
    if (ok && begin_plain(p, p->name, p->name_end)) {
        arguments(p, json.data, json.len);
        end_call(p, IN_BETWEEN);
        drop_held(p);
    } else {
        toolcall_give_up(p);
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
    while (p->held.len && !toolcall_begins(p->held.data, p->held.len, close)) buf_consume(&p->held, 1);
    if (p->held.len < strlen(close)) return false;
    drop_held(p);
    to_text(p);
    return true;
}

/* The rest of a call's object, behind its arguments: dropped. */
static void rest_byte(toolcall_parser *p, char c)
{
    if (!p->quote && closes(p, c)) return;
    if (!json_byte(p, c)) return;
    drop_held(p);
    p->at = IN_BETWEEN;
}

/* ---- arguments between tags ---------------------------------------------------------------------- */

static bool ends_in(const buf *b, const char *what)
{
    size_t n = strlen(what);
    return b->len >= n && memcmp(b->data + b->len - n, what, n) == 0;
}

/* The marker behind a value; "%" in it is the key. */
static void value_end_of(const toolcall_parser *p, char *out, size_t cap)
{
    const char *end = p->syntax->tags.value_end, *key = strchr(end, '%');
    if (key)
        snprintf(out, cap, "%.*s%s%s", (int)(key - end), end, p->key, key + 1);
    else
        snprintf(out, cap, "%s", end);
}

/* What ends the call: its own end, or the marker behind all. */
static const char *call_end(const toolcall_parser *p)
{
    return *p->syntax->end ? p->syntax->end : p->syntax->close;
}

static void end_tags(toolcall_parser *p)
{
    arguments(p, json_object_size(p->seen) ? "}" : "{}", json_object_size(p->seen) ? 1 : 2);
    drop_held(p);
    bool closed = !*p->syntax->end;
    end_call(p, IN_BETWEEN);
    if (closed) to_text(p);
}

/* Between arguments: white space, the next one, or the call's end. What is neither is dropped. */
static void gap_byte(toolcall_parser *p)
{
    while (p->held.len > 0) {
        const char *s = p->held.data;
        size_t n = p->held.len;
        if (is_marker(s, n, call_end(p))) {
            end_tags(p);
            return;
        }
        bool more = toolcall_begins(s, n, call_end(p)), key = toolcall_begins(s, n, p->syntax->tags.key);
        if (key && n == strlen(p->syntax->tags.key) && !more) {
            drop_held(p);
            p->tag = TAG_KEY;
            return;
        }
        if (more || key) return;
        /* "<" + a letter, where "</" may follow as well: the key itself begins. */
        if (is_marker(s, n - 1, p->syntax->tags.key)) {
            buf_consume(&p->held, n - 1);
            p->tag = TAG_KEY;
            return;
        }
        buf_consume(&p->held, 1);
    }
}

static void key_byte(toolcall_parser *p)
{
    const char *end = p->syntax->tags.key_end;
    size_t n = p->held.len, len = strlen(end);
    if (!ends_in(&p->held, end)) {
        if (n > MAX_NAME + len) buf_consume(&p->held, 1);
        return;
    }
    memcpy(p->key, p->held.data, n - len);
    p->key[n - len] = '\0';
    drop_held(p);
    p->is_text = -1;
    p->tag = *p->syntax->tags.value ? TAG_MARK : TAG_VALUE;
}

static bool says(const buf *held, const char *what)
{
    size_t n = what ? strlen(what) : 0;
    for (size_t i = 0; n > 0 && held->len >= n && i <= held->len - n; i++)
        if (memcmp(held->data + i, what, n) == 0) return true;
    return false;
}

static void mark_byte(toolcall_parser *p)
{
    const toolcall_tags *t = &p->syntax->tags;
    const char *value = t->value;
    while (isspace((unsigned char)*value)) value++;
    if (p->held.len > MAX_HEAD) buf_consume(&p->held, 1);
    if (!ends_in(&p->held, value)) return;
    if (*t->text_mark) p->is_text = says(&p->held, t->text_mark);
    drop_held(p);
    p->tag = TAG_VALUE;
}

static void put_argument(toolcall_parser *p, const char *s, size_t n)
{
    const json_t *parameters =
        json_object_get(find_function(p, p->function, strlen(p->function)), "parameters");
    buf out = {0};
    if (json_object_get(p->seen, p->key)) return; /* JSON takes a key once */
    buf_puts(&out, json_object_size(p->seen) ? ", " : "{");
    json_put_string(&out, p->key, strlen(p->key));
    buf_puts(&out, ": ");
    toolcall_value(&out, p->syntax, parameters, p->key, p->is_text, s, n);
    p->held.failed |= out.failed || json_object_set_new_nocheck(p->seen, p->key, json_true()) != 0;
    if (!out.failed) arguments(p, out.data, out.len);
    buf_done(&out);
}

static void value_byte(toolcall_parser *p)
{
    static const char CDATA[] = "<![CDATA[", CDATA_END[] = "]]>";
    char end[MAX_NAME + 64];
    const char *wrap = p->syntax->tags.wrap, *s = p->held.data;
    value_end_of(p, end, sizeof end);
    if (!ends_in(&p->held, end)) return;
    size_t n = p->held.len - strlen(end), w = strlen(wrap), open = sizeof CDATA - 1,
           close = sizeof CDATA_END - 1;
    if (n >= open && memcmp(s, CDATA, open) == 0) {
        if (n < open + close || memcmp(s + n - close, CDATA_END, close) != 0) return;
        s += open;
        n -= open + close;
    }
    if (w && n >= w && memcmp(s, wrap, w) == 0) s += w, n -= w;
    if (w && n >= w && memcmp(s + n - w, wrap, w) == 0) n -= w;
    put_argument(p, s, n);
    drop_held(p);
    p->tag = TAG_GAP;
}

static void tags_byte(toolcall_parser *p, char c)
{
    buf_putc(&p->held, c);
    if (p->held.failed) return;
    switch (p->tag) {
    case TAG_GAP: gap_byte(p); break;
    case TAG_KEY: key_byte(p); break;
    case TAG_MARK: mark_byte(p); break;
    case TAG_VALUE: value_byte(p); break;
    }
}

/* ---- behind a call, again ------------------------------------------------------------------------- */

static bool begins_next(const toolcall_parser *p, const char *s, size_t n)
{
    const toolcall_syntax *x = p->syntax;
    return toolcall_begins(s, n, past_space(x->end)) || toolcall_begins(s, n, x->close) ||
           toolcall_begins(s, n, x->call) || toolcall_begins(s, n, x->open);
}

/* What is held begins with none of the markers: text, or nothing where the closing marker is still to come.
 */
static void drop_or_show(toolcall_parser *p)
{
    if (p->framed && *p->syntax->close) {
        while (p->held.len && !begins_next(p, p->held.data, p->held.len)) buf_consume(&p->held, 1);
        return;
    }
    read_again(p);
}

static void marker_between(toolcall_parser *p)
{
    const toolcall_syntax *x = p->syntax;
    const char *s = p->held.data;
    size_t n = p->held.len;
    if (is_marker(s, n, x->close)) {
        drop_held(p);
        to_text(p);
    } else if (is_marker(s, n, past_space(x->end))) {
        drop_held(p);
    } else if (is_marker(s, n, x->call) || is_marker(s, n, x->open)) {
        bool called = is_marker(s, n, x->call), framed = p->framed || !called, unsure = p->unsure;
        p->list = false;
        toolcall_enter(p, called ? CALL : OPEN);
        p->framed = framed;
        p->unsure = called && unsure;
    } else if (!begins_next(p, s, n)) {
        drop_or_show(p);
    }
}

/* Commas and white space are dropped, then comes another call, the list's end, or a marker; a syntax without
 * a closing one ends where something else comes. */
static void between_byte(toolcall_parser *p, char c)
{
    toolcall_form form = p->syntax->form;
    bool closed = *p->syntax->close != '\0', python = form == CALL_PYTHON,
         json = form == CALL_JSON || form == CALL_KEYED;
    bool first = p->held.len == 0;
    if (first && (isspace((unsigned char)c) || c == ',' || c == ';')) return;
    if (first && c == ']' && p->list) {
        p->list = false;
        return;
    }
    bool another = (json && c == '{') || (python && (c == '{' || isalpha((unsigned char)c) || c == '_')) ||
                   (form == CALL_BRACES && c == 'c');
    bool may = closed || p->list || (c == '{' && json && !*p->syntax->open);
    if (first && another && may) {
        p->body = 0;
        p->called = false;
        p->at = IN_HEAD;
        head_byte(p, c);
        return;
    }
    buf_putc(&p->held, c);
    if (!p->held.failed) marker_between(p);
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

static void push_byte(toolcall_parser *p, char c)
{
    switch (p->at) {
    case IN_TEXT: text_byte(p, c); break;
    case IN_HEAD: head_byte(p, c); break;
    case IN_TAGS: tags_byte(p, c); break;
    case IN_CALL: call_byte(p, c); break;
    case IN_REST: rest_byte(p, c); break;
    case IN_BETWEEN: between_byte(p, c); break;
    case IN_ARGS: break;
    }
}

/* While a call is only looked at, its text is kept: it may come out in the end. One that is too long does. */
static void keep_raw(toolcall_parser *p, const char *s, size_t n)
{
    if (!p->waits) return;
    buf_append(&p->raw, s, n);
    p->held.failed |= p->raw.failed;
    if (p->held.failed || p->raw.len <= MAX_CALL) return;
    p->waits = false;
    if (p->sink.text) p->sink.text(p->sink.user, p->raw.data, p->raw.len);
    drop_held(p);
    to_text(p);
}

int toolcall_push(toolcall_parser *p, const char *s, size_t n)
{
    for (size_t i = 0; i < n && !p->held.failed;) {
        size_t from = i;
        bool kept = p->waits;
        if (kept) keep_raw(p, s + from, 1);
        if (kept && !p->waits) {
            i++;
        } else if (p->at == IN_ARGS) {
            i += args_bytes(p, s + i, kept ? 1 : n - i);
        } else {
            push_byte(p, s[i++]);
        }
    }
    return p->held.failed ? SHOAL_ENOMEM : 0;
}

/* ---- the end -------------------------------------------------------------------------------------- */

/* The reply is cut before a call's arguments: was its name there? */
static bool begin_named(toolcall_parser *p)
{
    const char *s = p->held.data;
    size_t n = p->held.len, at = 0;
    toolcall_form form = p->syntax->form;
    if (p->held.failed || past_marker(p, &at) != 1) return false;
    if (s[at] == '[' && !p->list) at = skip_space(s, n, at + 1);
    if (at < n && s[at] == '{' && form != CALL_TAGS) {
        head h = {0};
        int rc = form == CALL_KEYED ? read_keyed(s, n, at, &h) : toolcall_read_head(p->syntax, s, n, at, &h);
        return rc == 0 && h.name && begin_json(p, &h);
    }
    if ((form != CALL_ARGS && form != CALL_TAGS) || before_name(p, &at) != 1) return false;
    size_t end = name_end(s, n, at);
    return end < n && begin_plain(p, at, end);
}

/* Cut in HEAD. A reply that might as well be text stays text. */
static void cut_head(toolcall_parser *p)
{
    bool text = p->start && p->unsure;
    if (begin_named(p)) {
        if (p->waits)
            toolcall_settle(p, true);
        else
            end_call(p, IN_TEXT);
    } else if (text) {
        emit_text(p, p->held.len);
    }
}

/* Cut in CALL: the arguments so far. */
static void cut_call(toolcall_parser *p)
{
    buf json = {0};
    size_t from = p->name_end + 1;
    if (begin_plain(p, p->name, p->name_end)) {
        toolcall_arguments_part(&json, p->syntax, p->held.data + from, p->held.len - from);
        p->held.failed |= json.failed;
        if (json.len && !json.failed) arguments(p, json.data, json.len);
        end_call(p, IN_TEXT);
    }
    buf_done(&json);
}

/* In TAGS the arguments that are whole have come; the object is left open where the reply was cut. */
static void leave_tags(toolcall_parser *p, bool cut)
{
    if (!cut)
        end_tags(p);
    else if (p->waits)
        toolcall_settle(p, true);
    else
        end_call(p, IN_TEXT);
}

int toolcall_end(toolcall_parser *p, bool cut)
{
    if (p->at == IN_TEXT)
        emit_text(p, cut && p->held.len > p->spaces ? 0 : p->held.len);
    else if (p->at == IN_HEAD && cut)
        cut_head(p);
    else if (p->at == IN_CALL && cut)
        cut_call(p);
    else if (p->at == IN_HEAD || p->at == IN_CALL)
        emit_text(p, p->held.len);
    else if (p->at == IN_ARGS && p->waits)
        toolcall_settle(p, cut);
    else if (p->at == IN_ARGS)
        end_call(p, IN_TEXT);
    else if (p->at == IN_TAGS)
        leave_tags(p, cut);
    bool failed = p->held.failed;
    drop_held(p);
    to_text(p);
    return failed ? SHOAL_ENOMEM : 0;
}
