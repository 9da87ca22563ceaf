/* openai_chat.c: what a chat request has beside a completion: messages, tools, the format of the reply. */
#include "dialects/openai_chat.h"

#include <stdio.h>
#include <string.h>

#include "json/json.h"
#include "messages/fields.h"

#define CONSTRAINT(name)  SHOAL__V1__GENERATE_REQUEST__CONSTRAINT__##name
#define TOOL_CHOICE(name) SHOAL__V1__GENERATE_REQUEST__TOOL_CHOICE__##name

#define MESSAGES_MAX 1024
#define TOOLS_MAX    128

const char *openai_to_arena(gen_spec *s, const json_t *v)
{
    buf b = {0};
    json_put(&b, v);
    const char *text = b.failed ? NULL : arena_strndup(s->mem, b.data, b.len);
    buf_done(&b);
    return text;
}

/* ---- messages ------------------------------------------------------------------------------------ */

static const char *role_of(const json_t *m)
{
    static const char *const ROLES[] = {"system", "user", "assistant", "tool", "function"};
    const char *role = fields_text(json_object_get(m, "role"));
    if (!role) return NULL;
    if (strcmp(role, "developer") == 0) return "system"; /* OpenAI's newer word for it */
    for (size_t i = 0; i < sizeof ROLES / sizeof *ROLES; i++)
        if (strcmp(role, ROLES[i]) == 0) return ROLES[i];
    return NULL;
}

/* A part that is no text: said with its type and the model, which is right to ask elsewhere. */
static int refuse_part(const gen_spec *s, const json_t *part, const char *param, size_t i, api_error *e)
{
    const char *type = fields_text(json_object_get(part, "type"));
    if (!type)
        return api_error_bad(e, param, "%s[%zu]: must be an object with a \"type\" and a \"text\"", param, i);
    return api_error_bad(e, param,
                         "%s[%zu]: %.64s reads text alone, and this part is of type \"%.40s\": send parts of "
                         "type \"text\"",
                         param, i, s->model ? s->model : "the model", type);
}

static int join_parts(buf *out, const gen_spec *s, const json_t *parts, const char *param, api_error *e)
{
    size_t i;
    json_t *p;
    json_array_foreach(parts, i, p)
    {
        const char *type = fields_text(json_object_get(p, "type"));
        const json_t *text = json_object_get(p, type && strcmp(type, "refusal") == 0 ? "refusal" : "text");
        if (!type || (strcmp(type, "text") != 0 && strcmp(type, "refusal") != 0))
            return refuse_part(s, p, param, i, e);
        if (!json_is_string(text))
            return api_error_bad(e, param, "%s[%zu]: \"text\" must be a string", param, i);
        buf_append(out, json_string_value(text), json_string_length(text));
    }
    return 0;
}

/* The parts' text as one string. */
static int joined_text(json_t **ret, const gen_spec *s, const json_t *parts, const char *param, api_error *e)
{
    buf text = {0};
    int rc = join_parts(&text, s, parts, param, e);
    if (rc == 0 && (text.failed || !(*ret = json_stringn(text.data ? text.data : "", text.len))))
        rc = api_error_nomem(e);
    buf_done(&text);
    return rc;
}

/* A string, parts joined to one, or "" for an assistant that only called tools. New reference. */
static int content_of(json_t **ret, const gen_spec *s, const json_t *m, bool may_be_empty, const char *param,
                      api_error *e)
{
    json_t *c = (json_t *)fields_get(m, "content");
    if (json_is_string(c)) {
        *ret = json_incref(c);
        return 0;
    }
    if (json_is_array(c)) return joined_text(ret, s, c, param, e);
    if (c || !may_be_empty)
        return api_error_bad(e, param, "%s: must be a string or an array of text parts", param);
    return (*ret = json_string("")) ? 0 : api_error_nomem(e);
}

/* Clients send arguments as JSON text; templates (the Hugging Face convention) want the value. */
static json_t *arguments_value(const json_t *text)
{
    json_t *v = NULL;
    int rc = json_parse(&v, json_string_value(text), json_string_length(text), "arguments", NULL);
    return rc == 0 ? v : rc == SHOAL_ENOMEM ? NULL : json_incref((json_t *)text);
}

