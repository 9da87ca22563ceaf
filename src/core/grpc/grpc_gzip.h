/* grpc_gzip.h: messages that travel compressed (github.com/grpc/grpc, doc/compression.md; RFC 1952). Pure. */
#ifndef GRPC_GRPC_GZIP_H
#define GRPC_GRPC_GZIP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

/* Append what n bytes stand for: SHOAL_ELIMIT when that is more than max, SHOAL_EPROTOCOL when they are no
 * whole gzip member with nothing behind it, SHOAL_ENOMEM. */
int grpc_gunzip(buf *out, const void *bytes, size_t n, size_t max);
int grpc_gzip(buf *out, const void *bytes, size_t n); /* 0 or SHOAL_ENOMEM */

/* Is this coding in the list of a header (NULL: none), "identity, gzip"? */
bool grpc_coding_is_in(const char *list, const char *coding);

#endif
