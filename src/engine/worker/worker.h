/* worker.h: the worker process: one model behind the shoal.v1 protocol.
 *
 * Two threads that matter: the loop thread (sockets, protobuf, tokenising) and the engine thread.
 * They pass messages: submit and cancel one way, events through a queue and an eventfd the other
 * (bridge.h). worker_run is the whole process; worker_new and friends are the same without the
 * process around it (signals, the parent's death), for tests and for whoever brings a loop. */
#ifndef WORKER_WORKER_H
#define WORKER_WORKER_H

#include <uv.h>

#include "base/err.h"
#include "json/sampling.h"
#include "infer/engine.h"
#include "net/net.h"
#include "worker/stage_rows.h"

#define WORKER_ADAPTERS_MAX 64
#define WORKER_SOUND_BYTES  ((size_t)256 << 20)

typedef struct worker_adapter {
    const char *name, *path;
} worker_adapter;

typedef struct worker_options {
    const char *name;    /* the model's name for clients and logs */
    const char *path;    /* model file or folder */
    const char *sha256;  /* NULL: not pinned */
    const char *address; /* "unix:/path" */
    engine_options engine;
    packed_store store; /* of packed weights; folder NULL: none */
    dtype regroup;      /* a type of our own for the matrices (model/packed/regroup.h); 0: as in the file */
    const worker_adapter *adapters;
    size_t n_adapters;
    /* A model cut between its layers. From layer 0 on, with the addresses of the other stages in order: the
     * first stage, which serves the model. From another layer on: a stage, which serves Stage.Run alone. Of
     * an end of 0: all layers, of the whole model. */
    net_layers layers;
    const char *const *stages;
    size_t n_stages;
    rows_wire wire;             /* how rows travel; of the first stage */
    bool no_vad;                /* of transcriptions that do not say: all of a sound is heard */
    sampling_defaults sampling; /* of generations that do not say; over what the model's own files say */
    size_t sound_bytes; /* of all sounds that it hears at once, files included; 0: WORKER_SOUND_BYTES */
    const char *member; /* folder with this machine's certificate, for stages elsewhere; NULL: none */
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

/* Load the model, start its engine and listen. Strings of `o` are copied. Loop thread, as all below. */
int worker_new(worker **ret, uv_loop_t *loop, const worker_options *o, shoal_err *err);
/* Refuse new work and report NOT_SERVING; `done` when the last running call has been answered. */
void worker_drain(worker *w, void (*done)(void *user), void *user);
/* Close every connection, stop the engine and free everything; `closed` (may be NULL) comes last.
 * The loop must run on until then. */
void worker_close(worker *w, void (*closed)(void *user), void *user);

#endif
