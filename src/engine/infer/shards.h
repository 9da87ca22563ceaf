/* shards.h: the other stages of a network that is cut between layers, as its first stage's engine sees them.
 *
 * The engine computes the first layers of a step, sends the rows on and begins another step of other
 * sequences meanwhile; steps come back in the order in which they were sent, having gone through all stages.
 * Who carries them is behind this table: worker/shards.h over gRPC, a test within one process.
 *
 *     sh->send(sh->user, &step, rows, n_rows);      // up to n_stages steps are under way
 *     sh->receive(sh->user, rows, n_wanted);        // the oldest: its wanted rows
 *
 * When a stage is lost, so is every step that is under way, and what the stages keep of all sequences: the
 * engine then computes their tokens again from the start, to the same bits, and nobody notices but by the
 * time it takes. A sequence whose rows come back as no finite numbers ends with an error that names the
 * stage; the others go on. Engine thread. */
#ifndef INFER_SHARDS_H
#define INFER_SHARDS_H

#include "infer/stage.h"

typedef struct shards {
    size_t n_stages;                              /* with the first; 2 .. SHARDS_MAX */
    net_layers part;                              /* of the first: from 0 on */
    size_t n_ctx, n_pages, max_items, max_tokens; /* the least that one of the others has room for */
    void *user;
    /* All stages are there. False: wait_ms have passed or, once for every loss, one was lost; what was sent
     * before is gone. */
    bool (*ready)(void *user, unsigned wait_ms);
    /* Copied. SHOAL_EUNAVAILABLE: a stage was lost; ready says when all are there again. */
    int (*send)(void *user, const stage_step *step, const float *rows, size_t n_rows);
    /* Wait for the oldest step that was sent: rows[n_wanted][n_embd]. SHOAL_EUNAVAILABLE as above. */
    int (*receive)(void *user, float *rows, size_t n_wanted);
    /* What was wrong with the call before, in a sentence that names the stage: why it was lost, or that the
     * rows just received are not finite since it computed them. NULL: nothing. Borrowed until the next call;
     * the function may be NULL. */
    const char *(*why)(void *user);
} shards;

enum { SHARDS_MAX = 64 };

#endif
