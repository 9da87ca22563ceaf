/* bucket.h: how much of something may be taken in a minute.
 *
 * A token bucket that holds a minute's worth and fills evenly: whoever was silent for a minute may take all
 * of it at once, and over any longer time nobody takes more than per_minute a minute and that one bucketful.
 * What is only known when it has been taken (a reply's tokens) may overdraw it; the debt is waited out.
 *
 *     bucket b = {0};                                         // full
 *     if (bucket_wait_ns(&b, 60, 1, now) > 0) ...             // not yet
 *     bucket_take(&b, 60, 1, now);
 *
 * The rate is an argument, so that it may change and what was taken stays taken. Pure; the clock is
 * monotonic, and one that stands still or goes back fills nothing. */
#ifndef ACCESS_BUCKET_H
#define ACCESS_BUCKET_H

#include <stdint.h>

typedef struct bucket {
    double taken; /* as of at_ns; what was filled in since is not counted yet */
    uint64_t at_ns;
} bucket;

void bucket_take(bucket *b, double per_minute, double n, uint64_t now_ns);
/* What is in it; under 0 a debt. */
double bucket_left(const bucket *b, double per_minute, uint64_t now_ns);
/* Until n may be taken; 0: now. n is at most per_minute. */
uint64_t bucket_wait_ns(const bucket *b, double per_minute, double n, uint64_t now_ns);
/* Until it is full. */
uint64_t bucket_full_ns(const bucket *b, double per_minute, uint64_t now_ns);

#endif
