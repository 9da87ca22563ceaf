/* jinja_go.h: what a template of Ollama needs beside Jinja, once src/core/gotemplate/ has made it one of
 * Jinja.
 *
 * Functions whose names begin with "go_": the data of Ollama's templates made of messages and tools, Go's
 * way to print values, and its functions. A value has the name of its Go type in jvalue.i of a list or
 * dict, as Ollama's types say how they are printed and which fields their JSON has (api/types.go of
 * Ollama). `b` of a list or dict says that it is nil. The keys of dicts are in order, but those of structs,
 * which are in that of their fields. */
#ifndef JINJA_JINJA_GO_H
#define JINJA_JINJA_GO_H

#include "jinja/jinja.h"

typedef enum {
    GO_PLAIN,
    GO_MESSAGE,
    GO_TOOL_CALL,
    GO_CALLED, /* ToolCallFunction */
    GO_TOOL,
    GO_FUNCTION,
    GO_PARAMETERS,
    GO_PROPERTY,
    N_GO_STRUCTS,
    GO_ARGUMENTS = N_GO_STRUCTS, /* a map that prints as JSON */
    GO_TOOLS,                    /* a list that does */
    GO_TYPE                      /* one or several names of JSON types */
} go_type;

typedef struct go_field {
    const char *name, *json;
    enum {
        GO_TEXT,
        GO_INT,
        GO_ANY,
        GO_TEXTS,
        GO_ANYS,
        GO_TYPES,
        GO_MAP,
        GO_STRUCT,
        GO_STRUCTS,
        GO_STRUCT_MAP
    } kind;
    go_type of;       /* of the last three */
    bool omits_empty; /* in JSON */
} go_field;

/* jinja_go_data.c */
const go_field *go_fields(go_type t, size_t *ret_n); /* NULL: no struct */
jvalue go_fn_data(jrun *r, const jargs *a);          /* (messages, tools, think, effort, suffix) */
jvalue go_fn_turns(jrun *r, const jargs *a); /* (messages, think, effort, suffix): the data of each run */

/* jinja_go_print.c */
/* What "{{ v }}" prints, or (inner) what fmt's %v does within another value. */
void go_print(jrun *r, jtext *out, jvalue v, bool inner);
void go_print_json(jrun *r, jtext *out, jvalue v);
/* As a value; the work is counted. */
jvalue go_take(jrun *r, jtext *t);
jvalue go_fn_sprintf(jrun *r, const jargs *a);

/* jinja_go.c */
typedef struct jfunction {
    const char *name;
    jvalue (*fn)(jrun *r, const jargs *a);
} jfunction;
extern const jfunction jinja_go_functions[]; /* the last has no name */

#endif
