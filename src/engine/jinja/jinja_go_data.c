/* jinja_go_data.c: the data of Ollama's templates (Values and Execute of its template/template.go). */
#include <stdlib.h>
#include <string.h>

#include "jinja/jinja_go.h"

static const go_field MESSAGE[] = {{"Role", "role", GO_TEXT, 0, false},
                                   {"Content", "content", GO_TEXT, 0, false},
                                   {"Thinking", "thinking", GO_TEXT, 0, true},
                                   {"Images", "images", GO_ANYS, 0, true},
                                   {"ToolCalls", "tool_calls", GO_STRUCTS, GO_TOOL_CALL, true},
                                   {"ToolName", "tool_name", GO_TEXT, 0, true}};
static const go_field TOOL_CALL[] = {{"Function", "function", GO_STRUCT, GO_CALLED, false}};
static const go_field CALLED[] = {{"Index", "index", GO_INT, 0, false},
                                  {"Name", "name", GO_TEXT, 0, false},
                                  {"Arguments", "arguments", GO_MAP, GO_ARGUMENTS, false}};
static const go_field TOOL[] = {{"Type", "type", GO_TEXT, 0, false},
                                {"Items", "items", GO_ANY, 0, true},
                                {"Function", "function", GO_STRUCT, GO_FUNCTION, false}};
static const go_field FUNCTION[] = {{"Name", "name", GO_TEXT, 0, false},
                                    {"Description", "description", GO_TEXT, 0, true},
                                    {"Parameters", "parameters", GO_STRUCT, GO_PARAMETERS, false}};
static const go_field PARAMETERS[] = {{"Type", "type", GO_TEXT, 0, false},
                                      {"Defs", "$defs", GO_ANY, 0, true},
                                      {"Items", "items", GO_ANY, 0, true},
                                      {"Required", "required", GO_TEXTS, 0, false},
                                      {"Properties", "properties", GO_STRUCT_MAP, GO_PROPERTY, false}};
static const go_field PROPERTY[] = {{"AnyOf", "anyOf", GO_STRUCTS, GO_PROPERTY, true},
                                    {"Type", "type", GO_TYPES, 0, true},
                                    {"Items", "items", GO_ANY, 0, true},
                                    {"Description", "description", GO_TEXT, 0, true},
                                    {"Enum", "enum", GO_ANYS, 0, true}};

static const struct {
    const go_field *fields;
    size_t n;
} STRUCTS[N_GO_STRUCTS] = {
#define ROWS(t)                 \
    {                           \
        t, sizeof t / sizeof *t \
    }
    [GO_MESSAGE] = ROWS(MESSAGE),   [GO_TOOL_CALL] = ROWS(TOOL_CALL), [GO_CALLED] = ROWS(CALLED),
    [GO_TOOL] = ROWS(TOOL),         [GO_FUNCTION] = ROWS(FUNCTION),   [GO_PARAMETERS] = ROWS(PARAMETERS),
    [GO_PROPERTY] = ROWS(PROPERTY),
#undef ROWS
};

const go_field *go_fields(go_type t, size_t *ret_n)
{
    if (t >= N_GO_STRUCTS || !STRUCTS[t].fields) return NULL;
    *ret_n = STRUCTS[t].n;
    return STRUCTS[t].fields;
}

/* ---- JSON as values of Go ----------------------------------------------------------------------- */

static jvalue key_of(const char *name)
{
    return jinja_str(name, strlen(name));
}

static const jvalue *member(jrun *r, jvalue of, const char *name)
{
    return of.kind == V_DICT ? jinja_get(r, of.dict, key_of(name)) : NULL;
}

static jvalue nil(jrun *r, jkind kind)
{
    jvalue v = kind == V_LIST ? jinja_list(r) : jinja_dict(r, V_DICT);
    v.b = true;
    return v;
}

static int compare_keys(const void *a, const void *b)
{
    const jvalue *x = *(jvalue *const *)a, *y = *(jvalue *const *)b;
    size_t n = x->n < y->n ? x->n : y->n;
    int c = n ? memcmp(x->s, y->s, n) : 0;
    return c ? c : (x->n > y->n) - (x->n < y->n);
}

