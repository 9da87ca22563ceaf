/* check.c: a model's calls against the options of a request; see check.h. */
#include "nlu/check.h"

#include <string.h>

#include "json/json.h"
#include "nlu/reply.h"

const char *check_verdict_name(check_verdict v)
{
    static const char *const names[] = {
#define VERDICT_NAME(e, n, about) [e] = n,
        CHECK_VERDICTS(VERDICT_NAME)
#undef VERDICT_NAME
    };
    return (size_t)v < sizeof names / sizeof *names ? names[v] : "unknown";
}

static bool same_json(const char *a, const char *b)
{
    json_t *x = NULL, *y = NULL;
    bool same = !json_parse(&x, a, strlen(a), "a", NULL) && !json_parse(&y, b, strlen(b), "b", NULL) &&
                json_equal(x, y);
    json_decref(x);
    json_decref(y);
    return same;
}

static bool check_has_call(const device_call *list, size_t n, const device_call *c)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(list[i].name, c->name) == 0 && same_json(list[i].arguments, c->arguments)) return true;
    return false;
}

static bool is_option(const device_option *o, const device_call *made, size_t n)
{
    if (o->n_calls != n) return false;
    for (size_t i = 0; i < n; i++)
        if (!check_has_call(o->calls, o->n_calls, &made[i]) || !check_has_call(made, n, &o->calls[i]))
            return false;
    return true;
}

static const device_option *option_of(const grounding *g, const device_call *made, size_t n)
{
    for (size_t i = 0; i < g->n_options; i++)
        if (is_option(&g->options[i], made, n)) return &g->options[i];
    return NULL;
}

int check_calls(checked *ret, const grounding *g, const lexicon *lex, const device_call *made, size_t n_made,
                arena *a, shoal_err *err)
{
    const device_option *o = option_of(g, made, n_made);
    checked c = {.verdict = CHECK_REFUSED, .text = g->text};
    bool act = g->verdict == GROUND_ACT || g->verdict == GROUND_CHOOSE;
    if (act && !o && g->n_options == 1) {
        o = &g->options[0];
        c.verdict = CHECK_REPAIRED;
    } else if (act && o) {
        c.verdict = CHECK_PASSED;
    } else if (g->verdict == GROUND_PROPOSE && o) {
        reply_field f[] = {{"say", o->say}};
        c.text = reply_fill(a, lex->reply.propose, f, 1);
        c.verdict = CHECK_ASKED;
    }
    if (!c.text) return err_nomem(err);
    if (act && o) {
        /* Of a request that is clear, the text also says what of it could not be done. */
        c.text = g->verdict == GROUND_ACT ? g->text : o->say;
        c.calls = o->calls;
        c.n_calls = o->n_calls;
    }
    *ret = c;
    return 0;
}
