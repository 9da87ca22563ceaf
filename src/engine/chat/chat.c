/* chat.c: a chat template: compiled once, rendered once a request. */
#include "chat/chat.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chat/chat_impl.h"
#include "gotemplate/gotemplate.h"
#include "jinja/jinja.h"

struct chat_template {
    arena *mem; /* the tree and the source */
    char *source, *what;
    jnode *root;
    bool reads_parts; /* the template itself looks at content that is a list */
    bool reads_tools, reads_clock;
    bool reads_thinking; /* what others call reasoning_content, it calls message.thinking (LFM2.5, gpt-oss) */
    /* SmolLM3 has two lists of tools, by how they are to be called. */
    bool reads_xml_tools, reads_python_tools;
    const toolcall_syntax *calls;
    calls_source calls_source;
    char added_label[48]; /* "NAME (added)" */
    id_form ids;
    const thinking_form *thinking;
    bool shows_thinking;
};

int chat_template_compile(chat_template **ret, const char *source, size_t len, const char *what,
                          shoal_err *err)
{
    int rc = SHOAL_ENOMEM;
    chat_template *t = calloc(1, sizeof *t);
    if (!t) return err_nomem(err);
    t->mem = arena_new(16384);
    if (t->mem) t->source = arena_strndup(t->mem, source, len);
    if (t->source) t->what = arena_strdup(t->mem, what);
    if (t->what)
        rc = jinja_parse(&t->root, t->mem, t->source, len, t->what, err);
    else
        err_nomem(err);
    if (rc) {
        chat_template_free(t);
        return rc;
    }
    /* Such templates compare the parts' types: content['type'] == 'text'. */
    t->reads_parts = strstr(t->source, "'text'") || strstr(t->source, "\"text\"");
    t->reads_tools = strstr(t->source, "tools") != NULL;
    t->reads_clock = strstr(t->source, "strftime_now") != NULL;
    t->reads_thinking = strstr(t->source, "message.thinking") || strstr(t->source, "['thinking']");
    t->reads_xml_tools = strstr(t->source, "xml_tools") != NULL;
    t->reads_python_tools = strstr(t->source, "python_tools") != NULL;
    t->thinking = thinking_find(t->source);
    t->shows_thinking = t->thinking != NULL;
    if (chat_calls_find(t, &t->calls, &t->calls_source) != 0) {
        chat_template_free(t);
        return err_nomem(err);
    }
    snprintf(t->added_label, sizeof t->added_label, "%s (added)", t->calls->name);
    t->ids = chat_ids_form(t->source, t->calls);
    if (!t->thinking && t->calls->thinking && t->calls_source == CALLS_OF_TEMPLATE)
        t->thinking = thinking_named(t->calls->thinking);
    *ret = t;
    return 0;
}

int chat_template_compile_go(chat_template **ret, const char *source, size_t len, const char *what,
                             shoal_err *err)
{
    buf jinja = {0};
    int rc = gotemplate_to_jinja(&jinja, source, len, NULL, err);
    if (rc != 0) err_prefix(err, rc, "%s", what);
    if (rc == 0) rc = chat_template_compile(ret, jinja.data, jinja.len, what, err);
    buf_done(&jinja);
    return rc;
}

void chat_template_free(chat_template *t)
{
    if (!t) return;
    arena_free(t->mem);
    free(t);
}

const char *chat_template_source(const chat_template *t)
{
    return t->source;
}

bool chat_template_reads_tools(const chat_template *t)
{
    return t->reads_tools;
}

const toolcall_syntax *chat_template_calls(const chat_template *t, const json_t *kwargs)
{
    bool python = t->reads_python_tools && json_is_array(json_object_get(kwargs, "python_tools"));
    return python ? toolcall_find("smollm3-python") : t->calls;
}

calls_source chat_template_calls_source(const chat_template *t)
{
    return t->calls_source;
}

const char *chat_template_calls_label(const chat_template *t, const json_t *kwargs)
{
    switch (t->calls_source) {
    case CALLS_ADDED: return t->added_label;
    case CALLS_UNKNOWN: return "unknown";
    default: return chat_template_calls(t, kwargs)->name;
    }
}

const thinking_form *chat_template_thinking(const chat_template *t)
{
    return t->thinking;
}

bool chat_template_shows_thinking(const chat_template *t)
{
    return t->shows_thinking;
}

bool chat_template_reads_clock(const chat_template *t)
{
    return t->reads_clock;
}

static void set(jrun *r, const char *name, jvalue v)
{
    jinja_put(r, &r->scope->vars, jinja_str(name, strlen(name)), v);
}

/* [{"type": "text", "text": s}, ...] -> all s in a row. */
static jvalue flatten(jrun *r, jvalue parts)
{
    jtext out = {0};
    for (size_t i = 0; r->rc == 0 && i < parts.list->n; i++) {
        jvalue part = parts.list->at[i];
        if (part.kind == V_DICT) part = jinja_attr(r, part, "text");
        if (part.kind == V_STRING)
            jinja_text_add(&out, part);
        else
            jinja_fail(r, SHOAL_EINVALID, "a message has content that is no text");
    }
    return jinja_text_take(r, &out);
}