static jvalue any_of(jrun *r, jvalue v);
static jvalue struct_of(jrun *r, go_type t, jvalue from);

/* t GO_PLAIN: of any values; else of that struct. */
static jvalue map_of(jrun *r, jvalue from, go_type t)
{
    if (from.kind != V_DICT) return nil(r, V_DICT);
    size_t n = from.dict->n;
    jvalue out = jinja_dict(r, V_DICT), **keys = jinja_alloc(r, (n + 1) * sizeof *keys);
    jvalue *names = jinja_alloc(r, (n + 1) * sizeof *names),
           *values = jinja_alloc(r, (n + 1) * sizeof *values);
    if (!out.dict || !keys || !names || !values) return out;
    jinja_charge(r, jinja_str("", n * 64));
    for (size_t i = 0; i < n; i++) keys[i] = &from.dict->keys[i];
    qsort(keys, n, sizeof *keys, compare_keys);
    *out.dict = (jdict){.keys = names, .values = values, .cap = n};
    for (size_t i = 0; r->rc == 0 && i < n; i++) {
        jvalue v = from.dict->values[keys[i] - from.dict->keys];
        names[i] = *keys[i];
        values[i] = t ? struct_of(r, t, v) : any_of(r, v);
        out.dict->n = i + 1;
    }
    return out;
}

static jvalue list_of(jrun *r, jvalue from, go_type t)
{
    if (from.kind != V_LIST) return nil(r, V_LIST);
    jvalue out = jinja_list(r);
    for (size_t i = 0; r->rc == 0 && i < from.list->n; i++)
        jinja_push(r, out, t ? struct_of(r, t, from.list->at[i]) : any_of(r, from.list->at[i]));
    return out;
}

static jvalue any_of(jrun *r, jvalue v)
{
    if (++r->depth > JINJA_MAX_DEPTH) jinja_fail(r, SHOAL_ELIMIT, "a value nests too deep");
    jvalue out = v;
    if (r->rc || v.kind == V_NONE)
        out = (jvalue){.kind = V_UNDEFINED};
    else if (v.kind == V_LIST)
        out = list_of(r, v, GO_PLAIN);
    else if (v.kind == V_DICT)
        out = map_of(r, v, GO_PLAIN);
    else if (v.kind == V_INT)
        out = jinja_float((double)v.i); /* as Go reads JSON */
    r->depth--;
    return out;
}

/* The text of a message's parts in a row, or a text as it is. */
static jvalue text_of(jrun *r, jvalue v)
{
    jtext out = {0};
    if (v.kind == V_STRING) return v;
    for (size_t i = 0; v.kind == V_LIST && i < v.list->n; i++) {
        const jvalue *text = member(r, v.list->at[i], "text");
        if (text && text->kind == V_STRING) jinja_text_add(&out, *text);
    }
    return go_take(r, &out);
}

static jvalue types_of(jrun *r, jvalue v)
{
    jvalue out = v.kind == V_STRING ? jinja_list(r) : list_of(r, v, GO_PLAIN);
    if (v.kind == V_STRING) jinja_push(r, out, v);
    out.i = GO_TYPE;
    return out;
}

static jvalue tagged(jvalue v, go_type t)
{
    v.i = t;
    return v;
}

static jvalue field_of(jrun *r, const go_field *f, jvalue v)
{
    switch (f->kind) {
    case GO_TEXT: return text_of(r, v);
    case GO_INT: return v.kind == V_INT ? v : jinja_int(0);
    case GO_ANY: return any_of(r, v);
    case GO_TEXTS:
    case GO_ANYS: return list_of(r, v, GO_PLAIN);
    case GO_TYPES: return types_of(r, v);
    case GO_MAP: return tagged(map_of(r, v, GO_PLAIN), f->of);
    case GO_STRUCT: return struct_of(r, f->of, v);
    case GO_STRUCTS: return list_of(r, v, f->of);
    case GO_STRUCT_MAP: return map_of(r, v, f->of);
    }
    return v;
}

