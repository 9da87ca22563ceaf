/* anthropic_messages.c: "system" and "messages" of a Messages request as messages of chat; see anthropic.h.
 *
 * A user's tool_result blocks become messages of the role "tool", in their place among the texts. Texts of a message
 * are joined by newlines, and so are messages of one role in a row, which Anthropic's API takes for one turn. */
#include <stdio.h>
#include <string.h>

#include "dialects/anthropic.h"
#include "json/json.h"
#include "messages/fields.h"

typedef struct place { /* of a block, for errors */
    size_t message;
    const char *within; /* "content", or "system" */
    bool is_message;    /* else a field of the request */
} place;

/* What has been read of one message. */
typedef struct gathered {
    json_t *to; /* messages of chat; borrowed */
    const char *role;
    place at;
    buf text, thinking;
    bool has_text;
    json_t *calls; /* of an assistant; owned */
} gathered;

static int refuse_at(const place *at, size_t block, const char *why, api_error *e)
{
    char where[64];
    if (at->is_message)
        snprintf(where, sizeof where, "messages[%zu].%s[%zu]", at->message, at->within, block);
    else
        snprintf(where, sizeof where, "%s[%zu]", at->within, block);
    return api_error_bad(e, at->is_message ? "messages" : at->within, "%s: %s", where, why);
}

/* A block that is read by no model here: said by its type. */
static int refuse_block(const place *at, size_t i, const char *type, api_error *e)
{
    char why[200];
    if (!type) return refuse_at(at, i, "must be an object with a \"type\"", e);
    if (strcmp(type, "image") == 0 || strcmp(type, "document") == 0)
        snprintf(why, sizeof why,
                 "models here read text alone, and this block is of type \"%.40s\": send blocks of type "
                 "\"text\"",
                 type);
    else
        snprintf(why, sizeof why, "blocks of type \"%.60s\" are not taken here", type);
    return refuse_at(at, i, why, e);
}

static void join(buf *to, bool *has, const char *s, size_t n)
{
    if (*has) buf_putc(to, '\n');
    buf_append(to, s, n);
    *has = true;
}

static json_t *text_value(const buf *b)
{
    return b->failed ? NULL : json_stringn(b->len ? b->data : "", b->len);
}

/* The text of a "text" block, or of a "document" that is plain text; NULL: it is none, and *e says so. */
static const json_t *text_of(const json_t *block, const place *at, size_t i, api_error *e)
{
    const char *type = fields_text(json_object_get(block, "type"));
    const json_t *source = fields_get(block, "source"), *text = NULL;
    const char *kind = fields_text(fields_get(source, "type"));
    if (type && strcmp(type, "text") == 0)
        text = json_object_get(block, "text");
    else if (type && strcmp(type, "document") == 0 && kind && strcmp(kind, "text") == 0)
        text = json_object_get(source, "data");
    else
        refuse_block(at, i, type, e);
    if (e->status == 0 && !json_is_string(text)) refuse_at(at, i, "\"text\" must be a string", e);
    return e->status == 0 ? text : NULL;
}

/* A string, or blocks of text; absent: nothing. */
static int read_text(buf *out, const json_t *content, const place *at, api_error *e)
{
    bool has = false;
    size_t i;
    json_t *block;
    *e = (api_error){0};
    if (json_is_string(content)) {
        buf_append(out, json_string_value(content), json_string_length(content));
        return 0;
    }
    if (content && !json_is_array(content))
        return api_error_bad(e, at->within, "\"%s\" must be a string or an array of text blocks", at->within);
    json_array_foreach((json_t *)content, i, block)
    {
        const json_t *text = text_of(block, at, i, e);
        if (!text) return e->status;
        join(out, &has, json_string_value(text), json_string_length(text));
    }
    return 0;
}

/* ---- messages of chat ---------------------------------------------------------------------------- */

/* The last message of chat where it is of this role and nothing but text; NULL: it is not. */
static json_t *joinable(const json_t *to, const char *role)
{
    json_t *last = json_array_get(to, json_array_size(to) - 1);
    const char *its = json_string_value(json_object_get(last, "role"));
    return its && strcmp(its, role) == 0 && json_object_size(last) == 2 ? last : NULL;
}

