/* responses.c: requests of the Responses API as chat requests; see responses.h. Names and forms: the OpenAI
 * API reference, "Create a model response". */
#include "dialects/responses.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "messages/fields.h"
#include "base/buf.h"
#include "json/json.h"

#define ITEMS_MAX 1024

void response_spec_free(response_spec *s)
{
    if (!s) return;
    json_drop(s->root);
    json_decref(s->chat);
    json_decref(s->added);
    free(s);
}

/* A new object with the same values, or NULL: jansson's own copy leaves out what it finds no memory for. */
static json_t *copy_object(const json_t *o)
{
    json_t *out = json_object(), *v;
    const char *key;
    json_object_foreach((json_t *)o, key, v)
    {
        if (out && json_object_set(out, key, v) == 0) continue;
        json_decref(out);
        return NULL;
    }
    return out;
}

/* ---- input --------------------------------------------------------------------------------------- */

/* Appends a part of text under chat's name for it. `field`: "content" or "output" of item i. */
static int add_part(json_t *to, const json_t *part, const char *field, size_t i, size_t k, api_error *e)
{
    const char *type = fields_text(json_object_get(part, "type"));
    bool refusal = type && strcmp(type, "refusal") == 0;
    if (!type)
        return api_error_bad(e, "input", "input[%zu].%s[%zu]: must be an object with a \"type\"", i, field,
                             k);
    if (!refusal && strcmp(type, "input_text") != 0 && strcmp(type, "output_text") != 0 &&
        strcmp(type, "text") != 0)
        return api_error_bad(
            e, "input",
            "input[%zu].%s[%zu]: models here read text alone, and this part is of type \"%.40s\": "
            "send parts of type \"input_text\"",
            i, field, k, type);
    json_t *text = json_object_get(part, refusal ? "refusal" : "text");
    if (!json_is_string(text))
        return api_error_bad(e, "input", "input[%zu].%s[%zu]: \"%s\" must be a string", i, field, k,
                             refusal ? "refusal" : "text");
    json_t *out = json_pack("{s:s, s:O}", "type", "text", "text", text);
    return fields_append(to, out, e);
}

/* Appends m with `content`, a text or an array of parts, which is `field` of item i. Takes m. */
static int add_with_content(json_t *to, json_t *m, json_t *content, const char *field, size_t i, api_error *e)
{
    json_t *parts = json_is_array(content) ? json_array() : json_incref(content), *part;
    size_t k;
    int rc = fields_put(m, "content", parts, e);
    json_array_foreach(content, k, part)
    {
        if (rc != 0) break;
        rc = add_part(parts, part, field, i, k, e);
    }
    if (rc == 0) return fields_append(to, m, e);
    json_decref(m);
    return rc;
}

static int add_message(json_t *to, const json_t *item, size_t i, api_error *e)
{
    const char *role = fields_text(json_object_get(item, "role"));
    if (!role || (strcmp(role, "user") != 0 && strcmp(role, "assistant") != 0 &&
                  strcmp(role, "system") != 0 && strcmp(role, "developer") != 0))
        return api_error_bad(e, "input", "input[%zu].role: must be user, assistant, system or developer", i);
    if (!json_is_string(json_object_get(item, "content")) && !json_is_array(json_object_get(item, "content")))
        return api_error_bad(e, "input", "input[%zu].content: must be text or an array of parts", i);
    return add_with_content(to, json_pack("{s:s}", "role", role), json_object_get(item, "content"), "content",
                            i, e);
}

/* Calls that follow each other are one message of the assistant, as chat has them. */
static int add_call(json_t *to, const json_t *item, size_t i, api_error *e)
{
    const char *id = fields_text(json_object_get(item, "call_id")),
               *name = fields_text(json_object_get(item, "name")),
               *arguments = fields_text(json_object_get(item, "arguments"));
    if (!id || !name || !arguments)
        return api_error_bad(e, "input", "input[%zu]: a function_call needs call_id, name and arguments", i);
    json_t *call = json_pack("{s:s, s:s, s:{s:s, s:s}}", "id", id, "type", "function", "function", "name",
                             name, "arguments", arguments);
    json_t *last = json_array_get(to, json_array_size(to) - 1), *calls = json_object_get(last, "tool_calls");
    if (calls) return fields_append(calls, call, e);
    json_t *m = json_pack("{s:s, s:s, s:[o]}", "role", "assistant", "content", "", "tool_calls", call);
    return fields_append(to, m, e);
}

static int add_output(json_t *to, const json_t *item, size_t i, api_error *e)
{
    const char *id = fields_text(json_object_get(item, "call_id"));
    json_t *output = json_object_get(item, "output");
    if (!id || (!json_is_string(output) && !json_is_array(output)))
        return api_error_bad(e, "input", "input[%zu]: a function_call_output needs call_id and output", i);
    return add_with_content(to, json_pack("{s:s, s:s}", "role", "tool", "tool_call_id", id), output, "output",
                            i, e);
}

