/* answer_judge.c: what of an answer's form no grammar has held: see answer_judge in answer.h. */
#include <stdio.h>
#include <string.h>

#include "dialects/answer_impl.h"
#include "messages/fields.h"

static const json_t *function_named(const json_t *tools, const buf *name)
{
    size_t i;
    json_t *t;
    json_array_foreach((json_t *)tools, i, t)
    {
        const json_t *f = json_object_get(t, "function");
        const char *own = fields_text(json_object_get(f, "name"));
        if (own && strlen(own) == name->len && memcmp(own, name->data ? name->data : "", name->len) == 0)
            return f;
    }
    return NULL;
}

/* The arguments of one call; true: the others need not be looked at any more. Of a function that does not say whether
 * it is strict only what is wrong is told, or that memory ran out: mostly its schema was held while the call was
 * written. */
static bool judge_call(gen_choice *c, const gen_spec *s, size_t i)
{
    const gen_call *call = &c->calls[i];
    const json_t *f = function_named(s->tools, &call->name), *schema = fields_get(f, "parameters");
    schema_verdict v;
    const json_t *strict = json_object_get(f, "strict");
    if (!schema || json_is_true(strict)) return false;
    schema_check_text(&v, schema, call->arguments.data ? call->arguments.data : "", call->arguments.len);
    if (!json_is_false(strict) && v.outcome != SCHEMA_BROKEN && !v.out_of_memory) return false;
    c->judged = true;
    c->verdict = v;
    if (v.outcome == SCHEMA_OBEYED) return false;
    snprintf(c->verdict.where, sizeof c->verdict.where, "/tool_calls/%zu/function/arguments%.120s", i,
             v.where);
    return true;
}

void answer_judge(gen_answer *a, const gen_spec *s, size_t k)
{
    gen_choice *c = &a->choices[k];
    c->judged = false;
    if (s->judge) {
        schema_check_text(&c->verdict, s->judge, c->text.data ? c->text.data : "", c->text.len);
        c->judged = true;
        return;
    }
    for (size_t i = 0; s->tools && i < c->n_calls; i++)
        if (judge_call(c, s, i)) return;
}

void answer_put_verdict(buf *out, const gen_choice *c)
{
    if (!c->judged) return;
    buf_puts(out, ",\"schema\":");
    schema_verdict_put(out, &c->verdict);
}
