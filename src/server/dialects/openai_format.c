/* openai_format.c: what a request says about the form of its reply. OpenAI's "response_format" and the fields
 * in which other servers take the same request (llama-server, TGI, vLLM) become one constraint. A constraint
 * that cannot be enforced is refused by its name: a reply that ignores it looks right and is not. */
#include <stdio.h>
#include <string.h>

#include "json/json.h"
#include "messages/fields.h"
#include "dialects/openai_chat.h"

#define CONSTRAINT(name)  SHOAL__V1__GENERATE_REQUEST__CONSTRAINT__##name
#define TOOL_CHOICE(name) SHOAL__V1__GENERATE_REQUEST__TOOL_CHOICE__##name

#define FORMAT_CHOICES_MAX 256

/* All that the fields of one request ask for; NULL where nothing does. */
typedef struct format_request {
    const json_t *schema, *choice;
    const char *schema_field, *choice_field, *object_field; /* which field asked, for messages */
    bool relaxed;                                           /* the schema says "strict": false */
    json_t *parsed;                                         /* owned: schemas that came as JSON text */
} format_request;

static int contradict(const char *field, const char *other, api_error *e)
{
    return api_error_bad(e, field, "\"%s\" and \"%s\" ask for different forms of the reply: send one of them",
                         field, other);
}

static int request_schema(format_request *w, const json_t *schema, const char *field, api_error *e)
{
    if (!json_is_object(schema)) return api_error_bad(e, field, "%s must be a JSON schema object", field);
    if (w->schema && !json_equal(w->schema, schema)) return contradict(field, w->schema_field, e);
    if (w->schema) return 0;
    w->schema = schema;
    w->schema_field = field;
    return 0;
}

/* ---- response_format ------------------------------------------------------------------------------- */

static int read_json_schema(format_request *w, const json_t *format, api_error *e)
{
    const json_t *form = json_object_get(format, "json_schema"), *schema = fields_get(form, "schema");
    bool strict = true;
    if (!json_is_object(schema))
        return api_error_bad(e, "response_format",
                             "response_format.json_schema.schema must be a JSON schema object");
    if (fields_bool(form, "strict", &strict, e) != 0)
        return api_error_bad(e, "response_format",
                             "response_format.json_schema.strict must be true or false");
    w->relaxed = !strict;
    return request_schema(w, schema, "response_format", e);
}

/* llama-server says the schema of a "json_object" as "schema", TGI as "value". */
static int read_json_object(format_request *w, const json_t *format, api_error *e)
{
    static const char *const FIELDS[] = {"response_format.schema", "response_format.value"};
    w->object_field = "response_format";
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < sizeof FIELDS / sizeof *FIELDS; i++) {
        const json_t *schema = fields_get(format, strchr(FIELDS[i], '.') + 1);
        if (schema) rc = request_schema(w, schema, FIELDS[i], e);
    }
    return rc;
}

static int read_response_format(format_request *w, const gen_spec *s, api_error *e)
{
    const json_t *f = fields_get(s->root, "response_format");
    if (!f) return 0;
    const char *type = fields_text(json_object_get(f, "type"));
    if (!type) return api_error_bad(e, "response_format", "response_format.type must be a string");
    if (strcmp(type, "text") == 0) return 0;
    if (strcmp(type, "json_object") == 0) return read_json_object(w, f, e);
    if (strcmp(type, "json_schema") == 0) return read_json_schema(w, f, e);
    return api_error_bad(e, "response_format",
                         "response_format.type must be text, json_object or json_schema");
}

/* ---- fields of other servers ----------------------------------------------------------------------- */

/* vLLM takes a schema as an object or as its JSON text. */
static int read_schema_field(format_request *w, const json_t *v, const char *field, api_error *e)
{
    shoal_err err;
    json_t *parsed = NULL;
    if (!v) return 0;
    if (!json_is_string(v)) return request_schema(w, v, field, e);
    int rc = json_parse(&parsed, json_string_value(v), json_string_length(v), field, &err);
    if (rc != 0 && rc != SHOAL_ENOMEM) return api_error_bad(e, field, "%s", err.message);
    if (rc != 0 || json_array_append_new(w->parsed, parsed) != 0) return api_error_nomem(e);
    return request_schema(w, parsed, field, e);
}

static int read_choice(format_request *w, const json_t *v, const char *field, api_error *e)
{
    size_t n = json_array_size(v);
    if (!v) return 0;
    bool fine = n > 0 && n <= FORMAT_CHOICES_MAX;
    for (size_t i = 0; fine && i < n; i++) {
        const char *text = fields_text(json_array_get(v, i));
        fine = text && *text;
    }
    if (!fine)
        return api_error_bad(e, field, "%s must be an array of 1 to %d texts, none of them empty", field,
                             FORMAT_CHOICES_MAX);
    if (w->choice && !json_equal(w->choice, v)) return contradict(field, w->choice_field, e);
    w->choice = v;
    w->choice_field = field;
    return 0;
}

