/* toolcall_write.c: see toolcall_write.h. */
#include "chat/toolcall_write.h"

#include <string.h>

#include "json/json.h"

typedef struct writing {
    buf *text, *marks;
    const toolcall_syntax *syntax;
    size_t number; /* of the call */
} writing;

static void mark(const writing *w, bool brought)
{
    while (w->marks && !w->marks->failed && w->marks->len < w->text->len) buf_putc(w->marks, (char)brought);
}

/* The syntax's own, where "#" is the call's number. */
static void toolcall_write_put(const writing *w, const char *s)
{
    for (; s && *s; s++) {
        if (*s == '#')
            buf_printf(w->text, "%zu", w->number);
        else
            buf_putc(w->text, *s);
    }
    mark(w, false);
}

static void put_given(const writing *w, const char *s, size_t n)
{
    buf_append(w->text, s, n);
    mark(w, true);
}

static void put_quoted(const writing *w, const char *s)
{
    json_put_string(w->text, s, strlen(s));
    mark(w, true);
}

static void toolcall_write_put_value(const writing *w, const json_t *v)
{
    json_put(w->text, v);
    mark(w, true);
}

/* ---- arguments that are not JSON ------------------------------------------------------------------- */

static void put_python(const writing *w, const json_t *arguments)
{
    const char *key;
    json_t *v;
    bool first = true;
    toolcall_write_put(w, "(");
    json_object_foreach((json_t *)(uintptr_t)arguments, key, v)
    {
        if (!first) toolcall_write_put(w, ", ");
        put_given(w, key, strlen(key));
        toolcall_write_put(w, "=");
        toolcall_write_put_value(w, v);
        first = false;
    }
    toolcall_write_put(w, ")");
}

static void put_braces(const writing *w, const json_t *v)
{
    const char *key;
    json_t *item;
    size_t i;
    bool first = true;
    if (json_is_string(v)) {
        toolcall_write_put(w, w->syntax->quote);
        put_given(w, json_string_value(v), json_string_length(v));
        toolcall_write_put(w, w->syntax->quote);
    } else if (json_is_array(v)) {
        toolcall_write_put(w, "[");
        json_array_foreach(v, i, item)
        {
            if (i) toolcall_write_put(w, ",");
            put_braces(w, item);
        }
        toolcall_write_put(w, "]");
    } else if (json_is_object(v)) {
        toolcall_write_put(w, "{");
        json_object_foreach((json_t *)(uintptr_t)v, key, item)
        {
            if (!first) toolcall_write_put(w, ",");
            put_given(w, key, strlen(key));
            toolcall_write_put(w, ":");
            put_braces(w, item);
            first = false;
        }
        toolcall_write_put(w, "}");
    } else {
        toolcall_write_put_value(w, v);
    }
}

static const char *type_name(const json_t *v)
{
    if (json_is_number(v)) return "number";
    if (json_is_boolean(v)) return "boolean";
    return json_is_object(v) ? "object" : json_is_array(v) ? "array" : "null";
}

/* A piece of a tag with "%" filled in. */
static void put_filled(const writing *w, const char *s, const char *fill)
{
    const char *at = strchr(s, '%');
    if (at) {
        buf_append(w->text, s, (size_t)(at - s));
        buf_puts(w->text, fill);
        toolcall_write_put(w, at + 1);
    } else {
        toolcall_write_put(w, s);
    }
}

static void put_tag(const writing *w, const char *key, const json_t *v)
{
    const toolcall_tags *t = &w->syntax->tags;
    toolcall_write_put(w, t->key);
    put_given(w, key, strlen(key));
    toolcall_write_put(w, t->key_end);
    put_filled(w, json_is_string(v) ? t->text_mark : t->json_mark, type_name(v));
    toolcall_write_put(w, t->value);
    toolcall_write_put(w, t->wrap);
    if (json_is_string(v))
        put_given(w, json_string_value(v), json_string_length(v));
    else
        toolcall_write_put_value(w, v);
    toolcall_write_put(w, t->wrap);
    put_filled(w, t->value_end, key);
    toolcall_write_put(w, t->gap);
}

