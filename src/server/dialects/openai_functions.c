/* openai_functions.c: OpenAI's older form of tools ("functions", "function_call", messages of role
 * "function"), rewritten in the body as the newer one, so that all else reads one form. */
#include <stdio.h>
#include <string.h>

#include "messages/fields.h"
#include "dialects/openai_chat.h"

#define FUNCTIONS_MAX 128

/* ---- fields ---------------------------------------------------------------------------------------- */

static int check_function(const json_t *f, size_t i, api_error *e)
{
    const json_t *p = fields_get(f, "parameters");
    const char *name = fields_text(json_object_get(f, "name"));
    if (!name || !*name || strlen(name) > 64)
        return api_error_bad(e, "functions", "functions[%zu].name must be a string of 1 to 64 bytes", i);
    if (p && !json_is_object(p))
        return api_error_bad(e, "functions", "functions[%zu].parameters must be a JSON schema", i);
    return 0;
}

static int map_functions(json_t *root, const json_t *functions, api_error *e)
{
    if (!json_is_array(functions) || json_array_size(functions) > FUNCTIONS_MAX)
        return api_error_bad(e, "functions", "\"functions\" must be an array of at most %d functions",
                             FUNCTIONS_MAX);
    json_t *tools = json_array();
    int rc = fields_put(root, "tools", tools, e);
    for (size_t i = 0; rc == 0 && i < json_array_size(functions); i++) {
        json_t *f = json_array_get(functions, i);
        rc = check_function(f, i, e);
        if (rc == 0) rc = fields_append(tools, json_pack("{s:s, s:O}", "type", "function", "function", f), e);
    }
    return rc;
}

static int map_choice(json_t *root, const json_t *choice, api_error *e)
{
    const char *word = fields_text(choice), *name = fields_text(json_object_get(choice, "name"));
    if (word && (strcmp(word, "auto") == 0 || strcmp(word, "none") == 0))
        return fields_put(root, "tool_choice", json_incref((json_t *)choice), e);
    if (name)
        return fields_put(root, "tool_choice",
                          json_pack("{s:s, s:{s:s}}", "type", "function", "function", "name", name), e);
    return api_error_bad(e, "function_call", "\"function_call\" must be none, auto or {\"name\"}");
}

static int map_fields(gen_spec *s, api_error *e)
{
    const json_t *functions = fields_get(s->root, "functions"),
                 *choice = fields_get(s->root, "function_call");
    if (!functions && !choice) return 0;
    if (fields_get(s->root, "tools") || fields_get(s->root, "tool_choice"))
        return api_error_bad(e, functions ? "functions" : "function_call",
                             "\"functions\" and \"function_call\" are the older form of \"tools\" and "
                             "\"tool_choice\": send one of the forms");
    if (!functions && json_is_object(choice))
        return api_error_bad(e, "function_call", "\"function_call\" needs \"functions\"");
    s->functions = true;
    int rc = functions ? map_functions(s->root, functions, e) : 0;
    if (rc == 0 && choice) rc = map_choice(s->root, choice, e);
    return rc == 0 ? fields_put(s->root, "parallel_tool_calls", json_false(), e) : rc;
}

/* ---- messages -------------------------------------------------------------------------------------- */

/* The older form has no ids: that of a call follows from its message's number. Nine letters and digits, as
 * some templates demand. */
static void name_call(char ret[32], size_t i)
{
    snprintf(ret, 32, "call%05zu", i);
}

static int map_call(json_t *m, const json_t *call, size_t i, api_error *e)
{
    char id[32], param[48];
    snprintf(param, sizeof param, "messages[%zu].function_call", i);
    if (fields_get(m, "tool_calls"))
        return api_error_bad(e, param, "%s: the message has \"tool_calls\", too: send one of them", param);
    if (!fields_text(json_object_get(call, "name")))
        return api_error_bad(e, param, "%s needs name and arguments as strings", param);
    name_call(id, i);
    return fields_put(m, "tool_calls",
                      json_pack("[{s:s, s:s, s:O}]", "id", id, "type", "function", "function", call), e);
}

/* `called` is the number of the message that holds the latest call; i itself: none does. */
static int map_result(json_t *m, size_t i, size_t called, api_error *e)
{
    char id[32];
    name_call(id, called);
    int rc = fields_put(m, "role", json_string("tool"), e);
    if (rc == 0 && called != i && !fields_get(m, "tool_call_id"))
        rc = fields_put(m, "tool_call_id", json_string(id), e);
    return rc;
}

static int map_messages(json_t *messages, api_error *e)
{
    size_t called = SIZE_MAX, i;
    json_t *m;
    int rc = 0;
    json_array_foreach(messages, i, m)
    {
        const char *role = fields_text(json_object_get(m, "role"));
        const json_t *call = role ? fields_get(m, "function_call") : NULL;
        if (call && strcmp(role, "assistant") == 0) {
            rc = map_call(m, call, i, e);
            called = i;
        } else if (role && strcmp(role, "function") == 0) {
            rc = map_result(m, i, called == SIZE_MAX ? i : called, e);
        }
        if (rc != 0) return rc;
    }
    return 0;
}

int openai_map_functions(gen_spec *s, api_error *e)
{
    int rc = map_fields(s, e);
    return rc == 0 ? map_messages(json_object_get(s->root, "messages"), e) : rc;
}

void openai_name_functions(api_error *e)
{
    if (strcmp(e->param, "tools") == 0) snprintf(e->param, sizeof e->param, "functions");
    if (strcmp(e->param, "tool_choice") == 0)
        api_error_bad(e, "function_call",
                      "\"function_call\" names a function that is not among \"functions\"");
}
