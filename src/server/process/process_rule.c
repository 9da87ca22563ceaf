/* process_rule.c: the stages that hold models by what is known: ground, line and check. */
#include <stdio.h>
#include <string.h>

#include "pipeline/pipeline_template.h"
#include "process/process_run.h"

stage_run *process_stage(const stage_run *s, const char *name)
{
    return &s->run->stages[pipeline_stage_index(s->run->in->pipeline, name, strlen(name))];
}

static stage_fact *fact_of(const stage_run *s)
{
    return s->fact;
}

/* ---- ground ------------------------------------------------------------------------------------ */

/* When no device is meant, a classifier may know what kind of talk it is. It is asked at the end alone, so
 * that the rules work while the classifier does. */
const char *process_text(const stage_run *s)
{
    const char *text = fact_of(s)->text;
    if (!s->ground || s->ground->verdict != GROUND_NOTHING || !s->stage->intent) return text;
    const stage_fact *intent = fact_of(process_stage(s, s->stage->intent));
    const char *say = intent->state == STAGE_DONE ? lexicon_talk_of(s->stage->lex, intent->label) : NULL;
    return say ? ground_say(s->ground, say, s->memory) : text;
}

/* What a rule reads: the input, or the item. NULL: out of memory. */
static const char *rule_input(const stage_run *s)
{
    if (!s->whole) return process_facts(s).input;
    buf text = {0};
    pipeline_facts facts = process_facts(s);
    const char *kept =
        process_fill(s, NULL, &facts, &text) ? NULL : arena_strndup(s->memory, text.data, text.len);
    buf_done(&text);
    return kept;
}

static int run_ground(stage_run *s)
{
    pipeline_facts f = process_facts(s);
    grounding *g = arena_alloc(s->memory, sizeof *g);
    const char *input = rule_input(s);
    if (!g || !input || ground(g, s->stage->lex, f.devices, f.n_devices, input, s->memory, NULL))
        return SHOAL_ENOMEM;
    s->ground = g;
    if (g->verdict == GROUND_ACT) {
        s->calls = g->options[0].calls;
        s->n_calls = g->options[0].n_calls;
    }
    fact_of(s)->label = ground_verdict_name(g->verdict);
    fact_of(s)->text = g->text;
    return 0;
}

/* ---- line -------------------------------------------------------------------------------------- */

static int run_line(stage_run *s)
{
    const char *input = rule_input(s);
    line_reading *l = arena_alloc(s->memory, sizeof *l);
    if (!l || !input || line_read(l, s->stage->lines, input, s->memory, NULL)) return SHOAL_ENOMEM;
    s->line = l;
    fact_of(s)->label = line_verdict_name(l->verdict);
    fact_of(s)->text = l->text;
    return 0;
}

/* ---- check ------------------------------------------------------------------------------------- */

static int check_line(stage_run *s, const stage_run *of, const stage_run *against)
{
    bool kept = false;
    const char *said = fact_of(of)->state == STAGE_DONE ? fact_of(of)->text : "";
    const char *text = line_check(against->line, said, s->memory, &kept);
    if (!text) return SHOAL_ENOMEM;
    fact_of(s)->label = check_verdict_name(kept ? CHECK_PASSED : CHECK_REPAIRED);
    fact_of(s)->text = text;
    return 0;
}

static int check_ground(stage_run *s, const stage_run *of, const stage_run *against)
{
    ground_call made[TOOL_CALLS_MAX];
    size_t n = fact_of(of)->state == STAGE_DONE ? of->n_tools : 0;
    for (size_t i = 0; i < n; i++)
        made[i] = (ground_call){.name = of->tools[i].name.data ? of->tools[i].name.data : "",
                                .arguments = of->tools[i].arguments.data ? of->tools[i].arguments.data : ""};
    checked c;
    if (check_calls(&c, against->ground, against->stage->lex, made, n, s->memory, NULL)) return SHOAL_ENOMEM;
    s->calls = c.calls;
    s->n_calls = c.n_calls;
    fact_of(s)->label = check_verdict_name(c.verdict);
    fact_of(s)->text = c.text;
    return 0;
}

static int run_check(stage_run *s)
{
    const stage_run *of = process_stage(s, s->stage->of), *against = process_stage(s, s->stage->against);
    if (against->ground) return check_ground(s, of, against);
    if (against->line && against->line->verdict == LINE_READ) return check_line(s, of, against);
    /* What it would be held against did not run: nothing is known, so nothing may be said or done. */
    fact_of(s)->label = check_verdict_name(CHECK_REFUSED);
    fact_of(s)->text = against->line && *against->line->text
                           ? against->line->text
                           : "Nothing was done: there was nothing to hold the reply against.";
    return 0;
}

int process_rule(stage_run *s, const call_context *ctx)
{
    (void)ctx; /* no call is made */
    return s->stage->kind == STAGE_GROUND ? run_ground(s)
           : s->stage->kind == STAGE_LINE ? run_line(s)
                                          : run_check(s);
}

/* ---- what a generator gets ---------------------------------------------------------------------- */

static const stage_run *ground_of(const stage_run *s)
{
    const char *name = s->stage->choices ? s->stage->choices : s->stage->near_stage;
    const stage_run *g = name ? process_stage(s, name) : NULL;
    return g && g->ground ? g : NULL;
}

/* Append the devices that are named, or those that are not, up to `max`. */
static size_t put_near(const process_input *in, const device_set *named, bool wanted, config_device *out,
                       size_t n, size_t max)
{
    for (size_t i = 0; i < in->n_devices && i < DEVICES_MAX && n < max; i++)
        if (device_set_has(named, i) == wanted) out[n++] = in->devices[i];
    return n;
}

/* The others stand first: their states change less often than those of devices that people ask for, so that
 * the beginning of the prompt is found in the KV cache again. */
bool process_near(const stage_run *s, config_device ret[PIPELINE_NEAR_DEVICES], size_t *ret_n)
{
    const stage_run *g = ground_of(s);
    if (!g) return false;
    const process_input *in = s->run->in;
    const device_set *named = &g->ground->named;
    size_t n_named = device_set_count(named);
    if (n_named > PIPELINE_NEAR_DEVICES) n_named = PIPELINE_NEAR_DEVICES;
    size_t n = put_near(in, named, false, ret, 0, PIPELINE_NEAR_DEVICES - n_named);
    *ret_n = put_near(in, named, true, ret, n, PIPELINE_NEAR_DEVICES);
    return true;
}

static char *choice_text(arena *a, const ground_option *o)
{
    buf b = {0};
    buf_puts(&b, o->say);
    for (size_t i = 0; i < o->n_calls; i++)
        buf_printf(&b, "\n<tool_call>\n{\"name\": \"%s\", \"arguments\": %s}\n</tool_call>", o->calls[i].name,
                   o->calls[i].arguments);
    char *text = b.failed ? NULL : arena_strndup(a, b.data, b.len);
    buf_done(&b);
    return text;
}

int process_choices(const stage_run *s, char ***ret, size_t *ret_n)
{
    const stage_run *g = s->stage->choices ? ground_of(s) : NULL;
    *ret_n = 0;
    *ret = NULL;
    if (!g || !g->ground->n_options) return 0;
    char **texts = arena_alloc(s->memory, g->ground->n_options * sizeof *texts);
    if (!texts) return SHOAL_ENOMEM;
    for (size_t i = 0; i < g->ground->n_options; i++)
        if (!(texts[i] = choice_text(s->memory, &g->ground->options[i]))) return SHOAL_ENOMEM;
    *ret = texts;
    *ret_n = g->ground->n_options;
    return 0;
}
