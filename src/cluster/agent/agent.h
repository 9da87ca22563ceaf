/* agent.h: starts, watches and restarts the workers of one machine.
 *
 * Each worker is this same program run as `shoal worker`, with its socket, its arbiter slot and its
 * share of threads and memory on the command line. A worker that dies is started again at once, then with a
 * back-off (50 ms doubling to 5 s, but 0.5 s if it has served; forgotten after 30 s of life); one that says
 * it cannot start is shown as failed. It is started again when its file has changed and, where the file is to
 * blame (exit code 79: wrong digest, malformed, not there; 78, EX_CONFIG: anything else), after 15 s doubling
 * to 5 minutes: what a folder holds can be put right without a trace in the folder. One that hangs is killed
 * (cluster/liveness.h). A start that fails, and an end before the worker was ready, are crashes as well.
 *
 * A supervised agent (os/handover.h) starts workers as children of its supervisor, so that they outlive it.
 * The next agent takes over those that would be started with the same command line, under the same
 * generation; those that nothing wants within a minute are ended.
 *
 * What a worker writes to its log (and else to standard error) becomes part of this process's log, with the field replica.
 *
 * A model in stages is several specs of one name, each with its layers. */
#ifndef AGENT_AGENT_H
#define AGENT_AGENT_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/progress.h"
#include "json/sampling.h"
#include "time/env.h"
#include "cluster/registry.h"
#include "cluster/split.h"

#define WORKER_EXIT_CONFIG 78
#define WORKER_EXIT_FILE   79
#define WORKER_STOP_SIGNAL SIGUSR1 /* SIGTERM may come to the whole group, before its gateway has drained */

#define WORKER_SPEC_ADAPTERS 16
#define WORKER_SPEC_STAGES   (SPLIT_STAGES_MAX - 1)
#define WORKER_SPEC_OPTIONS  512

typedef struct worker_spec {
    const char *model;      /* the name clients use */
    const char *path;       /* file or folder */
    const char *sha256;     /* pinned digest, NULL for none */
    int n_replicas;         /* 0: 1 */
    int n_standby;          /* of these, the last so many are not asked */
    int n_threads;          /* 0: all cores of the machine */
    size_t kv_bytes, n_ctx; /* 0: the engine's defaults */
    size_t sound_bytes;     /* of all sounds that a worker hears at once; 0: its default */
    const char *adapters[WORKER_SPEC_ADAPTERS]; /* "NAME=PATH"; NULL behind the last */
    /* Of a model in stages: its layers, and of the first stage the others in order, each the id of a worker
     * of this agent ("home-chat@8:16/0") or "relay:HOST:PORT/NODE/WORKER". end_layer 0: it is whole. */
    size_t first_layer, end_layer;
    const char *stages[WORKER_SPEC_STAGES]; /* NULL behind the last */
    const char *wire;                       /* how rows travel between them; NULL: exactly */
    sampling_defaults sampling; /* of generations that do not say; over what the model's own files say */
    /* What is between the configuration and the worker: "KEY=VALUE KEY=VALUE" (json/tuning.h). */
    char options[WORKER_SPEC_OPTIONS];
    const char *reader; /* the user whose permissions count as well (base/file_user.h, as text); NULL: none */
    bool guest;         /* it was loaded while others serve: /readyz does not wait for it */
} worker_spec;

/* A copy whose texts live in mem; false: no memory. */
bool worker_spec_copy(arena *mem, worker_spec *ret, const worker_spec *spec);

/* How workers share the machine's cores; made by whoever may know compute/. */
typedef struct agent_arbiter {
    int fd;                                             /* inherited by every worker; -1: none */
    int first_slot, n_slots;                            /* the slots that workers may use */
    void (*reap)(void *user, int slot);                 /* the process of that slot died */
    progress_counts *(*progress)(void *user, int slot); /* where that process counts */
    bool (*queues)(void *user, int slot);               /* it waits for cores */
    int (*inside)(void *user,
                  uint64_t *ret_n_locks); /* the slot inside the lock, -1: none; how often it was locked */
    void *user;
} agent_arbiter;

typedef struct agent_options {
    const char *program; /* path of the shoal executable; NULL: /proc/self/exe */
    const char *run_dir; /* sockets; NULL: a fresh directory under $XDG_RUNTIME_DIR or /tmp */
    const worker_spec *workers;
    size_t n_workers;
    const char *log_level;
    const char *member; /* folder with this machine's certificate, for stages elsewhere; NULL: none */
    /* Where workers keep their packed weights (model/packed/packed_store.h), in MB at most, compared with their
     * digest before they are used; NULL: nowhere. Models of fewer MB than packed_min_mb keep none. */
    const char *packed;
    size_t packed_mb, packed_min_mb;
    bool packed_check;
    const char *crashes; /* where workers keep reports of their crashes (os/crash.h); NULL: nowhere */
    const agent_arbiter *arbiter; /* NULL: none. Copied; fd and user must outlive the agent */
    const env *time;              /* NULL: the loop's (wire/env_uv.h). Must outlive the agent */
    /* A worker of that model could not start because of its file; may be NULL. No agent_ call inside. */
    void (*refused)(void *user, const char *model);
    void *user;
} agent_options;

/* How long to wait with the next start of a worker that lived so long; served: it was ready in that life.
 * *backoff_ms is the memory between its deaths, 0 at first. */
uint64_t agent_restart_wait_ms(uint64_t *backoff_ms, uint64_t lived_ms, bool served);

typedef struct agent agent;

/* Puts every replica into the registry, as a source of its own, and starts their processes. Strings of opts
 * are copied. */
int agent_new(agent **ret, uv_loop_t *loop, registry *g, const agent_options *opts, shoal_err *err);
/* Other workers are wanted from now on. Whoever is wanted as before stays as it is; who is not finishes what
 * runs and goes (after two minutes by SIGKILL); one whose options differ goes first and starts again then.
 * Copied. SHOAL_ENOMEM, or SHOAL_ELIMIT for more than may share one machine: all is as before. SHOAL_ELIMIT beside
 * others that still leave: not all were started. */
int agent_set(agent *a, const worker_spec *workers, size_t n, shoal_err *err);
/* What runs on workers of that model that are not wanted any more is not waited for. */
void agent_hurry(agent *a, const char *model);
/* Of a supervised agent (os/handover.h): that child of the supervisor has ended, with this wait status. */
void agent_worker_exited(agent *a, int pid, int status);
/* All workers stop (they finish what runs), SIGKILL after grace_ms; `done` when all are gone. */
void agent_stop(agent *a, uint64_t grace_ms, void (*done)(void *user), void *user);
/* After stop, before registry_free: drops its replicas, removes the sockets and the directory it made; run
 * the loop once more afterwards. */
void agent_free(agent *a);
/* Where the sockets are; borrowed. */
const char *agent_run_dir(const agent *a);

#endif
