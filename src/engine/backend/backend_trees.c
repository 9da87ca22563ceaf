/* backend_trees.c: gradient-boosted trees. A row is scored in microseconds where it is asked for, so there is
 * no engine, and no turns are taken with others for a core. */
#include <stdlib.h>

#include "backend/backend_tuning.h"
#include "kinds/model_kind.h"

typedef struct trees_backend {
    preprocessor preprocessor;
    backend_facts facts;
} trees_backend;

int backend_trees_recognises(backend_source *s, shoal_err *err)
{
    return model_kind_of(s->o->path) == &model_kind_trees;
}

static int trees_open(void **ret, backend_source *s, backend_digests *ret_digests, shoal_err *err)
{
    const backend_options *o = s->o;
    int rc = backend_check_tuning(o, NULL, err);
    if (rc != 0) return rc;
    trees_backend *b = calloc(1, sizeof *b);
    rc = b ? preprocessor_open_trees(&b->preprocessor, o->path, err) : err_nomem(err);
    if (rc == 0) rc = scorer_digest(b->preprocessor.trees, &ret_digests->file, err);
    if (rc != 0) {
        if (b) preprocessor_done(&b->preprocessor);
        free(b);
        return rc;
    }
    ret_digests->identity = ret_digests->file;
    b->facts = backend_facts_of(NULL, o->path);
    *ret = b;
    return 0;
}

static void trees_describe(const void *state, backend_about *ret)
{
    const trees_backend *b = state;
    ret->task = TASK_SCORE;
    ret->architecture = forest_about(scorer_forest(b->preprocessor.trees))->format;
    ret->facts = b->facts;
    ret->no_tokenizer = "it is made of trees and reads no text";
    ret->labels = b->preprocessor.labels;
    ret->n_labels = b->preprocessor.n_labels;
    ret->n_raw = b->preprocessor.n_raw;
    ret->exact_resume = true;
    ret->rows = scorer_spec(b->preprocessor.trees);
}

static int trees_score(const void *state, csv *c, uint64_t deadline_ns, scorer_row_fn row, void *user,
                       preprocessor_totals *ret_totals, shoal_err *err)
{
    return preprocessor_score(&((const trees_backend *)state)->preprocessor, c, deadline_ns, row, user,
                              ret_totals, err);
}

static void trees_close(void *state)
{
    trees_backend *b = state;
    preprocessor_done(&b->preprocessor);
    free(b);
}

const backend_ops backend_trees = {.name = "trees",
                                   .engine = BIT_IDENTITY_ENGINE,
                                   .numerics = NUMERICS_CONTRACT,
                                   .open = trees_open,
                                   .describe = trees_describe,
                                   .score = trees_score,
                                   .close = trees_close};
