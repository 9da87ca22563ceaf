/* gotemplate_expr.c: pipelines as expressions of Jinja. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "gotemplate/gotemplate_impl.h"

enum { FIELDS_MAX = 8 };

typedef struct arguments {
    const char *at[GOTEMPLATE_MAX_ARGS];
    size_t n;
} arguments;

/* ---- functions ---------------------------------------------------------------------------------- */

/* How a call is written: its arguments with `infix` between them, or as those of the function `name`. */
static const struct function {
    const char *go, *infix, *name;
    size_t n_min, n_max;
} FUNCTIONS[] = {
    {"and", " and ", NULL, 1, GOTEMPLATE_MAX_ARGS},
    {"or", " or ", NULL, 1, GOTEMPLATE_MAX_ARGS},
    {"not", NULL, "not ", 1, 1},
    {"eq", " == ", NULL, 2, GOTEMPLATE_MAX_ARGS},
    {"ne", " != ", NULL, 2, 2},
    {"lt", " < ", NULL, 2, 2},
    {"le", " <= ", NULL, 2, 2},
    {"gt", " > ", NULL, 2, 2},
    {"ge", " >= ", NULL, 2, 2},
    {"len", NULL, "go_len", 1, 1},
    {"index", NULL, "go_index", 1, GOTEMPLATE_MAX_ARGS},
    {"slice", NULL, "go_slice", 1, 4},
    {"print", NULL, "go_sprint", 0, GOTEMPLATE_MAX_ARGS},
    {"println", NULL, "go_sprintln", 0, GOTEMPLATE_MAX_ARGS},
    {"printf", NULL, "go_sprintf", 1, GOTEMPLATE_MAX_ARGS},
    {"json", NULL, "go_json", 1, 1},
    {"toTypeScriptType", NULL, "go_typescript", 1, 1},
    {"currentDate", NULL, NULL, 0, GOTEMPLATE_MAX_ARGS}, /* Ollama ignores its arguments */
};

static const struct function *find_function(const gt_parser *p)
{
    for (size_t i = 0; i < sizeof FUNCTIONS / sizeof *FUNCTIONS; i++)
        if (gt_is_name(p, FUNCTIONS[i].go)) return &FUNCTIONS[i];
    return NULL;
}

static void unknown_function(gt_parser *p)
{
    static const char *const NOT_OFFERED[] = {"call", "html", "js", "urlquery"};
    for (size_t i = 0; i < sizeof NOT_OFFERED / sizeof *NOT_OFFERED; i++)
        if (gt_is_name(p, NOT_OFFERED[i]))
            gt_fail(p, SHOAL_EUNSUPPORTED, "the function \"%s\" is not offered", NOT_OFFERED[i]);
    gt_fail(p, SHOAL_EINVALID, "there is no function %s", gt_token_name(p));
}

static const char *join(gt_parser *p, const char *begin, const arguments *a, size_t from, const char *between,
                        const char *end)
{
    buf text = {0};
    buf_puts(&text, begin);
    for (size_t i = from; i < a->n; i++) {
        if (i > from) buf_puts(&text, between);
        buf_puts(&text, a->at[i]);
    }
    buf_puts(&text, end);
    if (text.len > GOTEMPLATE_MAX_RESULT) gt_fail(p, SHOAL_ELIMIT, "this is too long");
    const char *joined = text.failed || p->rc ? NULL : arena_strndup(p->mem, text.data, text.len);
    if (!joined) gt_nomem(p);
    buf_done(&text);
    return joined ? joined : "";
}

static const char *write_call(gt_parser *p, const struct function *f, const arguments *a)
{
    if (a->n < f->n_min || a->n > f->n_max)
        gt_fail(p, SHOAL_EINVALID, "\"%s\" cannot have %zu argument%s", f->go, a->n, a->n == 1 ? "" : "s");
    if (p->rc) return "";
    if (!f->infix && !f->name) return "strftime_now('%Y-%m-%d')";
    if (strcmp(f->go, "not") == 0) return gt_printf(p, "(not %s)", a->at[0]);
    if (strcmp(f->go, "eq") == 0 && a->n > 2) /* is it one of the others? */
        return join(p, gt_printf(p, "(%s in [", a->at[0]), a, 1, ", ", "])");
    return f->infix ? join(p, "(", a, 0, f->infix, ")")
                    : join(p, gt_printf(p, "%s(", f->name), a, 0, ", ", ")");
}

/* ---- operands ----------------------------------------------------------------------------------- */

/* As Ollama looks for what a template reads: in any case, and not behind parentheses. */
static void note_field(gt_parser *p, bool is_looked_at)
{
    const struct {
        const char *name;
        bool *uses;
    } FIELDS[] = {{"messages", &p->uses.messages},   {"response", &p->uses.response},
                  {"tools", &p->uses.tools},         {"suffix", &p->uses.suffix},
                  {"thinking", &p->uses.thinking},   {"think", &p->uses.thinking},
                  {"isthinkset", &p->uses.thinking}, {"thinklevel", &p->uses.thinking}};
    for (size_t i = 0; i < sizeof FIELDS / sizeof *FIELDS; i++)
        if (strlen(FIELDS[i].name) == p->in.n && strncasecmp(FIELDS[i].name, p->in.text, p->in.n) == 0 &&
            (is_looked_at || i > 1))
            *FIELDS[i].uses = true;
}