/* As "input" itself may be one. */
static int add_text(json_t *to, json_t *text, api_error *e)
{
    json_t *m = json_pack("{s:s, s:O}", "role", "user", "content", text);
    return fields_append(to, m, e);
}

static int add_item(json_t *to, const json_t *item, size_t i, api_error *e)
{
    const char *type = fields_text(json_object_get(item, "type"));
    if (json_is_string(item)) return add_text(to, (json_t *)item, e);
    if (!json_is_object(item)) return api_error_bad(e, "input", "input[%zu]: must be an object or text", i);
    if (!type || strcmp(type, "message") == 0) return add_message(to, item, i, e);
    if (strcmp(type, "function_call") == 0) return add_call(to, item, i, e);
    if (strcmp(type, "function_call_output") == 0) return add_output(to, item, i, e);
    if (strcmp(type, "reasoning") == 0) return 0; /* what a model thought is not told to it again */
    return api_error_bad(e, "input",
                         "input[%zu]: items of type \"%.40s\" are not served: message, function_call, "
                         "function_call_output, reasoning and item_reference are",
                         i, type);
}

int response_spec_read_input(response_spec *s, api_error *e)
{
    const json_t *input = fields_get(s->root, "input");
    s->added = json_array();
    if (!s->added) return api_error_nomem(e);
    if (json_is_string(input)) return add_text(s->added, (json_t *)input, e);
    size_t n = json_array_size(input);
    if (n == 0 || n > ITEMS_MAX)
        return api_error_bad(e, "input", "\"input\" must be text or an array of 1 to %d items", ITEMS_MAX);
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < n; i++) rc = add_item(s->added, json_array_get(input, i), i, e);
    if (rc == 0 && json_array_size(s->added) == 0) rc = api_error_bad(e, "input", "\"input\" has no message");
    return rc;
}

/* ---- references ---------------------------------------------------------------------------------- */

/* The id that an item refers to; NULL: it is no reference. The type may be left out. */
static const char *referred(const json_t *item)
{
    const json_t *type = fields_get(item, "type");
    const char *word = fields_text(type);
    if (type ? !word || strcmp(word, "item_reference") != 0 : fields_get(item, "role") != NULL) return NULL;
    return fields_text(json_object_get(item, "id"));
}

/* "fc_HEX_0", "msg_HEX" and "rs_HEX" are items of "resp_HEX" (response_put.c). */
static void responses_name_of(const char *id, char ret[RESPONSE_ID_BYTES])
{
    const char *at = strchr(id, '_');
    size_t n = at ? strcspn(at + 1, "_") : 0;
    snprintf(ret, RESPONSE_ID_BYTES, "resp_%.*s", (int)(n < RESPONSE_ID_BYTES ? n : 0), at ? at + 1 : "");
}

bool response_spec_reference(const response_spec *s, char ret[RESPONSE_ID_BYTES])
{
    const json_t *input = fields_get(s->root, "input");
    for (size_t i = 0; i < json_array_size(input); i++) {
        const char *id = referred(json_array_get(input, i));
        if (!id) continue;
        responses_name_of(id, ret);
        return true;
    }
    return false;
}

/* Borrowed from the response; NULL: it has none of that id. */
static json_t *find_item(const json_t *response, const char *id)
{
    size_t i;
    json_t *item;
    json_array_foreach(json_object_get(response, "output"), i, item)
    {
        const char *own = fields_text(json_object_get(item, "id"));
        if (own && strcmp(own, id) == 0) return item;
    }
    return NULL;
}

int response_spec_resolve(response_spec *s, const char *name, const json_t *response, api_error *e)
{
    json_t *input = json_object_get(s->root, "input");
    char own[RESPONSE_ID_BYTES];
    for (size_t i = 0; i < json_array_size(input); i++) {
        const char *id = referred(json_array_get(input, i));
        if (!id) continue;
        responses_name_of(id, own);
        if (strcmp(own, name) != 0) continue;
        json_t *item = find_item(response, id);
        if (!item)
            return api_error_set(e, 404, "invalid_request_error", NULL, "input",
                                 "input[%zu]: there is no item %.80s (any more); send it whole", i, id);
        if (json_array_set(input, i, item) != 0) return api_error_nomem(e);
    }
    return 0;
}

/* ---- tools and formats --------------------------------------------------------------------------- */

/* {"type":"function","name":...} -> {"type":"function","function":{"name":...}}. New reference. */
static json_t *nested(const json_t *flat, const char *type, const char *under)
{
    json_t *inner = copy_object(flat);
    if (inner) json_object_del(inner, "type");
    return json_pack("{s:s, s:o}", "type", type, under, inner);
}

