/* pipeline_template.h: templates of prompts, cut into pieces. Inside pipeline*.c. */
#ifndef PIPELINE_PIPELINE_TEMPLATE_H
#define PIPELINE_PIPELINE_TEMPLATE_H

#include "pipeline/pipeline.h"
#include "pipeline/pipeline_function.h"

/* A piece of a template: literal bytes, or what stands between braces. */
typedef struct template_piece {
    const char *at;
    size_t len;
    bool is_field;
} template_piece;

/* The next piece from *at on; false at the end. Braces in the quoted texts of functions end no field. An
 * unclosed '{' comes as a field that runs to the end with is_field set and at[len] == 0; pipeline_check
 * refuses it, so that later code never sees one. */
bool template_next(const char **at, template_piece *ret);

/* What a field takes behind its name. */
enum { TAKES_STAGE = 1, TAKES_PATH = 2 };

/* The fields. X(enum, name, what it takes after '.': a stage, and perhaps a path into what that came to) */
#define TEMPLATE_FIELD_TABLE(X)                       \
    X(FIELD_INPUT, "input", 0)                        \
    X(FIELD_SENTENCE, "Input", 0)                     \
    X(FIELD_DEVICES, "devices", 0)                    \
    X(FIELD_CONTEXT, "context", 0)                    \
    X(FIELD_LABEL, "label", TAKES_STAGE)              \
    X(FIELD_TEXT, "text", TAKES_STAGE)                \
    X(FIELD_SPANS, "spans", TAKES_STAGE | TAKES_PATH) \
    X(FIELD_JSON, "json", TAKES_STAGE | TAKES_PATH)   \
    X(FIELD_NUMBER, "number", 0)
typedef enum template_field {
#define TEMPLATE_FIELD_ENUM(e, n, takes) e,
    TEMPLATE_FIELD_TABLE(TEMPLATE_FIELD_ENUM)
#undef TEMPLATE_FIELD_ENUM
        FIELD_ITEM, /* under the name that the stage gives it, with a path */
    FIELD_UNKNOWN
} template_field;

/* One field, read: {json.STAGE.PATH | FUNCTIONS}. Bytes are the template's. */
typedef struct template_use {
    template_field field;
    const char *name, *stage, *path, *functions; /* stage and path NULL: none is given */
    size_t n_name, n_stage, n_path, n_functions;
    int i_stage; /* -1: none, or no such stage */
} template_use;

/* field FIELD_UNKNOWN: it is none, or takes something else behind its name. The functions were not looked at.
 * as: what the stage calls an item; NULL: it goes through no list. */
template_use template_read(const config_pipeline *p, const char *as, const template_piece *piece);
/* What `of` names: a field without its braces that can be gone through, or a stage, whose JSON it is, perhaps
 * with a path. FIELD_UNKNOWN: neither. */
template_use template_source(const config_pipeline *p, const char *of);
/* Is it the name of a field? */
bool template_is_field(const char *name);

/* The value at a path ("slots.0.text": members by name, entries by number) in v; NULL: there is none. "" is
 * v. */
const json_t *template_json_at(const json_t *v, const char *path, size_t n);

/* -1: no such stage. */
int pipeline_stage_index(const config_pipeline *p, const char *name, size_t n_name);
/* A trailing '*' of a pattern stands for any end. */
bool pipeline_label_is(const char *label, const char *pattern);

#endif
