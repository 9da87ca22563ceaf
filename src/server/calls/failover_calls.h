/* failover_calls.h: a call whose worker dies goes on elsewhere, and whoever asked sees nothing of it.
 *
 * Of a stream all that came is kept (resume.h), so that another worker of the same identity
 * (base/bit_identity.h) goes on with the next token: the same bytes, none twice, none missing. Where none is
 * ready and one of another identity is, or the engine resumes nothing exactly, the answer begins anew there,
 * and whoever asked is told (call_events.restarted). A client that has heard some of it must not hear it
 * contradicted: such a stream waits for its own identity as long as it may, and then ends in
 * CALL_FAULT_UNLIKE. A unary call is sent again. When nobody is there
 * it waits for a restarted worker, until its deadline, or for wait_ms when it has none. Where only the link
 * was cut, the worker that had it may have it again, if nobody else is there.
 *
 * A request that kills workers must not kill them all. Deaths in a row are counted as long as the reply does
 * not grow between them. After two such requests are tried one at a time, so that a further death has one
 * suspect: whoever else was there is there for the first or second time. When the deaths of other workers do
 * not explain it any more (poison.h; where workers live for long, after POISON_MIN deaths) it is given up
 * (CALL_FAULT_KILLS), and the same request is refused for FAILOVER_QUARANTINE_MS without being tried.
 *
 * Without memory for what must be kept the stream goes on, and cannot move. */
#ifndef CALLS_FAILOVER_CALLS_H
#define CALLS_FAILOVER_CALLS_H

#include "time/env.h"
#include "calls/calls.h"
#include "calls/observer.h"

#define FAILOVER_WAIT_MS       30000
#define FAILOVER_QUARANTINE_MS 600000

typedef struct failover_options {  /* zero: the defaults */
    uint64_t wait_ms;              /* [FAILOVER_WAIT_MS] */
    const call_observer *observer; /* told of moves and ends; outlives the calls; NULL: nobody */
} failover_options;

/* Takes inner, and frees it with itself; on failure inner is the caller's still. */
int failover_calls_new(calls **ret, const env *env_, calls *inner, const failover_options *opts,
                       shoal_err *err);

/* A worker died, whether or not it had a call: a request is blamed only for what others' deaths do not
 * explain. `failover` is what failover_calls_new gave, also where it lies below other decorators. */
void failover_calls_note_death(calls *failover, uint64_t life);

#endif
