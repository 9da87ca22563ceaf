/* api_impl.h: what the files of the library's interface share (api*.c only). */
#ifndef LIBRARY_API_IMPL_H
#define LIBRARY_API_IMPL_H

#include <pthread.h>

#include "base/buf.h"
#include "base/err.h"
#include "infer/engine.h"
#include "infer/preprocessor.h"
#include "shoal.h"

struct shoal_model {
    model *m;  /* NULL of trees, */
    engine *e; /* and so is this */
    preprocessor in;
    char *name; /* of trees: the file's or the folder's */
    char digest[65];
    isa kernels;
    pthread_mutex_t lock; /* guards n_calls */
    pthread_cond_t idle;  /* n_calls is 0 */
    size_t n_calls;       /* in other threads: they read labels and the tokenizer after the engine's answer */
};

/* Every call is between these two; leave gives rc back. */
void api_enter(shoal_model *m);
int api_leave(shoal_model *m, int rc);

const char *api_name(const shoal_model *m);
model_task api_task(const shoal_model *m);
/* SHOAL_EUNSUPPORTED unless the model has the task, resp. a tokenizer; of trees likewise. */
int api_need_task(const shoal_model *m, model_task task, shoal_err *err);
int api_need_tokenizer(const shoal_model *m, shoal_err *err);
/* pair may be NULL; flags: TOK_...; the caller ends *ret with encoding_done. */
int api_encode_text(const shoal_model *m, const char *text, const char *pair, unsigned flags, encoding *ret,
                    shoal_err *err);

/* *ret takes the logits when this returns 0. */
int api_sort_labels(const shoal_model *m, float *logits, size_t n_tokens, shoal_classification *ret,
                    shoal_err *err);

/* The engine thread writes under `lock`, the caller waits on `changed`. */
typedef struct api_waiter {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    buf text;    /* generate: text that the caller has not taken yet */
    buf thought; /* the same of what the model thinks */
    int32_t *ids;
    size_t n_ids, cap_ids;
    float *values; /* encode: a copy of the result */
    size_t rows, cols;
    bool done, nomem;
    int status;
    char message[256];
    finish_reason finish;
    gen_timings timings;
} api_waiter;

void api_waiter_init(api_waiter *w);
void api_waiter_done(api_waiter *w);
/* Give the engine an input and wait: w->values[w->rows][w->cols] then. */
int api_encode_run(shoal_model *m, const enc_request *r, api_waiter *w, shoal_err *err);
/* Under its lock. */
void api_waiter_finish(api_waiter *w, int status, const char *message);

#endif