/* The fields that stand directly behind a value. */
static const char *read_fields(gt_parser *p, const char *of, bool is_looked_at, bool is_own)
{
    arguments names = {.n = 0};
    while (p->rc == 0 && p->in.tok == GT_FIELD && (names.n == 0 || !p->in.spaced)) {
        note_field(p, is_looked_at);
        if (is_own && p->in.n == 8 && memcmp(p->in.text, "Response", 8) == 0) p->shows_response = true;
        if (names.n == FIELDS_MAX)
            gt_fail(p, SHOAL_ELIMIT, "more than %d fields in a row", FIELDS_MAX);
        else
            names.at[names.n++] = gt_printf(p, "'%.*s'", (int)p->in.n, p->in.text);
        gt_next(p);
    }
    return join(p, gt_printf(p, "go_field(%s, ", of), &names, 0, ", ", ")");
}

static const char *read_variable(gt_parser *p)
{
    const char *value = p->in.n == 1 ? "d" : NULL;
    for (size_t i = p->n_vars; i-- > 0 && !value;)
        if (strlen(p->vars[i].name) == p->in.n && memcmp(p->vars[i].name, p->in.text, p->in.n) == 0)
            value = gt_printf(p, "v.x%u", p->vars[i].id);
    if (!value) gt_fail(p, SHOAL_EINVALID, "the variable %s is not declared here", gt_token_name(p));
    gt_next(p);
    bool more = p->in.tok == GT_FIELD && !p->in.spaced;
    return more ? read_fields(p, value, true, false) : value;
}

static const char *read_string(gt_parser *p)
{
    buf text = {0};
    gt_put_string(&text, p->in.text, p->in.n, false);
    const char *value = text.failed ? NULL : arena_strndup(p->mem, text.data, text.len);
    if (!value) gt_nomem(p);
    buf_done(&text);
    gt_next(p);
    return value ? value : "";
}

static const char *read_parentheses(gt_parser *p)
{
    gt_deepen(p, GOTEMPLATE_PAREN);
    gt_next(p);
    gt_pipeline pipe = gt_read_pipeline(p, false);
    if (p->rc == 0 && p->in.tok != GT_CLOSE) gt_fail(p, SHOAL_EINVALID, "\")\" is missing");
    gt_next(p);
    p->depth -= GOTEMPLATE_PAREN;
    const char *value = gt_set_and_get(p, &pipe);
    bool more = p->in.tok == GT_FIELD && !p->in.spaced;
    return more ? read_fields(p, value, false, false) : value;
}

/* A word that is a value: a constant, or a function without arguments. */
static const char *read_name(gt_parser *p)
{
    const struct function *f = find_function(p);
    const char *value = gt_is_name(p, "true") ? "true" : gt_is_name(p, "false") ? "false" : NULL;
    if (gt_is_name(p, "nil")) value = "go_nil"; /* a name that nothing has */
    if (!value && !f) unknown_function(p);
    gt_next(p);
    return value ? value : f ? write_call(p, f, &(arguments){.n = 0}) : "";
}

/* NULL: none begins here. */
static const char *read_operand(gt_parser *p)
{
    const char *value = p->in.text;
    switch (p->in.tok) {
    case GT_FIELD: return read_fields(p, p->dot, true, true);
    case GT_VARIABLE: return read_variable(p);
    case GT_STRING: return read_string(p);
    case GT_OPEN: return read_parentheses(p);
    case GT_NAME: return read_name(p);
    case GT_DOT: gt_next(p); return p->dot;
    case GT_NUMBER: gt_next(p); return value;
    default: return NULL;
    }
}

static bool ends_command(const gt_parser *p)
{
    return p->in.tok == GT_END || p->in.tok == GT_PIPE || p->in.tok == GT_CLOSE;
}

static void read_arguments(gt_parser *p, arguments *ret)
{
    while (p->rc == 0 && !ends_command(p)) {
        bool spaced = p->in.spaced;
        const char *name = gt_token_name(p), *value = spaced ? read_operand(p) : NULL;
        if (!value) gt_fail(p, SHOAL_EINVALID, "%s cannot stand here", name);
        if (ret->n == GOTEMPLATE_MAX_ARGS)
            gt_fail(p, SHOAL_ELIMIT, "a function has more than %d arguments", GOTEMPLATE_MAX_ARGS);
        else
            ret->at[ret->n++] = value;
    }
}

/* ---- commands ----------------------------------------------------------------------------------- */

