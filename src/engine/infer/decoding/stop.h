/* stop.h: stop strings in a stream.
 *
 * Text is pushed in pieces; what comes out is safe to show: nothing that might still turn out to be the
 * beginning of a stop string, and nothing from a stop string on. */
#ifndef INFER_DECODING_STOP_H
#define INFER_DECODING_STOP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

typedef struct stop_matcher {
    char **strings; /* own copies */
    size_t *lens;
    size_t n, longest;
    buf held;      /* text that is not out yet */
    size_t n_safe; /* leading bytes of it that may go */
    bool matched;
    size_t which; /* of the strings, once one matched */
} stop_matcher;

/* Strings must be UTF-8 and not empty (SHOAL_EINVALID); at most 16 of at most 1024 bytes. */
int stop_init(stop_matcher *m, const char *const *strings, size_t n, shoal_err *err);
void stop_done(stop_matcher *m);

/* Drops what the last call gave, takes s[0..n), and gives what is safe now: *ret (borrowed until the next
 * call) and its length. True when a stop string is complete; pushing ends then. SHOAL_ENOMEM sticks in
 * m->held.failed. */
bool stop_push(stop_matcher *m, const char *s, size_t n, const char **ret, size_t *ret_len);
/* The reply is over: everything held back (nothing after a match). */
void stop_flush(stop_matcher *m, const char **ret, size_t *ret_len);

#endif
