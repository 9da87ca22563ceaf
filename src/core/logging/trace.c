/* trace.c: a traceparent read and another one made. */
#include "logging/trace.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"

enum { TRACE_AT = 3, SPAN_AT = 36, FLAGS_AT = 53, LENGTH = 55 };
enum { FLAG_SAMPLED = 1, FLAG_RANDOM = 2, RANDOM_BITS = 56 };

/* The hex digits s[n] in lower case, not all of them 0 where that means nothing. */
static bool is_id(const char *s, size_t n)
{
    return strspn(s, "0123456789abcdef") >= n && strspn(s, "0") < n;
}

/* Section 3.2: of a version that is not known the first four fields hold, and more may follow. */
static bool is_valid(const char *s)
{
    if (strlen(s) < LENGTH || s[2] != '-' || s[SPAN_AT - 1] != '-' || s[FLAGS_AT - 1] != '-') return false;
    if (strspn(s, "0123456789abcdef") != 2 || memcmp(s, "ff", 2) == 0) return false;
    if (s[LENGTH] && (memcmp(s, "00", 2) == 0 || s[LENGTH] != '-')) return false;
    return is_id(s + TRACE_AT, 32) && is_id(s + SPAN_AT, 16) && strspn(s + FLAGS_AT, "0123456789abcdef") == 2;
}

static unsigned digit(char c)
{
    return (unsigned)(c <= '9' ? c - '0' : c - 'a' + 10);
}

static uint64_t trace_draw(void)
{
    uint64_t v;
    rng_draw(&v, sizeof v);
    return v ? v : 1;
}

void trace_take(char ret[TRACE_SIZE], const char *given)
{
    char trace[TRACE_ID_SIZE];
    unsigned flags = FLAG_SAMPLED | FLAG_RANDOM;
    *ret = '\0';
    if (!given) return;
    if (is_valid(given)) {
        snprintf(trace, sizeof trace, "%.32s", given + TRACE_AT);
        flags &= digit(given[LENGTH - 1]);
    } else {
        snprintf(trace, sizeof trace, "%016llx%016llx", (unsigned long long)trace_draw(),
                 (unsigned long long)trace_draw());
    }
    snprintf(ret, TRACE_SIZE, "00-%s-%016llx-%02x", trace, (unsigned long long)trace_draw(), flags);
}

/* The id's last 56 bits are random (section 2.2.4.1 of level 2), and a threshold among them is where other tracers
 * of the same trace put it, too. */
void trace_begin(char ret[TRACE_SIZE], double ratio)
{
    uint64_t low = trace_draw();
    bool sampled = (double)(low & ((1ull << RANDOM_BITS) - 1)) >= (1 - ratio) * (double)(1ull << RANDOM_BITS);
    snprintf(ret, TRACE_SIZE, "00-%016llx%016llx-%016llx-%02x", (unsigned long long)trace_draw(),
             (unsigned long long)low, (unsigned long long)trace_draw(),
             FLAG_RANDOM | (sampled ? FLAG_SAMPLED : 0));
}

void trace_id(char ret[TRACE_ID_SIZE], const char *trace)
{
    buf_copy_str(ret, TRACE_ID_SIZE, is_valid(trace) ? trace + TRACE_AT : "");
}

uint64_t trace_span(const char *trace)
{
    char hex[17];
    if (!trace || !is_valid(trace)) return 0;
    memcpy(hex, trace + SPAN_AT, 16);
    hex[16] = '\0';
    return strtoull(hex, NULL, 16);
}

bool trace_is_sampled(const char *trace)
{
    return trace && is_valid(trace) && digit(trace[LENGTH - 1]) & FLAG_SAMPLED;
}

bool trace_bytes(uint8_t ret[TRACE_BYTES], const char *trace)
{
    if (!trace || !is_valid(trace)) return false;
    for (size_t i = 0; i < TRACE_BYTES; i++)
        ret[i] = (uint8_t)(digit(trace[TRACE_AT + 2 * i]) << 4 | digit(trace[TRACE_AT + 2 * i + 1]));
    return true;
}
