/* grammar_tools.c: replies that call offered tools, and replies that are one of some texts.
 *
 *     auto:      text ─┬─► end                     required, named:
 *                      └─► calls ──► end               calls ──► end
 *
 *     calls, with markers around each:  open head CALL tail close ─┬─► end
 *                                         ▲───────between──────────┘ (parallel)
 *     with markers around all:          open head CALL ─┬─► tail close ──► end
 *                                                ▲─between─┘ (parallel)
 *
 * What open, head and so on are is the row of the model's syntax (chat/toolcall.h), and so is a CALL:
 * {"name": "f", "arguments": ...}, f[ARGS]..., f(a=1), call:f{a:1} or <function=f>.... All names hang on one
 * tree of literals, so that a hundred tools are one thread until they differ. */
#include "grammar/grammar_tools.h"

#include <string.h>

#include "json/json.h"
#include "grammar/grammar_schema.h"

static const char *function_name(const json_t *tool)
{
    return json_string_value(json_object_get(json_object_get(tool, "function"), "name"));
}

static const toolcall_syntax *syntax_of(const grammar_spec *spec)
{
    return spec->syntax ? spec->syntax : toolcall_find("hermes");
}

static int literal(nfa *a, int from, const char *s)
{
    return nfa_bytes(a, from, s, strlen(s));
}

/* The rest of a call, from behind the name's last byte to `end`. */
static int one_tool(nfa *a, const toolcall_syntax *syntax, const json_t *tool, size_t i, int at, int end,
                    shoal_err *err)
{
    char what[64];
    snprintf(what, sizeof what, "tools/%zu/function/parameters", i);
    const json_t *parameters = json_object_get(json_object_get(tool, "function"), "parameters");
    if (json_is_null(parameters) || (json_is_object(parameters) && json_object_size(parameters) == 0))
        parameters = NULL;
    if (syntax->form == CALL_PYTHON || syntax->form == CALL_BRACES || syntax->form == CALL_TAGS)
        return args_compile(a, syntax, parameters, what, at, end, err);
    bool open = json_is_false(json_object_get(json_object_get(tool, "function"), "strict"));
    int rule = NFA_DEAD;
    int rc = schema_compile_json(a, parameters, what, SCHEMA_OBJECT | (open ? SCHEMA_OPEN : 0), &rule, err);
    if (rc) return rc;
    if (syntax->form == CALL_ARGS) {
        at = nfa_call(a, written(a, at, syntax->middle), rule);
        nfa_epsilon(a, written(a, at, syntax->end), end);
        return 0;
    }
    at = literal(a, at, syntax->form == CALL_JSON ? "\", \"" : "\": ");
    if (syntax->form == CALL_JSON) at = literal(a, literal(a, at, syntax->arguments), "\": ");
    nfa_range_to(a, nfa_call(a, at, rule), '}', '}', end);
    return 0;
}

