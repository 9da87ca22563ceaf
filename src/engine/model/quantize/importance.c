/* importance.c: sums of squares by tensor; see importance.h. */
#include "model/quantize/importance.h"

#include <stdlib.h>
#include <string.h>

/* No column is worth less than this part of the mean: the text is only a sample. */
#define IMPORTANCE_LEAST 1e-3

typedef struct entry {
    struct entry *next;
    wmat *w;         /* what is watched */
    double *squares; /* [cols] */
    bool owner;
    size_t cols;
    char name[];
} entry;

struct importance {
    entry *first;
    size_t n;
};

int importance_new(importance **ret, shoal_err *err)
{
    *ret = calloc(1, sizeof **ret);
    return *ret ? 0 : err_nomem(err);
}

void importance_free(importance *imp)
{
    for (entry *e = imp ? imp->first : NULL, *next; e; e = next) {
        next = e->next;
        if (e->owner) free(e->squares);
        free(e);
    }
    free(imp);
}

/* Whose squares this is to add to: those of tensors joined in one matrix, or of a stack of experts that is
 * cut into several. */
static const entry *find_same(const importance *imp, const char *tensor, const wmat *w)
{
    for (const entry *e = imp->first; e; e = e->next)
        if (e->w == w || (strcmp(e->name, tensor) == 0 && e->cols == wmat_cols(w))) return e;
    return NULL;
}

int importance_watch(importance *imp, const char *tensor, wmat *w, shoal_err *err)
{
    const entry *same = find_same(imp, tensor, w);
    size_t len = strlen(tensor) + 1;
    entry *e = calloc(1, sizeof *e + len);
    if (!e) return err_nomem(err);
    e->w = w;
    e->cols = wmat_cols(w);
    e->owner = !same;
    e->squares = same ? same->squares : calloc(e->cols, sizeof *e->squares);
    memcpy(e->name, tensor, len);
    if (!e->squares) {
        free(e);
        return err_nomem(err);
    }
    e->next = imp->first;
    imp->first = e;
    imp->n++;
    wmat_watch(w, e->squares);
    return 0;
}

bool importance_get(const importance *imp, const char *tensor, size_t cols, float *ret)
{
    const entry *e = imp->first;
    while (e && (strcmp(e->name, tensor) != 0 || e->cols != cols)) e = e->next;
    double mean = 0;
    for (size_t c = 0; e && c < cols; c++) mean += e->squares[c] / (double)cols;
    if (!(mean > 0) || !(mean < 1e300)) return false;
    for (size_t c = 0; c < cols; c++) {
        double v = e->squares[c] / mean;
        ret[c] = (float)(v > IMPORTANCE_LEAST ? v : IMPORTANCE_LEAST);
    }
    return true;
}

size_t importance_count(const importance *imp)
{
    return imp->n;
}
