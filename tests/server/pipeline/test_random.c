/* Whatever pipeline, whatever its stages come to: each settles, each verdict has its reason, the order in
 * which stages end changes nothing, nothing goes in circles, and a stage that is said never to run never
 * does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/clock.h"
#include "pipeline/pipeline_reach.h"
#include "pipeline/pipeline_words.h"

enum { STAGES_MAX = 10, RUNS = 3000 };

static uint64_t draw(uint64_t *seed, uint64_t n)
{
    *seed = rng_mix(*seed + 1);
    return *seed % n;
}

/* ---- a pipeline of chance --------------------------------------------------------------------------- */

static const char *const NAMES[] = {"s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "none"};
static const char *const LABELS[] = {"a",   "b",      "iot_x",  "iot_*",  "*",
                                     "act", "choose", "passed", "speech", "refused"};
static const char *const CANDIDATES[] = {"a", "b"};
static const double BOUNDS[] = {0, 0.2, 0.5, 0.9, 1};

typedef struct drawn {
    config_pipeline p;
    config_stage stages[STAGES_MAX];
    stage_condition conditions[STAGES_MAX][6];
    const char *labels[STAGES_MAX][6][2], *after[STAGES_MAX][2];
    char prompts[STAGES_MAX][64];
} drawn;

/* Two kinds of a module above: a rule that reads the input, and one that names such a stage and a reply. */
static int check_held(stage_site *s, const config_stage *st, shoal_err *err)
{
    int rc = stage_site_reads(s, "of", st->of, "generate", err);
    return rc ? rc : stage_site_reads(s, "against", st->against, "rule", err);
}

static const char *const RULE_LABELS[] = {"act", "ask", "leave"}, *const HELD_LABELS[] = {"passed",
                                                                                          "refused"};
static const stage_kind RULE = {.name = "rule",
                                .gives = GIVES_LABEL | GIVES_TEXT | READS_INPUT | REPEATS,
                                .fields = "lexicon!",
                                .labels = RULE_LABELS,
                                .n_labels = 3},
                        HELD = {.name = "held",
                                .gives = GIVES_LABEL | GIVES_TEXT,
                                .fields = "of! against!",
                                .labels = HELD_LABELS,
                                .n_labels = 2,
                                .check = check_held};
static const stage_row ROWS[] = {{&STAGE_KINDS[STAGE_CLASSIFY], NULL},
                                 {&STAGE_KINDS[STAGE_GENERATE], NULL},
                                 {&STAGE_KINDS[STAGE_TAG], NULL},
                                 {&STAGE_KINDS[STAGE_EMBED], NULL},
                                 {&STAGE_KINDS[STAGE_TRANSCRIBE], NULL},
                                 {&STAGE_KINDS[STAGE_VAD], NULL},
                                 {&RULE, NULL},
                                 {&HELD, NULL}};
static const stage_registry KINDS_HERE = {.stages = ROWS, .n_stages = 8};

/* Mostly a stage before this one; sometimes itself, a later one, or none. */
static const char *any_stage(uint64_t *seed, unsigned i, unsigned n)
{
    if (i > 0 && draw(seed, 40)) return NAMES[draw(seed, i)];
    return draw(seed, 2) ? NAMES[draw(seed, n)] : NAMES[10];
}

/* An earlier stage of these kinds, or any at all. */
static const char *stage_that(const drawn *d, uint64_t *seed, unsigned i, unsigned gives)
{
    for (unsigned tries = 0; i > 0 && tries < 20 && draw(seed, 40); tries++) {
        unsigned k = (unsigned)draw(seed, i);
        if (d->stages[k].kind->gives & gives) return NAMES[k];
    }
    return any_stage(seed, i, d->p.n_stages);
}

/* Labels that the stage has, for verdicts are held against the list of them. */
static const char *label_for(const drawn *d, uint64_t *seed, const char *stage)
{
    const char *const *known = NULL;
    size_t n = 0;
    for (unsigned i = 0; i < d->p.n_stages; i++)
        if (strcmp(NAMES[i], stage) == 0) known = pipeline_labels(&d->stages[i], &n);
    return known && n && draw(seed, 60) ? known[draw(seed, n)]
                                        : LABELS[draw(seed, sizeof LABELS / sizeof *LABELS)];
}

static void draw_condition(drawn *d, uint64_t *seed, unsigned i, unsigned k)
{
    stage_condition *c = &d->conditions[i][k];
    unsigned what = (unsigned)draw(seed, i > 0 ? 8 : 40);
    double *bound = (double *)&BOUNDS[draw(seed, 5)];
    *c = (stage_condition){.label = d->labels[i][k]};
    if (what < 3) c->stage = stage_that(d, seed, i, what == 2 ? GIVES_SCORE : GIVES_LABEL);
    if (what == 3 || what == 4) c->stage = stage_that(d, seed, i, GIVES_SCORE);
    if (what == 5) c->stage = stage_that(d, seed, i, GIVES_PROB);
    for (; what < 3 && c->n_label < 1 + draw(seed, 2); c->n_label++)
        c->label[c->n_label] = label_for(d, seed, c->stage);
    if (what == 2 || what == 3) c->score_min = bound;
    if (what == 4) c->score_below = bound;
    if (what == 5) c->mean_prob_below = bound;
    if (what == 6 || what > 20 || draw(seed, 9) == 0) c->text_prefix = draw(seed, 2) ? "go " : "stop";
    if (what >= 7 && what <= 20) c->mentions_device = draw(seed, 2);
    if (what >= 7 && what <= 20 && !c->mentions_device) c->brings = draw(seed, 2) ? "audio" : "text";
}

static void draw_fields(drawn *d, uint64_t *seed, unsigned i)
{
    config_stage *s = &d->stages[i];
    if (s->kind->task) s->model = "m";
    if (s->kind->id == STAGE_EMBED) s->candidates = (const char **)CANDIDATES, s->n_candidates = 2;
    if (s->kind == &RULE) s->lexicon_path = "l";
    if (s->kind->id == STAGE_GENERATE && draw(seed, 3) == 0) {
        snprintf(d->prompts[i], sizeof *d->prompts, "{text.%s} {input}", stage_that(d, seed, i, GIVES_TEXT));
        s->prompt = d->prompts[i];
    }
    if (s->kind != &HELD) return;
    s->of = s->against = any_stage(seed, i, d->p.n_stages);
    for (unsigned k = 0; k < i; k++) {
        if (d->stages[k].kind->id == STAGE_GENERATE) s->of = NAMES[k];
        if (d->stages[k].kind == &RULE) s->against = NAMES[k];
    }
}

static void draw_stage(drawn *d, uint64_t *seed, unsigned i)
{
    config_stage *s = &d->stages[i];
    unsigned n_when = (unsigned)draw(seed, 3), n_unless = (unsigned)draw(seed, 4) / 3;
    for (unsigned k = 0; k < n_when + n_unless; k++) draw_condition(d, seed, i, k);
    s->when = d->conditions[i];
    s->n_when = n_when;
    s->unless = d->conditions[i] + n_when;
    s->n_unless = n_unless;
    s->after = d->after[i];
    if (draw(seed, 6) == 0 && i > 0) s->after[s->n_after++] = any_stage(seed, i, d->p.n_stages);
    draw_fields(d, seed, i);
}

static void draw_pipeline(drawn *d, uint64_t *seed)
{
    static const stage_kind *const KINDS[] = {&STAGE_KINDS[STAGE_CLASSIFY],
                                              &STAGE_KINDS[STAGE_GENERATE],
                                              &STAGE_KINDS[STAGE_TAG],
                                              &STAGE_KINDS[STAGE_EMBED],
                                              &STAGE_KINDS[STAGE_TRANSCRIBE],
                                              &STAGE_KINDS[STAGE_VAD],
                                              &RULE,
                                              &HELD};
    *d = (drawn){.p = {.name = "p",
                       .kinds = &KINDS_HERE,
                       .stages = d->stages,
                       .n_stages = 1 + (unsigned)draw(seed, STAGES_MAX)}};
    for (unsigned i = 0; i < d->p.n_stages; i++)
        d->stages[i] = (config_stage){
            .name = NAMES[i], .kind = KINDS[draw(seed, i < 3 ? 7 : 8)], .optional = draw(seed, 3) == 0};
    for (unsigned i = 0; i < d->p.n_stages; i++) draw_stage(d, seed, i);
}

/* ---- a run of chance -------------------------------------------------------------------------------- */

/* What stage i comes to in the run of `seed`, whenever it is asked. */
static stage_fact outcome(const config_stage *s, unsigned i, uint64_t seed)
{
    uint64_t own = rng_mix(seed + 77 * i + 5);
    size_t n = 0;
    const char *const *known = pipeline_labels(s, &n);
    stage_fact f = {.state = STAGE_DONE, .text = draw(&own, 3) ? "go on" : "", .label = ""};
    if (s->optional && draw(&own, 4) == 0)
        return (stage_fact){.state = STAGE_FAILED, .label = "", .text = ""};
    if (known)
        f.label = known[draw(&own, n)];
    else if (s->kind->id == STAGE_CLASSIFY)
        f.label = LABELS[draw(&own, 3)];
    f.score = (double)draw(&own, 101) / 100;
    f.mean_prob = (double)draw(&own, 101) / 100;
    return f;
}

typedef struct played {
    stage_fact facts[STAGES_MAX];
    bool ran[STAGES_MAX];
    char why[STAGES_MAX][400];
    bool failed; /* a stage that must not fail lacked what it reads */
} played;

static const config_device LAMP = {.id = "light.x", .name = "Lamp", .state = ""};

/* Stages end in an order of `order`. */
static void play(const config_pipeline *p, uint64_t seed, uint64_t order, played *ret)
{
    static const char *const INPUTS[] = {"", "go on", "go to the lamp", "stop", "lamp"};
    unsigned brings = pipeline_takes(p, MEDIUM_AUDIO) ? 1 + (unsigned)(rng_mix(seed) % 3) : 1;
    pipeline_facts f = {.input = brings & 1 ? INPUTS[1 + rng_mix(seed + 1) % 4] : "",
                        .brings = brings,
                        .devices = &LAMP,
                        .n_devices = 1,
                        .context = "",
                        .stages = ret->facts};
    unsigned n_settled = 0, n_rounds = 0;
    *ret = (played){0};
    for (unsigned i = 0; i < p->n_stages; i++) ret->facts[i] = (stage_fact){.label = "", .text = ""};
    while (n_settled < p->n_stages) {
        unsigned n_running = 0, running[STAGES_MAX];
        assert_true(n_rounds++ <= p->n_stages); /* something settles in every round */
        for (unsigned i = 0; i < p->n_stages; i++) {
            if (ret->facts[i].state == STAGE_RUNNING) running[n_running++] = i;
            if (ret->facts[i].state != STAGE_PENDING) continue;
            buf why = {0};
            stage_verdict v = pipeline_judge(p, i, &f, &why);
            bool lacks = v == STAGE_RUN && pipeline_lacks(p, i, &f) != N_MEDIA;
            if (v != STAGE_WAIT) {
                assert_true(why.len > 0);
                snprintf(ret->why[i], sizeof *ret->why, "%s", why.data);
            } else {
                bool waits = false;
                for (unsigned k = 0; k < i; k++)
                    waits |= p->stages[i].needs >> k & 1 && ret->facts[k].state <= STAGE_RUNNING;
                assert_true(waits);
            }
            buf_done(&why);
            if (v == STAGE_SKIP) ret->facts[i].state = STAGE_SKIPPED, n_settled++;
            ret->failed = lacks && !p->stages[i].optional;
            if (ret->failed) return;
            if (lacks) ret->facts[i].state = STAGE_FAILED, n_settled++;
            if (v != STAGE_RUN || lacks) continue;
            ret->ran[i] = true;
            ret->facts[i].state = STAGE_RUNNING;
            running[n_running++] = i;
        }
        if (n_running == 0) continue;
        unsigned one = running[draw(&order, n_running)];
        ret->facts[one] = outcome(&p->stages[one], one, seed);
        n_settled++;
    }
}

/* ---- properties ------------------------------------------------------------------------------------- */

static unsigned place_of(const char *name)
{
    unsigned i = 0;
    while (strcmp(NAMES[i], name) != 0) i++;
    return i;
}

/* Each name that stage i gives is that of an earlier one. */
static bool names_earlier(const config_stage *s, unsigned i)
{
    bool ok = true;
    for (unsigned k = 0; k < s->n_when; k++) ok &= !s->when[k].stage || place_of(s->when[k].stage) < i;
    for (unsigned k = 0; k < s->n_unless; k++) ok &= !s->unless[k].stage || place_of(s->unless[k].stage) < i;
    for (unsigned k = 0; k < s->n_after; k++) ok &= place_of(s->after[k]) < i;
    if (s->of) ok &= place_of(s->of) < i && place_of(s->against) < i;
    if (s->prompt) ok &= (unsigned)(s->prompt[7] - '0') < i;
    return ok;
}

static void check_words(const config_stage *s)
{
    buf words = {0};
    pipeline_put_when(s, &words);
    assert_true(words.len > 0 && !strstr(words.data, "  "));
    buf_done(&words);
}

static void check_reach(const config_pipeline *p, const pipeline_reach *r, const played *run)
{
    for (unsigned i = 0; i < p->n_stages; i++) {
        if (run->ran[i]) assert_true(r->stages[i].runs);
        if (run->facts[i].state == STAGE_SKIPPED && !r->stages[i].skips)
            fail_msg("%s was skipped: %s", NAMES[i], run->why[i]);
        assert_true(r->stages[i].runs || *r->stages[i].why);
        assert_true(r->stages[i].before < (int)i);
    }
}

static void every_stage_settles_with_a_reason(void **state)
{
    unsigned n_good = 0, n_refused = 0, n_never = 0, n_ran = 0, n_skipped = 0;
    drawn *d = malloc(sizeof *d);
    for (uint64_t run = 0; run < RUNS; run++) {
        uint64_t seed = run;
        shoal_err err = {0};
        draw_pipeline(d, &seed);
        int rc = pipeline_check(&d->p, "pipelines[0].", &err);
        for (unsigned i = 0; rc == 0 && i < d->p.n_stages; i++) {
            assert_true(names_earlier(&d->stages[i], i)); /* so there is no way back */
            assert_true(d->stages[i].needs < 1u << i);
            check_words(&d->stages[i]);
        }
        if (rc != 0) assert_true(strncmp(err.message, "pipelines[0].stages[", 20) == 0);
        n_refused += rc != 0;
        if (rc != 0) continue;
        n_good++;
        pipeline_reach r;
        assert_int_equal(pipeline_reach_find(&r, &d->p, NULL, NULL, &err), 0);
        for (unsigned i = 0; i < d->p.n_stages; i++) n_never += !r.stages[i].runs;
        for (unsigned k = 0; k < 8; k++) {
            played one, other;
            play(&d->p, seed + k, 2 * k, &one);
            play(&d->p, seed + k, 2 * k + 1, &other);
            check_reach(&d->p, &r, &one);
            for (unsigned i = 0; !one.failed && !other.failed && i < d->p.n_stages; i++) {
                assert_int_equal(one.ran[i], other.ran[i]); /* whoever ended first */
                assert_string_equal(one.why[i], other.why[i]);
                n_ran += one.ran[i];
                n_skipped += !one.ran[i];
            }
            assert_int_equal(one.failed, other.failed);
        }
    }
    free(d);
    print_message("%u pipelines, %u refused, %u stages that never run\n", n_good, n_refused, n_never);
    assert_true(n_good > 500 && n_refused > 500 && n_never > 100 && n_ran > 2000 && n_skipped > 2000);
}

/* ---- known ones ------------------------------------------------------------------------------------- */

static const char *const TWO[] = {"on", "off"};
static const char *const *two_labels(void *user, const config_stage *s, size_t *ret_n)
{
    *ret_n = 2;
    return s->kind->id == STAGE_CLASSIFY ? TWO : NULL;
}

static void what_never_runs_is_found(void **state)
{
    const char *on[] = {"on"}, *all[] = {"o*"}, *out[] = {"out"};
    double half = 0.5, most = 0.9;
    stage_condition is_on = {.stage = "s0", .label = on, .n_label = 1};
    stage_condition is_any = {.stage = "s0", .label = all, .n_label = 1},
                    is_out = {.stage = "s0", .label = out, .n_label = 1};
    stage_condition high = {.stage = "s0", .score_min = &most}, low = {.stage = "s0", .score_min = &half};
    stage_condition on_or_out[] = {is_on, is_out};
    config_stage stages[] = {
        {.name = "s0", .kind = &STAGE_KINDS[STAGE_CLASSIFY], .model = "m"},
        {.name = "s1", .kind = &STAGE_KINDS[STAGE_TAG], .model = "m", .when = &is_on, .n_when = 1},
        {.name = "s2",
         .kind = &STAGE_KINDS[STAGE_TAG],
         .model = "m",
         .when = &is_on,
         .n_when = 1,
         .unless = &is_any,
         .n_unless = 1},
        {.name = "s3",
         .kind = &STAGE_KINDS[STAGE_TAG],
         .model = "m",
         .when = &high,
         .n_when = 1,
         .unless = &low,
         .n_unless = 1},
        {.name = "s4", .kind = &STAGE_KINDS[STAGE_TAG], .model = "m", .when = on_or_out, .n_when = 2},
    };
    config_pipeline p = {.name = "p", .stages = stages, .n_stages = 5};
    pipeline_reach r;
    shoal_err err;
    assert_int_equal(pipeline_check(&p, "", &err), 0);
    assert_int_equal(pipeline_reach_find(&r, &p, two_labels, NULL, &err), 0);
    assert_true(r.complete && r.stages[0].runs && !r.stages[0].skips);
    assert_true(r.stages[1].runs && r.stages[1].skips && !r.stages[2].runs && !r.stages[3].runs);
    assert_int_equal(r.stages[4].dead, 2); /* the model has no label "out" */
    assert_string_equal(r.stages[2].why, "s0 is off");
    assert_int_equal(pipeline_reach_find(&r, &p, NULL, NULL, &err), 0);
    assert_int_equal(r.stages[4].dead, 0); /* nobody says which labels there are */
    assert_int_equal(r.stages[r.last].n_calls, 2);
}

/* Thirty stages that hang on each other in all ways, and on what never comes, are no reason to wait. */
static void too_many_ways_are_cut(void **state)
{
    static char names[30][8];
    static stage_condition conditions[30][30];
    const char *a[] = {"a"};
    double none = 0;
    config_stage stages[30] = {{0}};
    for (unsigned i = 0; i < 30; i++) {
        snprintf(names[i], sizeof names[i], "s%u", i);
        stages[i] = (config_stage){
            .name = names[i], .kind = &STAGE_KINDS[STAGE_CLASSIFY], .model = "m", .optional = true};
        for (unsigned k = 0; k < i; k++)
            conditions[i][k] = (stage_condition){.stage = names[k], .label = a, .n_label = 1};
        conditions[i][0].score_min = conditions[i][0].score_below = &none;
        stages[i].when = conditions[i];
        stages[i].n_when = i > 1 ? i : 0;
    }
    config_pipeline p = {.name = "p", .stages = stages, .n_stages = 30};
    pipeline_reach r;
    shoal_err err;
    assert_int_equal(pipeline_check(&p, "", &err), 0);
    assert_int_equal(pipeline_reach_find(&r, &p, NULL, NULL, &err), 0);
    assert_false(r.complete);
    for (unsigned i = 0; i < 30; i++) assert_true(r.stages[i].runs);
    assert_int_equal(r.stages[2].dead, 1); /* no score is under 0 and not */
    assert_int_equal(r.stages[r.last].n_calls, 29);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_stage_settles_with_a_reason),
        cmocka_unit_test(what_never_runs_is_found),
        cmocka_unit_test(too_many_ways_are_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