static int copy_call(json_t *to, const json_t *call, const char *param, api_error *e)
{
    const json_t *f = json_object_get(call, "function");
    const char *name = fields_text(json_object_get(f, "name"));
    const json_t *args = fields_get(f, "arguments");
    if (!name || (args && !json_is_string(args)))
        return api_error_bad(
            e, param, "%s: each tool call needs function.name and function.arguments as strings", param);
    const char *id = fields_text(json_object_get(call, "id"));
    json_t *v = json_pack("{s:s, s:s, s:{s:s, s:o}}", "id", id ? id : "", "type", "function", "function",
                          "name", name, "arguments", args ? arguments_value(args) : json_object());
    return fields_append(to, v, e);
}

static int copy_calls(json_t *to, const json_t *m, size_t i, api_error *e)
{
    char param[48];
    const json_t *calls = fields_get(m, "tool_calls");
    if (!calls) return 0;
    snprintf(param, sizeof param, "messages[%zu].tool_calls", i);
    if (!json_is_array(calls)) return api_error_bad(e, param, "%s: must be an array", param);
    json_t *out = json_array();
    if (json_object_set_new(to, "tool_calls", out) != 0) return api_error_nomem(e);
    size_t k;
    json_t *call;
    int rc = 0;
    json_array_foreach(calls, k, call)
    {
        rc = copy_call(out, call, param, e);
        if (rc != 0) break;
    }
    return rc;
}

static int copy_message(gen_spec *s, const json_t *m, size_t i, api_error *e)
{
    char param[48];
    const char *role = role_of(m);
    if (!role) {
        snprintf(param, sizeof param, "messages[%zu].role", i);
        return api_error_bad(e, param, "%s: must be system, developer, user, assistant or tool", param);
    }
    snprintf(param, sizeof param, "messages[%zu].content", i);
    json_t *content = NULL;
    bool may_be_empty =
        strcmp(role, "assistant") == 0 && (fields_get(m, "tool_calls") || fields_get(m, "reasoning_content"));
    int rc = content_of(&content, s, m, may_be_empty, param, e);
    if (rc != 0) return rc;
    json_t *out = json_pack("{s:s, s:o}", "role", role, "content", content);
    if (json_array_append_new(s->messages, out) != 0) return api_error_nomem(e);
    static const char *const NAMES[] = {"name", "tool_call_id", "reasoning_content"};
    for (size_t k = 0; k < sizeof NAMES / sizeof *NAMES; k++) {
        const json_t *v = fields_get(m, NAMES[k]);
        if (v && !json_is_string(v))
            return api_error_bad(e, param, "messages[%zu].%s: must be a string", i, NAMES[k]);
        if (v && json_object_set(out, NAMES[k], (json_t *)v) != 0) return api_error_nomem(e);
    }
    return copy_calls(out, m, i, e);
}

int openai_read_messages(gen_spec *s, api_error *e)
{
    const json_t *messages = fields_get(s->root, "messages");
    if (!json_is_array(messages) || json_array_size(messages) == 0)
        return api_error_bad(e, "messages", "\"messages\" must be an array with at least one message");
    if (json_array_size(messages) > MESSAGES_MAX)
        return api_error_bad(e, "messages", "\"messages\" has %zu entries, at most %d are taken",
                             json_array_size(messages), MESSAGES_MAX);
    s->messages = json_array();
    if (!s->messages) return api_error_nomem(e);
    size_t i;
    json_t *m;
    json_array_foreach(messages, i, m)
    {
        int rc = copy_message(s, m, i, e);
        if (rc != 0) return rc;
    }
    s->messages_json = openai_to_arena(s, s->messages);
    return s->messages_json ? 0 : api_error_nomem(e);
}

/* ---- tools --------------------------------------------------------------------------------------- */

static const char *tool_name(const json_t *tool)
{
    return fields_text(json_object_get(json_object_get(tool, "function"), "name"));
}

static bool is_named_before(const json_t *tools, size_t i)
{
    const char *name = tool_name(json_array_get(tools, i));
    for (size_t k = 0; k < i; k++)
        if (strcmp(tool_name(json_array_get(tools, k)), name) == 0) return true;
    return false;
}

