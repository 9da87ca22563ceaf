/* number.c: strict numbers; see number.h. The shape is checked first, since strtoull, strtoll and strtod take
 * far more than it allows (blanks, signs, hexadecimal, "inf").
 *
 * Writing is exact: a double is m * 2^e, and m * 10^k * 2^e for the k that leaves the digits wanted fits 128
 * bits where k is 0 to 27. What is shifted out says how to round. Other magnitudes are printf's. */
#include "base/number.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The end of the whole number at s: digits without a leading zero. NULL when there is none. */
static const char *skip_whole(const char *s)
{
    size_t n = strspn(s, "0123456789");
    return n == 0 || (n > 1 && *s == '0') ? NULL : s + n;
}

bool number_u64(const char *text, uint64_t *ret)
{
    const char *end = skip_whole(text);
    if (!end || *end) return false;
    errno = 0;
    unsigned long long v = strtoull(text, NULL, 10);
    if (errno) return false;
    *ret = v;
    return true;
}

bool number_i64(const char *text, int64_t *ret)
{
    const char *end = skip_whole(text + (*text == '-'));
    if (!end || *end) return false;
    errno = 0;
    long long v = strtoll(text, NULL, 10);
    if (errno) return false;
    *ret = v;
    return true;
}

bool number_double(const char *text, double *ret)
{
    const char *end = skip_whole(text + (*text == '-'));
    if (end && *end == '.') {
        size_t n = strspn(end + 1, "0123456789");
        end = n ? end + 1 + n : NULL;
    }
    if (!end || *end) return false;
    *ret = strtod(text, NULL);
    return true;
}

/* ---- writing ---------------------------------------------------------------------------------------- */

enum { K_MAX = 27, MANTISSA = 52, BIAS = 1075 };

static const uint64_t POW10[] = {1u,
                                 10u,
                                 100u,
                                 1000u,
                                 10000u,
                                 100000u,
                                 1000000u,
                                 10000000u,
                                 100000000u,
                                 1000000000u,
                                 10000000000u,
                                 100000000000u,
                                 1000000000000u,
                                 10000000000000u,
                                 100000000000000u,
                                 1000000000000000u,
                                 10000000000000000u,
                                 100000000000000000u};

static uint64_t pow5(int k)
{
    uint64_t p = 1;
    for (uint64_t square = 5; k > 0; k >>= 1, square *= square)
        if (k & 1) p *= square;
    return p;
}

/* m * 2^e * 10^k to the nearest whole number, to the even one of two; *ret_floor: the one that is not above
 * it. False: it would not fit. */
static bool scale_exactly(uint64_t m, int e, int k, uint64_t *ret_floor, uint64_t *ret)
{
    unsigned __int128 x = (unsigned __int128)m * pow5(k), one = 1;
    int down = -(e + k);
    if (down <= 0) {
        if (down < -9 || x >> (63 + down)) return false;
        *ret = *ret_floor = (uint64_t)x << -down;
        return true;
    }
    if (down > 120 || x >> down >> 63) return false;
    uint64_t floor = (uint64_t)(x >> down);
    unsigned __int128 rest = x & ((one << down) - 1), half = one << (down - 1);
    *ret_floor = floor;
    *ret = floor + (rest > half || (rest == half && (floor & 1)));
    return true;
}

/* The digits of a normal v > 0 as a whole number, and the power of ten of the first. */
static bool decimal_digits(uint64_t bits, int digits, uint64_t *ret, int *ret_place)
{
    int e = (int)(bits >> MANTISSA) - BIAS;
    uint64_t m = (bits & ((1ull << MANTISSA) - 1)) | 1ull << MANTISSA, floor;
    int place = (e + MANTISSA) * 315653 >> 20; /* log10(2): at most one too low */
    for (;; place++) {
        int k = digits - 1 - place;
        if (k < 0 || k > K_MAX || !scale_exactly(m, e, k, &floor, ret)) return false;
        if (floor < POW10[digits]) break;
    }
    if (*ret == POW10[digits]) { /* 9.99 became 10 */
        *ret /= 10;
        place++;
    }
    *ret_place = place;
    return true;
}

static size_t write_exponent(char *at, int place)
{
    int n = place < 0 ? -place : place;
    at[0] = 'e';
    at[1] = place < 0 ? '-' : '+';
    at[2] = (char)('0' + n / 10);
    at[3] = (char)('0' + n % 10);
    return 4;
}

/* d[digits], whose first stands for 10^place, in %g's form; |place| < 100. */
static size_t write_form(char *out, const char *d, int digits, int place)
{
    int n = digits, at = 0;
    bool scientific = place < -4 || place >= digits;
    int whole = scientific ? 1 : place + 1; /* digits in front of the point */
    while (n > 1 && n > whole && d[n - 1] == '0') n--;
    if (whole <= 0) {
        memset(out, '0', (size_t)(2 - whole));
        out[1] = '.';
        at = 2 - whole;
        whole = 0;
    }
    for (int i = 0; i < n; i++) {
        if (i == whole && i > 0) out[at++] = '.';
        out[at++] = d[i];
    }
    return (size_t)at + (scientific ? write_exponent(out + at, place) : 0);
}

size_t number_write(char ret[NUMBER_SIZE], double v, int digits)
{
    uint64_t bits, q;
    char d[20];
    int place;
    memcpy(&bits, &v, sizeof bits);
    size_t sign = bits >> 63;
    bits &= ~(1ull << 63);
    if (v == 0) {
        memcpy(ret, "-0", 3);
        if (!sign) memcpy(ret, "0", 2);
        return 1 + sign;
    }
    if (!isnormal(v) || !decimal_digits(bits, digits, &q, &place))
        return (size_t)snprintf(ret, NUMBER_SIZE, "%.*g", digits, v);
    for (int i = digits; i-- > 0; q /= 10) d[i] = (char)('0' + q % 10);
    ret[0] = '-';
    size_t n = sign + write_form(ret + sign, d, digits, place);
    ret[n] = '\0';
    return n;
}

int number_put(buf *out, double v, int digits)
{
    char text[NUMBER_SIZE];
    return buf_append(out, text, number_write(text, v, digits));
}

static size_t write_whole(char *out, uint64_t v)
{
    char text[20];
    size_t at = sizeof text;
    do text[--at] = (char)('0' + v % 10);
    while (v /= 10);
    memcpy(out, text + at, sizeof text - at);
    out[sizeof text - at] = '\0';
    return sizeof text - at;
}

size_t number_write_u64(char ret[NUMBER_SIZE], uint64_t v)
{
    return write_whole(ret, v);
}

size_t number_write_i64(char ret[NUMBER_SIZE], int64_t v)
{
    ret[0] = '-';
    return (v < 0) + write_whole(ret + (v < 0), v < 0 ? -(uint64_t)v : (uint64_t)v);
}

int number_put_u64(buf *out, uint64_t v)
{
    char text[NUMBER_SIZE];
    return buf_append(out, text, number_write_u64(text, v));
}

int number_put_i64(buf *out, int64_t v)
{
    char text[NUMBER_SIZE];
    return buf_append(out, text, number_write_i64(text, v));
}

int number_compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double number_quantile(double *values, size_t n, double q)
{
    qsort(values, n, sizeof *values, number_compare_doubles);
    size_t skip = 0;
    while (skip < n && values[skip] < 0) skip++;
    n -= skip;
    if (n == 0) return 0;
    size_t rank = (size_t)(q * (double)n);
    return values[skip + (rank < n ? rank : n - 1)];
}
