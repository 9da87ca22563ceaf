/* talk_store.h: conversations as they are kept: each a list of sealed turns under an id, in SQLite or Redis.
 *
 * A store knows neither texts nor names: turns are sealed bytes (seal.h), ids are digests. Each append puts
 * the turn behind the others, lets the oldest go that are over the bounds, and moves the end of the
 * conversation's life; what is over its life is not there, whether swept or not.
 *
 *     talk_sqlite_open(&s, "sessions.db", err);
 *     s->ops->begin(s, err);
 *     s->ops->append(s, &turn, &bounds, now, err);
 *     s->ops->commit(s, err);                      from here on it outlives a crash
 *
 * One thread; its owner's (clerk.h) is the only one that writes. Errors: SHOAL_EIO, SHOAL_EUNAVAILABLE (try
 * again), SHOAL_EFORMAT (damaged), SHOAL_EAUTH (not ours to write), SHOAL_ENOMEM. */
#ifndef SESSIONS_TALK_STORE_H
#define SESSIONS_TALK_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum { TALK_ID_BYTES = 32 };

typedef struct talk_id {
    uint8_t bytes[TALK_ID_BYTES];
} talk_id;

typedef struct talk_bounds { /* all over 0 */
    uint64_t turns, bytes;   /* of one conversation; its last turn stays, whatever its size */
    uint64_t all_bytes;      /* of all: over it the one that nobody used for longest goes first */
    int64_t ttl_s;           /* after its last use */
} talk_bounds;

typedef struct talk_turn { /* borrowed */
    const talk_id *id;
    const void *sealed;
    size_t n;
} talk_turn;

typedef struct talk_store talk_store;

/* One turn, the oldest first; sealed is borrowed for the call. not 0: load ends with that. */
typedef int talk_fn(void *user, int64_t number, const void *sealed, size_t n, shoal_err *err);

typedef struct talk_ops {
    int (*begin)(talk_store *s, shoal_err *err);
    int (*commit)(talk_store *s, shoal_err *err); /* failed: nothing since begin was done, and it is over */
    void (*rollback)(talk_store *s);              /* does nothing outside of begin and commit */
    int (*append)(talk_store *s, const talk_turn *t, const talk_bounds *b, int64_t now, shoal_err *err);
    /* 0 with no call of fn: there is no such conversation (any more). */
    int (*load)(talk_store *s, const talk_id *id, int64_t now, talk_fn *fn, void *user, shoal_err *err);
    /* The conversation lives for ttl_s from now; less than a sixteenth of that more is not worth a write. */
    int (*touch)(talk_store *s, const talk_id *id, int64_t now, int64_t ttl_s, shoal_err *err);
    /* The same text under another key. */
    int (*rewrite)(talk_store *s, const talk_turn *t, int64_t number, shoal_err *err);
    /* *ret_found: there was one. */
    int (*drop)(talk_store *s, const talk_id *id, bool *ret_found, shoal_err *err);
    int (*sweep)(talk_store *s, int64_t now, const talk_bounds *b, int64_t *ret_n, shoal_err *err);
    void (*close)(talk_store *s);
    bool (*has_moved)(talk_store *s); /* its file is not there any more; NULL: it has none */
} talk_ops;

struct talk_store {
    const talk_ops *ops;
    bool each_alone; /* what was done stays done: begin and commit do not hold it together */
    bool lost;       /* what failed last has lost the connection: what follows would wait for it as long */
};

/* The file is made when it is missing, with mode 0600 and its folders. */
int talk_sqlite_open(talk_store **ret, const char *path, shoal_err *err);

#endif
