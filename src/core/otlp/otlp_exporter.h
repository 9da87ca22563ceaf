/* otlp_exporter.h: items on their way to a collector: bounded queues, batches, retries.
 *
 * Each signal has a queue of its own, bounded in bytes, and at most one request under way. A batch goes out when enough
 * items wait or the interval is over. What finds no room, is refused or cannot be delivered in time is dropped and
 * counted: a dead or slow collector costs memory up to the bound and a counter, never a wait.
 *
 *     otlp_exporter_new(&x, env, &transport, &(otlp_exporter_options){.common = common, ...}, err);
 *     buf *item = otlp_exporter_item(x);                    // cleared
 *     otlp_put_span(item, protocol, &span);
 *     otlp_exporter_add(x, OTLP_TRACES, item);
 *     otlp_exporter_flush(x, 2000, done, user);             // at the end
 *     otlp_exporter_free(x);
 *
 * Retried are 429, 502, 503, 504 and failures of the connection, after Retry-After or with exponential back-off, until
 * retry_ms have passed since the batch was first sent (OTLP's specification, "OTLP/HTTP Response"). How requests are made
 * is the transport's business: otlp_http.h, or a test's. Loop thread. */
#ifndef OTLP_OTLP_EXPORTER_H
#define OTLP_OTLP_EXPORTER_H

#include "otlp/otlp.h"
#include "time/env.h"

/* ---- the transport ----------------------------------------------------------------------------------- */

typedef struct otlp_reply {  /* borrowed until the callback returns */
    int status;              /* of HTTP; 0: no answer came */
    const char *why;         /* then: what went wrong, one sentence without the address */
    bool json;               /* by its Content-Type */
    uint64_t retry_after_ms; /* 0: not said */
    const void *body;
    size_t n_body;
} otlp_reply;
typedef void (*otlp_replied)(void *user, const otlp_reply *r);

typedef struct otlp_transport {
    void *user;
    /* Send body (borrowed for the call) to the signal's path; done(done_user, reply) comes once, later, from the loop.
     * Returns what `cancel` takes; NULL: out of memory, and no callback follows. */
    void *(*post)(void *user, otlp_signal s, const buf *body, otlp_replied done, void *done_user);
    void (*cancel)(void *user, void *call); /* no callback follows */
} otlp_transport;

/* ---- the exporter ------------------------------------------------------------------------------------ */

/* X(enum, name): why items are dropped, as shoal_otel_dropped_total has it. */
#define OTLP_DROP_TABLE(X)                                                           \
    X(OTLP_DROP_FULL, "queue_full") /* the queue has no room */                      \
    X(OTLP_DROP_MEMORY, "memory")   /* there is no memory */                         \
    X(OTLP_DROP_REFUSED, "refused") /* the collector refused the batch */            \
    X(OTLP_DROP_PARTIAL, "partial") /* the collector refused these of a batch */     \
    X(OTLP_DROP_LATE, "late")       /* the collector could not be reached in time */ \
    X(OTLP_DROP_STOPPED, "stopped") /* not delivered when the server stopped */      \
    X(OTLP_DROP_MISSED, "missed")   /* log lines that were gone before they were read */
typedef enum otlp_drop {
#define OTLP_DROP_ENUM(e, name) e,
    OTLP_DROP_TABLE(OTLP_DROP_ENUM)
#undef OTLP_DROP_ENUM
} otlp_drop;
const char *otlp_drop_name(otlp_drop d);

typedef struct otlp_exporter_options { /* zero: the default in brackets */
    otlp_protocol protocol;
    const otlp_common *common; /* outlives the exporter */
    size_t batch_items;        /* [512] */
    size_t queue_bytes;        /* of each signal, what is under way included [4 MiB] */
    uint64_t interval_ms;      /* [5000] */
    uint64_t retry_ms;         /* [300,000] */
    void *user;
    void (*sent)(void *user, otlp_signal s,
                 size_t n); /* so many items were taken. May be NULL, as the next ones */
    void (*dropped)(void *user, otlp_signal s, otlp_drop why, uint64_t n);
    /* The collector answers (again): why is ""; or it does not, or refuses. Told once a change. */
    void (*changed)(void *user, otlp_signal s, bool up, const char *why);
} otlp_exporter_options;

typedef struct otlp_exporter otlp_exporter;

/* SHOAL_ENOMEM. env and the transport outlive it. */
int otlp_exporter_new(otlp_exporter **ret, const env *e, const otlp_transport *t,
                      const otlp_exporter_options *o, shoal_err *err);
/* What is queued is dropped and counted; accepts NULL. */
void otlp_exporter_free(otlp_exporter *x);

/* An empty buf to write the next item into; the exporter's. */
buf *otlp_exporter_item(otlp_exporter *x);
/* Queue a copy of the item. */
void otlp_exporter_add(otlp_exporter *x, otlp_signal s, const buf *item);
/* Count items as dropped that never came here. */
void otlp_exporter_drop(otlp_exporter *x, otlp_signal s, otlp_drop why, uint64_t n);
/* Drop what waits of a signal without counting it: a newer snapshot takes its place. What is under way stays. */
void otlp_exporter_replace(otlp_exporter *x, otlp_signal s);
size_t otlp_exporter_queued_bytes(const otlp_exporter *x, otlp_signal s);

/* Send what waits now, whatever the back-off. done(user) comes once, later or inside this call: when all is delivered or
 * dropped, or after limit_ms. */
void otlp_exporter_flush(otlp_exporter *x, uint64_t limit_ms, void (*done)(void *user), void *user);

#endif
