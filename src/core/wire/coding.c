/* coding.c: which coding a client takes. */
#include "wire/coding.h"

#include <string.h>
#include <strings.h>

#define PACK_MIN_BYTES ((size_t)1024)
#define GZIP_MAX_BYTES ((size_t)256 << 10)
#define ZSTD_MAX_BYTES ((size_t)1 << 20)

const char *coding_name(coding c)
{
    switch (c) {
    case CODING_GZIP: return "gzip";
    case CODING_ZSTD: return "zstd";
    case CODING_DEFLATE: return "deflate";
    default: return "identity";
    }
}

bool coding_parse(const char *s, coding *ret)
{
    *ret = CODING_NONE;
    if (!s || !*s || strcasecmp(s, "identity") == 0) return true;
    if (strcasecmp(s, "gzip") == 0 || strcasecmp(s, "x-gzip") == 0) *ret = CODING_GZIP;
    if (strcasecmp(s, "zstd") == 0) *ret = CODING_ZSTD;
    if (strcasecmp(s, "deflate") == 0) *ret = CODING_DEFLATE;
    return *ret != CODING_NONE;
}

/* ---- Accept-Encoding (RFC 9110 12.5.3) ------------------------------------------------------------ */

/* Weights in thousandths; -1: not said. */
typedef struct weights {
    int gzip, zstd, identity, other;
} weights;

static bool coding_is(const char *s, size_t n, const char *name)
{
    return strlen(name) == n && strncasecmp(s, name, n) == 0;
}

/* "0.5" is 500, "1" is 1000 (RFC 9110 12.4.2: at most three digits); 0 for what is no weight. */
static int thousandths(const char *s, size_t n)
{
    if (n == 0 || n > 5 || (*s != '0' && *s != '1') || (n > 1 && s[1] != '.')) return 0;
    int value = 0, place = 100;
    for (size_t i = 2; i < n; i++, place /= 10) {
        if (s[i] < '0' || s[i] > '9') return 0;
        value += (s[i] - '0') * place;
    }
    return *s == '0' ? value : 1000;
}

static const char *skip_blanks(const char *s)
{
    return s + strspn(s, " \t");
}

/* The weight among the parameters that begin at *s; *s is then behind them, at ',' or the end. */
static int weight(const char **s)
{
    int q = 1000;
    while (*(*s = skip_blanks(*s)) == ';') {
        const char *p = skip_blanks(*s + 1);
        bool is_q = (*p == 'q' || *p == 'Q') && p[1] == '=';
        if (is_q) q = thousandths(p + 2, strcspn(p + 2, ";, \t"));
        *s = p + strcspn(p, ";,");
    }
    return q;
}

static void read_weights(weights *w, const char *s)
{
    *w = (weights){-1, -1, -1, -1};
    while (*(s = skip_blanks(s))) {
        size_t n = strcspn(s, ",; \t");
        const char *name = s;
        s += n;
        int q = weight(&s);
        if (coding_is(name, n, "gzip") || coding_is(name, n, "x-gzip")) w->gzip = q;
        if (coding_is(name, n, "zstd")) w->zstd = q;
        if (coding_is(name, n, "identity")) w->identity = q;
        if (coding_is(name, n, "*")) w->other = q;
        s += strcspn(s, ",");
        if (*s) s++;
    }
    if (w->gzip < 0) w->gzip = w->other;
    if (w->zstd < 0) w->zstd = w->other;
}

static coding choose_coding(const weights *w, unsigned offered)
{
    coding best = CODING_NONE;
    int most = w->identity > 0 ? w->identity - 1 : 0; /* of equals the shorter goes before */
    if (offered & CODING_ZSTD && w->zstd > most) {
        best = CODING_ZSTD;
        most = w->zstd;
    }
    return offered & CODING_GZIP && w->gzip > most ? CODING_GZIP : best;
}

coding coding_choose(const char *accept_encoding, unsigned offered)
{
    weights w;
    if (!accept_encoding) return CODING_NONE;
    read_weights(&w, accept_encoding);
    return choose_coding(&w, offered);
}

coding coding_choose_for_stream(const char *accept_encoding, unsigned offered)
{
    weights w;
    if (!accept_encoding) return CODING_NONE;
    read_weights(&w, accept_encoding);
    if (w.identity < 0 && w.other == 0) w.identity = 0; /* "gzip, *;q=0" */
    coding c = w.identity < 0 ? CODING_NONE : choose_coding(&w, offered);
    int weight = c == CODING_ZSTD ? w.zstd : w.gzip;
    return c && weight > w.identity ? c : CODING_NONE;
}

unsigned coding_worth(size_t n)
{
    if (n < PACK_MIN_BYTES || n > ZSTD_MAX_BYTES) return 0;
    return n > GZIP_MAX_BYTES ? CODING_ZSTD : CODING_ALL;
}
