/* session_redis.c: see session_redis.h. Commands wait for their replies: this is the session thread. Protocol:
 * hiredis. */
#include "sessions/session_redis.h"

#include <errno.h>
#include <hiredis/hiredis.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#define CONNECT_S     2
#define COMMAND_S     5 /* from a command to the whole of its reply */
#define KEY_BYTES_MAX 80
#define ELEMENTS_MAX  2048 /* of a reply: a conversation has two for each turn */
#define REPLY_BYTES_MAX \
    (192u << 20) /* a conversation has 64 MiB of turns at most, and the last one as much */

/* KEYS[1]; ARGV: the turn, most turns, most bytes, seconds to live. */
static const char APPEND[] =
    "local k = KEYS[1] "
    "local n = redis.call('HINCRBY', k, 'next', 1) "
    "redis.call('HSET', k, n, ARGV[1]) "
    "local bytes = redis.call('HINCRBY', k, 'bytes', #ARGV[1]) "
    "local first = tonumber(redis.call('HGET', k, 'first') or 1) "
    "while first < n and (n - first + 1 > tonumber(ARGV[2]) or bytes > tonumber(ARGV[3])) do "
    "  bytes = redis.call('HINCRBY', k, 'bytes', -redis.call('HSTRLEN', k, first)) "
    "  redis.call('HDEL', k, first) "
    "  first = first + 1 "
    "end "
    "redis.call('HSET', k, 'first', first) "
    "redis.call('EXPIRE', k, ARGV[4]) "
    "return n";

static const char LOAD[] = "local k, all = KEYS[1], {} "
                           "local n = tonumber(redis.call('HGET', k, 'next') or 0) "
                           "for i = tonumber(redis.call('HGET', k, 'first') or 1), n do "
                           "  all[#all + 1] = tostring(i) "
                           "  all[#all + 1] = redis.call('HGET', k, i) "
                           "end "
                           "return all";

/* Only in the place of one that is as long: ARGV: number, turn. */
static const char REWRITE[] = "if redis.call('HSTRLEN', KEYS[1], ARGV[1]) == #ARGV[2] then "
                              "redis.call('HSET', KEYS[1], ARGV[1], ARGV[2]) end "
                              "return 0";

typedef struct redis_store {
    session_store pub; /* first */
    redis_place at;
    redisContext *link;                     /* NULL: not connected */
    redisReplyObjectFunctions makes, inner; /* how replies are made: ours, and hiredis's own */
} redis_store;

/* ---- the URL ------------------------------------------------------------------------------------- */

static int wrong(shoal_err *err, const char *why)
{
    return err_set(err, SHOAL_EINVALID,
                   "sessions.redis: must be redis://[[USER]:PASSWORD@]HOST[:PORT][/DATABASE]: %s", why);
}

static bool session_redis_take(char *to, size_t size, const char *from, size_t n)
{
    if (n >= size) return false;
    memcpy(to, from, n);
    to[n] = '\0';
    return true;
}

static bool session_redis_number(const char *s, size_t n, int most, int *ret)
{
    int v = 0;
    for (size_t i = 0; i < n; i++) {
        if (s[i] < '0' || s[i] > '9' || (v = v * 10 + (s[i] - '0')) > most) return false;
    }
    *ret = v;
    return n > 0;
}

int redis_place_parse(redis_place *ret, const char *url, shoal_err *err)
{
    static const char SCHEME[] = "redis://";
    redis_place p = {.port = 6379};
    if (strncmp(url, SCHEME, sizeof SCHEME - 1) != 0) return wrong(err, "it does not begin with redis://");
    const char *at = url + sizeof SCHEME - 1, *who = strrchr(at, '@');
    if (who) {
        const char *colon = memchr(at, ':', (size_t)(who - at));
        if (!colon || !session_redis_take(p.user, sizeof p.user, at, (size_t)(colon - at)) ||
            !session_redis_take(p.password, sizeof p.password, colon + 1, (size_t)(who - colon - 1)))
            return wrong(err, "before @ comes [USER]:PASSWORD, of at most 127 and 255 bytes");
        at = who + 1;
    }
    size_t n = strcspn(at, ":/");
    if (n == 0 || !session_redis_take(p.host, sizeof p.host, at, n)) return wrong(err, "it has no host");
    at += n;
    if (*at == ':') {
        n = strcspn(++at, "/");
        if (!session_redis_number(at, n, 65535, &p.port) || p.port == 0)
            return wrong(err, "the port is 1 to 65535");
        at += n;
    }
    if (*at == '/' && at[1] && !session_redis_number(at + 1, strlen(at + 1), 1000000, &p.database))
        return wrong(err, "the database is a number");
    *ret = p;
    return 0;
}

/* ---- commands ------------------------------------------------------------------------------------ */

static int lost(redis_store *s, shoal_err *err)
{
    s->pub.lost = true;
    bool nomem = !s->link || s->link->err == REDIS_ERR_OOM;
    char why[128];
    snprintf(why, sizeof why, "%s", s->link ? s->link->errstr : "");
    redisFree(s->link);
    s->link = NULL;
    if (nomem) return err_nomem(err);
    return err_set(err, SHOAL_EUNAVAILABLE, "Redis at %s:%d: %s", s->at.host, s->at.port, why);
}

