/* stop.c: finding stop strings in a stream; see stop.h. What is held back is shorter than the longest of
 * them, so a plain search will do. */
#include "infer/decoding/stop.h"

#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

#define STOP_STRINGS_MAX 16
#define STOP_BYTES_MAX   1024

static int stop_check(const char *const *strings, size_t n, shoal_err *err)
{
    if (n > STOP_STRINGS_MAX) {
        return err_set(err, SHOAL_EINVALID, "%zu stop strings were given, at most %d are taken", n,
                       STOP_STRINGS_MAX);
    }
    for (size_t i = 0; i < n; i++) {
        size_t len = strings[i] ? strlen(strings[i]) : 0;
        if (len == 0) return err_set(err, SHOAL_EINVALID, "stop string %zu is empty", i);
        if (len > STOP_BYTES_MAX) {
            return err_set(err, SHOAL_EINVALID, "stop string %zu has %zu bytes, at most %d are taken", i, len,
                           STOP_BYTES_MAX);
        }
        if (!utf8_valid(strings[i], len, NULL))
            return err_set(err, SHOAL_EINVALID, "stop string %zu is not UTF-8", i);
    }
    return 0;
}

int stop_init(stop_matcher *m, const char *const *strings, size_t n, shoal_err *err)
{
    *m = (stop_matcher){0};
    int rc = stop_check(strings, n, err);
    if (rc) return rc;
    m->strings = calloc(n + 1, sizeof *m->strings);
    m->lens = calloc(n + 1, sizeof *m->lens);
    bool failed = !m->strings || !m->lens;
    for (size_t i = 0; !failed && i < n; i++) {
        m->strings[i] = strdup(strings[i]);
        failed = !m->strings[i];
        m->lens[i] = strlen(strings[i]);
        if (m->lens[i] > m->longest) m->longest = m->lens[i];
        m->n++;
    }
    /* Room for a long token and for what may be held, so that pushing does not allocate. */
    if (failed || buf_reserve(&m->held, m->longest + 512)) {
        stop_done(m);
        return err_nomem(err);
    }
    return 0;
}

void stop_done(stop_matcher *m)
{
    for (size_t i = 0; i < m->n; i++) free(m->strings[i]);
    free(m->strings);
    free(m->lens);
    buf_done(&m->held);
    *m = (stop_matcher){0};
}

/* The first place where a whole stop string lies, and which; held.len when none does. */
static size_t find_match(const stop_matcher *m, size_t *ret_which)
{
    size_t best = m->held.len;
    for (size_t i = 0; i < m->n; i++) {
        for (size_t at = 0; at + m->lens[i] <= m->held.len && at < best; at++) {
            if (memcmp(m->held.data + at, m->strings[i], m->lens[i]) != 0) continue;
            best = at;
            *ret_which = i;
        }
    }
    return best;
}

/* The first place from which the rest of the text is the beginning of a stop string. */
static size_t find_open(const stop_matcher *m)
{
    size_t len = m->held.len;
    for (size_t at = len >= m->longest ? len - m->longest + (m->longest > 0) : 0; at < len; at++) {
        for (size_t i = 0; i < m->n; i++) {
            if (m->lens[i] > len - at && memcmp(m->held.data + at, m->strings[i], len - at) == 0) return at;
        }
    }
    return len;
}

bool stop_push(stop_matcher *m, const char *s, size_t n, const char **ret, size_t *ret_len)
{
    buf_consume(&m->held, m->n_safe);
    buf_append(&m->held, s, n);
    size_t at = find_match(m, &m->which);
    m->matched = at < m->held.len;
    m->n_safe = m->matched ? at : find_open(m);
    *ret = m->held.data;
    *ret_len = m->n_safe;
    return m->matched;
}

void stop_flush(stop_matcher *m, const char **ret, size_t *ret_len)
{
    buf_consume(&m->held, m->n_safe);
    m->n_safe = m->matched ? 0 : m->held.len;
    *ret = m->held.data;
    *ret_len = m->n_safe;
}
