/* err.h: how every layer reports failure.
 *
 * A function returns 0 or a negative code of the table in shoal.h, and writes one sentence for a
 * person into the caller's shoal_err (which may be NULL). Broken invariants assert instead. */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#include "shoal.h"

/* Write the sentence and return `code`, so that `return err_set(err, SHOAL_EIO, "...")` reads well.
 * Too long a sentence is cut at a UTF-8 boundary. */
int err_set(shoal_err *err, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Put "prefix: " before the sentence already in err (which path, which tensor); returns err->code,
 * or `code` when err is NULL. */
int err_prefix(shoal_err *err, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* The common one: out of memory. */
int err_nomem(shoal_err *err);

#endif
