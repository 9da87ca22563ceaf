/* jinja.h: a small Jinja interpreter for chat templates.
 *
 * Source -> tokens -> tree (in an arena, immutable) -> run. A run has its own arena of values, a scope
 * chain, a step count and an output bound; nothing survives it. White space is treated as
 * transformers does: trim_blocks and lstrip_blocks are on.
 *
 * Values share structure and are reference-like for lists, dicts and namespaces, as in Python. */
#ifndef JINJA_JINJA_H
#define JINJA_JINJA_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

enum {
    JINJA_MAX_STEPS = 1000000,
    JINJA_MAX_OUTPUT = 4 << 20,
    JINJA_MAX_MEMORY = 64 << 20, /* of values in one run, bytes */
    JINJA_MAX_SOURCE = 1 << 20,
    JINJA_MAX_DEPTH = 100,
};

/* ---- tree ---- */

typedef enum {
    /* expressions */
    N_LITERAL,
    N_NAME,
    N_LIST,
    N_DICT,
    N_ATTR,
    N_INDEX,
    N_SLICE,
    N_CALL,
    N_FILTER,
    N_TEST,
    N_UNARY,
    N_BINARY,
    N_COMPARE,
    N_AND,
    N_OR,
    N_NOT,
    N_COND,
    N_SPREAD,  /* f(*list): an argument for each item of a */
    N_CAPTURE, /* what its statements print */
    /* statements */
    N_TEXT,
    N_OUTPUT,
    N_IF,
    N_FOR,
    N_SET,
    N_MACRO,
    N_CALL_BLOCK,
    N_WITH,
    N_BREAK,
    N_CONTINUE,
    N_BLOCK,
} jnode_kind;

typedef enum {
    V_UNDEFINED,
    V_NONE,
    V_BOOL,
    V_INT,
    V_FLOAT,
    V_STRING,
    V_LIST,
    V_DICT,
    V_NAMESPACE,
    V_LOOP,
    V_MACRO,
    V_FUNCTION,
    V_METHOD
} jkind;

typedef struct jvalue {
    jkind kind;
    bool b;    /* V_BOOL; V_LIST and V_DICT: nil in Go (jinja_go.h) */
    int64_t i; /* V_INT; V_FUNCTION and V_METHOD: which; V_LIST and V_DICT: the type in Go */
    double f;
    const char *s; /* V_STRING; V_METHOD: its name */
    size_t n;
    const uint8_t *marks; /* V_STRING: [n], 1 where the request brought the byte; NULL: nowhere */
    struct jlist *list;
    struct jdict *dict;        /* V_DICT, V_NAMESPACE, V_LOOP */
    const struct jnode *macro; /* V_MACRO; V_LOOP: its statement when it is recursive */
    struct jscope *scope;      /* V_MACRO: what its body sees; NULL: the globals */
} jvalue;

typedef struct jlist {
    jvalue *at;
    size_t n, cap;
} jlist;

typedef struct jdict {
    jvalue *keys, *values;
    size_t n, cap;
} jdict;

typedef struct jnode {
    jnode_kind kind;
    int line;
    const char *name; /* names, attributes, filters, operators */
    jvalue value;     /* N_LITERAL, N_TEXT */
    struct jnode *a, *b, *c;
    struct jnode *next;  /* in the list it is part of */
    struct jnode *items; /* list elements, arguments, statements of a body */
    struct jnode *other; /* the else body; dict: values beside keys */
    const char *keyword; /* of an argument, NULL for positional */
} jnode;

/* Parse; the tree and all its strings live in `mem`. Errors name `what` and the line. */
int jinja_parse(jnode **ret, arena *mem, const char *source, size_t len, const char *what, shoal_err *err);

/* ---- a run ---- */

typedef struct jscope {
    jdict vars;
    struct jscope *up;
} jscope;

/* A text under construction. marks is empty while no byte of it came from the request. */
typedef struct jtext {
    buf bytes, marks;
} jtext;

typedef struct jrun {
    arena *mem;
    size_t used;
    jtext *out;
    jscope *scope;
    unsigned steps;
    int depth, line;
    int64_t clock; /* as chat_input's */
    enum { FLOW_ON, FLOW_BREAK, FLOW_CONTINUE } flow;
    int rc; /* the first error sticks */
    shoal_err *err;
} jrun;

/* Arguments of a call, evaluated. */
typedef struct jargs {
    jvalue at[12];
    const char *keyword[12];
    size_t n;
} jargs;

/* Run a template: output goes to r, the first error sticks and is returned. */
int jinja_run(jrun *r, const jnode *root);
jvalue jinja_eval(jrun *r, const jnode *n);
jvalue jinja_call_macro(jrun *r, jvalue macro, const jargs *args);
bool jinja_contains(jrun *r, jvalue all, jvalue x); /* x in all */

