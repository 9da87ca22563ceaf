/* pipeline_reach.c: the search of pipeline_reach.h. A stage's verdict hangs on the stages that it waits for,
 * and on what those wait for: only these are tried, each target by itself. */
#include "pipeline/pipeline_reach.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/pipeline_template.h"

enum {
    OUTCOMES_MAX = 512, /* of a stage */
    VALUES_MAX = 64,
    PATTERNS_MAX = 64,
    INPUTS_MAX = 34,
    TRIES_MAX = 60000,       /* verdicts asked for one target; a tenth of a second */
    TRIES_ALL_MAX = 1 << 20, /* and for all of them */
};

typedef struct walk {
    const config_pipeline *p;
    reach_labels labels;
    void *user;
    stage_fact *outcomes[PIPELINE_STAGES_MAX]; /* [n_outcomes[i]], by pick_outcomes */
    size_t n_outcomes[PIPELINE_STAGES_MAX];
    const char *inputs[INPUTS_MAX]; /* texts that conditions tell apart */
    size_t n_inputs;
    config_device device; /* one that such a text names */
    /* of one search: */
    stage_fact facts[PIPELINE_STAGES_MAX];
    pipeline_facts known;
    uint32_t ancestors;
    unsigned target, n_tries, n_tries_all;
    bool runs, skips;
    bool cut, failed; /* cut: not all outcomes are there; failed: out of memory */
    buf why;
    arena *memory;
} walk;

/* ---- outcomes -------------------------------------------------------------------------------------- */

typedef void (*condition_fn)(void *user, const stage_condition *c);

/* Each condition of any stage that looks at stage `name`. */
static void each_about(const config_pipeline *p, const char *name, condition_fn visit, void *user)
{
    for (unsigned i = 0; i < p->n_stages; i++) {
        const config_stage *s = &p->stages[i];
        for (unsigned k = 0; k < s->n_when + s->n_unless; k++) {
            const stage_condition *c = k < s->n_when ? &s->when[k] : &s->unless[k - s->n_when];
            if (c->stage && strcmp(c->stage, name) == 0) visit(user, c);
        }
    }
}

/* What the conditions about one stage tell apart. */
typedef struct apart {
    const char *patterns[PATTERNS_MAX];
    size_t n_patterns;
    double scores[VALUES_MAX], probs[VALUES_MAX]; /* values on both sides of each bound */
    size_t n_scores, n_probs;
} apart;

static void pipeline_reach_add_value(double *to, size_t *n, double v)
{
    for (size_t i = 0; i < *n; i++)
        if (to[i] == v) return;
    if (*n < VALUES_MAX) to[(*n)++] = v;
}

static void add_bound(double *to, size_t *n, const double *bound)
{
    if (!bound) return;
    pipeline_reach_add_value(to, n, *bound);
    pipeline_reach_add_value(to, n, *bound - 1e-6);
}

static void tell_apart(void *user, const stage_condition *c)
{
    apart *a = user;
    for (unsigned i = 0; i < c->n_label && a->n_patterns < PATTERNS_MAX; i++)
        a->patterns[a->n_patterns++] = c->label[i];
    add_bound(a->scores, &a->n_scores, c->score_min);
    add_bound(a->scores, &a->n_scores, c->score_below);
    add_bound(a->scores, &a->n_scores, c->number_min);
    add_bound(a->scores, &a->n_scores, c->number_below);
    add_bound(a->probs, &a->n_probs, c->mean_prob_below);
}

/* Bit i: pattern i takes the label. Labels with the same bits are one to all conditions. */
static uint64_t taken_by(const apart *a, const char *label)
{
    uint64_t bits = 0;
    for (size_t i = 0; i < a->n_patterns; i++)
        if (pipeline_label_is(label, a->patterns[i])) bits |= (uint64_t)1 << i;
    return bits;
}

/* A label of each kind that conditions know: of those there are, or made up where they are not known. */
static size_t pick_labels(walk *w, const config_stage *s, const apart *a, const char *ret[PATTERNS_MAX + 1])
{
    size_t n = 0, n_known = 0, n_made = 2 * a->n_patterns + 1;
    uint64_t seen[PATTERNS_MAX + 1];
    const char *const *known = pipeline_labels(s, &n_known);
    if (!known && w->labels) known = w->labels(w->user, s, &n_known);
    if (!known) n_known = n_made;
    for (size_t i = 0; i < n_known && n <= PATTERNS_MAX; i++) {
        const char *pattern = i / 2 < a->n_patterns ? a->patterns[i / 2] : "";
        size_t stem = strcspn(pattern, "*");
        const char *one =
            known ? known[i] : arena_printf(w->memory, "%.*s%s", (int)stem, pattern, i % 2 ? "?" : "");
        if (!known && i + 1 == n_made) one = "?";
        if (!one) return w->failed = true, 0;
        uint64_t bits = taken_by(a, one);
        size_t k = 0;
        while (k < n && seen[k] != bits) k++;
        if (k < n) continue;
        seen[n] = bits;
        ret[n++] = one;
    }
    return n;
}

