/* recent.h: the last requests, and what became of each: how long it waited and computed, who answered, why.
 *
 * A ring of RECENT_MAX entries in memory, written when a request ends and read by GET /v1/requests. It knows
 * what the log line knows and not what was asked, unless the configuration says `log.prompts`: then the first
 * RECENT_ASKED_MAX bytes of a request's body are kept, too.
 *
 *     RECENT_SINK                                                  // in the gateway's list (sink.h)
 *     recent_filter f = {.model = "home-chat-s", .slow_ms = 100};
 *     recent_put(&out, g->recent, &f);                             // newest first
 *
 * Probes and pages are not kept: an entry is a request that was admitted, or one that was refused. Nor are
 * those who show no key where keys are needed: they would push out everybody else. Metrics count them. Loop
 * thread. */
#ifndef REQUEST_RECENT_H
#define REQUEST_RECENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "logging/span.h"
#include "request/sink.h"

enum { RECENT_MAX = 512, RECENT_ASKED_MAX = 2048, RECENT_TEXT_MAX = 768 };

typedef struct recent recent;

/* Which entries are told; zero: the newest RECENT_MAX. */
typedef struct recent_filter {
    const char *endpoint, *id; /* NULL: any */
    const char *model;         /* or a pipeline; NULL: any */
    int status;     /* 200: exactly this; 4: all of 4xx; 1: from 400 on, and failed streams; 0: any */
    double slow_ms; /* took at least so long */
    uint64_t since; /* only entries with a greater number */
    size_t most;    /* 0: all */
} recent_filter;

/* NULL: out of memory. */
recent *recent_new(void);
void recent_free(recent *r); /* accepts NULL */

/* Keeps the beginning of what is asked when the configuration says so, and writes the entry at the end. When
 * memory is out texts are left out, nothing else. */
extern const request_sink RECENT_SINK;
/* The number of the newest entry, 0 when there is none. Numbers go up by one. */
uint64_t recent_last(const recent *r);
/* A JSON array of entries, newest first, with those of the spans that are theirs. */
void recent_put(buf *out, const recent *r, const span_ring *spans, const recent_filter *f);

#endif
