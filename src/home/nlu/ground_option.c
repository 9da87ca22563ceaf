/* device_option.c: tasks as calls and sentences, the options of a grounding. */
#include "nlu/grounder.h"

#include <stdio.h>
#include <string.h>

#include "json/json.h"

static const char *number_text(grounder *g, double v)
{
    const char *s = arena_printf(g->a, "%.10g", v);
    if (!s) g->nomem = true;
    return s ? s : "";
}

static const char *clock_text(grounder *g, double seconds)
{
    unsigned long s = (unsigned long)(seconds + 0.5);
    const char *t = arena_printf(g->a, "%02lu:%02lu:%02lu", s / 3600, s / 60 % 60, s % 60);
    if (!t) g->nomem = true;
    return t ? t : "";
}

/* A value as it stands in the call; *ret_number: without quotes. */
static const char *value_text(grounder *g, const attempt *t, const units *u, size_t k, size_t device,
                              bool *ret_number)
{
    const value_def *def = t->action->takes[k];
    const clause_value *v = t->given[k];
    *ret_number = def->kind == VALUE_NUMBER;
    if (def->kind == VALUE_TEXT) return t->text ? t->text : "";
    const char *means = NULL;
    if (v->choice && clause_value_fits(v, u, def, &means)) return means;
    const unit *x = &u->at[v->at];
    return def->kind == VALUE_DURATION ? clock_text(g, x->value)
                                       : number_text(g, value_for(g, def, x, device));
}

static const char *with_sign(grounder *g, const char *number, const value_unit *u)
{
    const char *s = arena_printf(g->a, "%s %s", number, u->sign);
    if (!s) g->nomem = true;
    return s ? s : "";
}

/* The same for a person: a duration in the words it was given. */
static const char *value_said(grounder *g, const attempt *t, const units *u, size_t k)
{
    bool number;
    if (t->action->takes[k]->kind != VALUE_DURATION) {
        const char *text = value_text(g, t, u, k, device_set_first(&t->targets), &number);
        return t->other_unit ? with_sign(g, text, t->other_unit) : text;
    }
    const unit *x = &u->at[t->given[k]->at];
    return grounder_slice(g, x->begin, x->end);
}

/* item: in place of a text; NULL: all of it. */
static device_call make_call(grounder *g, const attempt *t, const units *u, size_t device, const char *item)
{
    buf b = {0};
    const char *id = g->d.at[device].id;
    buf_puts(&b, "{\"target\": ");
    json_put_string(&b, id, strlen(id));
    for (size_t k = 0; k < t->action->n_takes; k++) {
        bool number;
        const char *v = value_text(g, t, u, k, device, &number);
        if (item && t->action->takes[k]->kind == VALUE_TEXT) v = item;
        buf_printf(&b, ", \"%s\": ", t->action->takes[k]->name);
        if (number)
            buf_puts(&b, v);
        else
            json_put_string(&b, v, strlen(v));
    }
    buf_putc(&b, '}');
    device_call c = {.name = arena_printf(g->a, "%.*s.%s", (int)strcspn(id, "."), id, t->action->service),
                     .arguments = b.failed ? NULL : arena_strndup(g->a, b.data, b.len)};
    if (!c.name || !c.arguments) g->nomem = true;
    buf_done(&b);
    return c;
}

static const char *say_attempt(grounder *g, const attempt *t, const units *u)
{
    reply_field f[6];
    size_t n = 0;
    f[n++] = (reply_field){"name", grounder_names(g, &t->targets, false)};
    for (size_t k = 0; k < t->action->n_takes; k++)
        f[n++] = (reply_field){t->action->takes[k]->name, value_said(g, t, u, k)};
    bool unit = t->other_unit && t->action->say_unit;
    return grounder_fill(g, unit ? t->action->say_unit : t->action->say, f, n);
}

static size_t add_calls(grounder *g, device_call *out, size_t n, const attempt *t, const units *u)
{
    size_t times = t->n_items ? t->n_items : 1;
    for (size_t i = 0; i < g->d.n; i++)
        for (size_t k = 0; k < times && device_set_has(&t->targets, i) && n < GROUND_CALLS_MAX; k++)
            out[n++] = make_call(g, t, u, i, t->n_items ? t->items[k] : NULL);
    return n;
}

