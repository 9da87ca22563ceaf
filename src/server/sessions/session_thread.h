/* session_thread.h: stores conversations for a loop that must not wait for a disk.
 *
 * A job says what is to be done with one conversation; it is done in a thread, in the order of submission,
 * one batch at a time: all jobs that wait become one transaction, so that many answers cost one fsync. `done`
 * runs on the loop, always and once; when it says 0 for an append or a drop, that outlives a crash. Texts are
 * encrypted and decrypted in the thread, too. Each batch has a thread of its own: next to its fsync that
 * costs nothing, nobody else's work is before it as in libuv's pool, and where the system gives no thread
 * (libuv's pool ends the process then) the batch fails.
 *
 *     session_thread_new(&c, loop, &options, err);
 *     j->what = SESSION_APPEND, j->id = session_id_of("", "session", "kitchen"), j->done = done;
 *     buf_puts(&j->text, "{...}");
 *     session_thread_submit(c, j);
 *
 * Store and key file are opened with the first job, and the key file is read again when it has changed. Loop
 * thread. */
#ifndef SESSIONS_SESSION_THREAD_H
#define SESSIONS_SESSION_THREAD_H

#include <uv.h>

#include "base/buf.h"
#include "sessions/session_store.h"
#include "time/env.h"

/* What encryption adds to a turn; it counts against bounds.bytes. */
#define SESSION_SEAL_BYTES 37

typedef struct session_thread session_thread;
typedef struct session_job session_job;

typedef enum { SESSION_LOAD, SESSION_APPEND, SESSION_DROP } session_job_what;

struct session_job {
    session_job_what what;
    session_id id;
    buf text;       /* APPEND: the turn. LOAD gives all turns, each with a NUL behind it; a drop nothing */
    size_t n_turns; /* LOAD: how many; 0: there is no such conversation */
    bool found;     /* DROP: there was one */
    void (*done)(session_job *j);
    void *user;
    int rc; /* what it came to, with err */
    shoal_err err;
    session_job *next; /* the session thread's */
};

/* Strings are copied; NULL: there is no folder for it, which every job hears. */
typedef struct session_thread_options {
    const char *path, *key_file;
    const char *redis; /* the URL, in place of path; NULL: SQLite (session_redis.h) */
    session_bounds bounds;
    const env *time; /* dates; must outlive the session_thread */
} session_thread_options;

int session_thread_new(session_thread **ret, uv_loop_t *loop, const session_thread_options *o,
                       shoal_err *err);
/* A text longer than bounds.bytes is SHOAL_ELIMIT. `done` comes later, or, where there is no thread, at once.
 */
void session_thread_submit(session_thread *c, session_job *j);
/* Overwrites the text and frees it; the struct is its owner's. */
void session_job_done(session_job *j);
/* What runs is finished, with its jobs' done, the next time the loop runs; what waits behind it ends at once
 * with SHOAL_ECANCELLED. NULL is fine. */
void session_thread_free(session_thread *c);

/* The id of the conversation `name` of one owner (an API key, "": nobody's) and of one kind ("session",
 * "response"): what one owner keeps, another does not find. */
session_id session_id_of(const char *owner, const char *kind, const char *name);

#endif
