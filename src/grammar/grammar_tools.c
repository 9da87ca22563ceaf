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
 * What open, head and so on are is the row of the model's syntax (text/toolcall.h), and so is a CALL:
 * {"name": "f", "arguments": ...}, f[ARGS]..., f(a=1) or call:f{a:1}. All names hang on one tree of literals,
 * so that a hundred tools are one thread until they differ. */
#include "grammar/grammar_tools.h"

#include <string.h>

#include "base/json.h"
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
    if (syntax->form == CALL_PYTHON || syntax->form == CALL_BRACES)
        return args_compile(a, syntax, parameters, what, at, end, err);
    bool open = json_is_false(json_object_get(json_object_get(tool, "function"), "strict"));
    int rule = NFA_DEAD;
    int rc = schema_compile_json(a, parameters, what, SCHEMA_OBJECT | (open ? SCHEMA_OPEN : 0), &rule, err);
    if (rc) return rc;
    if (syntax->form == CALL_JSON) {
        at = literal(a, literal(a, literal(a, at, "\", \""), syntax->arguments), "\": ");
        nfa_range_to(a, nfa_call(a, at, rule), '}', '}', end);
    } else {
        nfa_mark(a, at, MARK_MIDDLE);
        nfa_call_to(a, literal(a, at, syntax->middle), rule, end);
    }
    return 0;
}

/* The name as the syntax writes it: within quotes, or bare, which not every name can be. */
static int put_name(buf *out, const toolcall_syntax *syntax, const char *name, size_t i, shoal_err *err)
{
    static const char WORD[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
    if (syntax->form != CALL_JSON && name[strspn(name, WORD)] != '\0')
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
        int rc = put_name(&text, syntax_of(spec), name, i, err);
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
static const char *name_head(const toolcall_syntax *syntax)
{
    return syntax->form == CALL_JSON ? "{\"name\": \"" : syntax->form == CALL_BRACES ? "call:" : "";
}

/* In auto mode the reply may begin with anything. Without a marker only JSON can be told from text soon
 * enough: lists in brackets begin many texts, and are left to the parser of calls. */
static void begin_auto(nfa *a, const toolcall_syntax *syntax, int start, int opened, int names)
{
    if (*syntax->open)
        text_until(a, start, syntax->open, MARK_OPEN, true, opened);
    else if (syntax->form == CALL_JSON)
        text_or_call(a, start, name_head(syntax), names);
    else {
        nfa_range_to(a, start, 0, 0xFF, start);
        nfa_return(a, start);
    }
}

static int build(nfa *a, const grammar_spec *spec, const json_t *tools, int *ret_start, shoal_err *err)
{
    const toolcall_syntax *s = syntax_of(spec);
    int start = nfa_state(a), opened = nfa_state(a), call = nfa_state(a), names = nfa_state(a),
        called = nfa_state(a), open = start;
    if (spec->mode == TOOLS_AUTO) {
        begin_auto(a, s, start, opened, names);
        open = nfa_state(a); /* of the calls after the first */
    }
    nfa_mark(a, open, MARK_OPEN);
    nfa_epsilon(a, literal(a, open, s->open), opened);
    nfa_epsilon(a, literal(a, opened, s->head), call);
    nfa_epsilon(a, literal(a, call, name_head(s)), names);
    int rc = all_tools(a, spec, tools, names, called, err);
    if (rc) return rc;
    int close = literal(a, called, s->tail);
    nfa_mark(a, close, MARK_CLOSE);
    int end = nfa_state(a);
    nfa_epsilon(a, literal(a, close, s->close), end);
    nfa_return(a, end);
    bool more = spec->parallel && spec->mode != TOOLS_NAMED;
    if (more && s->list) nfa_epsilon(a, literal(a, called, s->between), call);
    if (more && !s->list) nfa_epsilon(a, literal(a, end, s->between), open);
    *ret_start = start;
    return 0;
}

int tools_compile(nfa *a, const grammar_spec *spec, int *ret_start, shoal_err *err)
{
    if (!spec->tools_json) return err_set(err, SHOAL_EINVALID, "tools are wanted and none were given");
    json_t *tools = NULL;
    int rc = schema_parse(&tools, spec->tools_json, "tools", err);
    if (rc == 0 && !json_is_array(tools)) rc = err_set(err, SHOAL_EINVALID, "\"tools\" must be an array");
    if (rc == 0) rc = build(a, spec, tools, ret_start, err);
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

int thought_compile(nfa *a, const grammar_spec *spec, int start)
{
    if (!spec->thinking) return start;
    int begin = nfa_state(a), inside = nfa_state(a), gap = nfa_state(a);
    text_until(a, inside, spec->thinking->close, MARK_THOUGHT, false, gap);
    for (int i = 0; i < GAP_MAX; i++) {
        int next = nfa_state(a);
        nfa_epsilon(a, gap, start);
        nfa_range_to(a, gap, '\t', '\n', next);
        nfa_range_to(a, gap, ' ', ' ', next);
        gap = next;
    }
    nfa_epsilon(a, gap, start);
    if (spec->in_thought) return inside;
    nfa_epsilon(a, begin, start);
    nfa_mark(a, begin, MARK_THINK);
    nfa_epsilon(a, literal(a, begin, spec->thinking->open), inside);
    return begin;
}

const char *tools_marker(const grammar_spec *spec, uint8_t mark)
{
    const toolcall_syntax *s = syntax_of(spec);
    switch (mark) {
    case MARK_OPEN: return s->open;
    case MARK_CLOSE: return s->close;
    case MARK_MIDDLE: return s->middle;
    case MARK_THINK: return spec->thinking ? spec->thinking->open : NULL;
    case MARK_THOUGHT: return spec->thinking ? spec->thinking->close : NULL;
    default: return NULL;
    }
}
