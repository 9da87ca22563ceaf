/* pipeline_open.c: the files that stages name: lexicons and forms of lines. */
#include <stdio.h>

#include "pipeline/pipeline_guard.h"

static int open_stage(config_stage *s, const char *where, unsigned i, shoal_err *err)
{
    shoal_err why;
    int rc = 0;
    if (s->lexicon_path && s->kind == STAGE_GROUND && !s->lex)
        rc = lexicon_load(&s->lex, s->lexicon_path, &why);
    if (!rc && s->forms_path && !s->lines) rc = line_forms_load(&s->lines, s->forms_path, &why);
    if (!rc) return 0;
    if (rc == SHOAL_ENOMEM) return err_nomem(err);
    return err_set(err, SHOAL_EINVALID, "%sstages[%u].%s: %s", where, i,
                   s->lexicon_path ? "lexicon" : "forms", why.message);
}

int pipeline_open(config_pipeline *p, const char *where, shoal_err *err)
{
    int rc = 0;
    for (unsigned i = 0; !rc && i < p->n_stages; i++) rc = open_stage(&p->stages[i], where, i, err);
    for (unsigned i = 0; !rc && i < p->n_stages; i++) rc = pipeline_guard_open(p, i, where, err);
    return rc;
}

void pipeline_close(config_pipeline *p)
{
    for (unsigned i = 0; i < p->n_stages; i++) {
        lexicon_free(p->stages[i].lex);
        line_forms_free(p->stages[i].lines);
        pipeline_guard_close(&p->stages[i]);
        p->stages[i].lex = NULL;
        p->stages[i].lines = NULL;
    }
}
