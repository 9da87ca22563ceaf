/* metrics_vllm.c: see metrics_vllm.h. */
#include "request/metrics_vllm.h"

#include <string.h>

typedef struct vllm_row {
    const char *name, *labels;
    metric_id of;
    const char *second; /* of the family's second label; NULL: all series */
} vllm_row;

static const vllm_row ROWS[] = {
#define VLLM_ROW(n, id, s, l) {.name = "vllm:" n, .labels = l, .of = id, .second = s},
    METRIC_VLLM_TABLE(VLLM_ROW)
#undef VLLM_ROW
};

typedef struct vllm_target {
    buf *out;
    const vllm_row *row;
    metric_family family;
    metrics_form form;
} vllm_target;

static void put_renamed(void *user, const metric_point *p)
{
    vllm_target *t = user;
    metric_point renamed = *p;
    if (t->row->second && strcmp(p->labels[1], t->row->second) != 0) return;
    renamed.family = &t->family;
    metrics_put_point(t->out, &renamed, t->form);
}

void metrics_put_vllm(buf *out, const metrics *m, metrics_form form)
{
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        vllm_target t = {.out = out, .row = &ROWS[i], .family = *metrics_family(ROWS[i].of), .form = form};
        t.family.name = ROWS[i].name;
        t.family.labels = ROWS[i].labels;
        metrics_put_head(out, &t.family, form);
        metrics_each(m, ROWS[i].of, put_renamed, &t);
    }
}
