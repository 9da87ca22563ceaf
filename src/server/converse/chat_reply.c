/* chat_reply.c: see chat_reply.h. */
#include "converse/chat_reply.h"

#include <string.h>

#include "json/json.h"
#include "json/schema_check.h"

typedef struct replier {
    const function_table *t;
    const chat_case *k;
    const device *list;
    size_t n;
    const json_t *answer;
    arena *a;
    const char *text;                      /* the pipeline's */
    size_t n_meant;                        /* its calls, */
    device_call meant[VERIFY_CALLS_MAX];   /* as they are, */
    device_call offered[VERIFY_CALLS_MAX]; /* and as functions, */
    bool fits[VERIFY_CALLS_MAX];           /* which one does */
} replier;

static int reply_text(verify_answer *ret, const char *text)
{
    *ret = (verify_answer){.text = text};
    return text ? 0 : SHOAL_ENOMEM;
}

/* ---- what the pipeline means --------------------------------------------------------------------- */

static int take_call(replier *r, const json_t *call)
{
    const char *name = json_string_value(json_object_get(call, "name"));
    const json_t *arguments = json_object_get(call, "arguments");
    buf text = {0};
    if (!name || r->n_meant == VERIFY_CALLS_MAX) return 0;
    if (json_is_string(arguments))
        buf_puts(&text, json_string_value(arguments));
    else if (arguments)
        json_put_digits(&text, arguments, 15); /* 21.1, not 21.100000000000001 */
    else
        buf_puts(&text, "{}");
    device_call *c = &r->meant[r->n_meant++];
    *c = (device_call){arena_strdup(r->a, name), text.failed ? NULL : arena_strdup(r->a, buf_text(&text))};
    buf_done(&text);
    return c->name && c->arguments ? 0 : SHOAL_ENOMEM;
}

static int take_answer(replier *r)
{
    const json_t *calls = json_object_get(r->answer, "tool_calls"), *one;
    const char *text = json_string_value(json_object_get(r->answer, "text"));
    size_t i;
    int rc = 0;
    r->text = arena_strdup(r->a, text ? text : "");
    if (!r->text) return SHOAL_ENOMEM;
    if (!calls) {
        one = json_object_get(r->answer, "tool_call");
        return json_is_object(one) ? take_call(r, one) : 0;
    }
    json_array_foreach(calls, i, one) if (!rc) rc = take_call(r, one);
    return rc;
}

/* "light.turn_on of Kitchen Light, lock.lock of Front Door"; unfit: of those alone that no function does. */
static const char *listed_calls(replier *r, bool unfit)
{
    buf out = {0};
    bool nomem = false;
    for (size_t i = 0; i < r->n_meant; i++) {
        if (unfit && r->fits[i]) continue;
        json_t *o = NULL;
        const char *name = "";
        nomem |=
            json_parse(&o, r->meant[i].arguments, strlen(r->meant[i].arguments), "a", NULL) == SHOAL_ENOMEM;
        const char *target = json_string_value(json_object_get(o, "target"));
        for (size_t k = 0; target && k < r->n; k++)
            if (strcmp(r->list[k].id, target) == 0) name = r->list[k].name;
        const char *say = *name ? function_table_say(r->t, REPLY_call, r->a, "service", r->meant[i].name,
                                                     "name", name, (char *)NULL)
                                : r->meant[i].name;
        nomem |= !say;
        buf_printf(&out, "%s%s", out.len ? ", " : "", say ? say : "");
        json_decref(o);
    }
    const char *kept = nomem || out.failed ? NULL : arena_strdup(r->a, buf_text(&out));
    buf_done(&out);
    return kept;
}

/* Nothing is called: why. */
static int refuse(replier *r, verify_answer *ret, function_reply why)
{
    const char *calls = listed_calls(r, why == REPLY_no_fit);
    if (!calls) return SHOAL_ENOMEM;
    return reply_text(ret, function_table_say(r->t, why, r->a, "calls", calls, (char *)NULL));
}

static int map_all(replier *r, bool *ret_fit)
{
    *ret_fit = true;
    for (size_t i = 0; i < r->n_meant; i++) {
        if (function_table_map(&r->offered[i], &r->fits[i], r->t, r->k, r->list, r->n, &r->meant[i], r->a))
            return SHOAL_ENOMEM;
        *ret_fit = *ret_fit && r->fits[i];
    }
    return 0;
}

