/* load.c: counting. */
#include "cluster/load.h"

#include <assert.h>

void load_begin(load *l, unsigned n_tokens, uint64_t now_ns)
{
    if (l->n_in_flight == 0) l->moved_ns = now_ns;
    l->sent_ns = now_ns;
    l->n_in_flight++;
    l->n_tokens_in_flight += n_tokens;
}

void load_moved(load *l, unsigned n_tokens, uint64_t now_ns)
{
    assert(l->n_tokens_in_flight >= n_tokens);
    l->n_tokens_in_flight -= n_tokens;
    l->moved_ns = now_ns;
}

void load_leave(load *l, unsigned n_tokens, uint64_t now_ns)
{
    assert(l->n_in_flight > 0);
    load_moved(l, n_tokens, now_ns);
    l->n_in_flight--;
}

double load_worked_ms(const load *l, uint64_t now_ns)
{
    return l->n_in_flight && now_ns > l->moved_ns ? (double)(now_ns - l->moved_ns) / 1e6 : 0;
}
