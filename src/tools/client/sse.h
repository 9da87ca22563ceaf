/* sse.h: reading Server-Sent Events (WHATWG HTML 9.2), as Shoal and OpenAI send them: one line of data an event.
 *
 *     sse_event e;
 *     for (size_t len; (len = sse_read(&e, s, n)) > 0; s += len, n -= len)
 *         if (e.data) take(e.data, e.n_data);
 *
 * Pure; an event points into the bytes that were read. */
#ifndef CLIENT_SSE_H
#define CLIENT_SSE_H

#include <stdbool.h>
#include <stddef.h>

typedef struct sse_event { /* NULL: it has no such line; not NUL-terminated */
    const char *name, *data, *id;
    size_t n_name, n_data, n_id;
} sse_event;

/* The first whole event of s[n], and how many bytes it has with its blank line; 0: there is none. */
size_t sse_read(sse_event *ret, const char *s, size_t n);

/* Is it "[DONE]", the last of OpenAI's streams? */
bool sse_is_done(const sse_event *e);

#endif
