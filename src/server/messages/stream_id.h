/* stream_id.h: the ids of a stream's events: all that another gateway needs to go on behind one of them.
 *
 * Gateways share nothing, so an id says by itself which request and which model file it belongs to, what was
 * drawn and what the clock showed when the answer began, and how much of each choice had been sent. From that
 * the same answer is made again, byte for byte (the numerics contract), and what the client has is left out.
 *
 *     stream_id id;
 *     stream_id_init(&id, n_choices);
 *     stream_mark_text(&id.marks[0], MARK_TEXT, "Hel", 3);     // this is about to be sent
 *     stream_id_put(&out, &id);                                // "AQ2c..." for the line "id: AQ2c..."
 *     ...
 *     stream_id_parse(&back, last_event_id, strlen(last_event_id), &err);
 *
 * An id comes from a client and is as hostile as any text. Nothing in it is a secret, and whoever forges one
 * gets nothing that a request with a seed could not ask for. One choice takes about 70 letters, each further
 * one about 14. Pure. Layout, in base64; numbers as in Protocol Buffers (varint), or little-endian:
 *
 *     u8 version, u8[12] request, u8[8] model, u8[12] nonce, varint created, u8 zone, u8 flags, u8 n_choices,
 *     each choice: varint reasoning, text, calls, n_logprobs << 2 | finished << 1 | begun, max_tokens;
 *     u32 sum */
#ifndef MESSAGES_STREAM_ID_H
#define MESSAGES_STREAM_ID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

#define STREAM_CHOICES_MAX   16 /* streams of more choices carry no ids */
#define STREAM_ID_LETTERS    1100
#define STREAM_REQUEST_BYTES 12
#define STREAM_MODEL_BYTES   8
#define STREAM_NONCE_BYTES   12

/* What a choice is made of. Each grows at its end alone; how they lie between each other is not marked. */
typedef enum mark_part { MARK_REASONING, MARK_TEXT, MARK_CALLS, MARK_PARTS } mark_part;

typedef struct stream_mark {
    uint64_t n_bytes[MARK_PARTS]; /* sent so far, as UTF-8; of calls: names and arguments, in their order */
    uint32_t sums[MARK_PARTS];    /* FNV-1a of them; unknown (0) in a mark that was parsed */
    uint32_t sum;                 /* of all three; of a mark that was parsed alone */
    uint32_t n_logprobs;
    uint32_t max_tokens; /* what the worker allowed this choice; 0: not known */
    bool begun, finished;
} stream_mark;

typedef struct stream_id {
    uint8_t request[STREAM_REQUEST_BYTES]; /* digest of what was asked */
    uint8_t model[STREAM_MODEL_BYTES];     /* of what decides the answer's bits: identity and adapter */
    /* Drawn: names the answer, its calls, and is the seed if none was given. */
    uint8_t nonce[STREAM_NONCE_BYTES];
    int64_t created; /* seconds since 1970 */
    int zone;        /* quarters of an hour that the clock on the wall is ahead of UTC */
    bool usage_sent;
    bool untold; /* not said to clients any more: the stream cannot be made again */
    size_t n_choices;
    stream_mark marks[STREAM_CHOICES_MAX];
} stream_id;

/* All of it unsent; n_choices is 1 to STREAM_CHOICES_MAX. */
void stream_id_init(stream_id *s, size_t n_choices);
void stream_id_put(buf *out, const stream_id *s);
/* 0, or SHOAL_EFORMAT with a sentence that says what to do; *ret is untouched then. */
int stream_id_parse(stream_id *ret, const char *text, size_t n, shoal_err *err);

/* Nothing is sent. */
void stream_mark_init(stream_mark *m);
/* These bytes of a part are sent. */
void stream_mark_text(stream_mark *m, mark_part part, const char *s, size_t n);
/* The same bytes have been sent: equal lengths, and equal sums. Either may have been parsed. */
bool stream_mark_equal_text(const stream_mark *a, const stream_mark *b);
/* Everything was sent that this stream has. */
bool stream_id_is_whole(const stream_id *s, bool with_usage);

/* The identity of a model (base/bit_identity.h) and the digest of an adapter ("": none), as an id has them. Ids
 * of our own engine on a file as it is are those that gateways gave out when they knew digests alone. */
void stream_id_model(uint8_t ret[STREAM_MODEL_BYTES], const char *identity, const char *adapter_digest);

#endif
