/* mcp_tools.c: see mcp_tools.h. */
#include "compat/mcp_tools.h"

#include <stdio.h>
#include <string.h>

#include "json/json.h"
#include "json/json_put.h"
#include "messages/fields.h"
#include "tasks/task.h"

typedef enum tool_of { OF_MODELS, OF_PIPELINES, OF_COLLECTIONS } tool_of;

struct mcp_tool {
    const char *name, *title, *description;
    tool_of of;
    const char *does;          /* of models: what they must do (task_fits) */
    const char *method, *path; /* '*': the argument "collection" */
    const char *required;      /* arguments, as a JSON list */
    const char *properties;    /* of the input's schema, a JSON object, without the model or pipeline */
    const char *text; /* where the answer has the text that is its point, as "choices/0/message/content" */
    bool reads_only;  /* it changes nothing, here or elsewhere */
};

#define TEXT_OR_TEXTS \
    "{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"array\",\"items\":{\"type\":\"string\"}}]}"
#define COLLECTION \
    "\"collection\":{\"type\":\"string\",\"description\":\"Its name, as the tool collections says it\"}"

static const mcp_tool TOOLS[] = {
    {"process", "Understand a request",
     "Understand a request in words and return what is to be done: an action for one of the "
     "devices that are offered, an answer, or a question back",
     OF_PIPELINES, NULL, "POST", "/v1/process", "[\"input\"]",
     "{\"input\":{\"type\":\"string\",\"description\":\"The request, such as: turn on the kitchen light\"},"
     "\"devices\":{\"type\":\"array\",\"items\":{\"type\":\"object\"},\"description\":\"Devices in place of "
     "the configured ones\"},"
     "\"confirm\":{\"type\":\"string\",\"description\":\"The token of the question that this answers\"},"
     "\"session\":{\"type\":\"string\",\"description\":\"A name of the conversation\"}}",
     NULL, false},
    {"chat", "Ask a small language model",
     "Ask a small language model that runs on this machine. It is fast and private, and knows "
     "less than a large one",
     OF_MODELS, "generate", "POST", "/v1/chat/completions", "[\"prompt\"]",
     "{\"prompt\":{\"type\":\"string\"},\"system\":{\"type\":\"string\",\"description\":\"Instructions\"},"
     "\"max_tokens\":{\"type\":\"integer\",\"minimum\":1},\"temperature\":{\"type\":\"number\",\"minimum\":0,"
     "\"maximum\":2}}",
     "choices/0/message/content", true},
    {"classify", "Classify texts", "Return the labels of texts with their scores, the best first", OF_MODELS,
     "classify", "POST", "/v1/classify", "[\"input\"]",
     "{\"input\":" TEXT_OR_TEXTS ",\"top_k\":{\"type\":\"integer\",\"minimum\":1}}", NULL, true},
    {"tag", "Find spans in texts", "Return the labelled spans of texts, such as names, places and times",
     OF_MODELS, "tag", "POST", "/v1/tag", "[\"input\"]", "{\"input\":" TEXT_OR_TEXTS "}", NULL, true},
    {"embed", "Embed texts", "Return a vector for each text", OF_MODELS, "embed", "POST", "/v1/embeddings",
     "[\"input\"]", "{\"input\":" TEXT_OR_TEXTS "}", NULL, true},
    {"rerank", "Rank documents", "Rank documents by their relevance to a query", OF_MODELS, "rerank", "POST",
     "/v1/rerank", "[\"query\",\"documents\"]",
     "{\"query\":{\"type\":\"string\"},\"documents\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}},"
     "\"top_n\":{\"type\":\"integer\",\"minimum\":1}}",
     NULL, true},
    {"fill_mask", "Predict masked words", "Return the likeliest words for [MASK] in a text", OF_MODELS,
     "fill-mask", "POST", "/v1/fill-mask", "[\"input\"]", "{\"input\":{\"type\":\"string\"}}", NULL, true},
    {"collections", "List collections of documents", "List the collections of documents that can be searched",
     OF_COLLECTIONS, "embed", "GET", "/v1/collections", "[]", "{}", NULL, true},
    {"search", "Search documents",
     "Return the passages of a collection of documents that fit a query, the best first", OF_COLLECTIONS,
     "embed", "POST", "/v1/collections/*/search", "[\"collection\",\"query\"]",
     "{" COLLECTION ",\"query\":{\"type\":\"string\"},\"limit\":{\"type\":\"integer\",\"minimum\":1}}", NULL,
     true},
    {"answer", "Answer from documents",
     "Answer a question from the documents of a collection, with the passages that it "
     "rests on",
     OF_COLLECTIONS, "generate", "POST", "/v1/collections/*/answer", "[\"collection\",\"question\"]",
     "{" COLLECTION ",\"question\":{\"type\":\"string\"}}", NULL, true},
};
enum { N_TOOLS = sizeof TOOLS / sizeof *TOOLS };

const mcp_tool *mcp_tool_find(const char *name)
{
    for (size_t i = 0; i < N_TOOLS; i++)
        if (strcmp(TOOLS[i].name, name) == 0) return &TOOLS[i];
    return NULL;
}

/* ---- a call -------------------------------------------------------------------------------------- */

static int check_required(const mcp_tool *t, const json_t *arguments, api_error *e)
{
    shoal_err err;
    json_t *names = NULL, *name;
    size_t i;
    int rc = json_parse(&names, t->required, strlen(t->required), "tool", &err) == 0 ? 0 : api_error_nomem(e);
    json_array_foreach(names, i, name)
    {
        const char *key = json_string_value(name);
        if (rc == 0 && !fields_get(arguments, key))
            rc = api_error_bad(e, key, "the tool %s needs the argument \"%s\"", t->name, key);
    }
    json_decref(names);
    return rc;
}

