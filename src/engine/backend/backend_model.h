/* backend_model.h: the file of a network, as the backends of networks share it: opened, named by its digests,
 * and described as far as it needs no engine. Inside backend/. */
#ifndef BACKEND_BACKEND_MODEL_H
#define BACKEND_BACKEND_MODEL_H

#include "backend/backend.h"

typedef struct backend_model {
    model *m;
    char *name, *path;
    char identity[65], vocabulary[65]; /* SHA-256 in hex */
    backend_facts facts;
    int n_threads;       /* once it is started */
    char precision[112]; /* likewise; "": as the file */
} backend_model;

/* Takes the source's model. *ret can be given to backend_model_close whatever is returned. */
int backend_model_open(backend_model *ret, backend_source *s, backend_digests *ret_digests, shoal_err *err);
void backend_model_close(backend_model *b);
void backend_model_describe(const backend_model *b, backend_about *ret);
/* Is the model for this task? As the recognisers return it. */
int backend_model_is_for(backend_source *s, model_task task, shoal_err *err);
/* As many threads as the options say, or as the machine has cores; kept for describe. */
int backend_model_threads(backend_model *b, const engine_options *o);
/* Keys and values that are kept otherwise than the file's types suggest, and rows that lose bits between
 * stages (then also where the network is cut); kept for describe. */
void backend_model_precision(backend_model *b, const backend_options *o);

#endif