static const char *read_call(gt_parser *p, const struct function *f, const char *piped)
{
    arguments a = {.n = 0};
    gt_next(p);
    if (p->in.tok == GT_FIELD && !p->in.spaced) gt_fail(p, SHOAL_EINVALID, "\"%s\" has no fields", f->go);
    read_arguments(p, &a);
    if (piped && a.n == GOTEMPLATE_MAX_ARGS)
        gt_fail(p, SHOAL_ELIMIT, "a function has more than %d arguments", GOTEMPLATE_MAX_ARGS);
    else if (piped)
        a.at[a.n++] = piped;
    return write_call(p, f, &a);
}

/* piped: what the command before gives, the last argument of this one; NULL: there is none before. */
static const char *read_command(gt_parser *p, const char *piped)
{
    const struct function *f = find_function(p);
    const char *name = gt_token_name(p);
    if (f) return read_call(p, f, piped);
    if (gt_is_name(p, "nil")) gt_fail(p, SHOAL_EINVALID, "nil is no command");
    const char *value = read_operand(p);
    if (!value)
        gt_fail(p, SHOAL_EINVALID, ends_command(p) ? "a value is missing before %s" : "%s cannot stand here",
                name);
    else if (piped)
        gt_fail(p, SHOAL_EINVALID, "%s is no function, and nothing can be piped to it", name);
    else if (!ends_command(p))
        gt_fail(p, SHOAL_EINVALID, "%s is no function, and %s cannot follow it", name, gt_token_name(p));
    return value ? value : "";
}

/* ---- pipelines ---------------------------------------------------------------------------------- */

static void take_target(gt_parser *p, gt_pipeline *ret)
{
    gt_variable *t = &ret->declared[ret->n_declared++];
    t->name = arena_strndup(p->mem, p->in.text, p->in.n);
    if (!t->name) gt_nomem(p);
    gt_next(p);
}

/* "$x :=", "$x =", "$i, $x :="; anything else is left as it was. */
static void read_targets(gt_parser *p, bool in_range, gt_pipeline *ret)
{
    const gt_lexer before = p->in;
    if (p->in.tok != GT_VARIABLE) return;
    take_target(p, ret);
    if (p->in.tok == GT_COMMA) {
        if (!in_range) gt_fail(p, SHOAL_EINVALID, "only a range has two variables");
        gt_next(p);
        if (p->in.tok == GT_VARIABLE)
            take_target(p, ret);
        else
            gt_fail(p, SHOAL_EINVALID, "%s cannot stand here: a variable is missing", gt_token_name(p));
    }
    ret->assigns = p->in.tok == GT_ASSIGN;
    if (ret->assigns || p->in.tok == GT_DECLARE) {
        gt_next(p);
        return;
    }
    if (ret->n_declared == 2) gt_fail(p, SHOAL_EINVALID, "\":=\" is missing behind the variables");
    p->in = before;
    ret->n_declared = 0;
}

static void find_targets(gt_parser *p, gt_pipeline *pipe)
{
    for (size_t k = 0; k < pipe->n_declared && p->rc == 0; k++) {
        gt_variable *t = &pipe->declared[k];
        t->id = pipe->assigns ? 0 : ++p->n_ids;
        for (size_t i = p->n_vars; i-- > 0 && t->id == 0;)
            if (strcmp(p->vars[i].name, t->name) == 0) t->id = p->vars[i].id;
        if (t->id == 0)
            gt_fail(p, SHOAL_EINVALID, "the variable \"%.40s\" is set before it is declared by \":=\"",
                    t->name);
    }
}

gt_pipeline gt_read_pipeline(gt_parser *p, bool in_range)
{
    gt_pipeline pipe = {.value = ""};
    const char *piped = NULL;
    read_targets(p, in_range, &pipe);
    size_t depth = p->depth; /* a pipe nests as parentheses do */
    for (;;) {
        piped = read_command(p, piped);
        if (p->rc || p->in.tok != GT_PIPE) break;
        p->pipes_response = p->shows_response;
        gt_next(p);
        gt_deepen(p, GOTEMPLATE_PAREN);
    }
    p->depth = depth;
    pipe.value = piped;
    find_targets(p, &pipe);
    return pipe;
}

void gt_declare(gt_parser *p, const gt_pipeline *pipe)
{
    for (size_t i = 0; i < pipe->n_declared && !pipe->assigns && p->rc == 0; i++) {
        if (p->n_vars == p->cap_vars) {
            size_t cap = p->cap_vars ? p->cap_vars * 2 : 16;
            gt_variable *vars = arena_alloc(p->mem, cap * sizeof *vars);
            if (!vars) {
                gt_nomem(p);
                return;
            }
            if (p->n_vars) memcpy(vars, p->vars, p->n_vars * sizeof *vars);
            p->vars = vars;
            p->cap_vars = cap;
        }
        p->vars[p->n_vars++] = pipe->declared[i];
    }
}

const char *gt_set_and_get(gt_parser *p, const gt_pipeline *pipe)
{
    if (pipe->n_declared == 0 || p->rc) return pipe->value;
    gt_declare(p, pipe);
    return gt_printf(p, "go_set(v, 'x%u', %s)", pipe->declared[0].id, pipe->value);
}
