/* pipeline_open.c: what the kinds of stages load for them, such as lexicons. */
#include "pipeline/pipeline.h"

int pipeline_open(config_pipeline *p, const char *where, shoal_err *err)
{
    int rc = devices_digest(p->devices, p->n_devices, &p->devices_digest) ? 0 : err_nomem(err);
    for (unsigned i = 0; !rc && i < p->n_stages; i++)
        if (p->stages[i].kind->open && !p->stages[i].own) rc = p->stages[i].kind->open(p, i, where, err);
    return rc;
}

void pipeline_close(config_pipeline *p)
{
    for (unsigned i = 0; i < p->n_stages; i++) {
        config_stage *s = &p->stages[i];
        if (s->kind && s->kind->close && s->own) s->kind->close(s);
        s->own = NULL;
    }
}
