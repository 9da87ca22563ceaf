/* session_redis.h: conversations in a Redis that several gateways share; see session_store.h.
 *
 * A conversation is a hash, shoal:talk:<hex of its id>: "next" and "first" are numbers of turns, "bytes" is
 * their sum, and each turn is under its number. "talk" is an old word for a conversation; another prefix would lose
 * those that are stored. What has to be done at once is a script of Redis's, so that
 * turns of two gateways come one after the other. Redis itself forgets what is over its time;
 * session_bounds.all_bytes is its maxmemory's business, and what outlives its crash is its appendonly's. */
#ifndef SESSIONS_SESSION_REDIS_H
#define SESSIONS_SESSION_REDIS_H

#include "sessions/session_store.h"

typedef struct redis_place {
    char host[256], user[128], password[256]; /* user "": the default one; password "": none is needed */
    int port, database;
} redis_place;

/* "redis://[[USER]:PASSWORD@]HOST[:PORT][/DATABASE]"; SHOAL_EINVALID says what is wrong, without the
 * password. */
int redis_place_parse(redis_place *ret, const char *url, shoal_err *err);

/* Connects with the first use, and again after a failure. */
int session_redis_open(session_store **ret, const char *url, shoal_err *err);

#endif
