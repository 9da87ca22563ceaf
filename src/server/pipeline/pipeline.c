/* pipeline.c: when a stage waits, runs or is skipped, and why; see pipeline.h. pipeline_check has seen to it
 * that every stage a condition names exists and was declared before. */
#include "pipeline/pipeline.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "pipeline/pipeline_template.h"

const config_pipeline *pipeline_find(const config_pipeline *all, size_t n, const char *name)
{
    if (!name) return n == 1 ? &all[0] : NULL;
    for (size_t i = 0; i < n; i++)
        if (strcmp(all[i].name, name) == 0) return &all[i];
    return NULL;
}

bool pipeline_stage_acts(const config_stage *s)
{
    return s->kind->id == STAGE_HTTP || s->n_mcp > 0;
}

bool pipeline_is_deterministic(const config_pipeline *p)
{
    for (unsigned i = 0; i < p->n_stages; i++)
        if (p->stages[i].temperature > 0 || p->stages[i].kind->id == STAGE_RETRIEVE ||
            pipeline_stage_acts(&p->stages[i]))
            return false;
    return true;
}

bool pipeline_may_call(const config_pipeline *p)
{
    for (unsigned i = 0; i < p->n_stages; i++) {
        const config_stage *s = &p->stages[i];
        bool none = s->schema || s->n_mcp || (s->tool_choice && strcmp(s->tool_choice, "none") == 0);
        if (s->kind->gives & MAY_CALL && !none) return true;
    }
    return false;
}

const config_each *pipeline_each(const config_stage *s)
{
    return s->each.of ? &s->each : s->reduce.of ? &s->reduce : NULL;
}

size_t pipeline_input_max(const config_pipeline *p)
{
    for (unsigned i = 0; i < p->n_stages; i++) {
        const config_each *each = pipeline_each(&p->stages[i]);
        if (each && strcmp(each->of, "input") == 0) return PIPELINE_LONG_MAX_BYTES;
    }
    return PIPELINE_INPUT_MAX_BYTES;
}

int pipeline_stage_index(const config_pipeline *p, const char *name, size_t n_name)
{
    for (unsigned i = 0; i < p->n_stages; i++)
        if (strlen(p->stages[i].name) == n_name && memcmp(p->stages[i].name, name, n_name) == 0)
            return (int)i;
    return -1;
}

/* ---- devices -------------------------------------------------------------------------------- */

bool pipeline_device_text_ok(const char *s)
{
    size_t n = strlen(s);
    if (n == 0 || n > 128) return false;
    for (; *s; s++)
        if ((unsigned char)*s < 0x20 || *s == 0x7f) return false;
    return true;
}

/* Lower case of the two-byte letters that keep their length: Latin-1, Greek, Cyrillic. */
static void fold_two(unsigned char *p)
{
    unsigned cp = (p[0] & 0x1fu) << 6 | (p[1] & 0x3fu);
    bool latin = cp >= 0xC0 && cp <= 0xDE && cp != 0xD7;
    bool greek = cp >= 0x391 && cp <= 0x3A9;
    bool cyrillic = cp >= 0x410 && cp <= 0x42F;
    if (latin || greek || cyrillic)
        cp += 0x20;
    else if (cp >= 0x400 && cp <= 0x40F)
        cp += 0x50;
    p[0] = (unsigned char)(0xC0 | cp >> 6);
    p[1] = (unsigned char)(0x80 | (cp & 0x3f));
}

static void fold_case(char *s)
{
    for (unsigned char *p = (unsigned char *)s; *p; p++) {
        if (*p < 0x80)
            *p = (unsigned char)tolower(*p);
        else if ((*p & 0xE0) == 0xC0 && p[1])
            fold_two(p), p++;
    }
}

static bool is_word_byte(char c)
{
    return isalnum((unsigned char)c) || (unsigned char)c >= 0x80;
}

/* People inflect: "is the front door locked" is about the Front Door Lock, "kitchen lights" about its light.
 */
static bool ends_word(const char *at)
{
    static const char *const endings[] = {"", "s", "es", "ed", "ing"};
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        size_t n = strlen(endings[i]);
        if (strncmp(at, endings[i], n) == 0 && !is_word_byte(at[n])) return true;
    }
    return false;
}

