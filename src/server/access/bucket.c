/* bucket.c: see bucket.h. */
#include "access/bucket.h"

#define MINUTE_NS 60e9

static double taken_at(const bucket *b, double per_minute, uint64_t now_ns)
{
    double filled = now_ns > b->at_ns ? (double)(now_ns - b->at_ns) * per_minute / MINUTE_NS : 0;
    return b->taken > filled ? b->taken - filled : 0;
}

void bucket_take(bucket *b, double per_minute, double n, uint64_t now_ns)
{
    b->taken = taken_at(b, per_minute, now_ns) + n;
    if (now_ns > b->at_ns) b->at_ns = now_ns;
}

double bucket_left(const bucket *b, double per_minute, uint64_t now_ns)
{
    return per_minute - taken_at(b, per_minute, now_ns);
}

/* How long n takes to flow in; a debt of more than 100 years is as good as one of 100 years. */
static uint64_t flow_ns(double n, double per_minute)
{
    double ns = n * MINUTE_NS / per_minute;
    return ns < 3e18 ? (uint64_t)ns + (ns > (double)(uint64_t)ns) : (uint64_t)3e18;
}

uint64_t bucket_wait_ns(const bucket *b, double per_minute, double n, uint64_t now_ns)
{
    double missing = n - bucket_left(b, per_minute, now_ns);
    return missing > 1e-9 * n ? flow_ns(missing, per_minute) : 0;
}

uint64_t bucket_full_ns(const bucket *b, double per_minute, uint64_t now_ns)
{
    return flow_ns(taken_at(b, per_minute, now_ns), per_minute);
}