static int check_tools(const json_t *tools, api_error *e)
{
    if (!json_is_array(tools)) return api_error_bad(e, "tools", "\"tools\" must be an array");
    if (json_array_size(tools) > TOOLS_MAX)
        return api_error_bad(e, "tools", "\"tools\" has %zu entries, at most %d are taken",
                             json_array_size(tools), TOOLS_MAX);
    size_t i;
    json_t *t;
    json_array_foreach(tools, i, t)
    {
        const char *type = fields_text(json_object_get(t, "type")), *name = tool_name(t);
        const json_t *p = fields_get(json_object_get(t, "function"), "parameters");
        if (!type || strcmp(type, "function") != 0)
            return api_error_bad(e, "tools", "tools[%zu].type must be \"function\"", i);
        if (!name || !*name || strlen(name) > 64)
            return api_error_bad(e, "tools", "tools[%zu].function.name must be a string of 1 to 64 bytes", i);
        if (is_named_before(tools, i))
            return api_error_bad(e, "tools",
                                 "tools[%zu].function.name: \"%s\" is already the name of another", i, name);
        if (p && !json_is_object(p))
            return api_error_bad(e, "tools", "tools[%zu].function.parameters must be a JSON schema", i);
    }
    return 0;
}

static bool lacks_parameters(const json_t *tools)
{
    size_t i;
    json_t *t;
    json_array_foreach(tools, i,
                       t) if (!fields_get(json_object_get(t, "function"), "parameters")) return true;
    return false;
}

/* "Omitting parameters defines a function with an empty parameter list" (OpenAI's API reference): its arguments
 * are {}. An empty schema ({}) is not that, and takes any object. New reference, of a copy where something is
 * added, as other requests may share the parts; NULL: no memory. */
static json_t *with_parameters(const json_t *tools)
{
    if (!lacks_parameters(tools)) return json_incref((json_t *)tools);
    json_t *all = json_deep_copy(tools), *t;
    size_t i;
    json_array_foreach(all, i, t)
    {
        json_t *f = json_object_get(t, "function");
        if (fields_get(f, "parameters")) continue;
        json_t *none =
            json_pack("{s:s, s:{}, s:b}", "type", "object", "properties", "additionalProperties", 0);
        if (none && json_object_set_new(f, "parameters", none) == 0) continue;
        json_decref(all);
        return NULL;
    }
    return all;
}

/* Only offered tools can be called, whatever the mode. A forced call is one call unless the client asks for
 * more: a model that must call does not know when it may stop. */
static int offer(gen_spec *s, const json_t *tools, Shoal__V1__GenerateRequest__ToolChoice how, api_error *e)
{
    s->parallel_calls = how == TOOL_CHOICE(TOOL_AUTO);
    int rc = fields_bool(s->root, "parallel_tool_calls", &s->parallel_calls, e);
    if (rc != 0) return rc;
    s->tool_choice = how;
    s->constraint = CONSTRAINT(TOOLS);
    s->tools = with_parameters(tools);
    s->tools_json = s->tools ? openai_to_arena(s, s->tools) : NULL;
    return s->tools_json ? 0 : api_error_nomem(e);
}

static bool is_offered(const json_t *tools, const char *name)
{
    size_t i;
    json_t *t;
    json_array_foreach(tools, i, t) if (strcmp(tool_name(t), name) == 0) return true;
    return false;
}

static int read_named(gen_spec *s, const json_t *tools, const json_t *choice, api_error *e)
{
    s->tool_name = json_is_object(choice) ? tool_name(choice) : NULL;
    if (!s->tool_name)
        return api_error_bad(e, "tool_choice",
                             "\"tool_choice\" must be none, auto, required, own or "
                             "{\"type\":\"function\",\"function\":{\"name\"}}");
    if (!is_offered(tools, s->tool_name))
        return api_error_bad(e, "tool_choice", "\"tool_choice\" names %.64s, which is not among the tools",
                             s->tool_name);
    return offer(s, tools, TOOL_CHOICE(TOOL_NAMED), e);
}

