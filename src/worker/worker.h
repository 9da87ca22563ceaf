/* worker.h: the worker process: one model behind the shoal.v1 protocol.
 *
 * Two threads that matter: the loop thread (sockets, protobuf, tokenising) and the engine thread.
 * They pass messages: submit and cancel one way, events through a queue and a uv_async the other. */
#ifndef WORKER_WORKER_H
#define WORKER_WORKER_H

#include "base/err.h"
#include "infer/engine.h"

typedef struct worker_options {
    const char *name;    /* the model's name for clients and logs */
    const char *path;    /* model file or folder */
    const char *sha256;  /* NULL: not pinned */
    const char *address; /* "unix:/path" */
    engine_options engine;
    int arbiter_fd, arbiter_slot; /* -1: none */
    int parent_pid;               /* exit when this process is gone; 0: never */
} worker_options;

/* Runs until SIGTERM (drain: refuse new calls with UNAVAILABLE, finish running ones) and returns the
 * process's exit code: 0, 1 for a failure that may pass, WORKER_EXIT_CONFIG's value 78 for one that
 * cannot (wrong digest, malformed or missing model). Errors are logged. */
int worker_run(const worker_options *o);

#endif
