/* anthropic.c: a Messages request as a chat request; see anthropic.h. Its messages are anthropic_messages.c's. */
#include "dialects/anthropic.h"

#include <stdio.h>
#include <string.h>

#include "json/json.h"
#include "messages/fields.h"

/* Says to anthropic_spec_parse, beside chat's own fields, that thinking blocks are wanted. */
#define SHOWS_THINKING "anthropic_thinking"

/* ---- tools --------------------------------------------------------------------------------------- */

/* Tools with a type of their own run at Anthropic, or have schemas that only its models know. */
static int refuse_tool(size_t i, const char *type, api_error *e)
{
    return api_error_bad(
        e, "tools",
        "tools[%zu]: \"%.60s\" is a tool of Anthropic's service, which is not here: offer tools with "
        "\"name\", \"description\" and \"input_schema\", which your program runs",
        i, type);
}

static int read_tool(json_t *to, const json_t *tool, size_t i, api_error *e)
{
    static const fields_name NAMES[] = {{"description", "description"}, {"strict", "strict"}};
    const char *type = fields_text(fields_get(tool, "type")),
               *name = fields_text(json_object_get(tool, "name"));
    const json_t *schema = json_object_get(tool, "input_schema");
    if (!json_is_object(tool)) return api_error_bad(e, "tools", "tools[%zu] must be an object", i);
    if (type && strcmp(type, "custom") != 0) return refuse_tool(i, type, e);
    if (!name) return api_error_bad(e, "tools", "tools[%zu].name must be a string of 1 to 64 bytes", i);
    if (!json_is_object(schema))
        return api_error_bad(e, "tools", "tools[%zu].input_schema must be a JSON schema", i);
    json_t *function = json_pack("{s:s, s:O}", "name", name, "parameters", schema);
    int rc = fields_append(to, json_pack("{s:s, s:o}", "type", "function", "function", function), e);
    return rc == 0 ? fields_rename(function, tool, NAMES, sizeof NAMES / sizeof *NAMES, e) : rc;
}

static int read_tools(json_t *chat, const json_t *root, api_error *e)
{
    const json_t *tools = fields_get(root, "tools");
    json_t *ours, *tool;
    size_t i;
    if (!tools) return 0;
    if (!json_is_array(tools)) return api_error_bad(e, "tools", "\"tools\" must be an array");
    int rc = fields_put(chat, "tools", ours = json_array(), e);
    if (rc != 0) return rc;
    json_array_foreach((json_t *)tools, i, tool)
    {
        rc = read_tool(ours, tool, i, e);
        if (rc != 0) return rc;
    }
    return 0;
}

static json_t *choice_of(const char *type, const char *name)
{
    if (strcmp(type, "auto") == 0 || strcmp(type, "none") == 0) return json_string(type);
    if (strcmp(type, "any") == 0) return json_string("required");
    return json_pack("{s:s, s:{s:s}}", "type", "function", "function", "name", name);
}

static int read_choice(json_t *chat, const json_t *root, api_error *e)
{
    static const char *const TYPES[] = {"auto", "any", "tool", "none"};
    const json_t *choice = fields_get(root, "tool_choice"),
                 *once = fields_get(choice, "disable_parallel_tool_use");
    const char *type = fields_text(json_object_get(choice, "type")),
               *name = fields_text(json_object_get(choice, "name"));
    bool known = false, single = false;
    if (!choice) return 0;
    for (size_t i = 0; type && i < sizeof TYPES / sizeof *TYPES; i++) known |= strcmp(type, TYPES[i]) == 0;
    if (!known || (strcmp(type, "tool") == 0 && !name))
        return api_error_bad(
            e, "tool_choice",
            "\"tool_choice\" must be {\"type\": \"auto\", \"any\" or \"none\"} or {\"type\": \"tool\", "
            "\"name\": one of the tools}");
    int rc = fields_bool(choice, "disable_parallel_tool_use", &single, e);
    if (rc == 0) rc = fields_put(chat, "tool_choice", choice_of(type, name), e);
    return rc == 0 && once ? fields_put(chat, "parallel_tool_calls", json_boolean(!single), e) : rc;
}