#if HIREDIS_MAJOR >= 1
typedef size_t element_count;
#else
typedef int element_count;
#endif

/* hiredis would make room for as many elements as a server claims to send. */
static void *make_array(const redisReadTask *task, element_count n)
{
    const redis_store *s = task->privdata;
    return n <= ELEMENTS_MAX ? s->inner.createArray(task, n) : NULL;
}

static void bound_replies(redis_store *s)
{
    s->inner = s->makes = *s->link->reader->fn;
    s->makes.createArray = make_array;
    s->link->reader->fn = &s->makes;
    s->link->reader->privdata = s;
}

static redisReply *session_redis_give_up(redisContext *link, int err, const char *why)
{
    link->err = err;
    snprintf(link->errstr, sizeof link->errstr, "%s", why);
    return NULL;
}

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* One round of writing and reading, when the socket is ready for it. False: it is not in time. */
static bool await(redisContext *link, bool writes, int64_t until_ms)
{
    struct pollfd p = {.fd = link->fd, .events = writes ? POLLOUT : POLLIN};
    int n;
    do {
        int64_t left = until_ms - now_ms();
        if (left <= 0) return false;
        n = poll(&p, 1, (int)left);
    } while (n < 0 && errno == EINTR);
    return n > 0;
}

/* As redisCommand, which would wait for ever for a reply that comes byte by byte, and take any size of it. */
static redisReply *command(redisContext *link, const char *fmt, ...)
{
    int64_t until = now_ms() + COMMAND_S * 1000;
    void *reply = NULL;
    int all_sent = 0;
    va_list ap;
    va_start(ap, fmt);
    int rc = redisvAppendCommand(link, fmt, ap);
    va_end(ap);
    while (rc == REDIS_OK && !all_sent) {
        if (!await(link, true, until)) return session_redis_give_up(link, REDIS_ERR_IO, "it takes nothing");
        rc = redisBufferWrite(link, &all_sent);
    }
    while (rc == REDIS_OK && (rc = redisGetReplyFromReader(link, &reply)) == REDIS_OK && !reply) {
        if (link->reader->len > REPLY_BYTES_MAX)
            return session_redis_give_up(link, REDIS_ERR_PROTOCOL,
                                         "its reply is longer than any conversation");
        if (!await(link, false, until)) return session_redis_give_up(link, REDIS_ERR_IO, "no answer in 5 s");
        rc = redisBufferRead(link);
    }
    return rc == REDIS_OK ? reply : NULL;
}

/* Takes the reply; *ret NULL: the caller does not want it. */
static int session_redis_check(redis_store *s, redisReply *r, redisReply **ret, shoal_err *err)
{
    if (!r) return lost(s, err);
    if (r->type != REDIS_REPLY_ERROR) {
        if (ret)
            *ret = r;
        else
            freeReplyObject(r);
        return 0;
    }
    bool full = strncmp(r->str, "OOM", 3) == 0, starts = strncmp(r->str, "LOADING", 7) == 0;
    bool who = strncmp(r->str, "NOAUTH", 6) == 0 || strncmp(r->str, "WRONGPASS", 9) == 0;
    int rc = err_set(err,
                     who              ? SHOAL_EAUTH
                     : full || starts ? SHOAL_EUNAVAILABLE
                                      : SHOAL_EIO,
                     "Redis at %s:%d: %.200s", s->at.host, s->at.port, r->str);
    freeReplyObject(r);
    return rc;
}

static int sign_in(redis_store *s, shoal_err *err)
{
    int rc = 0;
    if (*s->at.password && *s->at.user)
        rc = session_redis_check(s, command(s->link, "AUTH %s %s", s->at.user, s->at.password), NULL, err);
    else if (*s->at.password)
        rc = session_redis_check(s, command(s->link, "AUTH %s", s->at.password), NULL, err);
    if (rc == 0 && s->at.database)
        rc = session_redis_check(s, command(s->link, "SELECT %d", s->at.database), NULL, err);
    return rc;
}

/* Between commands nothing comes: what can be read is the end of a server that left. To find that out now is
 * better than a command of which nobody knows whether it was done. */