static void add_outcome(walk *w, unsigned i, const stage_fact *f)
{
    if (w->n_outcomes[i] < OUTCOMES_MAX)
        w->outcomes[i][w->n_outcomes[i]++] = *f;
    else
        w->cut = true;
}

static void pick_outcomes(walk *w, unsigned i)
{
    const config_stage *s = &w->p->stages[i];
    apart a = {.scores = {0.5}, .probs = {0.5}, .n_scores = 1, .n_probs = 1};
    const char *labels[PATTERNS_MAX + 1] = {""};
    each_about(w->p, s->name, tell_apart, &a);
    size_t n_labels = a.n_patterns ? pick_labels(w, s, &a, labels) : 1;
    size_t n_texts = s->kind->id == STAGE_TRANSCRIBE ? w->n_inputs + 1 : 1;
    w->outcomes[i] = arena_alloc(w->memory, OUTCOMES_MAX * sizeof(stage_fact));
    if (!w->outcomes[i]) w->failed = true;
    for (size_t k = 0; k < n_labels * a.n_scores * a.n_probs * n_texts && !w->failed; k++) {
        size_t text = k % n_texts, rest = k / n_texts;
        add_outcome(w, i,
                    &(stage_fact){.state = STAGE_DONE,
                                  .text = text < w->n_inputs && n_texts > 1 ? w->inputs[text]
                                          : n_texts > 1                     ? ""
                                                                            : "text",
                                  .label = labels[rest / a.n_scores / a.n_probs],
                                  .score = a.scores[rest / a.n_probs % a.n_scores],
                                  .mean_prob = a.probs[rest % a.n_probs]});
    }
    if (s->optional && !w->failed)
        add_outcome(w, i, &(stage_fact){.state = STAGE_FAILED, .label = "", .text = ""});
}

/* ---- inputs ---------------------------------------------------------------------------------------- */

static void add_input(walk *w, const char *text)
{
    for (size_t i = 0; text && i < w->n_inputs; i++)
        if (strcmp(w->inputs[i], text) == 0) return;
    if (!text) w->failed = true;
    if (text && w->n_inputs == INPUTS_MAX) w->cut = true;
    if (text && w->n_inputs < INPUTS_MAX) w->inputs[w->n_inputs++] = text;
}

/* A text for each prefix that is asked for and one for none, each with and without a device. */
static void pick_inputs(walk *w)
{
    w->device = (config_device){.id = "light.here", .name = "Zq Light", .state = ""};
    add_input(w, "?");
    add_input(w, arena_printf(w->memory, "? %s", w->device.name));
    for (unsigned i = 0; i < w->p->n_stages; i++) {
        const config_stage *s = &w->p->stages[i];
        for (unsigned k = 0; k < s->n_when + s->n_unless; k++) {
            const stage_condition *c = k < s->n_when ? &s->when[k] : &s->unless[k - s->n_when];
            if (!c->text_prefix) continue;
            add_input(w, arena_printf(w->memory, "%s ?", c->text_prefix));
            add_input(w, arena_printf(w->memory, "%s %s", c->text_prefix, w->device.name));
        }
    }
}

/* ---- the search ------------------------------------------------------------------------------------ */

static bool is_spent(const walk *w)
{
    return w->cut || w->n_tries >= TRIES_MAX || w->n_tries_all >= TRIES_ALL_MAX;
}

static bool pipeline_reach_is_decided(const walk *w)
{
    return (w->runs && w->skips) || w->failed || (!w->cut && is_spent(w));
}

static void judge_target(walk *w)
{
    buf why = {0};
    stage_verdict v = pipeline_judge(w->p, w->target, &w->known, &why);
    w->n_tries++;
    w->n_tries_all++;
    w->failed |= why.failed;
    if (v == STAGE_RUN && pipeline_lacks(w->p, w->target, &w->known) == N_MEDIA) w->runs = true;
    if (v == STAGE_SKIP) {
        w->skips = true;
        buf_done(&w->why);
        w->why = why;
        return;
    }
    buf_done(&why);
}

/* All that the stages from i up to the target can come to. */
static void try_from(walk *w, unsigned i)
{
    while (i < w->target && !(w->ancestors >> i & 1)) i++;
    if (i == w->target) {
        judge_target(w);
        return;
    }
    buf why = {0};
    stage_verdict v = pipeline_judge(w->p, i, &w->known, &why);
    w->n_tries++;
    w->n_tries_all++;
    w->failed |= why.failed;
    buf_done(&why);
    bool lacks = v == STAGE_RUN && pipeline_lacks(w->p, i, &w->known) != N_MEDIA;
    if (v == STAGE_SKIP || lacks) {
        if (lacks && !w->p->stages[i].optional) return; /* the run ends here */
        w->facts[i] = (stage_fact){.state = lacks ? STAGE_FAILED : STAGE_SKIPPED, .label = "", .text = ""};
        try_from(w, i + 1);
        return;
    }
    for (size_t k = 0; k < w->n_outcomes[i] && !pipeline_reach_is_decided(w); k++) {
        w->facts[i] = w->outcomes[i][k];
        try_from(w, i + 1);
    }
}

