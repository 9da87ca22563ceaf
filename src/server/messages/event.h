/* event.h: the events of a streamed answer, one by one, in no transport's form.
 *
 * Writers of answers put events into a buffer, each with one JSON value:
 *
 *     stream_id_put(out, &id);                        // its id, where it has one
 *     event_begin(out, EVENT_DATA, "refine");         // name NULL: none
 *     buf_puts(out, "{\"text\":...}");
 *     event_end(out);
 *
 * request_stream_write hands them to the transport one by one, which writes Server-Sent Events, lines of JSON,
 * WebSocket messages or protobuf:
 *
 *     event e;
 *     while (event_next(&bytes, &n, &e)) ...
 *
 * In the buffer an event is ID US KIND NAME US DATA RS: neither JSON nor ids contain these control characters (RFC
 * 8259 section 7). Pure; pieces are borrowed from the bytes. */
#ifndef MESSAGES_EVENT_H
#define MESSAGES_EVENT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

typedef enum event_kind {
    EVENT_DATA, /* a piece of the answer, or news */
    EVENT_ERROR, /* the stream failed: the data is the error in the endpoint's dialect; nothing but its end follows */
    EVENT_LAST, /* OpenAI's end mark "[DONE]"; a transport with an end of its own leaves it out */
    EVENT_ALIVE /* nothing came for long; without data */
} event_kind;

typedef struct event { /* "" and 0: not said */
    event_kind kind;
    const char *id, *name, *data;
    size_t n_id, n_name, n_data;
} event;

/* OpenAI's "[DONE]". */
extern const event EVENT_FINAL;

void event_begin(buf *out, event_kind kind, const char *name);
void event_end(buf *out);
void event_put_done(buf *out);
void event_put_alive(buf *out);

/* Take the next one off *bytes; false: there is no whole one any more. */
bool event_next(const char **bytes, size_t *n, event *ret);

/* As text/event-stream (WHATWG HTML 9.2): lines "id: ", "event: " and "data: ", and an empty line. */
void event_write_sse(buf *out, const event *e);

#endif
