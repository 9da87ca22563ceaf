/* worker_book.h: the workers of a supervised agent, in memory that outlives it.
 *
 * One entry a slot, in a sealed memfd that the supervisor keeps (os/handover.h). The agent writes an entry
 * before it starts a process, the new process writes its own pid into it before it executes the worker, and
 * the agent of the next life reads it. So a crash at any moment leaves either no process or one that is in
 * the book.
 *
 * The writer may have crashed while it wrote, or have written anything: an entry counts only if its check
 * value is right. Its pid is believed only if that process is a child of the supervisor. */
#ifndef AGENT_WORKER_BOOK_H
#define AGENT_WORKER_BOOK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/sha256.h"

enum { WORKER_BOOK_SLOTS = 64, WORKER_BOOK_ID = 512 };

typedef struct worker_entry {
    /* Not part of the check: written by the worker's process, and while it lives. */
    volatile int32_t pid; /* 0: none (yet) */
    uint32_t served;      /* it was ready */
    uint32_t leaving;     /* it was dismissed */
    uint32_t used;        /* 0: the entry is free */
    uint64_t check;       /* of what follows, by its digest's first bytes */
    uint64_t generation, started_ns, backoff_ms;
    uint64_t n_restarts, n_crashes;
    sha256_digest args; /* of the command line: the same one gives the same worker */
    char id[WORKER_BOOK_ID];
} worker_entry;

typedef struct worker_book worker_book;

/* A new one, or that of the earlier life behind fd (which stays the caller's). A file of another size or
 * version is SHOAL_EFORMAT. *ret_fd, close-on-exec, is the caller's. */
int worker_book_new(worker_book **ret, int *ret_fd, shoal_err *err);
int worker_book_open(worker_book **ret, int fd, shoal_err *err);
void worker_book_free(worker_book *b); /* the mapping alone; NULL is fine */

worker_entry *worker_book_at(worker_book *b, int slot);
/* e's fixed part and its check. pid, served and leaving begin at 0. */
void worker_book_write(worker_book *b, int slot, const worker_entry *e);
void worker_book_clear(worker_book *b, int slot);

/* What an agent that starts is to do with a slot's entry. lives: a child of the supervisor has its pid. */
typedef enum worker_claim {
    CLAIM_NOTHING, /* no process: start one if it is wanted */
    CLAIM_ADOPT,   /* it may be taken over by a child with the same id and the same command line */
    CLAIM_KILL,    /* nobody knows what it is, or it was dismissed */
} worker_claim;
worker_claim worker_book_claim(const worker_entry *e, bool lives);

/* Is it, at this moment, a child of that process (a zombie counts)? */
bool worker_is_child(pid_t pid, pid_t parent);

#endif
