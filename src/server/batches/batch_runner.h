/* batch_runner.h: runs the requests of batches while nobody else needs the server.
 *
 * A few slots (batches.max_running) each take a line, ask it as a request of the key that made the batch, and store the
 * answer before they take another. So limits, rights, routes, failover and accounting are those of every request, and a
 * gateway that is killed has lost only what was unanswered. Lines are of latency "batch", behind all others in a worker's
 * queue, and none begins while other requests are being answered, except one in BATCH_PATIENCE_MS.
 *
 * What was refused for lack of room or rate (429, 503) gives its slot back and is asked again, until the batch's window is
 * over; what a broken call came to (500, 502, 504), BATCH_TRIES times in all.
 *
 *     batch_runner_open(g, path, err);      // of a store that several processes may share: one of them runs batches,
 *     batch_runner_wake(g);                 // who holds the lock on PATH.batches. Something may be to do
 *     batch_runner_stop(g);                 // what runs is dropped, and nothing begins; executor_free follows, then
 *     batch_runner_free(g);
 *
 * Loop thread. */
#ifndef BATCHES_BATCH_RUNNER_H
#define BATCHES_BATCH_RUNNER_H

#include "base/err.h"

struct gateway;

enum { BATCH_SLOTS = 64, BATCH_TRIES = 3, BATCH_PATIENCE_MS = 2000 };

/* path: the store's file; NULL: there is none, and nothing runs. */
int batch_runner_open(struct gateway *g, const char *path, shoal_err *err);
void batch_runner_wake(struct gateway *g);
void batch_runner_stop(struct gateway *g);
void batch_runner_free(struct gateway *g);

#endif
