/* tagging.c: BIO labels (Ramshaw and Marcus 1995) of tokens become entities of the text; see tagging.h. */
#include "net/tagging.h"

#include <stdlib.h>
#include <string.h>

#include "compute/compute.h"

/* The best label (the lowest of equals) and its softmax probability. */
static size_t best_label(const float *logits, size_t n, float *ret_prob)
{
    size_t best = 0;
    for (size_t i = 1; i < n; i++)
        if (logits[i] > logits[best]) best = i;
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += math_exp((double)logits[i] - (double)logits[best]);
    *ret_prob = (float)(1 / sum);
    return best;
}

static const char *tagging_kind_of(const char *label)
{
    return (label[0] == 'B' || label[0] == 'I') && label[1] == '-' ? label + 2 : label;
}

int tagging_entities(const model_config *c, const encoding *e, const float *logits, entity **ret,
                     size_t *ret_n, shoal_err *err)
{
    entity *found = e->n ? calloc(e->n, sizeof *found) : NULL;
    if (e->n && !found) return err_nomem(err);
    size_t n = 0, n_in_open = 0;
    entity *open = NULL;
    for (size_t i = 0; i < e->n; i++) {
        const token_span *at = &e->spans[i];
        if (e->special[i] || e->type_ids[i] != 0 || at->begin == at->end) continue;
        float prob;
        const char *label =
            c->head.labels[best_label(logits + i * c->head.n_labels, c->head.n_labels, &prob)];
        if (strcmp(label, "O") == 0) {
            open = NULL;
            continue;
        }
        const char *kind = tagging_kind_of(label);
        bool begins = label[0] == 'B' && label[1] == '-';
        if (begins || !open || strcmp(open->label, kind) != 0) {
            open = &found[n++];
            *open = (entity){.span = *at, .label = kind};
            n_in_open = 0;
        }
        open->span.end = at->end;
        open->span.cp_end = at->cp_end;
        open->score += (prob - open->score) / (float)++n_in_open;
    }
    if (n == 0) {
        free(found);
        found = NULL;
    }
    *ret = found;
    *ret_n = n;
    return 0;
}