/* ---- what was done ------------------------------------------------------------------------------- */

static bool acts(const replier *r, const made_call *m)
{
    return !function_table_tells_states(r->t, m->name);
}

static bool has_acted(const replier *r)
{
    for (size_t i = 0; i < r->k->n_made; i++)
        if (acts(r, &r->k->made[i])) return true;
    return false;
}

static bool is_same(const made_call *m, const device_call *c)
{
    json_t *x = NULL, *y = NULL;
    bool same = strcmp(m->name, c->name) == 0 &&
                json_parse(&x, m->arguments, strlen(m->arguments), "x", NULL) == 0 &&
                json_parse(&y, c->arguments, strlen(c->arguments), "y", NULL) == 0 && json_equal(x, y);
    json_decref(x);
    json_decref(y);
    return same;
}

static bool is_made(const replier *r, const device_call *c)
{
    for (size_t i = 0; i < r->k->n_made; i++)
        if (is_same(&r->k->made[i], c)) return true;
    return false;
}

/* Another model may have made calls that the request does not mean. */
static bool is_meant(const replier *r, const made_call *m)
{
    for (size_t i = 0; i < r->n_meant; i++)
        if (is_same(m, &r->offered[i])) return true;
    return false;
}

/* Results have come. meant: what was made is what the pipeline's text is about. */
static int close_with(replier *r, verify_answer *ret, const result_report *results, bool meant)
{
    return reply_text(ret, results->well && meant ? r->text : results->text);
}

/* ---- the reply ----------------------------------------------------------------------------------- */

/* All that is left to call, or its first. */
static int call_rest(replier *r, verify_answer *ret)
{
    device_call *calls = arena_alloc(r->a, (r->n_meant + 1) * sizeof *calls);
    if (!calls) return SHOAL_ENOMEM;
    *ret = (verify_answer){.text = "", .calls = calls};
    for (size_t i = 0; i < r->n_meant && !(r->k->one_call && ret->n_calls); i++)
        if (!is_made(r, &r->offered[i])) calls[ret->n_calls++] = r->offered[i];
    return 0;
}

static int act(replier *r, verify_answer *ret, const result_report *results)
{
    bool fit, meant = true;
    if (!r->k->offers && !has_acted(r)) return refuse(r, ret, REPLY_no_functions);
    if (r->k->no_calls && !has_acted(r)) return refuse(r, ret, REPLY_not_allowed);
    if (map_all(r, &fit)) return SHOAL_ENOMEM;
    if (!has_acted(r)) return fit ? call_rest(r, ret) : refuse(r, ret, REPLY_no_fit);
    for (size_t i = 0; i < r->k->n_made && fit; i++)
        meant = meant && (!acts(r, &r->k->made[i]) || is_meant(r, &r->k->made[i]));
    if (fit && meant && !results->failed && !r->k->no_calls) {
        if (call_rest(r, ret)) return SHOAL_ENOMEM;
        if (ret->n_calls) return 0;
    }
    return close_with(r, ret, results, fit && meant);
}

/* The last verdict of a rule. */
static bool wants_states(const replier *r)
{
    size_t i;
    const json_t *entry;
    bool wants = false, known = r->n > 0;
    for (size_t k = 0; k < r->n; k++) known = known && r->list[k].state && *r->list[k].state;
    json_array_foreach(json_object_get(r->answer, "trace"), i, entry)
    {
        const char *verdict = json_string_value(json_object_get(entry, "verdict"));
        wants = wants || (verdict && function_table_wants_states(r->t, verdict));
    }
    return wants && !known && !r->k->no_calls;
}

/* Once: a function that takes nothing and tells the states. False: there is none. */
static bool ask_states(replier *r, verify_answer *ret)
{
    for (size_t i = 0; i < r->k->n_made; i++)
        if (!acts(r, &r->k->made[i])) return false;
    for (size_t i = 0; i < r->k->n_functions; i++) {
        if (!function_table_tells_states(r->t, r->k->functions[i].name)) continue;
        r->offered[0] = (device_call){r->k->functions[i].name, "{}"};
        r->n_meant = 1;
        return call_rest(r, ret) == 0;
    }
    return false;
}

