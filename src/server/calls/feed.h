/* feed.h: the part of a request that comes while its call is made: the messages behind the first.
 *
 *     call_feed *f = call_feed_new(&(call_feed_options){.user = j, .room = on_room});
 *     call = calls_transcribe(c, model, &first, &(call_context){.feed = f}, &events);
 *     rc = call_feed_put(f, &more.base);                    // packed into a copy
 *     if (call_feed_is_full(f)) let the source rest         // until on_room
 *     call_feed_end(f, &digest);
 *
 * Who carries out the call reads the feed from its beginning, each try anew, so that a failed call is made
 * again elsewhere as if nothing had been sent:
 *
 *     put     0 ......................................... n_put
 *     kept    0 ......................................... n_put   up to FEED_KEEP_BYTES;
 *                                     at the slowest .... n_put   beyond: what is read is gone, and no new
 *                                                                 reader finds the beginning any more
 *
 * A feed has one writer and few readers. `room` comes from inside a reader's steps, on the loop; nothing
 * else is called back but readers, from put and end, and before them watches, from end: they know by the
 * digest what the request is, when no worker has its end yet. One thread. */
#ifndef CALLS_FEED_H
#define CALLS_FEED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/sha256.h"
#include "base/list.h"
#include "shoal/v1/worker.pb-c.h"

#define FEED_KEEP_BYTES  ((size_t)8 << 20)
#define FEED_AHEAD_BYTES ((size_t)512 << 10) /* unread: the source should rest */

typedef struct call_feed call_feed;
typedef struct feed_message feed_message;

typedef struct call_feed_options {
    size_t keep_bytes; /* 0: FEED_KEEP_BYTES */
    void *user;
    void (*room)(void *user); /* it was full, and most has been read. May be NULL */
} call_feed_options;

call_feed *call_feed_new(const call_feed_options *o); /* NULL: out of memory */
call_feed *call_feed_ref(call_feed *f);
void call_feed_unref(call_feed *f); /* accepts NULL */
/* The writer's last: its `room` is not called any more. Accepts NULL. */
void call_feed_leave(call_feed *f);

/* 0 or SHOAL_ENOMEM. */
int call_feed_put(call_feed *f, const ProtobufCMessage *m);
/* All is put. The digest is of what the messages carry together; it names the request as the first message
 * alone does not. */
void call_feed_end(call_feed *f, const sha256_digest *digest);
bool call_feed_is_full(const call_feed *f);
bool call_feed_is_ended(const call_feed *f);
bool call_feed_is_kept(const call_feed *f);                /* from its beginning: it may be read once more */
const sha256_digest *call_feed_digest(const call_feed *f); /* NULL before the end */

/* ---- reading ------------------------------------------------------------------------------------- */

typedef struct feed_reader { /* zeroed: reads nothing */
    list_node link;
    call_feed *feed;
    const feed_message *next; /* NULL: all that there is has been read */
    uint64_t at;              /* bytes read */
    void (*wake)(void *user); /* there is more, or the end; it may leave, but free no feed */
    void *user;
} feed_reader;

/* From the beginning; false when that is not kept. Does not wake for what is there already. */
bool feed_join(feed_reader *r, call_feed *f, void (*wake)(void *user), void *user);
void feed_leave(feed_reader *r); /* accepts one that reads nothing */
/* The next message, borrowed until feed_took; NULL: none yet, or never (feed_is_read). */
const uint8_t *feed_peek(const feed_reader *r, size_t *ret_n);
void feed_took(feed_reader *r);
bool feed_is_read(const feed_reader *r); /* to the end */

/* ---- watching for the end ------------------------------------------------------------------------ */

typedef struct feed_watch { /* zeroed: watches nothing */
    list_node link;
    call_feed *feed;
    void (*ended)(void *user); /* it may leave, and let readers leave, but free no feed */
    void *user;
} feed_watch;

/* Not called for a feed that has ended already. */
void feed_watch_end(feed_watch *w, call_feed *f, void (*ended)(void *user), void *user);
void feed_unwatch(feed_watch *w); /* accepts one that watches nothing */

#endif
