/* process_guard.c: guard stages: what may not be done, or not before somebody said yes. */
#include "match/guard.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "json/json.h"
#include "pipeline/pipeline_template.h"
#include "process/confirm.h"
#include "process/process_run.h"

enum { TARGETS_MAX = PIPELINE_DEVICES_MAX, ACTIONS_MAX = 64, CONFIRM_S = 120 };

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

static void add_part(sha256 *h, const char *text)
{
    sha256_add(h, text, strlen(text) + 1);
}

/* What a yes stands for: these devices, these actions, no others. */
static int digest_of(const stage_run *s, const guard_case *c, sha256_digest *ret)
{
    sha256 *h = sha256_new();
    if (!h) return SHOAL_ENOMEM;
    for (size_t i = 0; c->by_match && i < c->found->n; i++)
        add_part(h, s->run->in->devices[c->found->devices[i].device].id);
    for (size_t i = 0; i < c->n_targets; i++) add_part(h, c->targets[i]);
    add_part(h, "");
    for (size_t i = 0; i < c->n_actions; i++) add_part(h, c->actions[i]);
    sha256_end(h, ret);
    return 0;
}

static int put_question(stage_run *s, const sha256_digest *about, json_t *details)
{
    process_run *r = s->run;
    unsigned seconds = s->stage->confirm_s ? s->stage->confirm_s : CONFIRM_S;
    uint8_t draw[CONFIRM_TOKEN_BYTES];
    char token[2 * CONFIRM_TOKEN_BYTES + 1];
    pipeline_facts f = process_facts(s);
    confirm_question q = {.input = (char *)f.input,
                          .pipeline = r->in->pipeline->name,
                          .stage = s->stage->name,
                          .about = *about,
                          .expires_ns = clock_ns() + seconds * 1000000000ull};
    rng_bytes(draw, sizeof draw);
    if (confirm_put(r->in->confirms, &q, draw, token)) return SHOAL_ENOMEM;
    process_put(r, details, "confirm", json_pack("{s:s,s:i}", "token", token, "expires_s", (int)seconds));
    r->asks = true;
    return 0;
}

/* ---- the stage --------------------------------------------------------------------------------- */

static int note(stage_run *s, const guarding *g, const guard_case *c, const sha256_digest *about)
{
    process_run *r = s->run;
    json_t *o = s->details = json_object();
    process_put(r, o, "verdict", json_string(guard_verdict_name(g->verdict)));
    if (*g->rule) process_put(r, o, "rule", json_string(g->rule));
    process_put(r, o, "why", json_string(g->why));
    process_put(r, o, "language", json_string(c->found->said->t->name));
    s->guard = g;
    process_fact(s)->label = guard_verdict_name(g->verdict);
    process_fact(s)->text = g->text;
    bool kept = strlen(process_facts(s).input) <= PIPELINE_INPUT_MAX_BYTES; /* many may wait */
    bool ask = g->verdict == GUARD_ASK && g->confirmable && r->in->confirms && kept;
    return ask ? put_question(s, about, o) : 0;
}

static int read_case(stage_run *s, guard_case *c, intended *x, matching *own)
{
    const stage_run *of = process_stage(s, s->stage->of);
    const char *text = process_read_kept(s);
    if (!text || read_intended(s, of, x)) return SHOAL_ENOMEM;
    if (of->match) {
        c->found = of->match;
    } else if (process_find_devices(s, text, own)) {
        return SHOAL_ENOMEM;
    } else {
        c->found = own;
    }
    c->by_match = of->stage->kind == STAGE_MATCH;
    c->targets = x->targets;
    c->n_targets = x->n_targets;
    c->actions = x->actions;
    c->n_actions = x->n_actions;
    c->devices = s->run->in->devices;
    c->n_devices = s->run->in->n_devices;
    return 0;
}

int process_guard(stage_run *s, const call_context *ctx)
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
    if (guard(g, s->stage->guard, &c, s->run->memory)) return SHOAL_ENOMEM;
    return note(s, g, &c, &about);
}

/* ---- answers ----------------------------------------------------------------------------------- */

static int no_such_question(api_error *e)
{
    return api_error_bad(e, "confirm",
                         "this question is no longer open: it was answered, its time is over, or another "
                         "gateway asked it; send the request again without 'confirm'");
}

static const config_stage *guard_named(const config_pipeline *p, const char *name)
{
    int i = pipeline_stage_index(p, name, strlen(name));
    return i < 0 || p->stages[i].kind != STAGE_GUARD ? NULL : &p->stages[i];
}

/* The token alone, or with the request itself, is a yes. */
static int read_answer(const process_input *in, const confirm_question *q, const config_stage *by,
                       guard_answer *ret)
{
    *ret = ANSWER_YES;
    if (!*in->text || strcmp(in->text, q->input) == 0) return 0;
    return guard_read_answer(ret, by->words, in->text, in->memory);
}

static int take_up(process_input *in, const confirm_question *q, const config_stage *by, api_error *e)
{
    guard_answer answer;
    if (read_answer(in, q, by, &answer)) return api_error_nomem(e);
    if (answer == ANSWER_NONE) return 0; /* another request: the question is dropped */
    char *text = arena_strdup(in->memory, q->input);
    if (!text) return api_error_nomem(e);
    in->text = text;
    in->asked_by = by->name;
    in->asked_about = q->about;
    in->agrees = answer == ANSWER_YES;
    return 0;
}

int process_take_answer(process_input *in, uint64_t now_ns, api_error *e)
{
    confirm_question q;
    if (!in->confirm) return 0;
    for (int m = 0; m < N_MEDIA; m++)
        if (in->files[m].data)
            return api_error_bad(e, "confirm",
                                 "an answer to a question is text: give 'confirm' with 'input'");
    if (!in->confirms || !confirm_take(in->confirms, in->confirm, now_ns, &q)) return no_such_question(e);
    const config_stage *by = guard_named(in->pipeline, q.stage);
    int status =
        strcmp(q.pipeline, in->pipeline->name) != 0 || !by ? no_such_question(e) : take_up(in, &q, by, e);
    free(q.input);
    return status;
}

bool process_is_held_back(const stage_run *s)
{
    return s->guard && s->guard->verdict != GUARD_PASS;
}
