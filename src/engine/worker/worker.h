/* worker.h: the worker process: one model behind the shoal.v1 protocol.
 *
 * Two threads that matter: the loop thread (sockets, protobuf, tokenising) and the engine thread.
 * They pass messages: submit and cancel one way, events through a queue and an eventfd the other
 * (bridge.h). worker_run is the whole process; worker_new and friends are the same without the
 * process around it (signals, the parent's death), for tests and for whoever brings a loop. */
#ifndef WORKER_WORKER_H
#define WORKER_WORKER_H

#include <uv.h>

#include "backend/backend.h"
#include "base/err.h"

#define WORKER_ADAPTERS_MAX 64
#define WORKER_SOUND_BYTES  ((size_t)256 << 20)

/* Of a worker that gateways of other machines reach. */
typedef struct worker_tls {
    const char *cert, *key, *ca; /* PEM files, followed when they change; cert NULL: clear text */
    const char *client; /* the common name (else the first DNS name) of who may call; NULL: whoever the CA has
                                    signed */
} worker_tls;

typedef struct worker_options {
    backend_options model; /* what is served */
    const char *address;   /* "unix:/path"; HOST:PORT: of this machine, with `tls` of any */
    worker_tls tls;
    bool no_vad;        /* of transcriptions that do not say: all of a sound is heard */
    size_t sound_bytes; /* of all sounds that it hears at once, files included; 0: WORKER_SOUND_BYTES */
    int arbiter_fd, arbiter_slot; /* -1: none */
    int parent_pid;               /* exit when this process is gone; 0: never */
} worker_options;

/* Runs until SIGTERM or SIGINT, or under a parent until its SIGUSR1: what is sent to the whole group, by a
 * terminal or by systemd, is the parent's to act upon. Then it drains (refuses new calls with UNAVAILABLE,
 * finishes running ones) and returns the process's exit code: 0; 1 for a failure that may pass;
 * WORKER_EXIT_FILE's value 79 for one that another file would mend (wrong digest, malformed or missing model);
 * WORKER_EXIT_CONFIG's 78 for one that lasts. Errors are logged, and the sentence of one that prevented the
 * start is written to standard output, where the agent reads it. */
int worker_run(const worker_options *o);

typedef struct worker worker;

/* Load the model, make its backend ready and listen. Strings of `o` are copied. Loop thread, as all below. */
int worker_new(worker **ret, uv_loop_t *loop, const worker_options *o, shoal_err *err);
/* Refuse new work and report NOT_SERVING; `done` when the last running call has been answered. */
void worker_drain(worker *w, void (*done)(void *user), void *user);
/* Close every connection, stop the engine and free everything; `closed` (may be NULL) comes last.
 * The loop must run on until then. */
void worker_close(worker *w, void (*closed)(void *user), void *user);

#endif
