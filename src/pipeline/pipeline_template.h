/* pipeline_template.h: templates of prompts, cut into pieces. Inside pipeline*.c. */
#ifndef PIPELINE_PIPELINE_TEMPLATE_H
#define PIPELINE_PIPELINE_TEMPLATE_H

#include "pipeline/pipeline.h"

/* A piece of a template: literal bytes, or what stands between braces. */
typedef struct template_piece {
    const char *at;
    size_t len;
    bool is_field;
} template_piece;

/* The next piece from *at on; false at the end. An unclosed '{' comes as a field that runs to the end
 * with is_field set and at[len] == 0; pipeline_check refuses it, so that later code never sees one. */
bool template_next(const char **at, template_piece *ret);

/* The fields. X(enum, name, takes a stage after '.') */
#define TEMPLATE_FIELD_TABLE(X)        \
    X(FIELD_INPUT, "input", false)     \
    X(FIELD_SENTENCE, "Input", false)  \
    X(FIELD_DEVICES, "devices", false) \
    X(FIELD_CONTEXT, "context", false) \
    X(FIELD_LABEL, "label", true)      \
    X(FIELD_TEXT, "text", true)
typedef enum template_field {
#define TEMPLATE_FIELD_ENUM(e, n, s) e,
    TEMPLATE_FIELD_TABLE(TEMPLATE_FIELD_ENUM)
#undef TEMPLATE_FIELD_ENUM
        FIELD_UNKNOWN
} template_field;

/* Which field a piece is; *ret_stage is the stage's index, -1 when it takes none or there is none. */
template_field template_field_of(const config_pipeline *p, const template_piece *piece, int *ret_stage);

/* -1: no such stage. */
int pipeline_stage_index(const config_pipeline *p, const char *name, size_t n_name);
/* A trailing '*' of a pattern stands for any end. */
bool pipeline_label_is(const char *label, const char *pattern);

#endif