/* All fields are there; those that the JSON does not have are empty. */
static jvalue struct_of(jrun *r, go_type t, jvalue from)
{
    jvalue out = tagged(jinja_dict(r, V_DICT), t);
    if (++r->depth > JINJA_MAX_DEPTH) jinja_fail(r, SHOAL_ELIMIT, "a value nests too deep");
    for (size_t i = 0; r->rc == 0 && i < STRUCTS[t].n; i++) {
        const go_field *f = &STRUCTS[t].fields[i];
        const jvalue *v = member(r, from, f->json);
        jinja_put(r, out.dict, key_of(f->name), field_of(r, f, v ? *v : (jvalue){.kind = V_UNDEFINED}));
    }
    r->depth--;
    return out;
}

/* ---- messages ----------------------------------------------------------------------------------- */

static bool is_text(jvalue v, const char *s)
{
    return v.kind == V_STRING && v.n == strlen(s) && memcmp(v.s, s, v.n) == 0;
}

/* Of a message in the form of the request. */
static jvalue role_of(jrun *r, jvalue m)
{
    const jvalue *role = member(r, m, "role");
    if (role && is_text(*role, "developer")) return key_of("system");
    return role && role->kind == V_STRING ? *role : key_of("");
}

/* The name of the function that was called by this id, before messages[end]. */
static const jvalue *name_of_call(jrun *r, jvalue messages, size_t end, jvalue id)
{
    jinja_charge(r, messages);
    for (size_t i = end; i-- > 0;) {
        const jvalue *calls = member(r, messages.list->at[i], "tool_calls");
        for (size_t k = 0; calls && calls->kind == V_LIST && k < calls->list->n; k++) {
            const jvalue *its = member(r, calls->list->at[k], "id"),
                         *f = member(r, calls->list->at[k], "function");
            if (its && f && jinja_equal(r, *its, id)) return member(r, *f, "name");
        }
    }
    return NULL;
}

static void set(jrun *r, jvalue dict, const char *name, jvalue v)
{
    jinja_put(r, dict.dict, key_of(name), v);
}

/* What OpenAI's messages call otherwise. */
static jvalue message_of(jrun *r, jvalue messages, size_t i)
{
    jvalue from = messages.list->at[i], m = struct_of(r, GO_MESSAGE, from);
    if (r->rc) return m;
    set(r, m, "Role", role_of(r, from));
    const jvalue *thought = member(r, from, "reasoning_content"), *name = member(r, from, "name"),
                 *id = member(r, from, "tool_call_id");
    if (thought && thought->kind == V_STRING) set(r, m, "Thinking", *thought);
    if (!is_text(role_of(r, from), "tool")) return m;
    if (!name && id) name = name_of_call(r, messages, i, *id);
    if (name && name->kind == V_STRING) set(r, m, "ToolName", *name);
    return m;
}

static void add_paragraph(jrun *r, jtext *text, bool *any, jvalue message)
{
    const jvalue *content = member(r, message, "content");
    if (*any) jinja_text_puts(text, "\n\n");
    *any = true;
    if (content) jinja_text_add(text, text_of(r, *content));
}

/* Messages in a row with the same role are one, but for those of tools. */
static jvalue collate(jrun *r, jvalue messages)
{
    jvalue out = jinja_list(r);
    size_t n = messages.kind == V_LIST ? messages.list->n : 0;
    out.b = n == 0;
    for (size_t i = 0, end; r->rc == 0 && i < n; i = end) {
        jvalue role = role_of(r, messages.list->at[i]);
        jtext text = {0};
        bool any = false, alone = is_text(role, "tool");
        for (end = i;
             end < n && (end == i || (!alone && jinja_equal(r, role, role_of(r, messages.list->at[end]))));
             end++)
            add_paragraph(r, &text, &any, messages.list->at[end]);
        jvalue m = message_of(r, messages, i), content = go_take(r, &text);
        if (r->rc == 0) set(r, m, "Content", content);
        jinja_push(r, out, m);
    }
    return out;
}

static jvalue system_of(jrun *r, jvalue messages)
{
    jtext text = {0};
    bool any = false;
    for (size_t i = 0; messages.kind == V_LIST && r->rc == 0 && i < messages.list->n; i++)
        if (is_text(role_of(r, messages.list->at[i]), "system"))
            add_paragraph(r, &text, &any, messages.list->at[i]);
    return go_take(r, &text);
}