static bool allows(const json_t *names, const json_t *tool)
{
    const json_t *n;
    size_t i;
    json_array_foreach(names, i, n)
    {
        const char *name = tool_name(n);
        if (name && strcmp(name, tool_name(tool)) == 0) return true;
    }
    return false;
}

/* {"type": "allowed_tools", "allowed_tools": {"mode": "auto" or "required", "tools": [...]}}: the others are
 * not offered. */
static int read_allowed(gen_spec *s, const json_t *tools, const json_t *choice, api_error *e)
{
    const json_t *allowed = fields_get(choice, "allowed_tools"), *names = fields_get(allowed, "tools"), *t;
    const char *mode = fields_text(fields_get(allowed, "mode"));
    bool required = mode && strcmp(mode, "required") == 0, automatic = mode && strcmp(mode, "auto") == 0;
    json_t *kept = json_array();
    size_t i;
    int rc = kept ? 0 : api_error_nomem(e);
    if (rc == 0 && (!json_array_size(names) || (!required && !automatic)))
        rc = api_error_bad(e, "tool_choice",
                           "\"tool_choice\": allowed_tools needs \"mode\", auto or required, and \"tools\"");
    json_array_foreach(names, i, t)
    {
        const char *name = tool_name(t);
        if (rc == 0 && (!name || !is_offered(tools, name)))
            rc = api_error_bad(e, "tool_choice", "\"tool_choice\": allowed tool %zu is not among the tools",
                               i);
    }
    json_array_foreach(tools, i, t)
    {
        if (rc == 0 && allows(names, t) && json_array_append(kept, (json_t *)t) != 0) rc = api_error_nomem(e);
    }
    if (rc == 0) rc = offer(s, kept, required ? TOOL_CHOICE(TOOL_REQUIRED) : TOOL_CHOICE(TOOL_AUTO), e);
    json_decref(kept);
    return rc;
}

static bool is_allowed_tools(const json_t *choice)
{
    const char *type = json_is_object(choice) ? fields_text(fields_get(choice, "type")) : NULL;
    return type && strcmp(type, "allowed_tools") == 0;
}

/* Functions that the model was trained on, and no request offers: they stay to be called. */
static int read_own(const json_t *tools, bool empty, api_error *e)
{
    if (!tools || empty) return 0;
    return api_error_bad(
        e, "tool_choice",
        "\"tool_choice\": \"own\" lets a model call functions that it was trained on, and goes "
        "without \"tools\"");
}

static int read_tools(gen_spec *s, api_error *e)
{
    const json_t *tools = fields_get(s->root, "tools"), *choice = fields_get(s->root, "tool_choice");
    const char *word = fields_text(choice);
    int rc = tools ? check_tools(tools, e) : 0;
    if (rc != 0) return rc;
    bool empty = tools && json_array_size(tools) == 0,
         automatic = !choice || (word && strcmp(word, "auto") == 0);
    if (word && strcmp(word, "own") == 0) return read_own(tools, empty, e);
    bool nothing = !tools || empty, ignore_eos = false;
    if (fields_bool(s->root, "ignore_eos", &ignore_eos, e)) return SHOAL_EINVALID;
    if (nothing && !choice && ignore_eos) return 0; /* a length is asked for: no call ends it */
    if ((word && strcmp(word, "none") == 0) ||
        (nothing && automatic)) { /* nothing is offered, nothing is called */
        s->tool_choice = TOOL_CHOICE(TOOL_NONE);
        s->parse_tool_calls = false;
        return 0;
    }
    bool some = json_array_size(tools) > 0, required = word && strcmp(word, "required") == 0;
    if (automatic) return some ? offer(s, tools, TOOL_CHOICE(TOOL_AUTO), e) : 0;
    if (is_allowed_tools(choice)) return read_allowed(s, tools, choice, e);
    if (!required) return read_named(s, tools, choice, e);
    if (!some) return api_error_bad(e, "tool_choice", "\"tool_choice\" needs \"tools\"");
    return offer(s, tools, TOOL_CHOICE(TOOL_REQUIRED), e);
}

