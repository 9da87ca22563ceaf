/* load_histogram.h: times, counted in buckets: bounded memory, quantiles within 0.8 %, sums of several.
 *
 *     load_histogram_add(&h, 1500000);                // 1.5 ms, in nanoseconds
 *     load_histogram_merge(&all, &h);
 *     p99_ms = load_histogram_quantile(&all, 0.99) / 1e6;
 *
 * Each power of two has 64 buckets of equal width (as HdrHistogram's), so a bucket is at most 1/64 of its times wide and
 * its middle at most 1/128 off. Times up to 127 ns are exact; times from 2^48 ns (three days) count as that. The least
 * and the greatest are exact. A zeroed one is empty. */
#ifndef LOAD_LOAD_HISTOGRAM_H
#define LOAD_LOAD_HISTOGRAM_H

#include <stddef.h>
#include <stdint.h>

enum { LOAD_HISTOGRAM_BITS = 6, LOAD_HISTOGRAM_MOST_BITS = 48 };
enum { LOAD_HISTOGRAM_BUCKETS = (LOAD_HISTOGRAM_MOST_BITS - LOAD_HISTOGRAM_BITS + 1) << LOAD_HISTOGRAM_BITS };

typedef struct load_histogram {
    uint64_t n, min_ns, max_ns;
    double sum_ns;
    uint64_t counts[LOAD_HISTOGRAM_BUCKETS];
} load_histogram;

void load_histogram_add(load_histogram *h, uint64_t ns);
void load_histogram_merge(load_histogram *to, const load_histogram *from);
/* The q-quantile by nearest rank, q from 0 (the least) to 1 (the greatest); 0 of an empty one. */
uint64_t load_histogram_quantile(const load_histogram *h, double q);
/* The same in milliseconds. */
double load_histogram_ms(const load_histogram *h, double q);

#endif