/* "Turning on A, closing B and locking C." */
static const char *join_says(grounder *g, const char *const *says, size_t n)
{
    buf b = {0};
    for (size_t i = 0; i < n; i++) {
        if (i) buf_printf(&b, i + 1 == n ? " %s " : ", ", g->lex->reply.and);
        size_t start = b.len;
        buf_puts(&b, says[i]);
        if (i && b.data && b.len > start && b.data[start] >= 'A' && b.data[start] <= 'Z')
            b.data[start] += 'a' - 'A';
    }
    buf_putc(&b, '.');
    const char *s = b.failed ? NULL : arena_strndup(g->a, b.data, b.len);
    buf_done(&b);
    if (!s) g->nomem = true;
    return s ? s : "";
}

static void give_options(grounder *g, grounding *out, size_t n)
{
    out->options = arena_alloc(g->a, n * sizeof *out->options);
    if (out->options)
        out->n_options = n;
    else
        g->nomem = true;
}

/* All tasks as one option. Tasks that mean the same call count once. */
void option_give_tasks(grounder *g, grounding *out)
{
    const char *says[TASKS_MAX];
    size_t n_says = 0;
    give_options(g, out, 1);
    if (g->nomem) return;
    device_option *o = &out->options[0];
    o->calls = arena_alloc(g->a, GROUND_CALLS_MAX * sizeof *o->calls);
    if (!o->calls) {
        g->nomem = true;
        return;
    }
    for (size_t i = 0; i < g->n_tasks; i++) {
        const attempt *t = &g->tasks[i]->ways[0];
        bool again = false;
        for (size_t k = 0; k < i && !again; k++)
            again = task_same_call(&g->tasks[k]->ways[0], t) && !t->action->n_takes;
        if (again) continue;
        says[n_says++] = say_attempt(g, t, g->tasks[i]->u);
        o->n_calls = add_calls(g, o->calls, o->n_calls, t, g->tasks[i]->u);
    }
    o->say = join_says(g, says, n_says);
}

/* The ways of the only task, each an option. */
void option_give_ways(grounder *g, grounding *out)
{
    const task *t = g->tasks[0];
    give_options(g, out, t->n_ways);
    for (size_t i = 0; i < t->n_ways && !g->nomem; i++) {
        device_option *o = &out->options[i];
        const char *say = say_attempt(g, &t->ways[i], t->u);
        o->calls = arena_alloc(g->a, (device_set_count(&t->ways[i].targets) + 1) * sizeof *o->calls);
        if (!o->calls)
            g->nomem = true;
        else
            o->n_calls = add_calls(g, o->calls, 0, &t->ways[i], t->u);
        o->say = join_says(g, &say, 1);
    }
}

/* The states that one named device can be brought to: what may have been meant by an unknown verb. */
void option_give_guesses(grounder *g, grounding *out)
{
    attempt t = {.targets = g->named};
    size_t device = device_set_first(&g->named);
    give_options(g, out, GROUND_OPTIONS_MAX);
    out->n_options = 0;
    for (size_t i = 0; i < g->lex->n_actions && out->n_options < GROUND_OPTIONS_MAX && !g->nomem; i++) {
        t.action = &g->lex->actions[i];
        if (!t.action->makes || !t.action->service || t.action->n_takes) continue;
        if (!attempt_serves(g, t.action, device)) continue;
        if (ask_is_in_state(g, device, t.action->makes) == ASK_SO) continue;
        if (!g->strange && attempt_is_careful(g, &t)) continue; /* the name alone was said */
        device_option *o = &out->options[out->n_options++];
        const char *say = say_attempt(g, &t, NULL);
        o->calls = arena_alloc(g->a, sizeof *o->calls);
        if (!o->calls)
            g->nomem = true;
        else
            o->n_calls = add_calls(g, o->calls, 0, &t, NULL);
        o->say = join_says(g, &say, 1);
    }
}

/* Its value in another unit than the device's bounds are told in, as it was said. */
void option_give_other(grounder *g, grounding *out)
{
    give_options(g, out, 1);
    if (g->nomem) return;
    const char *say = say_attempt(g, g->other, g->other->u);
    device_option *o = &out->options[0];
    o->calls = arena_alloc(g->a, sizeof *o->calls);
    if (!o->calls)
        g->nomem = true;
    else
        o->n_calls = add_calls(g, o->calls, 0, g->other, g->other->u);
    o->say = join_says(g, &say, 1);
}
