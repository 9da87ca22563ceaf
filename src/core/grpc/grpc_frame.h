/* grpc_frame.h: the bytes of gRPC, without I/O: message frames, grpc-timeout, grpc-message.
 *
 *     [flag: 1][length: 4, big-endian][message: length]
 *
 * A reader gathers frames from chunks of any size; it never holds more than one largest message and
 * what came with it. */
#ifndef GRPC_GRPC_FRAME_H
#define GRPC_GRPC_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

enum { GRPC_FRAME_HEAD = 5 };

#define GRPC_NO_ENCODING "a message is compressed, but grpc-encoding does not say how"

typedef struct grpc_reader {
    buf in;
    size_t at;
    size_t max_message; /* set by the owner */
    bool takes_gzip;    /* the sender said so (grpc-encoding) */
    buf plain;          /* of a compressed message */
} grpc_reader;

int grpc_reader_feed(grpc_reader *r, const void *bytes, size_t n); /* 0 or SHOAL_ENOMEM */
/* 1: *ret_msg (borrowed until the next call) is the next message; 0: more bytes are needed; or
 * SHOAL_ELIMIT (longer than max_message, also unpacked), SHOAL_EUNSUPPORTED (compressed, which nobody said),
 * SHOAL_EPROTOCOL (no such flag, or not gzip), SHOAL_ENOMEM. */
int grpc_reader_next(grpc_reader *r, const uint8_t **ret_msg, size_t *ret_n);
/* The same for a body that must be exactly one frame, all of which is in the reader. False: *ret_status (a grpc_status) and
 * *ret_why say what is wrong. Any thread. */
bool grpc_reader_only(grpc_reader *r, const uint8_t **ret_msg, size_t *ret_n, int *ret_status,
                      const char **ret_why);
bool grpc_reader_has_next(const grpc_reader *r); /* grpc_reader_next would not return 0 */
bool grpc_reader_is_empty(const grpc_reader *r); /* no part of a frame is left */
void grpc_reader_done(grpc_reader *r);

/* The head of a frame of n bytes (n fits 32 bits). */
void grpc_frame_head(uint8_t ret[GRPC_FRAME_HEAD], size_t n, bool compressed);

/* "250m", 1 to 8 digits and a unit: nanoseconds, capped at UINT64_MAX. False when malformed. */
bool grpc_timeout_parse(const char *s, uint64_t *ret_ns);
void grpc_timeout_format(uint64_t ns, char ret[16]);

/* grpc-message is percent-encoded: everything but printable ASCII, and '%' itself. */
void grpc_message_encode(buf *out, const char *s);
void grpc_message_decode(buf *out, const char *s); /* what is no escape stays as it is */

/* "application/grpc", with "+proto", or parameters. */
bool grpc_is_content_type(const char *s);

#endif
