/* coding.h: content codings (RFC 9110 8.4), gzip and zstd.
 *
 * What a client says it takes is a list with weights, of which one is chosen. A writer codes an answer, whole
 * or piece by piece; a reader takes a body apart, and no further than it may go:
 *
 *     coding c = coding_choose(http_header_get(r, "accept-encoding"), CODING_ALL);
 *     if (c) coding_pack(c, bytes, n, &out);             // "content-encoding" is coding_name(c)
 *
 *     coding_reader_new(&r, c, max_bytes, &err);
 *     coding_reader_add(r, piece, n, take, user, &err);  // SHOAL_ELIMIT: it grows beyond max_bytes
 *     coding_reader_end(r, &err);                        // SHOAL_EFORMAT: something is missing
 *
 * Each is used by one thread. Errors leave a reader unusable. */
#ifndef WIRE_CODING_H
#define WIRE_CODING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

/* Bits of a set. Bodies may come in deflate (RFC 1950, as RFC 9110 has it); no answer is coded so. */
typedef enum coding { CODING_NONE = 0, CODING_GZIP = 1, CODING_ZSTD = 2, CODING_DEFLATE = 4 } coding;
#define CODING_ALL (CODING_GZIP | CODING_ZSTD)

/* "gzip", "zstd", "deflate"; "identity" for none. */
const char *coding_name(coding c);
/* The value of Content-Encoding; none for NULL, "" and "identity". False: it is another, or several. */
bool coding_parse(const char *content_encoding, coding *ret);

/* Of those in the set `offered`, the one that the value of Accept-Encoding weighs most; of equals zstd, then
 * gzip. NULL, and what refuses all of them: none. */
coding coding_choose(const char *accept_encoding, unsigned offered);
/* The same for a stream: none unless "identity" is there with a smaller weight. Many clients say that they
 * take gzip whatever they ask for; this one wants it. */
coding coding_choose_for_stream(const char *accept_encoding, unsigned offered);

/* The set of those that a whole answer of n bytes is worth: none below 1 KiB, where packing saves no packet,
 * and none above 1 MiB (gzip: 256 KiB), where the loop would stand still for more than some 2 ms (128 KiB/ms
 * of numbers for gzip, 460 for zstd). Deflate by itself is as gzip. */
unsigned coding_worth(size_t n);

/* Append bytes[n] coded, as a whole. SHOAL_ENOMEM leaves out failed. */
int coding_pack(coding c, const void *bytes, size_t n, buf *out);

typedef struct coding_writer coding_writer;
/* For a stream: some 40 KiB (gzip) or 70 KiB (zstd) until it is freed. */
int coding_writer_new(coding_writer **ret, coding c, shoal_err *err);
/* Append to out what lets the client read all of bytes[n] at once; `last`: and the end. SHOAL_ENOMEM. */
int coding_writer_add(coding_writer *w, const void *bytes, size_t n, bool last, buf *out);
void coding_writer_free(coding_writer *w);

#define CODING_RATIO_FREE ((size_t)1 << 20)
#define CODING_RATIO_MAX  ((size_t)100)

/* Given plain bytes, borrowed; false: no more are wanted. */
typedef bool (*coding_take)(void *user, const uint8_t *bytes, size_t n);

typedef struct coding_reader coding_reader;
/* max_bytes: how much may come out of it. */
int coding_reader_new(coding_reader **ret, coding c, size_t max_bytes, shoal_err *err);
/* 0, SHOAL_EFORMAT, SHOAL_ELIMIT or SHOAL_ENOMEM. Beyond CODING_RATIO_FREE bytes more than CODING_RATIO_MAX
 * times what went in is SHOAL_ELIMIT, too. */
int coding_reader_add(coding_reader *r, const void *bytes, size_t n, coding_take take, void *user,
                      shoal_err *err);
/* The same in slices, for a loop that serves others between them: until about most_bytes have come out.
 * *bytes and *n are then what was not read yet. 1: there may be more to come, also when *n is 0; call again,
 * perhaps with more. */
int coding_reader_step(coding_reader *r, const uint8_t **bytes, size_t *n, size_t most_bytes,
                       coding_take take, void *user, shoal_err *err);
int coding_reader_end(const coding_reader *r, shoal_err *err);
void coding_reader_free(coding_reader *r);

#endif
