/* grammar_tools.c: replies that call offered tools, and replies that are one of some texts.
 *
 *     auto:      text ─┬─► end                     required, named:
 *                      └─► call ─┬─► end               call ─┬─► end
 *                           ▲─\n─┘ (parallel)            ▲─\n─┘ (parallel, not named)
 *
 * A call is "<tool_call>\n{\"name\": \"" + a name + "\", \"arguments\": " + its schema + "}\n</tool_call>".
 * All names hang on one tree of literals, so that a hundred tools are one thread until they differ. */
#include "infer/grammar_tools.h"

#include <string.h>

#include "base/json.h"
#include "infer/grammar_schema.h"

#define CALL_HEAD "\n{\"name\": \""

static const char *function_name(const json_t *tool)
{
    return json_string_value(json_object_get(json_object_get(tool, "function"), "name"));
}

/* The rest of a call, from behind the name's last byte to `end`. */
static int one_tool(nfa *a, const json_t *tool, size_t i, int at, int end, shoal_err *err)
{
    char what[64];
    snprintf(what, sizeof what, "tools/%zu/function/parameters", i);
    const json_t *parameters = json_object_get(json_object_get(tool, "function"), "parameters");
    if (json_is_null(parameters) || (json_is_object(parameters) && json_object_size(parameters) == 0))
        parameters = NULL;
    int rule = NFA_DEAD;
    int rc = schema_compile_json(a, parameters, what, SCHEMA_OBJECT, &rule, err);
    if (rc) return rc;
    at = nfa_call(a, nfa_bytes(a, at, "\", \"arguments\": ", 16), rule);
    nfa_epsilon(a, at, end);
    return 0;
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
        json_put_string(&text, name, strlen(name));
        int rc = text.failed ? err_nomem(err) : 0;
        /* Without the quotes: the first is before all names, the last one tells a name from a longer one. */
        if (rc == 0) {
            int at = nfa_literal(a, names, text.data + 1, text.len - 2);
            rc = one_tool(a, tool, i, at, end, err);
        }
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

/* From `from`, where the reply begins, text that does not hold the marker; each state is how much of the
 * marker was just read. Where all of it is read is `call`. No byte but its first begins the marker anew. */
static void free_text(nfa *a, int from, int call)
{
    const size_t n = strlen(TOOL_OPEN);
    int states[sizeof TOOL_OPEN];
    for (size_t k = 0; k < n; k++) states[k] = k == 0 ? from : nfa_state(a);
    states[n] = call;
    const uint8_t first = TOOL_OPEN[0];
    for (size_t k = 0; k < n; k++) {
        uint8_t next = (uint8_t)TOOL_OPEN[k], lo = next < first ? next : first,
                hi = next < first ? first : next;
        nfa_return(a, states[k]);
        nfa_mark(a, states[k], MARK_OPEN);
        nfa_range_to(a, states[k], next, next, states[k + 1]);
        if (next != first) nfa_range_to(a, states[k], first, first, states[1]);
        nfa_range_to(a, states[k], 0, (uint8_t)(lo - 1), states[0]);
        if (hi > lo + 1) nfa_range_to(a, states[k], (uint8_t)(lo + 1), (uint8_t)(hi - 1), states[0]);
        nfa_range_to(a, states[k], (uint8_t)(hi + 1), 0xFF, states[0]);
    }
}

static int build(nfa *a, const grammar_spec *spec, const json_t *tools, int *ret_start, shoal_err *err)
{
    int start = nfa_state(a), opened = nfa_state(a), names = nfa_state(a), called = nfa_state(a);
    int open = start;
    if (spec->mode == TOOLS_AUTO) {
        free_text(a, start, opened);
        open = nfa_state(a); /* of the calls after the first */
    }
    nfa_mark(a, open, MARK_OPEN);
    nfa_epsilon(a, nfa_bytes(a, open, TOOL_OPEN, strlen(TOOL_OPEN)), opened);
    nfa_epsilon(a, nfa_bytes(a, opened, CALL_HEAD, strlen(CALL_HEAD)), names);
    int rc = all_tools(a, spec, tools, names, called, err);
    if (rc) return rc;
    int close = nfa_bytes(a, called, "}\n", 2);
    nfa_mark(a, close, MARK_CLOSE);
    int end = nfa_bytes(a, close, TOOL_CLOSE, strlen(TOOL_CLOSE));
    nfa_return(a, end);
    if (spec->parallel && spec->mode != TOOLS_NAMED) nfa_range_to(a, end, '\n', '\n', open);
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