static int read_object_flag(format_request *w, const json_t *o, const char *key, const char *field,
                            api_error *e)
{
    bool on = false;
    int rc = fields_bool(o, key, &on, e);
    if (rc == 0 && on) w->object_field = field;
    return rc;
}

/* "" and null ask for nothing. */
static int refuse_field(const json_t *o, const char *key, const char *field, api_error *e)
{
    const json_t *v = fields_get(o, key);
    if (!v || (json_is_string(v) && json_string_length(v) == 0)) return 0;
    return api_error_bad(e, field,
                         "\"%s\" is not served: describe the reply by a JSON schema in \"response_format\", "
                         "or by \"guided_choice\"",
                         field);
}

static int read_structured(format_request *w, const json_t *o, api_error *e)
{
    static const char *const REFUSED[] = {"regex", "grammar", "structural_tag"};
    static const char *const NAMES[] = {"structured_outputs.regex", "structured_outputs.grammar",
                                        "structured_outputs.structural_tag"};
    if (!o) return 0;
    if (!json_is_object(o))
        return api_error_bad(e, "structured_outputs", "\"structured_outputs\" must be an object");
    int rc = read_schema_field(w, fields_get(o, "json"), "structured_outputs.json", e);
    if (rc == 0) rc = read_choice(w, fields_get(o, "choice"), "structured_outputs.choice", e);
    if (rc == 0) rc = read_object_flag(w, o, "json_object", "structured_outputs.json_object", e);
    for (size_t i = 0; rc == 0 && i < sizeof REFUSED / sizeof *REFUSED; i++)
        rc = refuse_field(o, REFUSED[i], NAMES[i], e);
    return rc;
}

static int read_foreign(format_request *w, const json_t *root, api_error *e)
{
    static const char *const REFUSED[] = {"grammar", "guided_grammar", "guided_regex",
                                          "regex",   "ebnf",           "structural_tag"};
    int rc = read_schema_field(w, fields_get(root, "json_schema"), "json_schema", e);
    if (rc == 0) rc = read_schema_field(w, fields_get(root, "guided_json"), "guided_json", e);
    if (rc == 0) rc = read_choice(w, fields_get(root, "guided_choice"), "guided_choice", e);
    if (rc == 0) rc = read_structured(w, fields_get(root, "structured_outputs"), e);
    for (size_t i = 0; rc == 0 && i < sizeof REFUSED / sizeof *REFUSED; i++)
        rc = refuse_field(root, REFUSED[i], REFUSED[i], e);
    return rc;
}

/* ---- the constraint -------------------------------------------------------------------------------- */

static int take_choices(gen_spec *s, const json_t *list, api_error *e)
{
    size_t n = json_array_size(list);
    s->choices = arena_alloc(s->mem, (n + 1) * sizeof *s->choices);
    if (!s->choices) return api_error_nomem(e);
    for (size_t i = 0; i < n; i++)
        s->choices[s->n_choices++] = (char *)json_string_value(json_array_get(list, i));
    s->constraint = CONSTRAINT(CHOICES);
    return 0;
}

static int take_schema(gen_spec *s, const format_request *w, api_error *e)
{
    s->schema = openai_to_arena(s, w->schema);
    s->judge = w->relaxed ? w->schema : NULL;
    s->constraint = CONSTRAINT(JSON_SCHEMA);
    return s->schema ? 0 : api_error_nomem(e);
}

/* A schema says more than "any object", so both together are the schema. A forced call is the reply, and its
 * arguments have their own schema. */
static int openai_format_take(gen_spec *s, const format_request *w, api_error *e)
{
    const char *json = w->schema ? w->schema_field : w->object_field;
    if (w->choice && json) return contradict(w->choice_field, json, e);
    bool forced = s->tool_choice == TOOL_CHOICE(TOOL_REQUIRED) || s->tool_choice == TOOL_CHOICE(TOOL_NAMED);
    if ((!json && !w->choice) || forced) return 0;
    s->tool_choice = TOOL_CHOICE(TOOL_AUTO); /* the format leaves no room for calls */
    s->parse_tool_calls = false;
    if (w->choice) return take_choices(s, w->choice, e);
    if (w->schema) return take_schema(s, w, e);
    s->constraint = CONSTRAINT(JSON_OBJECT);
    return 0;
}

int openai_read_format(gen_spec *s, api_error *e)
{
    format_request w = {.parsed = json_array()};
    int rc = w.parsed ? read_response_format(&w, s, e) : api_error_nomem(e);
    if (rc == 0) rc = read_foreign(&w, s->root, e);
    if (rc == 0) rc = openai_format_take(s, &w, e);
    json_decref(w.parsed);
    return rc;
}
