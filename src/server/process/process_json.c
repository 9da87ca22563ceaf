/* process_json.c: JSON of a run; what cannot be made fails it. */
#include <math.h>
#include <string.h>

#include "json/json_put.h"
#include "json/json.h"
#include "process/stage_run.h"

void process_put(process_run *r, json_t *o, const char *key, json_t *v)
{
    if (json_object_set_new(o, key, v) != 0) r->lacks_memory = true;
}

void process_add(process_run *r, json_t *array, json_t *v)
{
    if (json_array_append_new(array, v) != 0) r->lacks_memory = true;
}

static double rounded(double v)
{
    return fabs(v) < 1e9 ? round(v * 1e6) / 1e6 : v;
}

json_t *process_rounded(double v)
{
    return isfinite(v) ? json_real(rounded(v)) : json_null();
}

void process_put_rounded(buf *out, const char *key, double v)
{
    json_put_real(out, key, rounded(v), PROCESS_DIGITS);
}

static json_t *call_json(process_run *r, const char *name, const char *arguments)
{
    json_t *o = json_object(), *args = NULL;
    int rc = json_parse(&args, arguments, strlen(arguments), "arguments", NULL);
    if (rc == SHOAL_ENOMEM) r->lacks_memory = true;
    if (rc != 0) args = json_string(arguments); /* not JSON: the caller sees what the model said */
    process_put(r, o, "name", json_string(name));
    process_put(r, o, "arguments", args);
    return o;
}

json_t *process_calls(process_run *r, const stage_run *s)
{
    json_t *all = json_array();
    if (!s) return all;
    for (size_t i = 0; i < s->n_tools; i++)
        process_add(r, all, call_json(r, buf_text(&s->tools[i].name), buf_text(&s->tools[i].arguments)));
    for (size_t i = 0; i < s->n_calls; i++)
        process_add(r, all, call_json(r, s->calls[i].name, s->calls[i].arguments));
    return all;
}
