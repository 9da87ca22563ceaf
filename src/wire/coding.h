/* coding.h: content codings (RFC 9110 8.4), gzip and zstd.
 *
 * What a client says it takes is a list with weights, of which one is chosen:
 *
 *     coding c = coding_choose(http_header_get(r, "accept-encoding"), CODING_GZIP | CODING_ZSTD);
 *     if (c) ... coding_name(c) ...     // "gzip"; 0: the bytes as they are
 */
#ifndef WIRE_CODING_H
#define WIRE_CODING_H

typedef enum coding { CODING_NONE = 0, CODING_GZIP = 1, CODING_ZSTD = 2 } coding; /* bits of a set */

/* "gzip", "zstd"; "identity" for none. */
const char *coding_name(coding c);

/* Of those in the set `offered`, the one that the value of Accept-Encoding weighs most; of equals zstd, then
 * gzip. NULL, and what refuses all of them: none. */
coding coding_choose(const char *accept_encoding, unsigned offered);

#endif
