/* model_about.h: what a model's files say about it, whatever its kind, without an engine.
 *
 *     model_about a = {0};
 *     if (model_about_open(&a, "models/llama", NULL, &err) == 0) puts(task_name(a.task));
 *     model_about_close(&a);
 *
 * Of a kind of files that another program reads: SHOAL_EFORMAT, ... as its loader here says. */
#ifndef INFER_MODEL_ABOUT_H
#define INFER_MODEL_ABOUT_H

#include "infer/preprocessor.h"
#include "kinds/model_kind.h"
#include "model/model.h"

typedef struct model_about {
    const model_kind *kind;
    model_task task;
    /* [n_labels]: of classes, in the order of the scores. */
    const char *const *labels;
    size_t n_labels;
    bool talks;         /* messages can be sent to it: it has a chat template, or gets the default one */
    bool is_plain;      /* it is the default one */
    model *network;     /* NULL: it is made of trees */
    preprocessor trees; /* zeroed: it is a network */
} model_about;

/* options as model_open has them; of trees only the pinned digest counts. *ret must be zeroed and is left so on
 * failure. */
int model_about_open(model_about *ret, const char *path, const model_options *options, shoal_err *err);
void model_about_close(model_about *a); /* a zeroed one is fine */

#endif