static uint32_t ancestors_of(const config_pipeline *p, unsigned i)
{
    uint32_t all = p->stages[i].needs;
    for (unsigned k = i; k-- > 0;)
        if (all >> k & 1) all |= p->stages[k].needs;
    return all;
}

/* What the request may bring: any of the media that some stage reads, or that a condition asks for. */
static void search(walk *w, unsigned target)
{
    unsigned media = 0;
    for (int m = 0; m < N_MEDIA; m++)
        if (m == MEDIUM_TEXT || pipeline_takes(w->p, (medium)m)) media |= 1u << m;
    w->target = target;
    w->ancestors = ancestors_of(w->p, target);
    w->n_tries = 0;
    w->runs = w->skips = false;
    for (unsigned brings = 1; brings < 1u << N_MEDIA && !pipeline_reach_is_decided(w); brings++) {
        bool text = brings >> MEDIUM_TEXT & 1;
        if (brings & ~media) continue;
        for (size_t k = 0; k < (text ? w->n_inputs : 1) && !pipeline_reach_is_decided(w); k++) {
            for (unsigned i = 0; i < w->p->n_stages; i++) w->facts[i] = (stage_fact){.label = "", .text = ""};
            w->known = (pipeline_facts){.input = text ? w->inputs[k] : "",
                                        .brings = brings,
                                        .devices = &w->device,
                                        .n_devices = 1,
                                        .context = "",
                                        .stages = w->facts};
            try_from(w, 0);
        }
    }
}

/* Does when[k] alone let the target run? */
static bool alone_lets_run(walk *w, unsigned target, unsigned k)
{
    config_stage stages[PIPELINE_STAGES_MAX];
    config_pipeline p = *w->p;
    const config_pipeline *whole = w->p;
    memcpy(stages, p.stages, p.n_stages * sizeof *stages);
    stages[target].when = &p.stages[target].when[k];
    stages[target].n_when = 1;
    p.stages = stages;
    w->p = &p;
    search(w, target);
    w->p = whole;
    return w->runs || is_spent(w);
}

static void reach_stage(walk *w, unsigned i, stage_reach *ret, bool *ret_complete)
{
    const config_stage *s = &w->p->stages[i];
    search(w, i);
    bool cut = is_spent(w);
    if (cut) *ret_complete = false;
    ret->runs = w->runs || cut;
    ret->skips = w->skips || cut;
    if (!ret->runs) snprintf(ret->why, sizeof ret->why, "%.155s", w->why.data ? w->why.data : "");
    for (unsigned k = 0; ret->runs && s->n_when > 1 && k < s->n_when && !w->failed; k++)
        if (!alone_lets_run(w, i, k)) ret->dead |= 1u << k;
}

/* ---- ways ------------------------------------------------------------------------------------------- */

static void measure_ways(pipeline_reach *r, const config_pipeline *p)
{
    for (unsigned i = 0; i < p->n_stages; i++) {
        stage_reach *s = &r->stages[i];
        s->before = -1;
        for (unsigned k = 0; k < i; k++)
            if (p->stages[i].needs >> k & 1 && (s->before < 0 || r->stages[k].n_calls > s->n_calls)) {
                s->before = (int)k;
                s->n_calls = r->stages[k].n_calls;
            }
        s->n_calls += p->stages[i].model != NULL;
        if (s->n_calls > r->stages[r->last].n_calls) r->last = i;
    }
}

int pipeline_reach_find(pipeline_reach *ret, const config_pipeline *p, reach_labels labels, void *user,
                        shoal_err *err)
{
    walk *w = calloc(1, sizeof *w);
    arena *memory = w ? arena_new(0) : NULL;
    bool failed = !memory;
    *ret = (pipeline_reach){.complete = true};
    if (!failed) {
        *w = (walk){.p = p, .labels = labels, .user = user, .memory = memory};
        pick_inputs(w);
        for (unsigned i = 0; i < p->n_stages && !w->failed; i++) pick_outcomes(w, i);
        for (unsigned i = 0; i < p->n_stages && !w->failed; i++)
            reach_stage(w, i, &ret->stages[i], &ret->complete);
        measure_ways(ret, p);
        failed = w->failed;
        buf_done(&w->why);
    }
    arena_free(memory);
    free(w);
    return failed ? err_nomem(err) : 0;
}