static bool is_stale(const redisContext *link)
{
    char c;
    return recv(link->fd, &c, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
}

static int redis_begin(session_store *t, shoal_err *err)
{
    redis_store *s = (redis_store *)t;
    s->pub.lost = false;
    struct timeval patience = {.tv_sec = CONNECT_S};
    if (s->link && !is_stale(s->link)) return 0;
    redisFree(s->link);
    s->link = redisConnectWithTimeout(s->at.host, s->at.port, patience);
    if (!s->link || s->link->err) return lost(s, err);
    patience.tv_sec = COMMAND_S;
    redisSetTimeout(s->link, patience);
    bound_replies(s);
    int rc = sign_in(s, err);
    if (rc != 0) {
        redisFree(s->link);
        s->link = NULL;
    }
    return rc;
}

static int redis_commit(session_store *t, shoal_err *err)
{
    return 0;
}

static void redis_rollback(session_store *t) {}

static void key_of(char ret[KEY_BYTES_MAX], const session_id *id)
{
    int n = snprintf(ret, KEY_BYTES_MAX, "shoal:talk:");
    for (int i = 0; i < SESSION_ID_BYTES; i++, n += 2) snprintf(ret + n, 3, "%02x", id->bytes[i]);
}

/* A batch may lose its connection in the middle; those after it have another. */
static int with_key(redis_store *s, const session_id *id, char key[KEY_BYTES_MAX], shoal_err *err)
{
    key_of(key, id);
    return redis_begin(&s->pub, err);
}

static int redis_append(session_store *t, const session_turn *turn, const session_bounds *b, int64_t now,
                        shoal_err *err)
{
    redis_store *s = (redis_store *)t;
    char key[KEY_BYTES_MAX];
    int rc = with_key(s, turn->id, key, err);
    if (rc != 0) return rc;
    return session_redis_check(s,
                               command(s->link, "EVAL %s 1 %s %b %llu %llu %lld", APPEND, key, turn->sealed,
                                       turn->n, (unsigned long long)b->turns, (unsigned long long)b->bytes,
                                       (long long)b->ttl_s),
                               NULL, err);
}

static int session_redis_give(redis_store *s, const redisReply *r, session_turn_fn *fn, void *user,
                              shoal_err *err)
{
    int rc = 0;
    if (r->type != REDIS_REPLY_ARRAY)
        return err_set(err, SHOAL_EPROTOCOL, "Redis answers what was not asked");
    for (size_t i = 0; rc == 0 && i + 1 < r->elements; i += 2) {
        const redisReply *name = r->element[i], *turn = r->element[i + 1];
        if (name->type != REDIS_REPLY_STRING || turn->type != REDIS_REPLY_STRING)
            return err_set(err, SHOAL_EFORMAT,
                           "a conversation in Redis at %s:%d lacks a turn: delete it and begin another",
                           s->at.host, s->at.port);
        rc = fn(user, strtoll(name->str, NULL, 10), turn->str, turn->len, err);
    }
    return rc;
}

static int redis_load(session_store *t, const session_id *id, int64_t now, session_turn_fn *fn, void *user,
                      shoal_err *err)
{
    redis_store *s = (redis_store *)t;
    char key[KEY_BYTES_MAX];
    redisReply *r = NULL;
    int rc = with_key(s, id, key, err);
    if (rc == 0) rc = session_redis_check(s, command(s->link, "EVAL %s 1 %s", LOAD, key), &r, err);
    if (rc == 0) rc = session_redis_give(s, r, fn, user, err);
    freeReplyObject(r);
    return rc;
}

static int redis_touch(session_store *t, const session_id *id, int64_t now, int64_t ttl_s, shoal_err *err)
{
    redis_store *s = (redis_store *)t;
    char key[KEY_BYTES_MAX];
    int rc = with_key(s, id, key, err);
    return rc == 0
               ? session_redis_check(s, command(s->link, "EXPIRE %s %lld", key, (long long)ttl_s), NULL, err)
               : rc;
}

static int redis_rewrite(session_store *t, const session_turn *turn, int64_t number, shoal_err *err)
{
    redis_store *s = (redis_store *)t;
    char key[KEY_BYTES_MAX];
    int rc = with_key(s, turn->id, key, err);
    if (rc != 0) return rc;
    return session_redis_check(
        s, command(s->link, "EVAL %s 1 %s %lld %b", REWRITE, key, (long long)number, turn->sealed, turn->n),
        NULL, err);
}

static int redis_drop(session_store *t, const session_id *id, bool *ret_found, shoal_err *err)
{
    redis_store *s = (redis_store *)t;
    char key[KEY_BYTES_MAX];
    redisReply *r = NULL;
    int rc = with_key(s, id, key, err);
    if (rc == 0) rc = session_redis_check(s, command(s->link, "DEL %s", key), &r, err);
    *ret_found = rc == 0 && r->integer > 0;
    freeReplyObject(r);
    return rc;
}

static int redis_sweep(session_store *t, int64_t now, const session_bounds *b, int64_t *ret_n, shoal_err *err)
{
    *ret_n = 0; /* Redis does it */
    return 0;
}

/* ---- life ---------------------------------------------------------------------------------------- */

static void redis_close(session_store *t)
{
    redis_store *s = (redis_store *)t;
    redisFree(s->link);
    free(s);
}

static const session_store_ops OPS = {redis_begin, redis_commit,  redis_rollback, redis_append, redis_load,
                                      redis_touch, redis_rewrite, redis_drop,     redis_sweep,  redis_close,
                                      NULL};

int session_redis_open(session_store **ret, const char *url, shoal_err *err)
{
    redis_store *s = calloc(1, sizeof *s);
    if (!s) return err_nomem(err);
    s->pub.ops = &OPS;
    s->pub.each_alone = true;
    int rc = redis_place_parse(&s->at, url, err);
    if (rc == 0)
        *ret = &s->pub;
    else
        redis_close(&s->pub);
    return rc;
}
