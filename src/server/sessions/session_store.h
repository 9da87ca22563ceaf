/* session_store.h: conversations as they are kept: each a list of sealed turns under an id, in SQLite or Redis.
 *
 * A store knows neither texts nor names: turns are sealed bytes (seal.h), ids are digests. Each append puts
 * the turn behind the others, lets the oldest go that are over the bounds, and moves the end of the
 * conversation's life; what is over its life is not there, whether swept or not.
 *
 *     session_sqlite_open(&s, "sessions.db", err);
 *     s->ops->begin(s, err);
 *     s->ops->append(s, &turn, &bounds, now, err);
 *     s->ops->commit(s, err);                      from here on it outlives a crash
 *
 * One thread; its owner's (session_thread.h) is the only one that writes. Errors: SHOAL_EIO, SHOAL_EUNAVAILABLE (try
 * again), SHOAL_EFORMAT (damaged), SHOAL_EAUTH (not ours to write), SHOAL_ENOMEM. */
#ifndef SESSIONS_SESSION_STORE_H
#define SESSIONS_SESSION_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum { SESSION_ID_BYTES = 32 };

typedef struct session_id {
    uint8_t bytes[SESSION_ID_BYTES];
} session_id;

typedef struct session_bounds { /* all over 0 */
    uint64_t turns, bytes;      /* of one conversation; its last turn stays, whatever its size */
    uint64_t all_bytes;         /* of all: over it the one that nobody used for longest goes first */
    int64_t ttl_s;              /* after its last use */
} session_bounds;

typedef struct session_turn { /* borrowed */
    const session_id *id;
    const void *sealed;
    size_t n;
} session_turn;

typedef struct session_store session_store;

/* One turn, the oldest first; sealed is borrowed for the call. not 0: load ends with that. */
typedef int session_turn_fn(void *user, int64_t number, const void *sealed, size_t n, shoal_err *err);

typedef struct session_store_ops {
    int (*begin)(session_store *s, shoal_err *err);
    int (*commit)(session_store *s,
                  shoal_err *err);      /* failed: nothing since begin was done, and it is over */
    void (*rollback)(session_store *s); /* does nothing outside of begin and commit */
    int (*append)(session_store *s, const session_turn *t, const session_bounds *b, int64_t now,
                  shoal_err *err);
    /* 0 with no call of fn: there is no such conversation (any more). */
    int (*load)(session_store *s, const session_id *id, int64_t now, session_turn_fn *fn, void *user,
                shoal_err *err);
    /* The conversation lives for ttl_s from now; less than a sixteenth of that more is not worth a write. */
    int (*touch)(session_store *s, const session_id *id, int64_t now, int64_t ttl_s, shoal_err *err);
    /* The same text under another key. */
    int (*rewrite)(session_store *s, const session_turn *t, int64_t number, shoal_err *err);
    /* *ret_found: there was one. */
    int (*drop)(session_store *s, const session_id *id, bool *ret_found, shoal_err *err);
    int (*sweep)(session_store *s, int64_t now, const session_bounds *b, int64_t *ret_n, shoal_err *err);
    void (*close)(session_store *s);
    bool (*has_moved)(session_store *s); /* its file is not there any more; NULL: it has none */
} session_store_ops;

struct session_store {
    const session_store_ops *ops;
    bool each_alone; /* what was done stays done: begin and commit do not hold it together */
    bool lost;       /* what failed last has lost the connection: what follows would wait for it as long */
};

enum { SESSION_SQLITE_VERSION = 1 }; /* of the file's schema */
/* What to do about a damaged file, behind DATABASE_DAMAGED. */
#define SESSION_SQLITE_LOST "conversations begin anew, or come back with shoal restore"

/* The file is made when it is missing, with mode 0600 and its folders. */
int session_sqlite_open(session_store **ret, const char *path, shoal_err *err);

#endif