/* ---- thinking ------------------------------------------------------------------------------------ */

static int read_type(const json_t *thinking, bool *ret_thinks, api_error *e)
{
    const char *type = fields_text(json_object_get(thinking, "type"));
    *ret_thinks = type && (strcmp(type, "enabled") == 0 || strcmp(type, "adaptive") == 0);
    if (!thinking || *ret_thinks || (type && strcmp(type, "disabled") == 0)) return 0;
    return api_error_bad(e, "thinking",
                         "\"thinking\" must be {\"type\": \"enabled\", \"adaptive\" or \"disabled\"}");
}

/* Without "thinking" a model is told not to think. How long it may think, "budget_tokens", is not held: max_tokens is. */
static int read_thinking(json_t *chat, const json_t *root, api_error *e)
{
    const json_t *thinking = fields_get(root, "thinking");
    const char *display = "summarized";
    bool thinks = false;
    int64_t budget = 1;
    int rc = read_type(thinking, &thinks, e);
    if (rc == 0) rc = fields_str(thinking, "display", &display, e);
    if (rc == 0) rc = fields_int(thinking, "budget_tokens", 1, INT64_MAX, &budget, e);
    if (rc != 0) return rc;
    bool shows = thinks && strcmp(display, "omitted") != 0;
    rc = fields_put(chat, "chat_template_kwargs",
                    json_pack("{s:b, s:b}", "enable_thinking", thinks, "thinking", thinks), e);
    return rc == 0 ? fields_put(chat, SHOWS_THINKING, json_boolean(shows), e) : rc;
}

/* ---- the rest ------------------------------------------------------------------------------------ */

/* {"type": "json_schema", "schema": {...}}, as "output_config.format" or, its older name, "output_format". */
static int read_format(json_t *chat, const json_t *root, api_error *e)
{
    const json_t *config = fields_get(root, "output_config"), *format = fields_get(config, "format");
    if (config && !json_is_object(config))
        return api_error_bad(e, "output_config", "\"output_config\" must be an object");
    if (!format) format = fields_get(root, "output_format");
    if (!format) return 0;
    const char *type = fields_text(json_object_get(format, "type"));
    const json_t *schema = json_object_get(format, "schema");
    if (!type || strcmp(type, "json_schema") != 0 || !json_is_object(schema))
        return api_error_bad(
            e, "output_config",
            "output_config.format must be {\"type\": \"json_schema\", \"schema\": a JSON schema}");
    return fields_put(chat, "response_format",
                      json_pack("{s:s, s:{s:s, s:b, s:O}}", "type", "json_schema", "json_schema", "name",
                                "answer", "strict", 1, "schema", schema),
                      e);
}

/* The user is whom routes may split and order requests by. */
static int read_metadata(json_t *chat, const json_t *root, api_error *e)
{
    static const fields_name USER[] = {{"user_id", "user"}};
    const json_t *metadata = fields_get(root, "metadata");
    const char *user = NULL, *tier = "auto";
    if (metadata && !json_is_object(metadata))
        return api_error_bad(e, "metadata", "\"metadata\" must be an object");
    int rc = fields_str(metadata, "user_id", &user, e);
    if (rc == 0) rc = fields_str(root, "service_tier", &tier, e);
    if (rc == 0 && strcmp(tier, "auto") != 0 && strcmp(tier, "standard_only") != 0)
        rc = api_error_bad(e, "service_tier", "\"service_tier\" must be \"auto\" or \"standard_only\"");
    return rc == 0 ? fields_rename(chat, metadata, USER, 1, e) : rc;
}

