/* sse.h: events of a buffer (messages/event.h) as text, for tests that compare what clients of HTTP see. */
#ifndef TESTS_SSE_H
#define TESTS_SSE_H

#include "messages/event.h"

/* The buffer's events become text in their place; returns it. */
static inline const char *sse_of(buf *b)
{
    buf text = {0};
    const char *at = b->data;
    size_t n = b->len;
    event e;
    while (n > 0 && event_next(&at, &n, &e)) event_write_sse(&text, &e);
    bool failed = b->failed;
    buf_done(b);
    *b = text;
    b->failed |= failed;
    return b->data ? b->data : "";
}

#endif
