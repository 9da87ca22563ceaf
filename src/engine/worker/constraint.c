/* constraint.c: the constraint of a GenerateRequest -> grammar_spec. */
#include "worker/constraint.h"

#include <stdlib.h>
#include <string.h>

#include "json/json.h"
#include "grammar/grammar_relax.h"
#include "worker/service.h"

#define CONSTRAINT(name)  SHOAL__V1__GENERATE_REQUEST__CONSTRAINT__##name
#define TOOL_CHOICE(name) SHOAL__V1__GENERATE_REQUEST__TOOL_CHOICE__##name

enum {
    MAX_CHOICES = 1024,
    /* Each keyword that is left out is one more compilation: from the fourth on it goes
     * everywhere, and what took all of a compilation's work counts for more. Then all of the schema goes. */
    RELAX_MAX = 12,
    RELAX_ONE_BY_ONE = 3,
    RELAX_WORK = 3,
};

int constraint_check(const Shoal__V1__GenerateRequest *r, shoal_err *err)
{
    if ((unsigned)r->constraint > CONSTRAINT(CHOICES))
        return err_set(err, SHOAL_EINVALID, "there is no constraint %d", (int)r->constraint);
    if ((unsigned)r->tool_choice > TOOL_CHOICE(TOOL_NONE))
        return err_set(err, SHOAL_EINVALID, "there is no tool choice %d", (int)r->tool_choice);
    if (r->constraint == CONSTRAINT(TOOLS) && r->tool_choice == TOOL_CHOICE(TOOL_NONE))
        return err_set(err, SHOAL_EINVALID,
                       "the constraint TOOLS and the tool choice TOOL_NONE exclude each other");
    if (r->n_choices > MAX_CHOICES)
        return err_set(err, SHOAL_EINVALID, "%zu choices: at most %d", r->n_choices, MAX_CHOICES);
    int rc = service_check_utf8(r->tool_name, "tool_name", err);
    for (size_t i = 0; rc == 0 && i < r->n_choices; i++)
        rc = service_check_utf8(r->choices[i], "choices", err);
    return rc;
}

/* ---- results as replies -------------------------------------------------------------------------- */

static bool constraint_is_result(const json_t *m)
{
    const char *role = json_string_value(json_object_get(m, "role"));
    return role && (strcmp(role, "tool") == 0 || strcmp(role, "function") == 0);
}

/* The texts of the results that end the conversation, one a line; "" when it does not end in one. */
static void constraint_put_results(buf *out, const json_t *messages)
{
    size_t n = json_array_size(messages), first = n;
    while (first > 0 && constraint_is_result(json_array_get(messages, first - 1))) first--;
    for (size_t i = first; i < n; i++) {
        const char *text = json_string_value(json_object_get(json_array_get(messages, i), "content"));
        if (!text || !*text) continue;
        if (out->len) buf_putc(out, '\n');
        buf_puts(out, text);
    }
    if (first < n && out->len == 0) buf_puts(out, "The tool gave no result.");
}

/* Some models cannot answer from a tool's result: their replies would be invented. Their file says so, and
 * the reply is the result itself. */
static int quote_results(output_constraint *f, const Shoal__V1__GenerateRequest *r, shoal_err *err)
{
    json_t *messages = NULL;
    buf text = {0};
    int rc = json_parse(&messages, r->messages_json, strlen(r->messages_json), "messages", err);
    if (rc == 0) constraint_put_results(&text, messages);
    json_decref(messages);
    if (text.failed) rc = err_nomem(err);
    if (rc == 0 && text.len > 0) {
        f->quote = buf_take(&text);
        f->choice[0] = f->quote;
        f->own = (grammar_spec){.kind = GRAMMAR_CHOICES, .choices = f->choice, .n_choices = 1};
        f->spec = &f->own;
    }
    buf_done(&text);
    return rc;
}

/* ---- the constraint ------------------------------------------------------------------------------ */

static void tools_spec(output_constraint *f, const Shoal__V1__GenerateRequest *r)
{
    f->own.kind = GRAMMAR_TOOLS;
    f->own.tools_json = r->tools_json;
    f->own.mode = r->tool_choice == TOOL_CHOICE(TOOL_REQUIRED) ? TOOLS_REQUIRED
                  : r->tool_choice == TOOL_CHOICE(TOOL_NAMED)  ? TOOLS_NAMED
                                                               : TOOLS_AUTO;
    f->own.tool_name = r->tool_name;
    f->own.parallel = r->parallel_tool_calls;
}

