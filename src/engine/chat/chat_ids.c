/* chat_ids.c: ids of calls in the form that a template takes.
 *
 * Clients send back the ids that they were given, "call_...". Mistral's templates refuse all but nine letters
 * and digits; Kimi-K2's models know "functions.NAME:NUMBER" alone. So ids are mapped before the template sees
 * them: a call and its result get the same one, in each request anew and always the same from the same. Calls
 * that have no id, as Ollama's clients send them, get one, and results without one belong to the calls in
 * their order. */
#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chat/chat_impl.h"

enum { NINE = 9, ID_BYTES = 320 };

typedef struct pair {
    jvalue old, new;
    bool answered;
} pair;

typedef struct mapping {
    jrun *r;
    id_form form;
    pair *pairs;
    size_t n, cap;
} mapping;

id_form chat_ids_form(const char *source, const toolcall_syntax *calls)
{
    if (strcmp(calls->name, "kimi-k2") == 0) return IDS_OF_FUNCTIONS;
    for (const char *at = source; (at = strstr(at, "length"));) {
        at += strlen("length");
        while (*at == ' ') at++;
        if ((at[0] != '!' && at[0] != '=') || at[1] != '=') continue;
        at += 2;
        while (*at == ' ') at++;
        if (*at == '9' && !isdigit((unsigned char)at[1])) return IDS_OF_NINE;
    }
    return IDS_AS_THEY_ARE;
}

static const jvalue *member(jrun *r, jvalue dict, const char *key)
{
    return dict.kind == V_DICT ? jinja_get(r, dict.dict, jinja_str(key, strlen(key))) : NULL;
}

static bool is_nine(const jvalue *v)
{
    if (v->n != NINE) return false;
    for (size_t i = 0; i < NINE; i++)
        if (!isalnum((unsigned char)v->s[i])) return false;
    return true;
}

/* Nine letters and digits of a text: FNV-1a (Fowler, Noll, Vo) over its bytes, and the number of the call. */
static void nine_of(const char *s, size_t n, size_t number, char out[NINE])
{
    static const char LETTERS[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < n; i++) h = (h ^ (uint8_t)s[i]) * 0x100000001b3u;
    h = (h ^ number) * 0x100000001b3u;
    for (size_t i = 0; i < NINE; i++, h /= 62) out[i] = LETTERS[h % 62];
}

static jvalue new_id(const mapping *m, const jvalue *old, jvalue call)
{
    char id[ID_BYTES];
    bool has = old && old->kind == V_STRING;
    const jvalue *f = member(m->r, call, "function"), *name = member(m->r, f ? *f : call, "name");
    if (m->form == IDS_OF_NINE) {
        if (has && is_nine(old)) return *old;
        nine_of(has ? old->s : "", has ? old->n : 0, has ? 0 : m->n + 1, id);
        return jinja_strdup(m->r, id, NINE);
    }
    if (has && old->n > 10 && memcmp(old->s, "functions.", 10) == 0) return *old;
    bool named = name && name->kind == V_STRING && name->n < ID_BYTES - 40;
    int n =
        snprintf(id, sizeof id, "functions.%.*s:%zu", named ? (int)name->n : 0, named ? name->s : "", m->n);
    return jinja_strdup(m->r, id, (size_t)n);
}

static void set_id(const mapping *m, jvalue dict, const char *key, jvalue id)
{
    jinja_put(m->r, dict.dict, jinja_str(key, strlen(key)), id);
}

static void map_call(mapping *m, jvalue call)
{
    const jvalue *old = member(m->r, call, "id");
    if (call.kind != V_DICT || m->n == m->cap) return;
    pair *p = &m->pairs[m->n];
    *p = (pair){.old = old ? *old : (jvalue){.kind = V_NONE}, .new = new_id(m, old, call)};
    m->n++;
    if (m->r->rc == 0) set_id(m, call, "id", p->new);
}

static bool same_text(const jvalue *a, const jvalue *b)
{
    return a->kind == V_STRING && b->kind == V_STRING && a->n == b->n && memcmp(a->s, b->s, a->n) == 0;
}

/* Of the call that has this id, or of the first one that has no result yet. */
static pair *call_of(const mapping *m, const jvalue *id)
{
    bool has = id && id->kind == V_STRING && id->n > 0;
    for (size_t i = m->n; has && i-- > 0;)
        if (same_text(&m->pairs[i].old, id)) return &m->pairs[i];
    for (size_t i = 0; !has && i < m->n; i++)
        if (!m->pairs[i].answered) return &m->pairs[i];
    return NULL;
}

static void map_result(mapping *m, jvalue message)
{
    const jvalue *old = member(m->r, message, "tool_call_id");
    pair *p = call_of(m, old);
    if (p) {
        p->answered = true;
        set_id(m, message, "tool_call_id", p->new);
    } else if (m->form == IDS_OF_NINE) {
        set_id(m, message, "tool_call_id", new_id(m, old, message));
    }
}

static bool is_result(jrun *r, jvalue message)
{
    const jvalue *role = member(r, message, "role");
    return role && role->kind == V_STRING && role->n == 4 && memcmp(role->s, "tool", 4) == 0;
}

static size_t count_calls(jrun *r, jvalue messages)
{
    size_t n = 0;
    for (size_t i = 0; i < messages.list->n; i++) {
        const jvalue *calls = member(r, messages.list->at[i], "tool_calls");
        if (calls && calls->kind == V_LIST) n += calls->list->n;
    }
    return n;
}

void chat_ids_map(jrun *r, jvalue messages, id_form form)
{
    mapping m = {.r = r, .form = form};
    if (form == IDS_AS_THEY_ARE || r->rc) return;
    m.cap = count_calls(r, messages);
    m.pairs = calloc(m.cap + 1, sizeof *m.pairs);
    if (!m.pairs) {
        r->rc = err_nomem(r->err);
        return;
    }
    for (size_t i = 0; r->rc == 0 && i < messages.list->n; i++) {
        jvalue message = messages.list->at[i];
        const jvalue *calls = member(r, message, "tool_calls");
        for (size_t k = 0; calls && calls->kind == V_LIST && k < calls->list->n && r->rc == 0; k++)
            map_call(&m, calls->list->at[k]);
        if (r->rc == 0 && is_result(r, message)) map_result(&m, message);
    }
    free(m.pairs);
}