int openai_read_tools(gen_spec *s, api_error *e)
{
    int rc = read_tools(s, e);
    if (rc != 0 && s->functions) openai_name_functions(e);
    return rc;
}

/* ---- the template's variables -------------------------------------------------------------------- */

#define KWARGS_MAX 64

/* Names that a template knows for whether to think (Qwen3, SmolLM3; Granite, DeepSeek) and how much. What
 * chat_template_kwargs says stays. */
static int add_effort(json_t *kwargs, const char *effort, api_error *e)
{
    bool thinks = strcmp(effort, "none") != 0;
    json_t *more = json_pack("{s:s, s:b, s:b}", "reasoning_effort", effort, "enable_thinking", thinks,
                             "thinking", thinks);
    int rc = more ? json_object_update_missing(kwargs, more) : -1;
    json_decref(more);
    return rc == 0 ? 0 : api_error_nomem(e);
}

static int check_kwargs(const json_t *kwargs, api_error *e)
{
    static const char PARAM[] = "chat_template_kwargs";
    static const char *const TAKEN[] = {"messages", "tools", "add_generation_prompt", "bos_token",
                                        "eos_token"};
    if (!json_is_object(kwargs) || json_object_size(kwargs) > KWARGS_MAX)
        return api_error_bad(e, PARAM, "\"%s\" must be an object of at most %d variables for the template",
                             PARAM, KWARGS_MAX);
    for (size_t i = 0; i < sizeof TAKEN / sizeof *TAKEN; i++)
        if (json_object_get(kwargs, TAKEN[i]))
            return api_error_bad(e, PARAM, "\"%s\" cannot hold \"%s\": the request and the model say that",
                                 PARAM, TAKEN[i]);
    return 0;
}

static int read_own_template(gen_spec *s, api_error *e)
{
    const char *source = NULL;
    int rc = fields_str(s->root, "chat_template", &source, e);
    if (rc == 0 && source && strlen(source) > GEN_TEMPLATE_MAX)
        return api_error_bad(e, "chat_template", "\"chat_template\" has %zu bytes, and at most %d are taken",
                             strlen(source), GEN_TEMPLATE_MAX);
    if (rc == 0 && source && *source) s->chat_template = source;
    return rc;
}

int openai_read_template(gen_spec *s, api_error *e)
{
    static const char *const EFFORTS[] = {"none", "minimal", "low", "medium", "high", "xhigh"};
    const json_t *given = fields_get(s->root, "chat_template_kwargs"),
                 *v = fields_get(s->root, "reasoning_effort");
    const char *effort = fields_text(v);
    size_t i = 0;
    while (effort && i < sizeof EFFORTS / sizeof *EFFORTS && strcmp(effort, EFFORTS[i]) != 0) i++;
    if (v && (!effort || i == sizeof EFFORTS / sizeof *EFFORTS))
        return api_error_bad(e, "reasoning_effort",
                             "\"reasoning_effort\" must be none, minimal, low, medium, high or xhigh");
    int rc = read_own_template(s, e);
    if (rc == 0 && given) rc = check_kwargs(given, e);
    if (rc != 0 || (!given && !effort)) return rc;
    json_t *kwargs = given ? json_copy((json_t *)given) : json_object();
    if (!kwargs) return api_error_nomem(e);
    if (effort) rc = add_effort(kwargs, effort, e);
    if (rc == 0 && !(s->template_kwargs_json = openai_to_arena(s, kwargs))) rc = api_error_nomem(e);
    json_decref(kwargs);
    return rc;
}

/* ---- what comes out ------------------------------------------------------------------------------ */

int openai_read_modalities(gen_spec *s, api_error *e)
{
    const json_t *list = fields_get(s->root, "modalities");
    size_t i;
    json_t *one;
    if (list && !json_is_array(list))
        return api_error_bad(e, "modalities", "\"modalities\" must be an array");
    json_array_foreach((json_t *)list, i, one)
    {
        const char *word = fields_text(one);
        if (!word || strcmp(word, "text") != 0)
            return api_error_bad(e, "modalities", "\"modalities\" may be [\"text\"]: %.64s writes text alone",
                                 s->model ? s->model : "the model");
    }
    return 0;
}
