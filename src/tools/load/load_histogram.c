/* load_histogram.c: see load_histogram.h. */
#include "load/load_histogram.h"

#include <math.h>

enum { BITS = LOAD_HISTOGRAM_BITS, EACH = 1 << BITS };

static size_t bucket_of(uint64_t ns)
{
    if (ns >> LOAD_HISTOGRAM_MOST_BITS) ns = (1ull << LOAD_HISTOGRAM_MOST_BITS) - 1;
    if (ns < 2 * EACH) return ns;
    int shift = 63 - __builtin_clzll(ns) - BITS;
    return ((size_t)shift << BITS) + (ns >> shift);
}

/* The middle of the times that share a bucket. */
static uint64_t middle_of(size_t bucket)
{
    if (bucket < 2 * EACH) return bucket;
    int shift = (int)(bucket >> BITS) - 1;
    uint64_t low = (uint64_t)(EACH + (bucket & (EACH - 1))) << shift;
    return low + ((1ull << shift) - 1) / 2;
}

void load_histogram_add(load_histogram *h, uint64_t ns)
{
    if (h->n == 0 || ns < h->min_ns) h->min_ns = ns;
    if (ns > h->max_ns) h->max_ns = ns;
    h->n++;
    h->sum_ns += (double)ns;
    h->counts[bucket_of(ns)]++;
}

void load_histogram_merge(load_histogram *to, const load_histogram *from)
{
    if (from->n == 0) return;
    if (to->n == 0 || from->min_ns < to->min_ns) to->min_ns = from->min_ns;
    if (from->max_ns > to->max_ns) to->max_ns = from->max_ns;
    to->n += from->n;
    to->sum_ns += from->sum_ns;
    for (size_t i = 0; i < LOAD_HISTOGRAM_BUCKETS; i++) to->counts[i] += from->counts[i];
}

uint64_t load_histogram_quantile(const load_histogram *h, double q)
{
    double rank = ceil(q * (double)h->n);
    uint64_t below = 0, v = h->max_ns;
    if (h->n == 0) return 0;
    if (rank <= 1) return h->min_ns;
    if (rank >= (double)h->n) return h->max_ns;
    for (size_t i = 0; i < LOAD_HISTOGRAM_BUCKETS; i++) {
        below += h->counts[i];
        if ((double)below < rank) continue;
        v = middle_of(i);
        break;
    }
    return v < h->min_ns ? h->min_ns : v > h->max_ns ? h->max_ns : v;
}

double load_histogram_ms(const load_histogram *h, double q)
{
    return (double)load_histogram_quantile(h, q) / 1e6;
}
