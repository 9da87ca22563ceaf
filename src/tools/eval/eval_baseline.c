/* eval_baseline.c: see eval_baseline.h. */
#include "eval/eval_baseline.h"

#include <string.h>

#include "json/json_put.h"

/* ---- reading ------------------------------------------------------------------------------------- */

static bool verdict_of(const char *word, eval_verdict *ret)
{
    for (int v = 0; word && v < EVAL_N_VERDICTS; v++) {
        if (strcmp(eval_verdict_word((eval_verdict)v), word) != 0) continue;
        *ret = (eval_verdict)v;
        return true;
    }
    return false;
}

static int baseline_add(eval_baseline *b, const json_t *one, const char *what, shoal_err *err)
{
    const char *id = json_string_value(json_object_get(one, "id"));
    eval_verdict v;
    if (!id || !verdict_of(json_string_value(json_object_get(one, "verdict")), &v))
        return err_set(err, SHOAL_EFORMAT, "%s: case %zu has no id, or no verdict that there is", what,
                       b->n + 1);
    json_t *list = json_object_get(b->verdicts, id);
    if (!list) {
        list = json_array();
        if (json_object_set_new(b->verdicts, id, list) != 0) return err_nomem(err);
    }
    b->n++;
    return json_array_append_new(list, json_integer(v)) == 0 ? 0 : err_nomem(err);
}

static int baseline_read(eval_baseline *b, const json_t *root, const char *what, shoal_err *err)
{
    const json_t *cases = json_object_get(root, "cases"), *one;
    size_t i;
    if (json_integer_value(json_object_get(root, "shoal_eval")) != 1 || !json_is_array(cases))
        return err_set(err, SHOAL_EFORMAT, "%s: it is no accepted run of shoal eval", what);
    if (!(b->verdicts = json_object())) return err_nomem(err);
    json_array_foreach(cases, i, one)
    {
        int rc = baseline_add(b, one, what, err);
        if (rc != 0) return rc;
    }
    return 0;
}

int eval_baseline_parse(eval_baseline *ret, const char *text, size_t n, const char *what, shoal_err *err)
{
    json_t *root = NULL;
    eval_baseline b = {0};
    int rc = json_parse(&root, text, n, what, err);
    if (rc != 0 && rc != SHOAL_ENOMEM)
        return err_set(err, SHOAL_EFORMAT, "%s: it is no accepted run of shoal eval", what);
    if (rc == 0) rc = baseline_read(&b, root, what, err);
    json_decref(root);
    if (rc == 0)
        *ret = b;
    else
        eval_baseline_done(&b);
    return rc;
}

void eval_baseline_done(eval_baseline *b)
{
    json_decref(b->verdicts);
    *b = (eval_baseline){0};
}

void eval_baseline_put(const eval_results *r, buf *out)
{
    buf_puts(out, "{\"shoal_eval\":1,\"cases\":[");
    for (size_t i = 0; i < r->n; i++) {
        buf_puts(out, "\n");
        if (i) buf_puts(out, ",");
        buf_putc(out, '{');
        json_put_text(out, "id", r->v[i].c->id);
        json_put_text(out, "verdict", eval_verdict_word(r->v[i].verdict));
        buf_putc(out, '}');
    }
    buf_puts(out, "\n]}\n");
}

/* ---- comparing ----------------------------------------------------------------------------------- */

/* The verdict then of the next case of that id; false: there is none. It is taken out. */
static bool take_verdict(json_t *left, const char *id, eval_verdict *ret)
{
    json_t *list = json_object_get(left, id);
    if (json_array_size(list) == 0) return false;
    *ret = (eval_verdict)json_integer_value(json_array_get(list, 0));
    json_array_remove(list, 0);
    return true;
}

static void put_worse(eval_comparison *c, const eval_result *r, eval_verdict then)
{
    if (c->n_worse++ >= EVAL_BASELINE_NAMED) return;
    buf_printf(&c->worse, "%s%.60s (%s, now %s)", c->worse.len ? ", " : "", r->c->id, eval_verdict_word(then),
               eval_verdict_word(r->verdict));
}

int eval_compare(eval_comparison *ret, const eval_baseline *b, const eval_results *r, shoal_err *err)
{
    *ret = (eval_comparison){.n = r->n};
    json_t *left = json_deep_copy(b->verdicts);
    if (!left) return err_nomem(err);
    size_t n_known = 0;
    for (size_t i = 0; i < r->n; i++) {
        eval_verdict then;
        if (!take_verdict(left, r->v[i].c->id, &then)) continue;
        n_known++;
        if (r->v[i].verdict > then) put_worse(ret, &r->v[i], then);
        ret->n_better += r->v[i].verdict < then;
    }
    ret->n_new = r->n - n_known;
    ret->n_gone = b->n - n_known;
    json_decref(left);
    return ret->worse.failed ? err_nomem(err) : 0;
}

void eval_comparison_done(eval_comparison *c)
{
    buf_done(&c->worse);
}

void eval_comparison_put(const eval_comparison *c, const char *name, buf *out)
{
    if (c->n_worse == 0)
        buf_printf(out, "none of %zu cases is worse than in %s", c->n, name);
    else
        buf_printf(out, "%zu of %zu cases %s worse than in %s: %s", c->n_worse, c->n,
                   c->n_worse == 1 ? "is" : "are", name, buf_text(&c->worse));
    if (c->n_worse > EVAL_BASELINE_NAMED) buf_printf(out, ", and %zu more", c->n_worse - EVAL_BASELINE_NAMED);
    buf_printf(out, " (%zu better, %zu new, %zu gone)", c->n_better, c->n_new, c->n_gone);
}