/* {"type": "allowed_tools", "mode", "tools": [{"type", "name"}]} in chat's form. New reference; NULL: no
 * memory. */
static json_t *nested_allowed(const json_t *choice)
{
    json_t *names = json_array(), *t;
    size_t i;
    json_array_foreach(fields_get(choice, "tools"), i, t)
    {
        if (json_array_append_new(names, nested(t, "function", "function")) == 0) continue;
        json_decref(names);
        return NULL;
    }
    const json_t *mode = fields_get(choice, "mode");
    return json_pack("{s:s, s:{s:O*, s:o}}", "type", "allowed_tools", "allowed_tools", "mode", mode, "tools",
                     names);
}

static json_t *nested_choice(const json_t *choice)
{
    const char *type = fields_text(json_object_get(choice, "type"));
    return type && strcmp(type, "allowed_tools") == 0 ? nested_allowed(choice)
                                                      : nested(choice, "function", "function");
}

static int read_tools(response_spec *s, api_error *e)
{
    const json_t *tools = fields_get(s->root, "tools"), *choice = fields_get(s->root, "tool_choice");
    json_object_del(s->chat, "tools");
    if (tools && !json_is_array(tools)) return api_error_bad(e, "tools", "\"tools\" must be an array");
    json_t *out = json_array();
    int rc = out ? 0 : api_error_nomem(e);
    for (size_t i = 0; rc == 0 && i < json_array_size(tools); i++) {
        const json_t *t = json_array_get(tools, i);
        const char *type = fields_text(json_object_get(t, "type"));
        if (!type || strcmp(type, "function") != 0)
            rc = api_error_bad(e, "tools", "tools[%zu].type must be \"function\": others are not served", i);
        else if (json_array_append_new(out, nested(t, type, "function")) != 0)
            rc = api_error_nomem(e);
    }
    if (rc == 0 && json_array_size(out) > 0 && json_object_set(s->chat, "tools", out) != 0)
        rc = api_error_nomem(e);
    json_decref(out);
    if (rc != 0 || !json_is_object(choice)) return rc;
    return fields_put(s->chat, "tool_choice", nested_choice(choice), e);
}

static int read_format(response_spec *s, api_error *e)
{
    const json_t *text = fields_get(s->root, "text"), *format = fields_get(text, "format");
    const char *type = fields_text(json_object_get(format, "type"));
    json_object_del(s->chat, "text");
    if (text && !json_is_object(text)) return api_error_bad(e, "text", "\"text\" must be an object");
    if (!format) return 0;
    if (!type) return api_error_bad(e, "text.format", "\"text.format\" must be an object with a \"type\"");
    if (strcmp(type, "json_schema") == 0)
        return fields_put(s->chat, "response_format", nested(format, type, "json_schema"), e);
    return fields_put(s->chat, "response_format", copy_object(format), e);
}

/* ---- the request --------------------------------------------------------------------------------- */

/* Whether "include" wants the log-probabilities of the text. */
static bool wants_logprobs(const json_t *root)
{
    size_t i;
    json_t *one;
    json_array_foreach(json_object_get(root, "include"), i, one)
    {
        const char *what = fields_text(one);
        if (what && strcmp(what, "message.output_text.logprobs") == 0) return true;
    }
    return false;
}

/* What chat has under other names: "reasoning": {"effort"}, and log-probabilities, which need no word of
 * their own where their number is said. */
static int rename_fields(response_spec *s, api_error *e)
{
    const json_t *reasoning = fields_get(s->root, "reasoning"), *effort = fields_get(reasoning, "effort"),
                 *top = fields_get(s->root, "top_logprobs");
    if (reasoning && !json_is_object(reasoning))
        return api_error_bad(e, "reasoning", "\"reasoning\" must be an object");
    json_object_del(s->chat, "reasoning");
    int rc = effort ? fields_put(s->chat, "reasoning_effort", json_incref((json_t *)effort), e) : 0;
    bool some = wants_logprobs(s->root) || (json_is_integer(top) && json_integer_value(top) > 0);
    return rc == 0 && some ? fields_put(s->chat, "logprobs", json_true(), e) : rc;
}

/* What the other known values would add is made by hosted tools and encrypted reasoning, of which there is
 * nothing. */