int constraint_init(output_constraint *ret, bool quotes_results, const Shoal__V1__GenerateRequest *r,
                    shoal_err *err)
{
    *ret = (output_constraint){0};
    bool tools = r->constraint == CONSTRAINT(TOOLS), none = r->constraint == CONSTRAINT(NONE);
    bool may_talk = none || (tools && r->tool_choice == TOOL_CHOICE(TOOL_AUTO));
    if (may_talk && *r->messages_json && quotes_results) {
        int rc = quote_results(ret, r, err);
        if (rc != 0 || ret->spec) return rc;
    }
    if (none) return 0;
    ret->spec = &ret->own;
    ret->own = (grammar_spec){.kind = GRAMMAR_JSON_OBJECT, .schema = r->schema};
    if (r->constraint == CONSTRAINT(JSON_SCHEMA)) ret->own.kind = GRAMMAR_JSON_SCHEMA;
    ret->own.open = ret->may_relax = r->relaxed;
    if (r->constraint == CONSTRAINT(CHOICES))
        ret->own = (grammar_spec){
            .kind = GRAMMAR_CHOICES, .choices = (const char *const *)r->choices, .n_choices = r->n_choices};
    if (tools) tools_spec(ret, r);
    return 0;
}

void constraint_add_model(output_constraint *f, const toolcall_syntax *calls, const thinking_form *thinking,
                          bool in_thought)
{
    f->own.syntax = calls;
    f->own.thinking = thinking;
    f->own.in_thought = in_thought;
}

/* ---- schemas that cannot be enforced -------------------------------------------------------------- */

/* A message of the grammar's begins with where it is: "tools/3/function/parameters...". */
static bool refused_tool(const shoal_err *why, size_t *ret)
{
    static const char PREFIX[] = "tools/";
    const char *at = strstr(why->message, PREFIX);
    char *end = NULL;
    if (!at) return false;
    unsigned long i = strtoul(at + strlen(PREFIX), &end, 10);
    if (strncmp(end, "/function/parameters", 20) != 0) return false;
    *ret = i;
    return true;
}

/* Takes nothing; the new text is what the grammar reads next. */
static const char *write_anew(output_constraint *f, const json_t *of)
{
    buf packed = {0};
    json_put(&packed, of);
    char *text = buf_take(&packed);
    if (!text) return NULL;
    free(f->text);
    return f->text = text;
}

/* Of one schema, as long as there is patience. */
static bool relax_some(output_constraint *f, json_t *schema, const shoal_err *why)
{
    bool everywhere = f->n_relaxed >= RELAX_ONE_BY_ONE, patient = f->n_relaxed < RELAX_MAX;
    f->n_relaxed += why->code == SHOAL_ELIMIT ? RELAX_WORK : 1;
    return patient && schema_relax(schema, why, everywhere);
}

static bool relax_tool(output_constraint *f, size_t i, shoal_err *why)
{
    json_t *function = json_object_get(json_array_get(f->tools, i), "function");
    if (json_is_true(json_object_get(function, "strict"))) { /* OpenAI's default is that it is not */
        const shoal_err said = *why;
        err_set(why, said.code, "%s (without \"strict\": true it is looked at when the call is written)",
                said.message);
        return false;
    }
    json_t *parameters = json_object_get(function, "parameters");
    if (!relax_some(f, parameters, why) && json_object_del(function, "parameters") != 0) return false;
    return (f->own.tools_json = write_anew(f, f->tools)) != NULL;
}

/* Of a schema nothing but its "type"; false: that is all that it has, or there is no memory. */
static bool keep_type(json_t *schema)
{
    json_t *type = json_incref(json_object_get(schema, "type"));
    bool ok = json_object_size(schema) > (type ? 1u : 0u) && json_object_clear(schema) == 0 &&
              (!type || json_object_set(schema, "type", type) == 0);
    json_decref(type);
    return ok;
}

static bool relax_schema(output_constraint *f, shoal_err *why)
{
    if (!f->may_relax) {
        const shoal_err said = *why;
        err_set(why, said.code, "%s (with \"strict\": false it is looked at when the reply is written)",
                said.message);
        return false;
    }
    if (!f->schema && json_parse(&f->schema, f->own.schema, strlen(f->own.schema), "schema", NULL) != 0)
        return false;
    if (!relax_some(f, f->schema, why) && !keep_type(f->schema)) return false;
    return (f->own.schema = write_anew(f, f->schema)) != NULL;
}

bool constraint_relax(output_constraint *f, shoal_err *why)
{
    static const char SCHEMA[] = "json_schema:", WHOLE[] = "the form of the reply";
    size_t i;
    if (f->spec != &f->own) return false;
    bool about_it = strncmp(why->message, SCHEMA, strlen(SCHEMA)) == 0 ||
                    strncmp(why->message, WHOLE, strlen(WHOLE)) == 0;
    if (f->own.kind == GRAMMAR_JSON_SCHEMA && about_it) return relax_schema(f, why);
    if (f->own.kind != GRAMMAR_TOOLS || !refused_tool(why, &i)) return false;
    if (!f->tools && json_parse(&f->tools, f->own.tools_json, strlen(f->own.tools_json), "tools", NULL) != 0)
        return false;
    return relax_tool(f, i, why);
}

void constraint_done(output_constraint *f)
{
    json_decref(f->tools);
    json_decref(f->schema);
    free(f->text);
    free(f->quote);
}
