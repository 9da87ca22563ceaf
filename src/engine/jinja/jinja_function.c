/* jinja_function.c: the global functions of templates. */
#define _GNU_SOURCE
#include <string.h>
#include <time.h>

#include "jinja/jinja_go.h"

static jvalue fn_range(jrun *r, const jargs *a)
{
    int64_t from = 0, to, by = 1;
    for (size_t i = 0; i < a->n; i++)
        if (a->at[i].kind != V_INT) return jinja_fail(r, SHOAL_EINVALID, "range needs integers");
    if (a->n == 0 || a->n > 3) return jinja_fail(r, SHOAL_EINVALID, "range needs one to three integers");
    to = a->at[a->n > 1].i;
    if (a->n > 1) from = a->at[0].i;
    if (a->n > 2) by = a->at[2].i;
    if (by == 0) return jinja_fail(r, SHOAL_EINVALID, "range's step is zero");
    jvalue out = jinja_list(r);
    while (r->rc == 0 && (by > 0 ? from < to : from > to)) {
        jinja_push(r, out, jinja_int(from));
        if (out.list && out.list->n > JINJA_MAX_STEPS) jinja_fail(r, SHOAL_ELIMIT, "a range is too long");
        if (__builtin_add_overflow(from, by, &from)) break;
    }
    return out;
}

static jvalue keywords(jrun *r, const jargs *a, jkind kind)
{
    jvalue d = jinja_dict(r, kind);
    if (r->rc == 0 && a->n && !a->keyword[0] && a->at[0].kind == V_DICT)
        for (size_t i = 0; i < a->at[0].dict->n; i++)
            jinja_put(r, d.dict, a->at[0].dict->keys[i], a->at[0].dict->values[i]);
    for (size_t i = 0; r->rc == 0 && i < a->n; i++)
        if (a->keyword[i]) jinja_put(r, d.dict, jinja_str(a->keyword[i], strlen(a->keyword[i])), a->at[i]);
    return d;
}

static jvalue fn_namespace(jrun *r, const jargs *a)
{
    return keywords(r, a, V_NAMESPACE);
}
static jvalue fn_dict(jrun *r, const jargs *a)
{
    return keywords(r, a, V_DICT);
}

static jvalue fn_raise(jrun *r, const jargs *a)
{
    jvalue v = jinja_text(r, jinja_arg(a, 0));
    return jinja_fail(r, SHOAL_EINVALID, "the template refuses: %.*s", (int)(v.n < 300 ? v.n : 300),
                      v.n ? v.s : "");
}

/* Today's date, for templates that tell it to the model. */
static jvalue fn_strftime(jrun *r, const jargs *a)
{
    char format[64], out[256];
    struct tm tm;
    time_t now = r->clock ? (time_t)r->clock : time(NULL);
    jvalue f = jinja_arg(a, 0);
    if (f.kind != V_STRING || f.n >= sizeof format)
        return jinja_fail(r, SHOAL_EINVALID, "strftime_now needs a short format");
    memcpy(format, f.s, f.n);
    format[f.n] = '\0';
    bool known = (r->clock ? gmtime_r(&now, &tm) : localtime_r(&now, &tm)) != NULL;
    size_t n = known ? strftime(out, sizeof out, format, &tm) : 0;
    jvalue s = jinja_strdup(r, out, n);
    return f.marks ? jinja_foreign(r, s) : s;
}

static const jfunction functions[] = {
    {"range", fn_range},           {"namespace", fn_namespace},   {"dict", fn_dict},
    {"raise_exception", fn_raise}, {"strftime_now", fn_strftime},
};
enum { N_FUNCTIONS = sizeof functions / sizeof *functions };

/* Those for templates of Ollama follow the others. */
int jinja_function_find(const char *name)
{
    for (int i = 0; i < N_FUNCTIONS; i++)
        if (!strcmp(functions[i].name, name)) return i;
    for (int i = 0; !strncmp(name, "go_", 3) && jinja_go_functions[i].name; i++)
        if (!strcmp(jinja_go_functions[i].name, name)) return N_FUNCTIONS + i;
    return -1;
}

jvalue jinja_function(jrun *r, int which, const jargs *args)
{
    return which < N_FUNCTIONS ? functions[which].fn(r, args)
                               : jinja_go_functions[which - N_FUNCTIONS].fn(r, args);
}
