#include "infer/tagging.h"

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

static const char *entity_of(const char *label)
{
    return (label[0] == 'B' || label[0] == 'I') && label[1] == '-' ? label + 2 : label;
}

int tag_spans(const encoding *e, const float *logits, const char *const *labels, size_t n_labels, tag_span **ret,
              size_t *ret_n, shoal_err *err)
{
    tag_span *spans = e->n ? calloc(e->n, sizeof *spans) : NULL;
    if (e->n && !spans) return err_nomem(err);
    size_t n = 0, n_in_span = 0;
    tag_span *open = NULL;
    for (size_t i = 0; i < e->n; i++) {
        const token_span *at = &e->spans[i];
        if (e->special[i] || e->type_ids[i] != 0 || at->begin == at->end) continue;
        float prob;
        const char *label = labels[best_label(logits + i * n_labels, n_labels, &prob)];
        if (strcmp(label, "O") == 0) {
            open = NULL;
            continue;
        }
        const char *entity = entity_of(label);
        bool begins = label[0] == 'B' && label[1] == '-';
        if (begins || !open || strcmp(open->label, entity) != 0) {
            open = &spans[n++];
            *open = (tag_span){.begin = at->begin, .cp_begin = at->cp_begin, .label = entity};
            n_in_span = 0;
        }
        open->end = at->end;
        open->cp_end = at->cp_end;
        open->score += (prob - open->score) / (float)++n_in_span;
    }
    if (n == 0) {
        free(spans);
        spans = NULL;
    }
    *ret = spans;
    *ret_n = n;
    return 0;
}
