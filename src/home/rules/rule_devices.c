/* rule_devices.c: lexicons of devices, and what stages say about them; see rule_devices.h. */
#include "rules/rule_devices.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/pipeline_template.h"

/* Where a check is. */
typedef struct opening {
    const config_pipeline *p;
    config_stage *s;
    rule_devices *d;
    char path[96]; /* of the stage, for sentences */
    shoal_err *err;
} opening;

static int load_words(const opening *o)
{
    shoal_err why;
    int rc = device_lexicon_load(&o->d->words, o->s->lexicon_path, &why);
    if (!rc) return 0;
    if (rc == SHOAL_ENOMEM) return err_nomem(o->err);
    return err_set(o->err, SHOAL_EINVALID, "%slexicon: %s", o->path, why.message);
}

static int find_languages(const opening *o)
{
    const config_stage *s = o->s;
    o->d->languages = calloc(s->n_languages + 1, sizeof *o->d->languages);
    if (!o->d->languages) return err_nomem(o->err);
    for (unsigned i = 0; i < s->n_languages; i++) {
        o->d->languages[i] = device_lexicon_language(o->d->words, s->languages[i]);
        if (!o->d->languages[i])
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
    bool read = of->kind == &rule_ground_kind || of->kind == &rule_check_kind;
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
static int devices_check_kinds(const opening *o)
{
    const config_stage *s = o->s;
    for (unsigned i = 0; i < s->n_ask_kinds; i++) {
        const char *kind = s->ask_kinds[i];
        if (device_lexicon_kind(o->d->words, kind) != SIZE_MAX || is_kind_of_device(o->p, kind)) continue;
        return err_set(o->err, SHOAL_EINVALID,
                       "%sask_kinds[%u]: '%s' is neither a kind of %s nor one of the pipeline's devices",
                       o->path, i, kind, s->lexicon_path);
    }
    return 0;
}

static int devices_read_sayings(const opening *o, guard_rules *g)
{
    const config_stage *s = o->s;
    guard_saying *say = calloc(s->n_say + 1, sizeof *say);
    if (!say) return err_nomem(o->err);
    g->say = say;
    for (unsigned i = 0; i < s->n_say; i++) {
        const stage_saying *from = &s->say[i];
        if (guard_rule_named(from->rule) == N_GUARD_RULES && strcmp(from->rule, "declined") != 0)
            return no_such_rule(o, "say", i, from->rule);
        if (from->language && !device_lexicon_language(o->d->words, from->language))
            return err_set(o->err, SHOAL_EINVALID, "%ssay[%u].language: '%s' is no language of %s", o->path,
                           i, from->language, s->lexicon_path);
        say[g->n_say++] = (guard_saying){from->rule, from->language, from->text};
    }
    return 0;
}

static int make_guard(const opening *o)
{
    const config_stage *s = o->s;
    guard_rules *g = o->d->guard = calloc(1, sizeof *g);
    if (!g) return err_nomem(o->err);
    g->lex = o->d->words;
    g->kinds = (guard_list){s->ask_kinds, s->n_ask_kinds};
    g->ids = (guard_list){s->ask_ids, s->n_ask_ids};
    g->actions = (guard_list){s->ask_actions, s->n_ask_actions};
    g->max_targets = s->max_targets;
    int rc = read_rules(o, g);
    if (!rc) rc = devices_check_kinds(o);
    return rc ? rc : devices_read_sayings(o, g);
}

const rule_devices *rule_devices_of(const config_stage *s)
{
    return s->own;
}

int rule_devices_open(config_pipeline *p, unsigned i, const char *where, shoal_err *err)
{
    opening o = {.p = p, .s = &p->stages[i], .err = err};
    o.d = o.s->own = calloc(1, sizeof *o.d);
    if (!o.d) return err_nomem(err);
    snprintf(o.path, sizeof o.path, "%sstages[%u].", where, i);
    int rc = load_words(&o);
    if (!rc) rc = find_languages(&o);
    return rc || o.s->kind == &rule_match_kind ? rc : make_guard(&o);
}

void rule_devices_close(config_stage *s)
{
    rule_devices *d = s->own;
    if (d->guard) free((void *)d->guard->say);
    free(d->guard);
    free(d->languages);
    device_lexicon_free(d->words);
    free(d);
}
