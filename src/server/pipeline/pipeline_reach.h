/* pipeline_reach.h: which stages of a pipeline can run at all, found by trying.
 *
 * No model is asked. Each stage comes, in turn, to every outcome that some condition tells apart: each label
 * that a condition names and one that none does, scores on both sides of each bound, failure where it is
 * optional. pipeline_judge then says what follows, so that what is found here is what a server would do.
 *
 *     pipeline_reach r;
 *     if (pipeline_reach_find(&r, p, NULL, NULL, err) == 0 && !r.stages[3].runs) ... stage 3 never runs
 *
 * Pure. */
#ifndef PIPELINE_PIPELINE_REACH_H
#define PIPELINE_PIPELINE_REACH_H

#include "pipeline/pipeline.h"

/* All labels that the model of a stage can give; NULL: not known. */
typedef const char *const *(*reach_labels)(void *user, const config_stage *s, size_t *ret_n);

typedef struct stage_reach {
    bool runs;        /* something lets it run; also when there was too much to try */
    bool skips;       /* something skips it */
    uint32_t dead;    /* bit k: when[k] lets it run never, though others do */
    char why[160];    /* of one that never runs: what stood against it in the end */
    unsigned n_calls; /* model calls one after the other until it is done, its own included */
    int before;       /* the stage before it on that way; -1: none */
} stage_reach;

typedef struct pipeline_reach {
    stage_reach stages[PIPELINE_STAGES_MAX];
    unsigned last; /* the stage at the end of the longest way */
    bool complete; /* all was tried; else "runs" may be too good */
} pipeline_reach;

/* p has passed pipeline_check. labels NULL: those of models are not known. Fails only with SHOAL_ENOMEM. */
int pipeline_reach_find(pipeline_reach *ret, const config_pipeline *p, reach_labels labels, void *user,
                        shoal_err *err);

#endif