/* jinja_value.c */
jvalue jinja_fail(jrun *r, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Count the work of going through a value once: a text is a step for 64 bytes, a list for 16 items. */
void jinja_charge(jrun *r, jvalue v);
void *jinja_alloc(jrun *r, size_t n); /* NULL once the run has failed */
jvalue jinja_str(const char *s, size_t n);
jvalue jinja_strdup(jrun *r, const char *s, size_t n);
jvalue jinja_int(int64_t i);
jvalue jinja_float(double f);
jvalue jinja_bool(bool b);
jvalue jinja_list(jrun *r);
jvalue jinja_dict(jrun *r, jkind kind);
void jinja_push(jrun *r, jvalue list, jvalue v);
void jinja_put(jrun *r, jdict *d, jvalue key, jvalue v);
const jvalue *jinja_get(jrun *r, const jdict *d, jvalue key); /* NULL when absent */
jvalue jinja_from_json(jrun *r, const json_t *v);             /* all its strings are the request's */
bool jinja_truth(jvalue v);
bool jinja_equal(jrun *r, jvalue a, jvalue b);   /* charges for what lists and dicts hold */
int jinja_order(jrun *r, jvalue a, jvalue b);    /* < 0, 0, > 0; fails the run for kinds without order */
void jinja_print(jrun *r, jtext *out, jvalue v); /* str(v) */
/* How many digits of f to try first, in search of the fewest that read back as f: as DBL_DIG digits always come back,
 * no fewer are needed, but with subnormal numbers. */
int jinja_float_digits(double f);
typedef struct jjson {
    int indent;       /* < 0: one line */
    jvalue item, key; /* separators; not strings: ", " (without the blank at line ends) and ": " */
    bool ascii, sort_keys;
} jjson;
void jinja_print_json(jrun *r, jtext *out, jvalue v, const jjson *how, int level);
jvalue jinja_text(jrun *r, jvalue v);  /* str(v) as a value */
jvalue jinja_items(jrun *r, jvalue v); /* what iterating over v gives, as a list */
const char *jinja_kind_name(jvalue v);

/* jinja_text.c */
/* Append s[0..n) with its marks; NULL: the template's own text. */
void jinja_text_put(jtext *t, const char *s, size_t n, const uint8_t *marks);
void jinja_text_puts(jtext *t, const char *s);
/* Append what stands for byte i of `of`: marked when that byte is. */
void jinja_text_put_for(jtext *t, const char *s, size_t n, jvalue of, size_t i);
void jinja_text_add(jtext *t, jvalue v); /* a string */
bool jinja_text_failed(const jtext *t);
void jinja_text_done(jtext *t);
jvalue jinja_text_take(jrun *r, jtext *t);        /* as a string of the run; t is done */
jvalue jinja_part(jvalue s, size_t at, size_t n); /* s[at..at+n), shared */
jvalue jinja_foreign(jrun *r, jvalue s);          /* the same text, all of it the request's */

/* ---- what a template can call, by name: tables of several files ---- */

typedef struct jfilter {
    const char *name;
    jvalue (*fn)(jrun *r, jvalue v, const jargs *a);
} jfilter;
extern const jfilter jinja_list_filters[]; /* jinja_list.c; the last has no name */

jvalue jinja_arg(const jargs *a, size_t i);                         /* V_UNDEFINED when absent */
jvalue jinja_arg_named(const jargs *a, const char *name, size_t i); /* by its keyword, else by its place */
jvalue jinja_filter(jrun *r, const char *name, jvalue v, const jargs *args);
bool jinja_test(jrun *r, const char *name, jvalue v, const jargs *args);
jvalue jinja_function(jrun *r, int which, const jargs *args);
int jinja_function_find(const char *name); /* -1 when there is none */
jvalue jinja_method(jrun *r, jvalue self, const char *name, const jargs *args);
bool jinja_has_method(jvalue self, const char *name);
jvalue jinja_attr(jrun *r, jvalue v, const char *name); /* v.name, V_UNDEFINED when it has none */
jvalue jinja_item(jrun *r, jvalue v, jvalue key);       /* v[key] */
jvalue jinja_path(jrun *r, jvalue v,
                  jvalue path); /* v.a.0.b for "a.0.b", V_UNDEFINED when it leads nowhere */

/* jinja_format.c */
jvalue jinja_percent(jrun *r, jvalue format, const jvalue *at, size_t n); /* "%s: %d" % (a, b) */
jvalue jinja_format(jrun *r, jvalue format, const jargs *args);           /* "{}: {0} {name}".format(...) */

#endif