/* What is asked of Anthropic's service, where an answer without it would not be the one that was asked for. */
static int refuse_services(const json_t *root, api_error *e)
{
    static const char *const KEYS[] = {"container", "mcp_servers", "inference_geo"};
    for (size_t i = 0; i < sizeof KEYS / sizeof *KEYS; i++) {
        const json_t *v = fields_get(root, KEYS[i]);
        if (!v || (json_is_array(v) && json_array_size(v) == 0)) continue;
        return api_error_bad(e, KEYS[i],
                             "\"%s\" is a service of Anthropic's, which is not here: leave it out", KEYS[i]);
    }
    return 0;
}

static int read_limit(json_t *chat, const json_t *root, api_error *e)
{
    int64_t most = 0;
    int rc = fields_int(root, "max_tokens", 1, INT64_MAX, &most, e);
    if (rc == 0 && most == 0)
        rc =
            api_error_bad(e, "max_tokens", "\"max_tokens\" is missing: how many tokens may the answer have?");
    return rc == 0 ? fields_put(chat, "max_tokens", json_integer(most), e) : rc;
}

static int check_stops(const json_t *root, api_error *e)
{
    const json_t *stops = fields_get(root, "stop_sequences");
    if (!stops || json_is_array(stops)) return 0;
    return api_error_bad(e, "stop_sequences", "\"stop_sequences\" must be an array of strings");
}

/* How the answer is drawn, and how it comes. "seed" is Shoal's own, as it is in chat. */
static int read_sampling(json_t *chat, const json_t *root, api_error *e)
{
    static const fields_name SAME[] = {
        {"temperature", "temperature"}, {"top_k", "top_k"},        {"top_p", "top_p"}, {"seed", "seed"},
        {"stream", "stream"},           {"stop_sequences", "stop"}};
    int rc = read_metadata(chat, root, e);
    if (rc == 0) rc = check_stops(root, e);
    if (rc == 0) rc = read_limit(chat, root, e);
    return rc == 0 ? fields_rename(chat, root, SAME, sizeof SAME / sizeof *SAME, e) : rc;
}

/* "session" is Shoal's own, too. */
static int read_all(json_t *chat, const json_t *root, anthropic_kind kind, api_error *e)
{
    static const fields_name SAME[] = {{"model", "model"}, {"session", "session"}};
    json_t *messages = json_array();
    int rc = fields_put(chat, "messages", messages, e);
    if (rc == 0) rc = refuse_services(root, e);
    if (rc == 0) rc = fields_rename(chat, root, SAME, sizeof SAME / sizeof *SAME, e);
    if (rc == 0 && kind == ANTHROPIC_MESSAGE) rc = read_sampling(chat, root, e);
    if (rc == 0) rc = anthropic_read_messages(messages, root, e);
    if (rc == 0) rc = read_tools(chat, root, e);
    if (rc == 0) rc = read_choice(chat, root, e);
    if (rc == 0) rc = read_thinking(chat, root, e);
    return rc == 0 ? read_format(chat, root, e) : rc;
}

int anthropic_read(json_t **ret_chat, anthropic_kind kind, const char *body, size_t len, api_error *e)
{
    json_t *root = NULL, *chat = json_object();
    int rc = chat ? fields_parse(&root, body, len, e) : api_error_nomem(e);
    if (rc == 0) rc = read_all(chat, root, kind, e);
    json_drop(root);
    if (rc == 0)
        *ret_chat = chat;
    else
        json_decref(chat);
    return rc;
}

int anthropic_spec_parse(gen_spec **ret, const char *chat, size_t len, api_error *e)
{
    gen_spec *s = NULL;
    int rc = openai_spec_parse_chat(&s, chat, len, e);
    if (rc != 0) return rc;
    s->anthropic = arena_alloc(s->mem, sizeof *s->anthropic);
    if (!s->anthropic) {
        openai_spec_free(s);
        return api_error_nomem(e);
    }
    *s->anthropic =
        (anthropic_form){.stop = s->stop,
                         .n_stop = s->n_stop,
                         .shows_thinking = json_is_true(json_object_get(s->root, SHOWS_THINKING))};
    *ret = s;
    return 0;
}
