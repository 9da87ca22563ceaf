/* rule_line.c: line stages: a line of a declared form, read exactly. */
#include "rules/rules.h"

static int start_line(stage_run *s, const call_context *ctx)
{
    (void)ctx; /* no call is made */
    const char *input = rules_input(s);
    line_reading *l = arena_alloc(s->memory, sizeof *l);
    if (!l || !input || line_read(l, s->stage->own, input, s->memory, NULL)) return SHOAL_ENOMEM;
    s->own = l;
    s->fact->label = line_verdict_name(l->verdict);
    s->fact->text = l->text;
    return 0;
}

const stage_runner rule_line_runner = {.start = start_line};

/* ---- its keys ----------------------------------------------------------------------------------- */

static int open_line(config_pipeline *p, unsigned i, const char *where, shoal_err *err)
{
    line_forms *forms = NULL;
    shoal_err why;
    int rc = p->stages[i].forms_path ? line_forms_load(&forms, p->stages[i].forms_path, &why) : 0;
    if (rc == SHOAL_ENOMEM) return err_nomem(err);
    if (rc) return err_set(err, SHOAL_EINVALID, "%sstages[%u].forms: %s", where, i, why.message);
    p->stages[i].own = forms;
    return 0;
}

static void close_line(config_stage *s)
{
    line_forms_free(s->own);
}

#define NAME_OF(e, n, about) n,
static const char *const LABELS[] = {LINE_VERDICTS(NAME_OF)};
#undef NAME_OF

const stage_kind rule_line_kind = {
    .name = "line",
    .gives = GIVES_LABEL | GIVES_TEXT | READS_INPUT | SPEAKS | MAY_BE_SILENT | REPEATS,
    .fields = "forms!",
    .labels = LABELS,
    .n_labels = sizeof LABELS / sizeof *LABELS,
    .open = open_line,
    .close = close_line,
};