/* Is `name` somewhere in `text` as whole words, the last perhaps inflected? Both folded. */
static bool has_words(const char *text, const char *name)
{
    size_t n = strlen(name);
    for (const char *at = strstr(text, name); at; at = strstr(at + 1, name)) {
        bool starts = at == text || !is_word_byte(at[-1]) || !is_word_byte(*name);
        bool ends = ends_word(at + n) || !is_word_byte(name[n - 1]);
        if (starts && ends) return true;
    }
    return false;
}

static bool same_device(const config_device *a, const config_device *b)
{
    size_t n = strcspn(a->id, ".") + 1;
    return strcmp(a->id, b->id) == 0 || (strncmp(a->id, b->id, n) == 0 && strcasecmp(a->name, b->name) == 0);
}

void pipeline_lend_units(const config_pipeline *p, config_device *to, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (unsigned k = 0; k < p->n_devices && !to[i].unit; k++)
            if (p->devices[k].unit && same_device(&to[i], &p->devices[k])) to[i].unit = p->devices[k].unit;
}

static const config_device *find_mentioned(const char *folded, const config_device *devices, size_t n_devices)
{
    const config_device *best = NULL;
    size_t n_best = 0;
    for (size_t i = 0; i < n_devices; i++) {
        char name[129];
        size_t n = strlen(devices[i].name);
        if (n <= n_best || n >= sizeof name) continue;
        memcpy(name, devices[i].name, n + 1);
        fold_case(name);
        if (has_words(folded, name)) best = &devices[i], n_best = n;
    }
    return best;
}

int pipeline_mentioned(const char *text, const config_device *devices, size_t n_devices,
                       const config_device **ret)
{
    char *folded = strdup(text);
    if (!folded) return SHOAL_ENOMEM;
    fold_case(folded);
    *ret = find_mentioned(folded, devices, n_devices);
    free(folded);
    return 0;
}

/* ---- conditions ------------------------------------------------------------------------------- */

bool pipeline_label_is(const char *label, const char *pattern)
{
    size_t n = strlen(pattern);
    if (n && pattern[n - 1] == '*') return strncmp(label, pattern, n - 1) == 0;
    return strcmp(label, pattern) == 0;
}

static bool label_holds(const stage_condition *c, const stage_fact *f)
{
    if (!c->n_label) return true;
    for (unsigned i = 0; i < c->n_label; i++)
        if (pipeline_label_is(f->label, c->label[i])) return true;
    return false;
}

/* NULL: no bound. */
static bool is_within(double v, const double *min, const double *below)
{
    return !(min && !(v >= *min)) && !(below && !(v < *below));
}

/* The part of a condition that looks at a stage's result; appends what it saw. */
static bool stage_holds(const config_pipeline *p, const stage_condition *c, const pipeline_facts *facts,
                        buf *why)
{
    const stage_fact *f = &facts->stages[pipeline_stage_index(p, c->stage, strlen(c->stage))];
    if (f->state != STAGE_DONE) {
        buf_printf(why, "%s %s", c->stage, f->state == STAGE_FAILED ? "failed" : "did not run");
        return false;
    }
    if (c->mean_prob_below) {
        bool holds = f->mean_prob < *c->mean_prob_below;
        buf_printf(why, "%s was %s (mean token probability %.3f, threshold %.3f)", c->stage,
                   holds ? "unsure" : "sure", f->mean_prob, *c->mean_prob_below);
        return holds;
    }
    buf_puts(why, c->stage);
    buf_puts(why, " is ");
    buf_puts(why, *f->label ? f->label : "without a label");
    if (!label_holds(c, f)) return false;
    if (c->score_min || c->score_below) buf_printf(why, " (score %.3f)", f->score);
    if (c->number_min || c->number_below) buf_printf(why, " (%.6g)", f->score);
    return is_within(f->score, c->score_min, c->score_below) &&
           is_within(f->score, c->number_min, c->number_below);
}

static bool brings_holds(const stage_condition *c, const pipeline_facts *facts, buf *why)
{
    bool holds = false;
    for (int m = 0; m < N_MEDIA; m++)
        if (strcmp(c->brings, medium_name((medium)m)) == 0) holds = facts->brings >> m & 1;
    buf_printf(why, "the request brings %s%s", holds ? "" : "no ", c->brings);
    return holds;
}

static bool prefix_holds(const stage_condition *c, const pipeline_facts *facts, buf *why)
{
    bool holds = strncmp(facts->input, c->text_prefix, strlen(c->text_prefix)) == 0;
    buf_printf(why, "input %s '%s'", holds ? "starts with" : "does not start with", c->text_prefix);
    return holds;
}

