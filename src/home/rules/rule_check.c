/* rule_check.c: check stages: a model's reply, held against what a ground or line stage found. */
#include "rules/rules.h"

#include <string.h>

#include "nlu/follow.h"

static int check_line(stage_run *s, const stage_run *of, const stage_run *against)
{
    bool kept = false;
    const char *said = of->fact->state == STAGE_DONE ? of->fact->text : "";
    const char *text = line_check(against->own, said, s->memory, &kept);
    if (!text) return SHOAL_ENOMEM;
    s->fact->label = check_verdict_name(kept ? CHECK_PASSED : CHECK_REPAIRED);
    s->fact->text = text;
    return 0;
}

/* The proposal is put to the person: whoever answers, answers the rule, which knows what it proposed. */
static int check_ask(stage_run *s, stage_run *against, const checked *c)
{
    const device_option *o = NULL;
    sha256_digest about;
    if (follow_asked(&o, against->own, rules_lexicon(against->stage), c->text, s->memory))
        return SHOAL_ENOMEM;
    if (!o) return 0;
    if (follow_digest(&about, o)) return SHOAL_ENOMEM;
    s->details = json_object();
    process_put(s->run, s->details, "say", json_string(o->say));
    return process_ask(against, &about, s->details);
}

static int check_check_ground(stage_run *s, const stage_run *of, stage_run *against)
{
    device_call made[TOOL_CALLS_MAX];
    size_t n = of->fact->state == STAGE_DONE ? of->n_tools : 0;
    for (size_t i = 0; i < n; i++)
        made[i] = (device_call){.name = of->tools[i].name.data ? of->tools[i].name.data : "",
                                .arguments = of->tools[i].arguments.data ? of->tools[i].arguments.data : ""};
    checked c;
    if (check_calls(&c, against->own, rules_lexicon(against->stage), made, n, s->memory, NULL))
        return SHOAL_ENOMEM;
    s->calls = c.calls;
    s->n_calls = c.n_calls;
    s->fact->label = check_verdict_name(c.verdict);
    s->fact->text = c.text;
    return c.verdict == CHECK_ASKED && !s->whole ? check_ask(s, against, &c) : 0;
}

static int start_check(stage_run *s, const call_context *ctx)
{
    (void)ctx; /* no call is made */
    const stage_run *of = process_stage(s, s->stage->of);
    stage_run *against = process_stage(s, s->stage->against);
    const line_reading *line = against->stage->kind == &rule_line_kind ? against->own : NULL;
    if (against->own && !line) return check_check_ground(s, of, against);
    if (line && line->verdict == LINE_READ) return check_line(s, of, against);
    /* What it would be held against did not run: nothing is known, so nothing may be said or done. */
    s->fact->label = check_verdict_name(CHECK_REFUSED);
    s->fact->text =
        line && *line->text ? line->text : "Nothing was done: there was nothing to hold the reply against.";
    return 0;
}

static const char *check_intent(const stage_run *s)
{
    if (s->n_calls) return s->calls[0].name;
    return strcmp(s->fact->label, check_verdict_name(CHECK_ASKED)) == 0 ? ground_verdict_name(GROUND_PROPOSE)
                                                                        : NULL;
}

const stage_runner rule_check_runner = {.start = start_check, .intent = check_intent};

/* ---- its keys ----------------------------------------------------------------------------------- */

static int check_keys(stage_site *s, const config_stage *st, shoal_err *err)
{
    int rc = stage_site_reads(s, "of", st->of, "generate", err);
    return rc ? rc : stage_site_reads(s, "against", st->against, "ground line", err);
}

#define NAME_OF(e, n, about) n,
static const char *const LABELS[] = {CHECK_VERDICTS(NAME_OF)};
#undef NAME_OF

const stage_kind rule_check_kind = {
    .name = "check",
    .gives = GIVES_LABEL | GIVES_TEXT | GIVES_DETAILS | SPEAKS | MAY_CALL,
    .fields = "of! against!",
    .labels = LABELS,
    .n_labels = sizeof LABELS / sizeof *LABELS,
    .answer = "proposal",
    .check = check_keys,
};
