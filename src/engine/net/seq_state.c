/* seq_state.c: a pool of counted references; see seq_state.h. */
#include "net/seq_state.h"

#include <assert.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/pages.h"

int seq_states_init(seq_states *p, size_t state_bytes, uint32_t n, shoal_err *err)
{
    size_t bytes;
    *p = (seq_states){.state_bytes = state_bytes, .n = n};
    if (n == 0) return 0;
    if (size_mul(state_bytes, n, &bytes)) return err_nomem(err);
    p->free = malloc(n * sizeof *p->free);
    p->n_refs = calloc((size_t)n + 1, sizeof *p->n_refs);
    if (bytes > 0) p->memory = pages_map(bytes, 0);
    if (!p->free || !p->n_refs || (bytes > 0 && !p->memory)) {
        seq_states_done(p);
        return err_nomem(err);
    }
    while (p->n_free < n) {
        p->free[p->n_free] = n - p->n_free;
        p->n_free++;
    }
    return 0;
}

void seq_states_done(seq_states *p)
{
    if (p->memory) pages_unmap(p->memory, p->n * p->state_bytes);
    free(p->free);
    free(p->n_refs);
    *p = (seq_states){0};
}

seq_state seq_state_take(seq_states *p)
{
    if (p->n_free == 0) return SEQ_STATE_NONE;
    seq_state s = p->free[--p->n_free];
    p->n_refs[s] = 1;
    return s;
}

seq_state seq_state_ref(seq_states *p, seq_state s)
{
    if (s == SEQ_STATE_NONE) return s;
    assert(s <= p->n && p->n_refs[s] > 0);
    p->n_refs[s]++;
    return s;
}

void seq_state_drop(seq_states *p, seq_state *s)
{
    seq_state old = *s;
    *s = SEQ_STATE_NONE;
    if (old == SEQ_STATE_NONE) return;
    assert(old <= p->n && p->n_refs[old] > 0);
    if (--p->n_refs[old] == 0) p->free[p->n_free++] = old;
}