static bool mention_holds(const pipeline_facts *facts, buf *why)
{
    const config_device *d = NULL;
    if (pipeline_mentioned(facts->input, facts->devices, facts->n_devices, &d) != 0) why->failed = true;
    if (d)
        buf_printf(why, "input mentions %s", d->name);
    else
        buf_puts(why, "input mentions no device");
    return d != NULL;
}

/* All given fields of c. `why` gets what held, or, when one does not, only that one. */
static bool condition_holds(const config_pipeline *p, const stage_condition *c, const pipeline_facts *facts,
                            buf *why)
{
    size_t start = why->len;
    for (int field = 0; field < 4; field++) {
        bool given = field == 0   ? c->text_prefix != NULL
                     : field == 1 ? c->stage != NULL
                     : field == 2 ? c->mentions_device
                                  : c->brings != NULL;
        if (!given) continue;
        size_t before = why->len;
        if (before > start) buf_puts(why, " and ");
        size_t at = why->len;
        bool holds = field == 0   ? prefix_holds(c, facts, why)
                     : field == 1 ? stage_holds(p, c, facts, why)
                     : field == 2 ? mention_holds(facts, why)
                                  : brings_holds(c, facts, why);
        if (holds) continue;
        if (!why->failed) {
            memmove(why->data + start, why->data + at, why->len - at + 1);
            why->len -= at - start;
        }
        return false;
    }
    return true;
}

/* The first of the alternatives that holds, n when none; `why` gets its reason, or those of all. */
static bool any_holds(const config_pipeline *p, const stage_condition *c, unsigned n,
                      const pipeline_facts *facts, buf *why)
{
    buf all = {0};
    bool found = false;
    size_t last = 0;
    for (unsigned i = 0; i < n && !found; i++) {
        if (all.len) buf_puts(&all, "; ");
        last = all.len;
        found = condition_holds(p, &c[i], facts, &all);
    }
    why->failed |= all.failed;
    if (!all.failed && n) buf_puts(why, buf_text(&all) + (found ? last : 0));
    buf_done(&all);
    return found;
}

static bool is_settled(const stage_fact *f)
{
    return f->state == STAGE_DONE || f->state == STAGE_SKIPPED || f->state == STAGE_FAILED;
}

/* What the conditions of a stage say, all of whose stages have settled. */
static stage_verdict judge_conditions(const config_pipeline *p, const config_stage *s,
                                      const pipeline_facts *facts, buf *why)
{
    buf unwanted = {0};
    bool barred = any_holds(p, s->unless, s->n_unless, facts, &unwanted);
    if (barred || unwanted.failed) buf_join(why, &unwanted);
    buf_done(&unwanted);
    if (barred) return STAGE_SKIP;
    if (!s->n_when) {
        buf_puts(why, "always");
        return STAGE_RUN;
    }
    return any_holds(p, s->when, s->n_when, facts, why) ? STAGE_RUN : STAGE_SKIP;
}

bool pipeline_holds_back(const config_stage *s, const stage_fact *f)
{
    return s->kind->passes && f->state == STAGE_DONE && strcmp(f->label, s->kind->passes) != 0;
}

/* The guard before stage i that holds the request back; NULL: none. */
static const config_stage *held_by(const config_pipeline *p, size_t i, const pipeline_facts *facts)
{
    for (size_t k = 0; k < i; k++)
        if (pipeline_holds_back(&p->stages[k], &facts->stages[k])) return &p->stages[k];
    return NULL;
}

stage_verdict pipeline_judge(const config_pipeline *p, size_t i, const pipeline_facts *facts, buf *why)
{
    const config_stage *s = &p->stages[i];
    for (size_t k = 0; k < i; k++)
        if (s->needs >> k & 1 && !is_settled(&facts->stages[k])) return STAGE_WAIT;
    pipeline_facts own = *facts;
    own.input = pipeline_input(p, i, facts);
    buf said = {0};
    stage_verdict v = judge_conditions(p, s, &own, &said);
    bool silent = v == STAGE_RUN && pipeline_is_silent(p, i, facts);
    const config_stage *held = v == STAGE_RUN && pipeline_stage_acts(s) ? held_by(p, i, facts) : NULL;
    if ((!silent && !held) || said.failed)
        buf_join(why, &said);
    else if (silent)
        buf_puts(why, "nothing was heard");
    else
        buf_printf(why, "%s holds the request back", held->name);
    buf_done(&said);
    return silent || held ? STAGE_SKIP : v;
}
