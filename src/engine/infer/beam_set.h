/* beam_set.h: the hypotheses of one beam search inside the engine.
 *
 * The session that was asked for owns them, has one place in line and gives the events at the end; its beams
 * are sessions without events that compute beside everybody else's in a step. When each has its candidates,
 * beam_set_advance makes the lanes of the next step: keys and values of a shared past are shared pages. Engine
 * thread, but for new and free. */
#ifndef INFER_BEAM_SET_H
#define INFER_BEAM_SET_H

#include "infer/decoding/beam.h"
#include "infer/session.h"

typedef struct beam_set {
    beam *search;
    size_t n, n_max; /* that go on; that there are */
    session *lane[BEAM_MAX];
    int32_t *spare; /* [n_max][max_ids] */
} beam_set;

/* For s, which session_new made of r (n_beams over 1). */
int beam_set_new(beam_set **ret, const model *m, const gen_request *r, const session *s, size_t n_ctx,
                 shoal_err *err);
void beam_set_free(beam_set *l); /* pages must be released before; NULL is fine */
/* Give back all pages; they are computed again, to the same bits, when it goes on. */
void beam_set_release(beam_set *l, kv *c);
/* Every lane that goes on has its candidates. */
bool beam_set_ready(const beam_set *l);
/* Choose the next lanes. False: the search is over. */
bool beam_set_advance(beam_set *l, kv *c);

#endif
