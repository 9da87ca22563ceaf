/* pipeline_guard.c: lexicons of devices, and what stages say about them; see pipeline_guard.h. */
#include "pipeline/pipeline_guard.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "match/guard.h"
#include "pipeline/pipeline_template.h"

/* Where a check is. */
typedef struct opening {
    const config_pipeline *p;
    config_stage *s;
    char path[96]; /* of the stage, for sentences */
    shoal_err *err;
} opening;

static int load_words(const opening *o)
{
    shoal_err why;
    int rc = o->s->words ? 0 : device_lexicon_load(&o->s->words, o->s->lexicon_path, &why);
    if (!rc) return 0;
    if (rc == SHOAL_ENOMEM) return err_nomem(o->err);
    return err_set(o->err, SHOAL_EINVALID, "%slexicon: %s", o->path, why.message);
}

static int find_tongues(const opening *o)
{
    config_stage *s = o->s;
    if (s->tongues) return 0;
    s->tongues = calloc(s->n_languages + 1, sizeof *s->tongues);
    if (!s->tongues) return err_nomem(o->err);
    for (unsigned i = 0; i < s->n_languages; i++) {
        s->tongues[i] = device_lexicon_tongue(s->words, s->languages[i]);
        if (!s->tongues[i])
            return err_set(o->err, SHOAL_EINVALID, "%slanguages[%u]: '%s' is no language of %s", o->path, i,
                           s->languages[i], s->lexicon_path);
    }
    return 0;
}

static int no_such_rule(const opening *o, const char *field, unsigned i, const char *rule)
{
    char all[128] = "";
    for (int r = 0; r < N_GUARD_RULES; r++)
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", r ? ", " : "",
                 guard_rule_name((guard_rule)r));
    return err_set(o->err, SHOAL_EINVALID, "%s%s[%u]: '%s' is none of the rules %s", o->path, field, i, rule,
                   all);
}

/* A ground stage has read prohibitions, times and questions word by word: where it acts beside one, that is
 * meant ("turn on the lamp but not the light"), and a timer may be for ten minutes. Other stages know nothing
 * of them. */
static unsigned rules_for(const opening *o)
{
    const config_stage *of = &o->p->stages[pipeline_stage_index(o->p, o->s->of, strlen(o->s->of))];
    bool read = of->kind == STAGE_GROUND || of->kind == STAGE_CHECK;
    return read ? GUARD_ALL_RULES & ~(1u << RULE_NEGATION | 1u << RULE_LATER | 1u << RULE_QUESTION)
                : GUARD_ALL_RULES;
}

static int read_rules(const opening *o, guard_rules *g)
{
    const config_stage *s = o->s;
    g->held = s->n_rules ? 0 : rules_for(o);
    for (unsigned i = 0; i < s->n_rules; i++) {
        guard_rule r = guard_rule_named(s->rules[i]);
        if (r == N_GUARD_RULES) return no_such_rule(o, "rules", i, s->rules[i]);
        g->held |= 1u << r;
    }
    return 0;
}

static bool is_kind_of_device(const config_pipeline *p, const char *kind)
{
    for (unsigned i = 0; i < p->n_devices; i++) {
        const config_device *d = &p->devices[i];
        size_t n = strcspn(d->id, ".");
        if (d->kind && strcmp(d->kind, kind) == 0) return true;
        if (strlen(kind) == n && memcmp(d->id, kind, n) == 0) return true;
    }
    return false;
}

/* A slip here would leave a door unguarded. */
static int check_kinds(const opening *o)
{
    const config_stage *s = o->s;
    for (unsigned i = 0; i < s->n_ask_kinds; i++) {
        const char *kind = s->ask_kinds[i];
        if (device_lexicon_kind(s->words, kind) != SIZE_MAX || is_kind_of_device(o->p, kind)) continue;
        return err_set(o->err, SHOAL_EINVALID,
                       "%sask_kinds[%u]: '%s' is neither a kind of %s nor one of the pipeline's devices",
                       o->path, i, kind, s->lexicon_path);
    }
    return 0;
}

static int read_sayings(const opening *o, guard_rules *g)
{
    const config_stage *s = o->s;
    guard_saying *say = calloc(s->n_say + 1, sizeof *say);
    if (!say) return err_nomem(o->err);
    g->say = say;
    for (unsigned i = 0; i < s->n_say; i++) {
        const stage_saying *from = &s->say[i];
        if (guard_rule_named(from->rule) == N_GUARD_RULES && strcmp(from->rule, "declined") != 0)
            return no_such_rule(o, "say", i, from->rule);
        if (from->language && !device_lexicon_tongue(s->words, from->language))
            return err_set(o->err, SHOAL_EINVALID, "%ssay[%u].language: '%s' is no language of %s", o->path,
                           i, from->language, s->lexicon_path);
        say[g->n_say++] = (guard_saying){from->rule, from->language, from->text};
    }
    return 0;
}

static int make_guard(const opening *o)
{
    config_stage *s = o->s;
    if (s->guard) return 0;
    guard_rules *g = s->guard = calloc(1, sizeof *g);
    if (!g) return err_nomem(o->err);
    g->lex = s->words;
    g->kinds = (guard_list){s->ask_kinds, s->n_ask_kinds};
    g->ids = (guard_list){s->ask_ids, s->n_ask_ids};
    g->actions = (guard_list){s->ask_actions, s->n_ask_actions};
    g->max_targets = s->max_targets;
    int rc = read_rules(o, g);
    if (!rc) rc = check_kinds(o);
    return rc ? rc : read_sayings(o, g);
}

int pipeline_guard_open(config_pipeline *p, unsigned i, const char *where, shoal_err *err)
{
    opening o = {.p = p, .s = &p->stages[i], .err = err};
    if (o.s->kind != STAGE_MATCH && o.s->kind != STAGE_GUARD) return 0;
    snprintf(o.path, sizeof o.path, "%sstages[%u].", where, i);
    int rc = load_words(&o);
    if (!rc) rc = find_tongues(&o);
    return rc || o.s->kind == STAGE_MATCH ? rc : make_guard(&o);
}

void pipeline_guard_close(config_stage *s)
{
    if (s->guard) free((void *)s->guard->say);
    free(s->guard);
    free(s->tongues);
    device_lexicon_free(s->words);
    s->guard = NULL;
    s->tongues = NULL;
    s->words = NULL;
}