static int add_text(json_t *to, const char *role, const buf *text, api_error *e)
{
    json_t *last = joinable(to, role);
    const json_t *before = json_object_get(last, "content");
    if (!last)
        return fields_append(to, json_pack("{s:s, s:o}", "role", role, "content", text_value(text)), e);
    buf all = {0};
    bool has = json_string_length(before) > 0;
    buf_append(&all, json_string_value(before), json_string_length(before));
    if (text->len || text->failed) join(&all, &has, text->data, text->len);
    all.failed |= text->failed;
    int rc = fields_put(last, "content", text_value(&all), e);
    buf_done(&all);
    return rc;
}

/* What has been gathered as a message of chat; nothing where nothing was. */
static int flush(gathered *g, api_error *e)
{
    int rc = 0;
    if (!g->calls && !g->thinking.len && !g->thinking.failed) {
        if (g->has_text) rc = add_text(g->to, g->role, &g->text, e);
    } else {
        json_t *m = json_pack("{s:s, s:o}", "role", g->role, "content", text_value(&g->text));
        rc = fields_append(g->to, m, e);
        if (rc == 0 && (g->thinking.len || g->thinking.failed))
            rc = fields_put(m, "reasoning_content", text_value(&g->thinking), e);
        if (rc == 0 && g->calls) rc = fields_put(m, "tool_calls", json_incref(g->calls), e);
    }
    buf_clear(&g->text);
    g->has_text = false;
    return rc;
}

/* ---- blocks -------------------------------------------------------------------------------------- */

static int read_call(gathered *g, const json_t *block, size_t i, api_error *e)
{
    const char *id = fields_text(json_object_get(block, "id")),
               *name = fields_text(json_object_get(block, "name"));
    const json_t *input = json_object_get(block, "input");
    buf arguments = {0};
    if (!id || !name || !json_is_object(input))
        return refuse_at(&g->at, i,
                         "tool_use needs \"id\" and \"name\" as strings and \"input\" as an object", e);
    if (!g->calls && !(g->calls = json_array())) return api_error_nomem(e);
    json_put(&arguments, input);
    json_t *call = json_pack("{s:s, s:s, s:{s:s, s:o}}", "id", id, "type", "function", "function", "name",
                             name, "arguments", text_value(&arguments));
    buf_done(&arguments);
    return fields_append(g->calls, call, e);
}

/* Chat has no field for a call that failed: the model reads it. */
static int read_result(gathered *g, const json_t *block, size_t i, api_error *e)
{
    static const char FAILED[] = "Error: ";
    const char *id = fields_text(json_object_get(block, "tool_use_id"));
    char within[48];
    place at = {.message = g->at.message, .within = within, .is_message = true};
    bool is_error = false;
    buf text = {0};
    snprintf(within, sizeof within, "content[%zu].content", i);
    if (!id) return refuse_at(&g->at, i, "tool_result needs \"tool_use_id\" as a string", e);
    int rc = fields_bool(block, "is_error", &is_error, e);
    if (rc == 0) rc = flush(g, e);
    if (rc == 0 && is_error) buf_puts(&text, FAILED);
    if (rc == 0) rc = read_text(&text, fields_get(block, "content"), &at, e);
    if (rc == 0)
        rc = fields_append(
            g->to,
            json_pack("{s:s, s:s, s:o}", "role", "tool", "tool_call_id", id, "content", text_value(&text)),
            e);
    buf_done(&text);
    return rc;
}

static int read_thinking(gathered *g, const json_t *block, size_t i, api_error *e)
{
    const json_t *text = json_object_get(block, "thinking");
    bool has = g->thinking.len > 0;
    if (!json_is_string(text)) return refuse_at(&g->at, i, "\"thinking\" must be a string", e);
    if (json_string_length(text) > 0)
        join(&g->thinking, &has, json_string_value(text), json_string_length(text));
    return 0;
}

