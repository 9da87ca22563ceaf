/* confidence_watch.c: see confidence_watch.h. */
#include "request/confidence_watch.h"

#include <stdlib.h>
#include <string.h>

#include "ensemble/confidence_shift.h"

enum { FILE_BYTES = 80 }; /* "sha256:" and its digits, of an identity's beginning */

typedef struct watched {
    char *model, file[FILE_BYTES];
    uint64_t used; /* the answer of this number was its latest */
    confidence_shift shift;
} watched;

struct confidence_watch {
    watched *models[CONFIDENCE_MODELS];
    size_t n;
    uint64_t n_answers;
};

confidence_watch *confidence_watch_new(void)
{
    return calloc(1, sizeof(confidence_watch));
}

static void watched_free(watched *x)
{
    if (x) free(x->model);
    free(x);
}

void confidence_watch_free(confidence_watch *w)
{
    for (size_t i = 0; w && i < w->n; i++) watched_free(w->models[i]);
    free(w);
}

static watched *watched_new(const char *model, const char *file)
{
    watched *x = calloc(1, sizeof *x);
    if (x) x->model = strdup(model);
    if (x && x->model) {
        strcpy(x->file, file);
        return x;
    }
    watched_free(x);
    return NULL;
}

/* Where a new one goes: in place of that which was used the longest ago, if there is no room. */
static watched **place_of_new(confidence_watch *w)
{
    watched **oldest = w->models;
    if (w->n < CONFIDENCE_MODELS) return &w->models[w->n];
    for (size_t i = 1; i < w->n; i++)
        if (w->models[i]->used < (*oldest)->used) oldest = &w->models[i];
    return oldest;
}

static watched *find_watched(confidence_watch *w, const char *model, const char *file)
{
    for (size_t i = 0; i < w->n; i++)
        if (strcmp(w->models[i]->model, model) == 0 && strcmp(w->models[i]->file, file) == 0)
            return w->models[i];
    watched *x = watched_new(model, file), **to = place_of_new(w);
    if (!x) return NULL;
    watched_free(*to);
    *to = x;
    if (w->n < CONFIDENCE_MODELS) w->n++;
    return x;
}

/* "sha256:5b93...;engine=shoal;..." */
static void file_of(char ret[FILE_BYTES], const char *identity)
{
    size_t n = strcspn(identity, ";");
    if (n >= FILE_BYTES) n = FILE_BYTES - 1;
    memcpy(ret, identity, n);
    ret[n] = '\0';
}

void confidence_watch_add(confidence_watch *w, const char *model, const char *identity,
                          const call_confidences *c)
{
    char file[FILE_BYTES];
    file_of(file, identity ? identity : "");
    watched *x = c->n ? find_watched(w, model, file) : NULL;
    if (!x) return;
    x->used = ++w->n_answers;
    for (size_t i = 0; i < c->n; i++) confidence_shift_add(&x->shift, c->best[i]);
}

/* Has another file of the model answered since? */
static bool is_replaced(const confidence_watch *w, const watched *x)
{
    for (size_t i = 0; i < w->n; i++)
        if (w->models[i]->used > x->used && strcmp(w->models[i]->model, x->model) == 0) return true;
    return false;
}

void confidence_watch_put(const confidence_watch *w, metrics *m)
{
    for (size_t i = 0; i < w->n; i++) {
        const watched *x = w->models[i];
        if (!confidence_shift_known(&x->shift) || is_replaced(w, x)) continue;
        metrics_set(m, METRIC_CONFIDENCE_PSI, confidence_shift_psi(&x->shift), x->model, NULL, NULL);
        metrics_set(m, METRIC_CONFIDENCE_MEAN, confidence_shift_reference_mean(&x->shift), x->model,
                    "reference", NULL);
        metrics_set(m, METRIC_CONFIDENCE_MEAN, confidence_shift_window_mean(&x->shift), x->model, "window",
                    NULL);
    }
}