static jvalue messages_of(jrun *r, const json_t *messages, bool flat)
{
    jvalue all = jinja_from_json(r, messages), content = jinja_str("content", 7);
    for (size_t i = 0; flat && r->rc == 0 && i < all.list->n; i++) {
        if (all.list->at[i].kind != V_DICT) continue;
        const jvalue *v = jinja_get(r, all.list->at[i].dict, content);
        if (v && v->kind == V_LIST) jinja_put(r, all.list->at[i].dict, content, flatten(r, *v));
    }
    return all;
}

static jvalue token(jrun *r, const char *s)
{
    return s ? jinja_strdup(r, s, strlen(s)) : jinja_str("", 0);
}

static void buf_zero(buf *b, size_t n)
{
    memset(b->data + b->len, 0, n);
    b->len += n;
}

/* The marks reach as far as the text; what has none was not the request's. */
static int chat_give(const jtext *text, buf *out, buf *marks, shoal_err *err)
{
    size_t n = text->bytes.len;
    if (jinja_text_failed(text) || (marks && buf_reserve(marks, n))) return err_nomem(err);
    if (marks && text->marks.len)
        buf_append(marks, text->marks.data, n);
    else if (marks && n)
        buf_zero(marks, n);
    return buf_append(out, text->bytes.data, n) ? err_nomem(err) : 0;
}

static void set_tools(jrun *r, const chat_template *t, const chat_input *in)
{
    jvalue tools = in->tools ? jinja_from_json(r, in->tools) : (jvalue){.kind = V_NONE};
    set(r, "tools", tools);
    bool python = json_object_get(in->kwargs, "python_tools") != NULL;
    if (in->tools && t->reads_xml_tools && !python) set(r, "xml_tools", tools);
}

static void set_kwargs(jrun *r, const json_t *kwargs)
{
    static const char *const taken[] = {"messages", "tools", "add_generation_prompt", "bos_token",
                                        "eos_token"};
    const char *key;
    json_t *v;
    json_object_foreach((json_t *)(uintptr_t)kwargs, key, v)
    {
        for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
            if (strcmp(key, taken[i]) == 0)
                jinja_fail(r, SHOAL_EINVALID, "\"%s\" cannot be given as a template's keyword", key);
        jvalue name = jinja_strdup(r, key, strlen(key));
        if (r->rc == 0) jinja_put(r, &r->scope->vars, name, jinja_from_json(r, v));
    }
}

static void name_thoughts(jrun *r, jvalue messages)
{
    jvalue from = jinja_str("reasoning_content", 17), to = jinja_str("thinking", 8);
    for (size_t i = 0; r->rc == 0 && i < messages.list->n; i++) {
        jvalue m = messages.list->at[i];
        const jvalue *v = m.kind == V_DICT ? jinja_get(r, m.dict, from) : NULL;
        if (v && !jinja_get(r, m.dict, to)) jinja_put(r, m.dict, to, *v);
    }
}

static void set_globals(jrun *r, const chat_template *t, const chat_input *in, bool add_generation_prompt)
{
    jvalue messages = messages_of(r, in->messages, !t->reads_parts);
    if (t->reads_thinking) name_thoughts(r, messages);
    chat_ids_map(r, messages, t->ids);
    set(r, "messages", messages);
    set_tools(r, t, in);
    set(r, "documents", (jvalue){.kind = V_NONE});
    set(r, "add_generation_prompt", jinja_bool(add_generation_prompt));
    set_kwargs(r, in->kwargs);
}

/* Clients read the sentence: where the file lies on this machine is not theirs to know. */
static const char *file_of(const char *what)
{
    const char *slash = strrchr(what, '/');
    return slash ? slash + 1 : what;
}

int chat_template_render(const chat_template *t, const chat_input *in, bool add_generation_prompt,
                         const char *bos_token, const char *eos_token, buf *out, buf *marks, shoal_err *err)
{
    if (!json_is_array(in->messages)) return err_set(err, SHOAL_EINVALID, "messages must be an array");
    jscope globals = {0};
    jtext text = {0};
    jrun r = {.mem = arena_new(65536), .out = &text, .scope = &globals, .clock = in->clock, .err = err};
    if (in->steps && in->steps < JINJA_MAX_STEPS) r.steps = JINJA_MAX_STEPS - in->steps;
    if (!r.mem) return err_nomem(err);
    set_globals(&r, t, in, add_generation_prompt);
    set(&r, "bos_token", token(&r, bos_token));
    set(&r, "eos_token", token(&r, eos_token));
    int rc = r.rc ? r.rc : jinja_run(&r, t->root);
    if (rc) err_prefix(err, rc, "%s", file_of(t->what));
    if (rc == 0) rc = chat_give(&text, out, marks, err);
    arena_free(r.mem);
    jinja_text_done(&text);
    return rc;
}
