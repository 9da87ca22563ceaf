/* rule_guard.c: guard stages: what may not be done, or not before somebody said yes. */
#include <stdlib.h>
#include <string.h>

#include "json/json.h"
#include "rules/rule_devices.h"

enum { TARGETS_MAX = PIPELINE_DEVICES_MAX, ACTIONS_MAX = 64 };

/* What the guarded stage is about to do. */
typedef struct intended {
    const char *targets[TARGETS_MAX + 1];
    size_t n_targets;
    const char *actions[ACTIONS_MAX];
    size_t n_actions;
    bool over; /* it is more than fits here */
} intended;

/* ---- what would be done ------------------------------------------------------------------------ */

static int add_target(stage_run *s, intended *x, const json_t *v)
{
    if (!json_is_string(v)) return 0;
    for (size_t i = 0; i < x->n_targets; i++)
        if (strcmp(x->targets[i], json_string_value(v)) == 0) return 0;
    if (x->n_targets == TARGETS_MAX) {
        x->over = true;
        return 0;
    }
    const char *id = arena_strdup(s->run->memory, json_string_value(v));
    if (!id) return SHOAL_ENOMEM;
    x->targets[x->n_targets++] = id;
    return 0;
}

/* The devices of a call: one, or a list of them. */
static int add_targets(stage_run *s, intended *x, const json_t *args)
{
    static const char *const keys[] = {"target", "targets", "device", "devices", "entity_id"};
    int rc = 0;
    for (size_t i = 0; i < sizeof keys / sizeof *keys && !rc; i++) {
        const json_t *v = json_object_get(args, keys[i]);
        rc = add_target(s, x, v);
        for (size_t k = 0; k < json_array_size(v) && !rc; k++) rc = add_target(s, x, json_array_get(v, k));
    }
    return rc;
}

static int add_call(stage_run *s, intended *x, const char *name, const char *arguments)
{
    json_t *args = NULL;
    int rc = json_parse(&args, arguments, strlen(arguments), "arguments", NULL);
    if (rc == SHOAL_ENOMEM) return rc;
    if (x->n_actions == ACTIONS_MAX)
        x->over = true;
    else
        x->actions[x->n_actions++] = name;
    /* No JSON: the caller sees what the model said, and nothing else. */
    rc = rc ? 0 : add_targets(s, x, args);
    json_decref(args);
    return rc;
}

static int read_intended(stage_run *s, const stage_run *of, intended *x)
{
    const char *intent = s->stage->intent ? process_fact(process_stage(s, s->stage->intent))->label : "";
    int rc = 0;
    if (*intent) x->actions[x->n_actions++] = intent;
    for (size_t i = 0; i < of->n_tools && !rc; i++)
        rc = add_call(s, x, of->tools[i].name.data ? of->tools[i].name.data : "",
                      of->tools[i].arguments.data ? of->tools[i].arguments.data : "");
    for (size_t i = 0; i < of->n_calls && !rc; i++)
        rc = add_call(s, x, of->calls[i].name, of->calls[i].arguments);
    return rc;
}

/* ---- questions --------------------------------------------------------------------------------- */

/* What a yes stands for: these devices, these actions, no others. */
static int digest_of(const stage_run *s, const guard_case *c, sha256_digest *ret)
{
    sha256 *h = sha256_new();
    if (!h) return SHOAL_ENOMEM;
    for (size_t i = 0; c->by_match && i < c->found->n; i++)
        sha256_add_text(h, s->run->in->devices[c->found->devices[i].device].id);
    for (size_t i = 0; i < c->n_targets; i++) sha256_add_text(h, c->targets[i]);
    sha256_add_text(h, "");
    for (size_t i = 0; i < c->n_actions; i++) sha256_add_text(h, c->actions[i]);
    sha256_end(h, ret);
    return 0;
}

/* ---- the stage --------------------------------------------------------------------------------- */

static int guard_note(stage_run *s, const guarding *g, const guard_case *c, const sha256_digest *about)
{
    process_run *r = s->run;
    json_t *o = s->details = json_object();
    process_put(r, o, "verdict", json_string(guard_verdict_name(g->verdict)));
    if (*g->rule) process_put(r, o, "rule", json_string(g->rule));
    process_put(r, o, "why", json_string(g->why));
    process_put(r, o, "language", json_string(c->found->utterance->t->name));
    s->own = g;
    process_fact(s)->label = guard_verdict_name(g->verdict);
    process_fact(s)->text = g->text;
    return g->verdict == GUARD_ASK && g->confirmable ? process_ask(s, about, o) : 0;
}

static int read_case(stage_run *s, guard_case *c, intended *x, matching *own)
{
    const stage_run *of = process_stage(s, s->stage->of);
    const char *text = process_read_kept(s);
    if (!text || read_intended(s, of, x)) return SHOAL_ENOMEM;
    c->by_match = of->stage->kind == &rule_match_kind;
    if (c->by_match && of->own) {
        c->found = of->own;
    } else if (rule_devices_find(s, text, own)) {
        return SHOAL_ENOMEM;
    } else {
        c->found = own;
    }
    c->targets = x->targets;
    c->n_targets = x->n_targets;
    c->actions = x->actions;
    c->n_actions = x->n_actions;
    c->devices = s->run->in->devices;
    c->n_devices = s->run->in->n_devices;
    return 0;
}

static int start_guard(stage_run *s, const call_context *ctx)
{
    (void)ctx; /* no call is made */
    const process_input *in = s->run->in;
    guarding *g = arena_alloc(s->run->memory, sizeof *g);
    intended *x = arena_alloc(s->run->memory, sizeof *x);
    matching own;
    guard_case c = {0};
    sha256_digest about;
    if (!g || !x || read_case(s, &c, x, &own) || digest_of(s, &c, &about)) return SHOAL_ENOMEM;
    bool mine = in->asked_by && strcmp(in->asked_by, s->stage->name) == 0;
    c.declined = mine && !in->agrees;
    c.confirmed = mine && in->agrees && memcmp(&about, &in->asked_about, sizeof about) == 0;
    c.unread = x->over;
    if (guard(g, rule_devices_of(s->stage)->guard, &c, s->run->memory)) return SHOAL_ENOMEM;
    return guard_note(s, g, &c, &about);
}

static int guard_answer_of(stage_answer *ret, const config_stage *s, const char *text, arena *a)
{
    follow_reply answer;
    if (guard_read_answer(&answer, rule_devices_of(s)->words, text, a)) return SHOAL_ENOMEM;
    *ret = rules_answer(answer);
    return 0;
}

const stage_runner rule_guard_runner = {.start = start_guard, .read_answer = guard_answer_of};

/* ---- its keys ----------------------------------------------------------------------------------- */

static int check_guard(stage_site *s, const config_stage *st, shoal_err *err)
{
    int rc = stage_site_looks(s, "intent", st->intent, "classify", err);
    return rc ? rc : stage_site_reads(s, "of", st->of, "match ground check generate", err);
}

#define NAME_OF(e, n, about) n,
static const char *const LABELS[] = {GUARD_VERDICTS(NAME_OF)};
#undef NAME_OF

const stage_kind rule_guard_kind = {
    .name = "guard",
    .gives = GIVES_LABEL | GIVES_TEXT | READS_TEXT | GIVES_DETAILS,
    .fields =
        "input languages rules ask_kinds ask_ids ask_actions max_targets confirm_s say lexicon! intent of!",
    .labels = LABELS,
    .n_labels = sizeof LABELS / sizeof *LABELS,
    .passes = "pass",
    .answer = "guard",
    .check = check_guard,
    .open = rule_devices_open,
    .close = rule_devices_close,
};