static bool is_type(const char *type, const char *wanted)
{
    return type && strcmp(type, wanted) == 0;
}

static int read_block(gathered *g, const json_t *block, size_t i, api_error *e)
{
    const char *type = fields_text(json_object_get(block, "type"));
    bool assistant = strcmp(g->role, "assistant") == 0, user = strcmp(g->role, "user") == 0;
    *e = (api_error){0};
    if (assistant && is_type(type, "tool_use")) return read_call(g, block, i, e);
    if (assistant && is_type(type, "thinking")) return read_thinking(g, block, i, e);
    if (assistant && is_type(type, "redacted_thinking")) return 0; /* nobody here can read it */
    if (user && is_type(type, "tool_result")) return read_result(g, block, i, e);
    const json_t *text = text_of(block, &g->at, i, e);
    if (!text) return e->status;
    join(&g->text, &g->has_text, json_string_value(text), json_string_length(text));
    return 0;
}

static int read_content(gathered *g, const json_t *content, api_error *e)
{
    int rc = 0;
    size_t i;
    json_t *block;
    if (json_is_string(content)) {
        join(&g->text, &g->has_text, json_string_value(content), json_string_length(content));
        return flush(g, e);
    }
    if (!json_is_array(content) || (json_array_size(content) == 0 && strcmp(g->role, "assistant") != 0))
        return api_error_bad(e, "messages",
                             "messages[%zu].content must be a string or an array of content blocks, with at "
                             "least one",
                             g->at.message);
    json_array_foreach((json_t *)content, i, block)
    {
        rc = read_block(g, block, i, e);
        if (rc != 0) return rc;
    }
    return flush(g, e);
}

static int read_message(json_t *to, const json_t *m, size_t i, api_error *e)
{
    static const char *const ROLES[] = {"user", "assistant", "system"};
    const char *role = fields_text(json_object_get(m, "role"));
    gathered g = {.to = to, .at = {.message = i, .within = "content", .is_message = true}};
    for (size_t k = 0; role && k < sizeof ROLES / sizeof *ROLES; k++)
        if (strcmp(role, ROLES[k]) == 0) g.role = ROLES[k];
    if (!g.role)
        return api_error_bad(e, "messages",
                             "messages[%zu].role must be \"user\", \"assistant\" or \"system\"", i);
    int rc = read_content(&g, fields_get(m, "content"), e);
    buf_done(&g.text);
    buf_done(&g.thinking);
    json_decref(g.calls);
    return rc;
}

/* ---- the request --------------------------------------------------------------------------------- */

static int read_system(json_t *to, const json_t *root, api_error *e)
{
    const json_t *system = fields_get(root, "system");
    const place at = {.within = "system"};
    buf text = {0};
    int rc = read_text(&text, system, &at, e);
    if (rc == 0 && (text.len || text.failed)) rc = add_text(to, "system", &text, e);
    buf_done(&text);
    return rc;
}

/* Its text would be answered, not continued. */
static int refuse_prefill(const json_t *messages, api_error *e)
{
    const json_t *last = json_array_get(messages, json_array_size(messages) - 1);
    const char *role = json_string_value(json_object_get(last, "role"));
    if (!role || strcmp(role, "assistant") != 0) return 0;
    return api_error_bad(
        e, "messages",
        "the last message is the assistant's, and answers are not continued here (prefill): end "
        "with a message of the user");
}

int anthropic_read_messages(json_t *to, const json_t *root, api_error *e)
{
    const json_t *messages = fields_get(root, "messages");
    size_t i;
    json_t *m;
    if (!json_is_array(messages) || json_array_size(messages) == 0)
        return api_error_bad(e, "messages", "\"messages\" must be an array with at least one message");
    int rc = read_system(to, root, e);
    if (rc == 0) rc = refuse_prefill(messages, e);
    if (rc != 0) return rc;
    json_array_foreach((json_t *)messages, i, m)
    {
        rc = read_message(to, m, i, e);
        if (rc != 0) return rc;
    }
    return 0;
}
