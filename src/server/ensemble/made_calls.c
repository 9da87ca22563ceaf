/* made_calls.c: see made_calls.h. */
#include "ensemble/made_calls.h"

#include <string.h>

#include "json/json.h"

static int keep_buf(const char **ret, buf *text, arena *a)
{
    *ret = text->failed ? NULL : arena_strdup(a, buf_text(text));
    buf_done(text);
    return *ret ? 0 : SHOAL_ENOMEM;
}

int made_calls_text(const char **ret, const json_t *message, arena *a)
{
    const json_t *c = json_object_get(message, "content"), *part;
    buf text = {0};
    size_t i;
    if (json_is_string(c)) buf_append(&text, json_string_value(c), json_string_length(c));
    json_array_foreach(c, i, part)
    {
        const json_t *s = json_object_get(part, "text");
        if (json_is_string(s)) buf_append(&text, json_string_value(s), json_string_length(s));
    }
    return keep_buf(ret, &text, a);
}

static int keep_arguments(const char **ret, const json_t *v, arena *a)
{
    buf text = {0};
    if (json_is_string(v))
        buf_append(&text, json_string_value(v), json_string_length(v));
    else if (v)
        json_put(&text, v);
    else
        buf_puts(&text, "{}");
    return keep_buf(ret, &text, a);
}

static int add_one(made_call *to, const json_t *call, const char *name, arena *a)
{
    const json_t *f = json_object_get(call, "function");
    const char *id = json_string_value(json_object_get(call, "id"));
    *to = (made_call){.id = arena_strdup(a, id ? id : ""), .name = arena_strdup(a, name)};
    int rc = keep_arguments(&to->arguments, json_object_get(f, "arguments"), a);
    return rc || !to->id || !to->name ? SHOAL_ENOMEM : 0;
}

int made_calls_add(made_call list[MADE_CALLS_MAX], size_t *n, const json_t *message, arena *a)
{
    size_t i;
    const json_t *call;
    int rc = 0;
    json_array_foreach(json_object_get(message, "tool_calls"), i, call)
    {
        const char *name = json_string_value(json_object_get(json_object_get(call, "function"), "name"));
        if (name && *n < MADE_CALLS_MAX && !rc) rc = add_one(&list[(*n)++], call, name, a);
    }
    return rc;
}

int made_calls_answer(made_call *list, size_t n, const json_t *message, arena *a)
{
    const char *id = json_string_value(json_object_get(message, "tool_call_id"));
    const char *name = json_string_value(json_object_get(message, "name"));
    made_call *to = NULL;
    for (size_t i = n; i-- > 0;) {
        made_call *c = &list[i];
        if (c->result) continue;
        if (id && *id && *c->id ? strcmp(c->id, id) == 0 : !name || !*name || strcmp(c->name, name) == 0)
            to = c;
    }
    return to ? made_calls_text(&to->result, message, a) : 0;
}
