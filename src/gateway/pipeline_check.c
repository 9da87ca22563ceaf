#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "gateway/pipeline_template.h"

/* Where a check is: the pipeline, the stage under check, and the field's path for messages. */
typedef struct site {
    config_pipeline *p;
    unsigned stage;
    char path[96];
} site;

/* Stage `i` must have been declared before the one under check; then it is something to wait for. */
static int refer(site *s, const char *field, const char *name, size_t n_name, int kind, shoal_err *err)
{
    int i = pipeline_stage_index(s->p, name, n_name);
    if (i < 0 || (unsigned)i >= s->stage)
        return err_set(err, SHOAL_EINVALID, "%s%s: '%.*s' is no stage declared before '%s'", s->path, field,
                       (int)(n_name < 64 ? n_name : 64), name, s->p->stages[s->stage].name);
    if (kind >= 0 && s->p->stages[i].kind != (stage_kind)kind)
        return err_set(err, SHOAL_EINVALID, "%s%s: '%s' is a %s stage, a %s stage is needed here", s->path,
                       field, s->p->stages[i].name, stage_kind_name(s->p->stages[i].kind),
                       stage_kind_name((stage_kind)kind));
    s->p->stages[s->stage].needs |= 1u << i;
    return 0;
}

static int check_condition(site *s, const stage_condition *c, shoal_err *err)
{
    bool about_label = c->n_label || c->score_min || c->score_below;
    bool about_stage = about_label || c->mean_prob_below;
    if (about_stage && !c->stage)
        return err_set(err, SHOAL_EINVALID, "%s: needs 'stage:', the stage whose result it looks at",
                       s->path);
    if (!about_stage && c->stage)
        return err_set(err, SHOAL_EINVALID,
                       "%s: 'stage: %s' needs label, score_min, score_below or mean_prob_below", s->path,
                       c->stage);
    if (about_label && c->mean_prob_below)
        return err_set(
            err, SHOAL_EINVALID,
            "%s: label and score_* are for classify stages, mean_prob_below is for generate stages", s->path);
    if (!about_stage && !c->text_prefix && !c->mentions_device)
        return err_set(err, SHOAL_EINVALID, "%s: an empty condition", s->path);
    if (!c->stage) return 0;
    return refer(s, ".stage", c->stage, strlen(c->stage),
                 c->mean_prob_below ? STAGE_GENERATE : STAGE_CLASSIFY, err);
}

static int check_conditions(site *s, const char *field, const stage_condition *c, unsigned n, shoal_err *err)
{
    size_t base = strlen(s->path);
    int rc = 0;
    for (unsigned i = 0; i < n && !rc; i++) {
        snprintf(s->path + base, sizeof s->path - base, "%s[%u]", field, i);
        rc = check_condition(s, &c[i], err);
    }
    s->path[base] = 0;
    return rc;
}

static int check_template(site *s, const char *field, const char *template, shoal_err *err)
{
    template_piece piece;
    while (template && template_next(&template, &piece)) {
        if (!piece.is_field) continue;
        int n = (int)(piece.len < 64 ? piece.len : 64), stage;
        if (piece.at[piece.len] != '}')
            return err_set(err, SHOAL_EINVALID, "%s%s: '{%.*s' has no '}' (write '{{' for a brace)", s->path,
                           field, n, piece.at);
        template_field f = template_field_of(s->p, &piece, &stage);
        if (f == FIELD_UNKNOWN)
            return err_set(err, SHOAL_EINVALID,
                           "%s%s: '{%.*s}' is none of {input}, {Input}, {devices}, {context}, {label.STAGE}, "
                           "{text.STAGE} (write '{{' for a brace)",
                           s->path, field, n, piece.at);
        if (f != FIELD_LABEL && f != FIELD_TEXT) continue;
        const char *name = memchr(piece.at, '.', piece.len);
        size_t n_name = piece.len - (size_t)(name + 1 - piece.at);
        int rc = refer(s, field, name + 1, n_name, f == FIELD_LABEL ? STAGE_CLASSIFY : STAGE_GENERATE, err);
        if (rc) return rc;
    }
    return 0;
}

static int check_kind_fields(const site *s, const config_stage *st, shoal_err *err)
{
    const char *odd = st->system             ? "system"
                      : st->prompt           ? "prompt"
                      : st->max_tokens       ? "max_tokens"
                      : st->temperature != 0 ? "temperature"
                      : st->top_p != 0       ? "top_p"
                      : st->seed             ? "seed"
                                             : NULL;
    if (st->kind != STAGE_GENERATE && odd)
        return err_set(err, SHOAL_EINVALID, "%s%s: only a generate stage has it, '%s' is a %s stage", s->path,
                       odd, st->name, stage_kind_name(st->kind));
    return 0;
}

/* Stage names stand in templates, traces and metrics: letters, digits, '-' and '_'. */
static int check_name(const site *s, const char *name, shoal_err *err)
{
    for (const char *c = name; *c; c++)
        if (!isalnum((unsigned char)*c) && *c != '-' && *c != '_')
            return err_set(err, SHOAL_EINVALID, "%sname: '%s' may hold letters, digits, '-' and '_' only",
                           s->path, name);
    int first = pipeline_stage_index(s->p, name, strlen(name));
    if ((unsigned)first < s->stage)
        return err_set(err, SHOAL_EINVALID, "%sname: '%s' is already the name of stages[%d]", s->path, name,
                       first);
    return 0;
}

static int check_stage(site *s, shoal_err *err)
{
    config_stage *st = &s->p->stages[s->stage];
    st->needs = 0;
    int rc = check_name(s, st->name, err);
    if (!rc) rc = check_kind_fields(s, st, err);
    if (!rc) rc = check_conditions(s, "when", st->when, st->n_when, err);
    if (!rc) rc = check_conditions(s, "unless", st->unless, st->n_unless, err);
    for (unsigned i = 0; !rc && i < st->n_after; i++)
        rc = refer(s, "after", st->after[i], strlen(st->after[i]), -1, err);
    if (!rc) rc = check_template(s, "system", st->system, err);
    if (!rc) rc = check_template(s, "prompt", st->prompt, err);
    return rc;
}

static int check_devices(const config_pipeline *p, const char *where, shoal_err *err)
{
    for (unsigned i = 0; i < p->n_devices; i++) {
        const config_device *d = &p->devices[i];
        const char *odd = !pipeline_device_text_ok(d->id)                   ? "id"
                          : !pipeline_device_text_ok(d->name)               ? "name"
                          : *d->state && !pipeline_device_text_ok(d->state) ? "state"
                                                                            : NULL;
        if (odd)
            return err_set(err, SHOAL_EINVALID,
                           "%sdevices[%u].%s: must be one line without control characters", where, i, odd);
        for (unsigned k = 0; k < i; k++)
            if (strcmp(p->devices[k].id, d->id) == 0)
                return err_set(err, SHOAL_EINVALID, "%sdevices[%u].id: '%s' is already the id of devices[%u]",
                               where, i, d->id, k);
    }
    return 0;
}

int pipeline_check(config_pipeline *p, const char *where, shoal_err *err)
{
    int rc = check_devices(p, where, err);
    for (unsigned i = 0; !rc && i < p->n_stages; i++) {
        site s = {.p = p, .stage = i};
        snprintf(s.path, sizeof s.path, "%sstages[%u].", where, i);
        rc = check_stage(&s, err);
    }
    return rc;
}