/* ---- calls ----------------------------------------------------------------------------------------- */

static void put_json_call(const writing *w, const toolcall_call *c)
{
    const toolcall_syntax *s = w->syntax;
    toolcall_write_put(w, "{");
    toolcall_write_put(w, s->id);
    toolcall_write_put(w, "\"");
    toolcall_write_put(w, s->name_key ? s->name_key : "name");
    toolcall_write_put(w, "\": ");
    put_quoted(w, c->name);
    toolcall_write_put(w, ", \"");
    toolcall_write_put(w, s->arguments);
    toolcall_write_put(w, "\": ");
    put_given(w, c->arguments, strlen(c->arguments));
    toolcall_write_put(w, "}");
}

static void put_args_call(const writing *w, const toolcall_call *c)
{
    toolcall_write_put(w, w->syntax->call);
    put_given(w, c->name, strlen(c->name));
    toolcall_write_put(w, w->syntax->middle);
    put_given(w, c->arguments, strlen(c->arguments));
    toolcall_write_put(w, w->syntax->end);
}

static void put_tags_call(const writing *w, const toolcall_call *c, const json_t *arguments)
{
    const char *key;
    json_t *v;
    toolcall_write_put(w, w->syntax->call);
    put_given(w, c->name, strlen(c->name));
    toolcall_write_put(w, w->syntax->middle);
    toolcall_write_put(w, w->syntax->tags.gap);
    json_object_foreach((json_t *)(uintptr_t)arguments, key, v) put_tag(w, key, v);
    toolcall_write_put(w, w->syntax->end);
}

static void put_call(const writing *w, const toolcall_call *c)
{
    json_t *arguments = NULL;
    shoal_err err;
    toolcall_form form = w->syntax->form;
    bool parse = form != CALL_JSON && form != CALL_ARGS && form != CALL_KEYED;
    int rc = parse ? json_parse(&arguments, c->arguments, strlen(c->arguments), "arguments", &err) : 0;
    w->text->failed |= rc == SHOAL_ENOMEM;
    switch (form) {
    case CALL_JSON: put_json_call(w, c); break;
    case CALL_KEYED:
        toolcall_write_put(w, "{");
        put_quoted(w, c->name);
        toolcall_write_put(w, ": ");
        put_given(w, c->arguments, strlen(c->arguments));
        toolcall_write_put(w, "}");
        break;
    case CALL_ARGS: put_args_call(w, c); break;
    case CALL_PYTHON:
        put_given(w, c->name, strlen(c->name));
        put_python(w, arguments);
        break;
    case CALL_BRACES:
        toolcall_write_put(w, "call:");
        put_given(w, c->name, strlen(c->name));
        put_braces(w, arguments);
        break;
    case CALL_TAGS: put_tags_call(w, c, arguments); break;
    }
    json_decref(arguments);
}

static void put_open(const writing *w)
{
    toolcall_write_put(w, w->syntax->open);
    toolcall_write_put(w, w->syntax->head);
}

static void put_close(const writing *w)
{
    toolcall_write_put(w, w->syntax->tail);
    toolcall_write_put(w, w->syntax->close);
}

void toolcall_write(buf *text, buf *marks, const toolcall_syntax *syntax, const toolcall_call *calls,
                    size_t n)
{
    writing w = {.text = text, .marks = marks, .syntax = syntax};
    if (n > 0 && text->len > 0 && !syntax->list) toolcall_write_put(&w, syntax->between);
    if (n > 0 && syntax->list) put_open(&w);
    for (size_t i = 0; i < n; i++) {
        w.number = i;
        if (i > 0) toolcall_write_put(&w, syntax->between);
        if (!syntax->list) put_open(&w);
        put_call(&w, &calls[i]);
        if (!syntax->list) put_close(&w);
    }
    if (n > 0 && syntax->list) put_close(&w);
}