static int check_include(const json_t *root, api_error *e)
{
    static const char *const KNOWN[] = {"message.output_text.logprobs",
                                        "reasoning.encrypted_content",
                                        "file_search_call.results",
                                        "web_search_call.results",
                                        "web_search_call.action.sources",
                                        "message.input_image.image_url",
                                        "computer_call_output.output.image_url",
                                        "code_interpreter_call.outputs"};
    const json_t *include = fields_get(root, "include"), *one;
    size_t i, k;
    if (include && !json_is_array(include))
        return api_error_bad(e, "include", "\"include\" must be an array");
    json_array_foreach(include, i, one)
    {
        const char *what = fields_text(one);
        for (k = 0; what && k < sizeof KNOWN / sizeof *KNOWN && strcmp(what, KNOWN[k]) != 0; k++) continue;
        if (!what || k == sizeof KNOWN / sizeof *KNOWN)
            return api_error_bad(e, "include", "include[%zu]: \"%.60s\" is not offered", i, what ? what : "");
    }
    return 0;
}

/* Better a no than an answer that ignores them. */
static int refuse_unserved(const json_t *root, api_error *e)
{
    static const char *const KEYS[] = {"n", "messages", "session", "conversation", "prompt"};
    bool background = false;
    for (size_t i = 0; i < sizeof KEYS / sizeof *KEYS; i++)
        if (fields_get(root, KEYS[i]))
            return api_error_bad(
                e, KEYS[i], "\"%s\" is not served here: \"input\" and \"previous_response_id\" are", KEYS[i]);
    int rc = fields_bool(root, "background", &background, e);
    if (rc == 0 && background)
        rc = api_error_bad(e, "background", "\"background\" is not served: use \"stream\"");
    return rc;
}

static int read_rest(response_spec *s, api_error *e)
{
    static const char *const OWN[] = {
        "input",    "instructions", "previous_response_id", "store", "truncation",
        "metadata", "include",      "max_output_tokens",    "user",  "background"};
    const char *truncation = "disabled";
    const json_t *metadata = fields_get(s->root, "metadata"),
                 *most = fields_get(s->root, "max_output_tokens");
    s->store = true;
    int rc = refuse_unserved(s->root, e);
    if (rc == 0) rc = check_include(s->root, e);
    if (rc == 0) rc = fields_str(s->root, "previous_response_id", &s->previous, e);
    if (rc == 0) rc = fields_str(s->root, "instructions", &s->instructions, e);
    if (rc == 0) rc = fields_bool(s->root, "store", &s->store, e);
    if (rc == 0) rc = fields_bool(s->root, "stream", &s->stream, e);
    if (rc == 0) rc = fields_str(s->root, "truncation", &truncation, e);
    if (rc != 0) return rc;
    s->shortens = strcmp(truncation, "auto") == 0;
    if (!s->shortens && strcmp(truncation, "disabled") != 0)
        return api_error_bad(e, "truncation", "\"truncation\" must be \"auto\" or \"disabled\"");
    if (metadata && !json_is_object(metadata))
        return api_error_bad(e, "metadata", "\"metadata\" must be an object");
    if (most && (!json_is_integer(most) || json_integer_value(most) < 1))
        return api_error_bad(e, "max_output_tokens", "\"max_output_tokens\" must be a number over 0");
    for (size_t i = 0; i < sizeof OWN / sizeof *OWN; i++) json_object_del(s->chat, OWN[i]);
    rc = rename_fields(s, e);
    if (rc != 0) return rc;
    return most ? fields_put(s->chat, "max_completion_tokens", json_incref((json_t *)most), e) : 0;
}

int response_spec_parse(response_spec **ret, const char *body, size_t len, api_error *e)
{
    char name[RESPONSE_ID_BYTES];
    response_spec *s = calloc(1, sizeof *s);
    if (!s) return api_error_nomem(e);
    int rc = fields_parse(&s->root, body, len, e);
    if (rc == 0 && !(s->chat = copy_object(s->root))) rc = api_error_nomem(e);
    if (rc == 0) rc = read_rest(s, e);
    if (rc == 0 && !response_spec_reference(s, name)) rc = response_spec_read_input(s, e);
    if (rc == 0) rc = read_tools(s, e);
    if (rc == 0) rc = read_format(s, e);
    if (rc == 0)
        *ret = s;
    else
        response_spec_free(s);
    return rc;
}

/* ---- errors -------------------------------------------------------------------------------------- */

void response_put_error(buf *out, const api_error *e)
{
    static const api_error_name ROWS[] = {
        {"response_format", "response_format.json_schema", "text.format"},
        {"response_format", "response_format", "text.format"},
        {"reasoning_effort", "reasoning_effort", "reasoning.effort"},
        {"max_completion_tokens", "max_completion_tokens", "max_output_tokens"},
        {"tools", ".function.", "."},
        {"tools", "/function/", "/"},
        {"tool_choice", "\"function\":{\"name\"}", "\"name\""},
    };
    api_error named = *e;
    api_error_rename(&named, ROWS, sizeof ROWS / sizeof *ROWS);
    api_error_put(out, &named);
}
