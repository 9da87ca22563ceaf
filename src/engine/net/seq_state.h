/* seq_state.h: what a sequence carries from token to token beside its keys and values.
 *
 * Keys and values grow with a sequence and are found by position. The state of a recurrent mixer (a short
 * convolution's last inputs; later that of Mamba, gated delta nets, RWKV) has one size and stands for all
 * tokens up to one position. A layer's mixer says how many bytes it needs (mixer.h: state_bytes); a state is
 * those of all layers, one behind the other.
 *
 * A state is written once, by the step that computes its last token, and never changed: a step reads the state
 * behind a sequence's last token and writes new ones behind the tokens that it may end with (seq_mark). So
 * no operation on states copies any bytes:
 *
 *     snapshot    one more reference, held by the page that ends at the state's position (kv.h)
 *     restore     a sequence that adopts that page refers to its state
 *     copy        a fork, or a lane of a beam search, refers to the same state
 *     roll back   when guessed tokens are rejected: the mark behind the last token that holds is taken
 *     drop        a reference less; the last one frees it
 *
 * A reply that is resumed after a failover needs nothing here: its tokens are computed again.
 *
 *     seq_states p;
 *     seq_states_init(&p, 4096, 100, &err);              room for 100 states of 4,096 bytes
 *     seq_state a = seq_state_take(&p);                  SEQ_STATE_NONE: all are in use
 *     float *x = seq_state_at(&p, a, offset);            written by the step
 *     seq_state snapshot = seq_state_ref(&p, a);
 *     seq_state_drop(&p, &a);
 *
 * Owner: a kv has the pool, since pages hold snapshots; a kv_seq holds the state of its sequence. Engine
 * thread only, except seq_state_at, which team members call during a step. What fails: init (SHOAL_ENOMEM,
 * nothing is left behind) and take. Memory is reserved once and touched state by state. */
#ifndef NET_SEQ_STATE_H
#define NET_SEQ_STATE_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* The number of a state. NONE is that of a sequence without tokens: no mixer reads it. */
typedef uint32_t seq_state;
enum { SEQ_STATE_NONE = 0 };

/* A step leaves the state behind the sequence's first `position` tokens here. */
typedef struct seq_mark {
    uint32_t position;
    seq_state state;
} seq_mark;

typedef struct seq_states {
    size_t
        state_bytes; /* of one; 0: the layers are elsewhere (stage.h), which keep states by these numbers */
    uint32_t n;      /* states 1 .. n; 0: the model has none */
    uint32_t n_free;
    seq_state *free;  /* [n]; the last n_free given back are taken first: they are in the processor's cache */
    uint32_t *n_refs; /* [n + 1] */
    uint8_t *memory;  /* [n][state_bytes] */
} seq_states;

/* n 0 is a pool of a model without states. */
int seq_states_init(seq_states *p, size_t state_bytes, uint32_t n, shoal_err *err);
void seq_states_done(seq_states *p); /* a zeroed one is fine */

/* A state that nobody else has, of any content, with one reference; SEQ_STATE_NONE: all are in use. */
seq_state seq_state_take(seq_states *p);
/* s, with one reference more; SEQ_STATE_NONE is fine, as it is for drop. */
seq_state seq_state_ref(seq_states *p, seq_state s);
/* *s becomes SEQ_STATE_NONE. */
void seq_state_drop(seq_states *p, seq_state *s);

/* What a layer has at `offset` of a state. */
static inline void *seq_state_at(const seq_states *p, seq_state s, size_t offset)
{
    return p->memory + (size_t)(s - 1) * p->state_bytes + offset;
}

#endif
