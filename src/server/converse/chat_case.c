/* chat_case.c: messages and tools of a request; see chat_case.h. */
#include "converse/chat_case.h"

#include <string.h>

#include "json/json.h"

typedef struct reader {
    arena *a;
    chat_case *k;
    buf system;
    const char *last_reply; /* the last text of the assistant since the question */
    bool nomem;
} reader;

static const char *chat_case_keep(reader *r, const char *s, size_t n)
{
    const char *kept = arena_strndup(r->a, s ? s : "", n);
    r->nomem |= !kept;
    return kept ? kept : "";
}

static const char *chat_case_content(reader *r, const json_t *m)
{
    const char *text = "";
    r->nomem |= made_calls_text(&text, m, r->a) != 0;
    return text ? text : "";
}

static void add_turn(chat_case *k, const char *reply)
{
    if (k->n_turns == CHAT_TURNS_MAX) memmove(k->turns, k->turns + 1, --k->n_turns * sizeof *k->turns);
    k->turns[k->n_turns++] = (chat_turn){k->question, reply};
}

static void chat_case_read_message(reader *r, const json_t *m)
{
    const char *role = json_string_value(json_object_get(m, "role"));
    chat_case *k = r->k;
    if (!role) return;
    if (strcmp(role, "system") == 0) {
        buf_puts(&r->system, chat_case_content(r, m));
        buf_putc(&r->system, '\n');
    } else if (strcmp(role, "assistant") == 0) {
        const char *text = chat_case_content(r, m);
        if (*text) r->last_reply = text;
        r->nomem |= made_calls_add(k->made, &k->n_made, m, r->a) != 0;
    } else if (strcmp(role, "user") == 0) {
        if (k->question && r->last_reply)
            add_turn(k, r->last_reply);
        else
            k->n_turns = 0;
        k->question = chat_case_content(r, m);
        k->n_made = 0;
        r->last_reply = NULL;
    } else {
        r->nomem |= made_calls_answer(k->made, k->n_made, m, r->a) != 0;
    }
}

static void chat_case_read_messages(reader *r, const char *text)
{
    json_t *list = NULL;
    size_t i;
    const json_t *m;
    if (json_parse(&list, text, strlen(text), "messages", NULL) == SHOAL_ENOMEM) r->nomem = true;
    json_array_foreach(list, i, m) chat_case_read_message(r, m);
    json_decref(list);
}

static void chat_case_read_tools(reader *r, const Shoal__V1__GenerateRequest *q)
{
    chat_case *k = r->k;
    size_t i;
    const json_t *tool;
    bool named = q->tool_choice == SHOAL__V1__GENERATE_REQUEST__TOOL_CHOICE__TOOL_NAMED;
    if (json_parse(&k->tools, q->tools_json, strlen(q->tools_json), "tools", NULL) == SHOAL_ENOMEM)
        r->nomem = true;
    k->functions = arena_alloc(r->a, (json_array_size(k->tools) + 1) * sizeof *k->functions);
    if (!k->functions) {
        r->nomem = true;
        return;
    }
    json_array_foreach(k->tools, i, tool)
    {
        const json_t *f = json_object_get(tool, "function");
        const char *name = json_string_value(json_object_get(f, "name"));
        if (name && (!named || strcmp(q->tool_name, name) == 0))
            k->functions[k->n_functions++] = (offered_function){name, json_object_get(f, "parameters")};
    }
    k->offers = json_array_size(k->tools) > 0;
    k->one_call = !q->parallel_tool_calls;
}

static void read_form(reader *r, const Shoal__V1__GenerateRequest *q)
{
    bool schema = q->constraint == SHOAL__V1__GENERATE_REQUEST__CONSTRAINT__JSON_SCHEMA;
    r->k->formed = schema || q->constraint == SHOAL__V1__GENERATE_REQUEST__CONSTRAINT__JSON_OBJECT;
    if (schema && json_parse(&r->k->schema, q->schema, strlen(q->schema), "schema", NULL) == SHOAL_ENOMEM)
        r->nomem = true;
}

int chat_case_read(chat_case *ret, const Shoal__V1__GenerateRequest *q, arena *a)
{
    *ret = (chat_case){.system = ""};
    reader r = {.a = a, .k = ret};
    ret->made = arena_alloc(a, MADE_CALLS_MAX * sizeof *ret->made);
    if (!ret->made) return SHOAL_ENOMEM;
    bool chat = q->messages_json && *q->messages_json;
    if (chat) chat_case_read_messages(&r, q->messages_json);
    if (!chat && q->text && *q->text) ret->question = chat_case_keep(&r, q->text, strlen(q->text));
    if (q->tools_json && *q->tools_json) chat_case_read_tools(&r, q);
    read_form(&r, q);
    ret->no_calls = ret->formed || q->tool_choice == SHOAL__V1__GENERATE_REQUEST__TOOL_CHOICE__TOOL_NONE;
    ret->forced = ret->offers && (q->tool_choice == SHOAL__V1__GENERATE_REQUEST__TOOL_CHOICE__TOOL_NAMED ||
                                  q->tool_choice == SHOAL__V1__GENERATE_REQUEST__TOOL_CHOICE__TOOL_REQUIRED);
    if (r.system.len) ret->system = chat_case_keep(&r, r.system.data, r.system.len);
    bool failed = r.nomem || r.system.failed;
    buf_done(&r.system);
    return failed ? SHOAL_ENOMEM : 0;
}

void chat_case_done(chat_case *k)
{
    json_decref(k->tools);
    json_decref(k->schema);
    k->tools = k->schema = NULL;
}

const char *chat_case_unscoped(const char *name)
{
    for (const char *at; (at = strstr(name, "__")) && at[2];) name = at + 2;
    return name;
}

const offered_function *chat_case_function(const chat_case *k, const char *name)
{
    const offered_function *found = NULL;
    size_t n = 0;
    for (size_t i = 0; i < k->n_functions; i++) {
        const offered_function *f = &k->functions[i];
        if (strcmp(f->name, name) == 0) return f;
        if (strcmp(chat_case_unscoped(f->name), name) != 0) continue;
        found = f;
        n++;
    }
    return n == 1 ? found : NULL;
}