/* The name as the syntax writes it: within quotes, or bare, which not every name can be. */
static int grammar_tools_put_name(buf *out, const toolcall_syntax *syntax, const char *name, size_t i,
                                  shoal_err *err)
{
    static const char WORD[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
    bool quotes = syntax->form == CALL_JSON || syntax->form == CALL_KEYED;
    if (!quotes && name[strspn(name, WORD)] != '\0')
        return err_set(
            err, SHOAL_EUNSUPPORTED,
            "tools/%zu: this model's syntax of calls has no way to write the name \"%s\": use letters, "
            "digits, \"_\", \".\" and \"-\"",
            i, name);
    buf quoted = {0};
    json_put_string(&quoted, name, strlen(name));
    /* Without the quotes: the first is before all names, the last one tells a name from a longer one. */
    if (!quoted.failed) buf_append(out, quoted.data + 1, quoted.len - 2);
    out->failed |= quoted.failed;
    buf_done(&quoted);
    return out->failed ? err_nomem(err) : 0;
}

/* Every offered tool that the mode allows; SHOAL_EINVALID when there is none. */
static int all_tools(nfa *a, const grammar_spec *spec, const json_t *tools, int names, int end,
                     shoal_err *err)
{
    size_t n_taken = 0;
    for (size_t i = 0; i < json_array_size(tools); i++) {
        const json_t *tool = json_array_get(tools, i);
        const char *name = function_name(tool);
        if (!name || !*name) return err_set(err, SHOAL_EINVALID, "tools/%zu: a function needs a \"name\"", i);
        if (spec->mode == TOOLS_NAMED && (!spec->tool_name || strcmp(name, spec->tool_name) != 0)) continue;
        buf text = {0};
        int rc = grammar_tools_put_name(&text, syntax_of(spec), name, i, err);
        if (rc == 0)
            rc = one_tool(a, syntax_of(spec), tool, i, nfa_literal(a, names, text.data, text.len), end, err);
        buf_done(&text);
        if (rc) return rc;
        n_taken++;
    }
    if (n_taken > 0) return 0;
    if (spec->mode == TOOLS_NAMED)
        return err_set(err, SHOAL_EINVALID, "the function \"%s\" is not among the tools",
                       spec->tool_name ? spec->tool_name : "");
    return err_set(err, SHOAL_EINVALID, "\"tools\" offers no function");
}

/* Text, or a call that the reply begins with: what begins like one has to be one. */
static void text_or_call(nfa *a, int from, const char *call_head, int names)
{
    int text = nfa_state(a);
    nfa_range_to(a, text, 0, 0xFF, text);
    nfa_return(a, text);
    for (; *call_head; call_head++) {
        uint8_t c = (uint8_t)*call_head;
        int next = call_head[1] ? nfa_state(a) : names;
        nfa_return(a, from);
        nfa_range_to(a, from, c, c, next);
        nfa_range_to(a, from, 0, (uint8_t)(c - 1), text);
        nfa_range_to(a, from, (uint8_t)(c + 1), 0xFF, text);
        from = next;
    }
}

/* What stands before a name. */
static void put_name_head(buf *out, const toolcall_syntax *s)
{
    switch (s->form) {
    case CALL_JSON:
        buf_printf(out, "{%s\"%s\": \"", s->id ? s->id : "", s->name_key ? s->name_key : "name");
        break;
    case CALL_KEYED: buf_puts(out, "{\""); break;
    case CALL_BRACES: buf_puts(out, "call:"); break;
    case CALL_PYTHON: break;
    default: buf_puts(out, s->call); break;
    }
    buf_putc(out, '\0');
}

/* In auto mode the reply may begin with anything. Without a marker only JSON can be told from text soon
 * enough: lists in brackets begin many texts, and are left to the parser of calls. */
static void begin_auto(nfa *a, const toolcall_syntax *syntax, int start, int opened, const char *name_head,
                       int names)
{
    if (*syntax->open)
        text_until(a, start, &(until){syntax->open, opened}, 1, MARK_OPEN, true);
    else if (syntax->form == CALL_JSON)
        text_or_call(a, start, name_head, names);
    else {
        nfa_mark(a, start, MARK_OPEN);
        nfa_range_to(a, start, 0, 0xFF, start);
        nfa_return(a, start);
    }
}

typedef struct calls {
    int opened, names; /* behind the opening marker, and before a name */
    const char *name_head;
} calls;

static int build(nfa *a, const grammar_spec *spec, const json_t *tools, calls *c, int *ret_start,
                 shoal_err *err)
{
    const toolcall_syntax *s = syntax_of(spec);
    int start = nfa_state(a), opened = nfa_state(a), call = nfa_state(a), names = nfa_state(a),
        called = nfa_state(a), open = start;
    c->opened = opened;
    c->names = names;
    if (spec->mode == TOOLS_AUTO) {
        begin_auto(a, s, start, opened, c->name_head, names);
        open = nfa_state(a); /* of the calls after the first */
    }
    nfa_epsilon(a, written(a, open, s->open), opened);
    nfa_epsilon(a, written(a, opened, s->head), call);
    nfa_epsilon(a, written(a, call, c->name_head), names);
    int rc = all_tools(a, spec, tools, names, called, err);
    if (rc) return rc;
    int close = written(a, called, s->tail), end = nfa_state(a);
    nfa_epsilon(a, written(a, close, s->close), end);
    nfa_return(a, end);
    bool more = spec->parallel && spec->mode != TOOLS_NAMED && s->between;
    if (more && s->list) nfa_epsilon(a, written(a, called, s->between), call);
    if (more && !s->list) nfa_epsilon(a, written(a, end, s->between), open);
    *ret_start = start;
    return 0;
}

static int compile_tools(nfa *a, const grammar_spec *spec, calls *c, int *ret_start, shoal_err *err)
{
    if (!spec->tools_json) return err_set(err, SHOAL_EINVALID, "tools are wanted and none were given");
    json_t *tools = NULL;
    int rc = schema_parse(&tools, spec->tools_json, "tools", err);
    if (rc == 0 && !json_is_array(tools)) rc = err_set(err, SHOAL_EINVALID, "\"tools\" must be an array");
    if (rc == 0) rc = build(a, spec, tools, c, ret_start, err);
    json_decref(tools);
    return rc;
}

int choices_compile(nfa *a, const grammar_spec *spec, int *ret_start, shoal_err *err)
{
    int start = nfa_state(a);
    if (spec->n_choices == 0) return err_set(err, SHOAL_EINVALID, "there is nothing to choose from");
    for (size_t i = 0; i < spec->n_choices; i++) {
        const char *text = spec->choices[i];
        if (!*text) return err_set(err, SHOAL_EINVALID, "choice %zu is empty", i);
        nfa_return(a, nfa_literal(a, start, text, strlen(text)));
    }
    *ret_start = start;
    return 0;
}

/* White space behind a thought: the thought's markers and it belong together. */
enum { GAP_MAX = 4 };

/* Behind a thought: white space, what the model writes between it and what follows, `to`. */
static void after_thought(nfa *a, const thinking_form *f, int gap, int to)
{
    for (int i = 0; i < GAP_MAX; i++) {
        int next = nfa_state(a);
        nfa_epsilon(a, gap, to);
        if (f->between) nfa_epsilon(a, written(a, gap, f->between), to);
        nfa_range_to(a, gap, '\t', '\n', next);
        nfa_range_to(a, gap, ' ', ' ', next);
        gap = next;
    }
    nfa_epsilon(a, gap, to);
}

/* From behind a marker of calls that ends a thought to the name: what the marker has not said. */
static int rest_of_call(nfa *a, const grammar_spec *spec, const calls *c, const char *marker)
{
    const toolcall_syntax *s = syntax_of(spec);
    size_t n = strlen(marker), open = strlen(s->open);
    int from = nfa_state(a);
    if (n == open && strcmp(marker, s->open) == 0) {
        nfa_epsilon(a, from, c->opened);
    } else if (strncmp(c->name_head, marker, n) == 0) {
        nfa_epsilon(a, written(a, from, c->name_head + n), c->names);
    } else { /* open, head and the name's head in one */
        buf all = {0};
        buf_printf(&all, "%s%s%s", s->open, s->head, c->name_head);
        if (!all.failed && all.len >= n && memcmp(all.data, marker, n) == 0)
            nfa_epsilon(a, written(a, from, all.data + n), c->names);
        buf_done(&all);
    }
    return from;
}

/* A thought before what begins at `start`; c (NULL: none) are calls that may begin within it. */
static int think(nfa *a, const grammar_spec *spec, const calls *c, int start)
{
    const thinking_form *f = spec->thinking;
    if (!f || !f->open) return start;
    int begin = nfa_state(a), inside = nfa_state(a), gap = nfa_state(a);
    until ends[UNTIL_MAX] = {{f->close, gap}};
    size_t n = 1;
    const char *const *marker = syntax_of(spec)->ends;
    for (; c && n < UNTIL_MAX && *marker; marker++) {
        int rest = rest_of_call(a, spec, c, *marker);
        ends[n++] = (until){*marker, rest};
    }
    text_until(a, inside, ends, n, MARK_THOUGHT, false);
    after_thought(a, f, gap, start);
    if (spec->in_thought) return inside;
    nfa_epsilon(a, begin, start);
    nfa_mark(a, begin, MARK_THINK);
    nfa_epsilon(a, written(a, begin, f->open), inside);
    return begin;
}

int tools_compile(nfa *a, const grammar_spec *spec, int *ret_start, shoal_err *err)
{
    calls c = {0};
    buf head = {0};
    int start = NFA_DEAD;
    put_name_head(&head, syntax_of(spec));
    if (head.failed) return err_nomem(err);
    c.name_head = head.data;
    int rc = compile_tools(a, spec, &c, &start, err);
    if (rc == 0) *ret_start = think(a, spec, &c, start);
    buf_done(&head);
    return rc;
}

/* What the model writes before an answer may stand there, or not. */
int thought_compile(nfa *a, const grammar_spec *spec, int start)
{
    const thinking_form *f = spec->thinking;
    if (f && f->answer) {
        int framed = nfa_state(a);
        nfa_epsilon(a, framed, start);
        nfa_epsilon(a, written(a, framed, f->answer), start);
        start = framed;
    }
    return think(a, spec, NULL, start);
}

static bool is_part(const char *of, const char *s, size_t n)
{
    size_t len = of ? strlen(of) : 0;
    for (size_t i = 0; len >= n && i <= len - n; i++)
        if (memcmp(of + i, s, n) == 0) return true;
    return false;
}

uint8_t tools_marks(const grammar_spec *spec, const char *s, size_t n)
{
    const toolcall_syntax *x = syntax_of(spec);
    const thinking_form *f = spec->thinking;
    bool thought = thinking_shows(f, s, n);
    uint8_t marks = 0;
    if (toolcall_shows(x, s, n) || thought) marks |= MARK_WITHIN;
    if (is_part(x->open, s, n) || (thought && f->frames[0])) marks |= MARK_OPEN;
    if (is_part(x->quote, s, n) || is_part(x->tags.value_end, s, n)) marks |= MARK_VALUE;
    if (f && is_part(f->open, s, n)) marks |= MARK_THINK;
    if (f && is_part(f->close, s, n)) marks |= MARK_THOUGHT;
    for (const char *const *e = x->ends; *e && spec->kind == GRAMMAR_TOOLS; e++)
        if (is_part(*e, s, n)) marks |= MARK_THOUGHT;
    return marks;
}