/* ---- the data of a run -------------------------------------------------------------------------- */

/* think and effort: what Ollama's "think" became, a truth and perhaps how hard. */
static jvalue new_data(jrun *r, jvalue think, jvalue effort)
{
    jvalue d = jinja_dict(r, V_DICT);
    if (r->rc) return d;
    bool is_set = think.kind != V_UNDEFINED && think.kind != V_NONE, thinks = is_set && jinja_truth(think);
    set(r, d, "Think", jinja_bool(thinks));
    set(r, d, "ThinkLevel", thinks && effort.kind == V_STRING ? effort : key_of(""));
    set(r, d, "IsThinkSet", jinja_bool(is_set));
    set(r, d, "Response", key_of(""));
    return d;
}

/* Text to be written between the last message and `suffix`. */
static jvalue data_between(jrun *r, jvalue messages, jvalue suffix, jvalue think, jvalue effort)
{
    jvalue d = new_data(r, think, effort);
    size_t n = messages.kind == V_LIST ? messages.list->n : 0;
    const jvalue *last = n ? member(r, messages.list->at[n - 1], "content") : NULL;
    if (r->rc) return d;
    set(r, d, "Prompt", last ? text_of(r, *last) : key_of(""));
    set(r, d, "Suffix", suffix);
    return d;
}

static bool is_between(jvalue suffix)
{
    return suffix.kind == V_STRING && suffix.n > 0;
}

jvalue go_fn_data(jrun *r, const jargs *a)
{
    jvalue messages = jinja_arg(a, 0), think = jinja_arg(a, 2), effort = jinja_arg(a, 3),
           suffix = jinja_arg(a, 4);
    jinja_charge(r, messages);
    if (is_between(suffix)) return data_between(r, messages, suffix, think, effort);
    jvalue d = new_data(r, think, effort), collated = collate(r, messages);
    jvalue tools = tagged(list_of(r, jinja_arg(a, 1), GO_TOOL), GO_TOOLS), system = system_of(r, messages);
    if (r->rc) return d;
    set(r, d, "System", system);
    set(r, d, "Messages", collated);
    set(r, d, "Tools", tools);
    return d;
}

/* What a turn has so far. */
typedef struct turn {
    jvalue think, effort, system, prompt, response;
} turn;

static void end_turn(jrun *r, jvalue turns, turn *t, bool last)
{
    jvalue d = new_data(r, t->think, t->effort);
    if (r->rc) return;
    set(r, d, "System", t->system);
    set(r, d, "Prompt", t->prompt);
    set(r, d, "Response", t->response);
    set(r, d, ".last", jinja_bool(last));
    jinja_push(r, turns, d);
    t->system = t->prompt = t->response = key_of("");
}

static void add_message(jrun *r, jvalue turns, turn *t, jvalue m)
{
    jvalue role = *member(r, m, "Role"), content = *member(r, m, "Content");
    if (is_text(role, "system")) {
        if (t->prompt.n || t->response.n) end_turn(r, turns, t, false);
        t->system = content;
    } else if (is_text(role, "user")) {
        if (t->response.n) end_turn(r, turns, t, false);
        t->prompt = content;
    } else if (is_text(role, "assistant")) {
        t->response = content;
    }
}

jvalue go_fn_turns(jrun *r, const jargs *a)
{
    jvalue messages = jinja_arg(a, 0), suffix = jinja_arg(a, 3), turns = jinja_list(r), empty = key_of("");
    turn t = {jinja_arg(a, 1), jinja_arg(a, 2), empty, empty, empty};
    jinja_charge(r, messages);
    if (is_between(suffix)) {
        jinja_push(r, turns, data_between(r, messages, suffix, t.think, t.effort));
        return turns;
    }
    jvalue all = collate(r, messages);
    for (size_t i = 0; r->rc == 0 && i < all.list->n; i++) add_message(r, turns, &t, all.list->at[i]);
    if (r->rc == 0) end_turn(r, turns, &t, true);
    return turns;
}