static replier *replier_new(const function_table *t, const chat_case *k, const device *list, size_t n,
                            const json_t *answer, arena *a)
{
    replier *r = arena_alloc(a, sizeof *r);
    if (r) *r = (replier){.t = t, .k = k, .list = list, .n = n, .answer = answer, .a = a};
    return r;
}

static int reply_make(replier *r, verify_answer *ret)
{
    result_report results;
    if (take_answer(r) || function_table_report(&results, r->t, r->k->made, r->k->n_made, r->a))
        return SHOAL_ENOMEM;
    if (r->n_meant) return act(r, ret, &results);
    if (has_acted(r)) return close_with(r, ret, &results, false);
    if (wants_states(r) && ask_states(r, ret)) return 0;
    return reply_text(ret, r->text);
}

int chat_reply_make(verify_answer *ret, const function_table *t, const chat_case *k, const device *list,
                    size_t n, const json_t *answer, arena *a)
{
    replier *r = replier_new(t, k, list, n, answer, a);
    return r ? reply_make(r, ret) : SHOAL_ENOMEM;
}

/* ---- as JSON ------------------------------------------------------------------------------------- */

/* By the offered functions, where all fit; else as the pipeline calls them. NULL: out of memory. */
static json_t *meant_calls(replier *r)
{
    bool fit = false, nomem = r->n_meant && !has_acted(r) && map_all(r, &fit);
    json_t *list = nomem ? NULL : json_array();
    for (size_t i = 0; i < r->n_meant && list && !nomem && !has_acted(r); i++) {
        const device_call *c = fit ? &r->offered[i] : &r->meant[i];
        json_t *arguments = NULL, *call = json_object();
        nomem = json_parse(&arguments, c->arguments, strlen(c->arguments), "a", NULL) == SHOAL_ENOMEM ||
                !call || json_object_set_new(call, "name", json_string(c->name));
        nomem = json_object_set_new(call, "arguments", arguments ? arguments : json_object()) || nomem;
        nomem = json_array_append_new(list, call) || nomem;
    }
    if (!nomem) return list;
    json_decref(list);
    return NULL;
}

/* Members that the schema does not name would break it where it takes no others. */
static void drop_unnamed(json_t *o, const json_t *schema)
{
    static const char *const MEMBERS[] = {"text", "calls"};
    const json_t *named = json_object_get(schema, "properties");
    for (size_t i = 0; named && i < sizeof MEMBERS / sizeof *MEMBERS; i++)
        if (!json_object_get(named, MEMBERS[i])) json_object_del(o, MEMBERS[i]);
}

static int hold_to_schema(replier *r, const json_t *o, const char **ret_why)
{
    schema_verdict v = {.outcome = SCHEMA_OBEYED};
    *ret_why = NULL;
    if (r->k->schema) schema_check(&v, r->k->schema, o);
    if (v.out_of_memory) return SHOAL_ENOMEM;
    if (v.outcome == SCHEMA_OBEYED) return 0;
    *ret_why =
        arena_printf(r->a, "%s%s%s", v.where, *v.where ? ": " : "", *v.why ? v.why : "it cannot be checked");
    return *ret_why ? 0 : SHOAL_ENOMEM;
}

int chat_reply_make_form(const char **ret, const char **ret_why, const function_table *t, const chat_case *k,
                         const device *list, size_t n, const json_t *answer, arena *a)
{
    replier *r = replier_new(t, k, list, n, answer, a);
    verify_answer reply;
    buf text = {0};
    json_t *o = r && reply_make(r, &reply) == 0 ? json_object() : NULL;
    int rc = o && json_object_set_new(o, "text", json_string(reply.text)) == 0 &&
                     json_object_set_new(o, "calls", meant_calls(r)) == 0
                 ? 0
                 : SHOAL_ENOMEM;
    if (!rc) drop_unnamed(o, k->schema);
    if (!rc) rc = hold_to_schema(r, o, ret_why);
    *ret = NULL;
    if (!rc && !*ret_why) {
        json_put_digits(&text, o, 15);
        *ret = text.failed ? NULL : arena_strdup(a, buf_text(&text));
        rc = *ret ? 0 : SHOAL_ENOMEM;
    }
    buf_done(&text);
    json_decref(o);
    return rc;
}