/* A name of a collection has no other characters, and "/" would name another path. */
static bool is_segment(const char *s)
{
    return *s && *s != '.' &&
           s[strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")] == '\0';
}

static int put_path(const mcp_tool *t, const json_t *arguments, char *path, size_t cap, api_error *e)
{
    const char *star = strchr(t->path, '*'), *name = NULL;
    if (!star) {
        snprintf(path, cap, "%s", t->path);
        return 0;
    }
    int rc = fields_str(arguments, "collection", &name, e);
    if (rc != 0) return rc;
    if (!is_segment(name) || strlen(name) + strlen(t->path) >= cap)
        return api_error_bad(e, "collection", "\"%.100s\" is no name of a collection", name);
    snprintf(path, cap, "%.*s%s%s", (int)(star - t->path), t->path, name, star + 1);
    return 0;
}

static int chat_messages(json_t *body, api_error *e)
{
    json_t *messages = json_array();
    const char *system = NULL, *prompt = NULL;
    int rc = fields_str(body, "system", &system, e);
    if (rc == 0) rc = fields_str(body, "prompt", &prompt, e);
    if (rc == 0 && system && *system)
        rc = fields_append(messages, json_pack("{s:s,s:s}", "role", "system", "content", system), e);
    if (rc == 0) rc = fields_append(messages, json_pack("{s:s,s:s}", "role", "user", "content", prompt), e);
    json_object_del(body, "system");
    json_object_del(body, "prompt");
    if (rc != 0) {
        json_decref(messages);
        return rc;
    }
    return fields_put(body, "messages", messages, e);
}

int mcp_tool_request(const mcp_tool *t, const json_t *arguments, const char **ret_method, char *path,
                     size_t cap, buf *body, api_error *e)
{
    json_t *ours = json_object();
    int rc = check_required(t, arguments, e);
    if (rc == 0) rc = put_path(t, arguments, path, cap, e);
    if (rc == 0 && (!ours || (arguments && json_object_update(ours, (json_t *)arguments) != 0)))
        rc = api_error_nomem(e);
    if (rc == 0 && t->of == OF_COLLECTIONS) json_object_del(ours, "collection");
    if (rc == 0 && strcmp(t->name, "chat") == 0) rc = chat_messages(ours, e);
    if (rc == 0) json_object_del(ours, "stream"); /* an answer to a call is whole */
    *ret_method = t->method;
    if (rc == 0 && strcmp(t->method, "GET") != 0) json_put(body, ours);
    json_decref(ours);
    return rc == 0 && body->failed ? api_error_nomem(e) : rc;
}

/* ---- its answer ---------------------------------------------------------------------------------- */

static const json_t *at_path(const json_t *j, const char *path)
{
    char key[32];
    while (j && *path) {
        size_t n = strcspn(path, "/");
        snprintf(key, sizeof key, "%.*s", (int)n, path);
        j = json_is_array(j) ? json_array_get(j, (size_t)(key[0] - '0')) : json_object_get(j, key);
        path += n + (path[n] == '/');
    }
    return j;
}

void mcp_tool_put_text(buf *out, const mcp_tool *t, const json_t *answer)
{
    const json_t *text = t->text ? at_path(answer, t->text) : NULL;
    if (json_is_string(text))
        buf_append(out, json_string_value(text), json_string_length(text));
    else
        json_put_digits(out, answer, ANSWER_DIGITS);
}

/* ---- the list ------------------------------------------------------------------------------------ */

static bool model_fits(const json_t *m, const char *does)
{
    const char *task = json_string_value(json_object_get(m, "task"));
    return task && task_fits(does, task, json_array_size(json_object_get(m, "labels")));
}

/* The names that may be asked for, as an enum; false: there is none. */
static bool put_names(buf *out, const mcp_tool *t, const json_t *list)
{
    size_t i, n = 0;
    json_t *o;
    json_array_foreach(json_object_get(list, "data"), i, o)
    {
        const char *id = json_string_value(json_object_get(o, "id"));
        if (!id || (t->does && !model_fits(o, t->does))) continue;
        if (out) json_put_text(out, NULL, id);
        n++;
    }
    return n > 0;
}

static void put_schema(buf *out, const mcp_tool *t, const json_t *list)
{
    const char *named = t->of == OF_PIPELINES ? "pipeline" : "model";
    json_put_open(out, "inputSchema", '{');
    buf_printf(out, "\"type\":\"object\",\"required\":%s,\"properties\":%.*s", t->required,
               (int)strlen(t->properties) - 1, t->properties);
    if (t->of != OF_COLLECTIONS) {
        json_put_open(out, named, '{');
        buf_printf(out,
                   "\"type\":\"string\",\"description\":\"May be left out where there is one\",\"enum\":[");
        put_names(out, t, list);
        buf_puts(out, "]}");
    }
    buf_puts(out, "}}");
}

static void put_tool(buf *out, const mcp_tool *t, const json_t *list)
{
    json_put_open(out, NULL, '{');
    json_put_text(out, "name", t->name);
    json_put_text(out, "title", t->title);
    json_put_text(out, "description", t->description);
    put_schema(out, t, list);
    json_put_open(out, "annotations", '{');
    json_put_text(out, "title", t->title);
    json_put_bool(out, "readOnlyHint", t->reads_only);
    json_put_bool(out, "openWorldHint", false);
    buf_puts(out, "}}");
}

void mcp_tools_put(buf *out, const json_t *models, const json_t *pipelines)
{
    for (size_t i = 0; i < N_TOOLS; i++) {
        const json_t *list = TOOLS[i].of == OF_PIPELINES ? pipelines : models;
        if (put_names(NULL, &TOOLS[i], list)) put_tool(out, &TOOLS[i], list);
    }
}
