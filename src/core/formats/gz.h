/* gz.h: files that may be gzipped, as one stream of plain bytes. */
#ifndef FORMATS_GZ_H
#define FORMATS_GZ_H

#include "base/buf.h"
#include "base/err.h"

typedef struct gz gz;

/* Open a file for reading ("-": standard input); plain bytes are passed through. */
int gz_open(gz **ret, const char *path, shoal_err *err);
/* Up to n bytes into `to`; *ret_n is 0 at the end. SHOAL_EFORMAT for a broken or cut gzip file. */
int gz_take(gz *g, char *to, size_t n, size_t *ret_n, shoal_err *err);
void gz_close(gz *g); /* NULL is fine */

/* Append the whole file to `out`; SHOAL_ELIMIT when it is longer than max_bytes unpacked. */
int gz_read(buf *out, const char *path, size_t max_bytes, shoal_err *err);

#endif
