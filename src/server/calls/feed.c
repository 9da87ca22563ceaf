/* feed.c: a list of packed messages with readers in it; see feed.h. */
#include "calls/feed.h"

#include <stdlib.h>

#include "base/err.h"

struct feed_message {
    feed_message *next;
    size_t n;
    uint8_t bytes[];
};

struct call_feed {
    unsigned refs;
    call_feed_options o;
    feed_message *first, *last;
    uint64_t first_at, n_put; /* bytes put before the first that is kept, resp. in all */
    list_node readers, watches;
    bool ended, was_full;
    sha256_digest digest;
};

call_feed *call_feed_new(const call_feed_options *o)
{
    call_feed *f = calloc(1, sizeof *f);
    if (!f) return NULL;
    f->refs = 1;
    f->o = *o;
    if (!f->o.keep_bytes) f->o.keep_bytes = FEED_KEEP_BYTES;
    list_init(&f->readers);
    list_init(&f->watches);
    return f;
}

call_feed *call_feed_ref(call_feed *f)
{
    f->refs++;
    return f;
}

static void drop_first(call_feed *f)
{
    feed_message *m = f->first;
    f->first = m->next;
    if (!f->first) f->last = NULL;
    f->first_at += m->n;
    free(m);
}

void call_feed_unref(call_feed *f)
{
    if (!f || --f->refs > 0) return;
    while (f->first) drop_first(f);
    free(f);
}

void call_feed_leave(call_feed *f)
{
    if (f) f->o.room = NULL;
    call_feed_unref(f);
}

/* The fastest and the slowest reader's place; both 0 without readers. */
static void find_places(const call_feed *f, uint64_t *ret_fastest, uint64_t *ret_slowest)
{
    const feed_reader *first = list_first(&f->readers, feed_reader, link);
    *ret_fastest = *ret_slowest = first ? first->at : 0;
    list_each (r, &f->readers, feed_reader, link) {
        if (r->at > *ret_fastest) *ret_fastest = r->at;
        if (r->at < *ret_slowest) *ret_slowest = r->at;
    }
}

static void forget_read(call_feed *f, uint64_t slowest)
{
    if (f->n_put <= f->o.keep_bytes) return;
    while (f->first && f->first_at + f->first->n <= slowest) drop_first(f);
}

/* ---- writing ------------------------------------------------------------------------------------- */

/* A reader that is woken may leave; the others stay where they are. */
static void wake_all(call_feed *f)
{
    list_each (r, &f->readers, feed_reader, link) r->wake(r->user);
}

int call_feed_put(call_feed *f, const ProtobufCMessage *more)
{
    size_t n = protobuf_c_message_get_packed_size(more);
    feed_message *m = malloc(sizeof *m + n);
    if (!m) return SHOAL_ENOMEM;
    m->next = NULL;
    m->n = protobuf_c_message_pack(more, m->bytes);
    if (f->last)
        f->last->next = m;
    else
        f->first = m;
    f->last = m;
    f->n_put += n;
    list_each (r, &f->readers, feed_reader, link)
        if (!r->next) r->next = m;
    wake_all(f);
    f->was_full = f->was_full || call_feed_is_full(f);
    return 0;
}

void call_feed_end(call_feed *f, const sha256_digest *digest)
{
    f->ended = true;
    f->digest = *digest;
    list_each (w, &f->watches, feed_watch, link) w->ended(w->user);
    wake_all(f);
}

bool call_feed_is_full(const call_feed *f)
{
    uint64_t fastest, slowest;
    find_places(f, &fastest, &slowest);
    return f->n_put - fastest > FEED_AHEAD_BYTES;
}

bool call_feed_is_ended(const call_feed *f)
{
    return f->ended;
}

bool call_feed_is_kept(const call_feed *f)
{
    return f->first_at == 0;
}

const sha256_digest *call_feed_digest(const call_feed *f)
{
    return f->ended ? &f->digest : NULL;
}

/* ---- reading ------------------------------------------------------------------------------------- */

bool feed_join(feed_reader *r, call_feed *f, void (*wake)(void *user), void *user)
{
    if (!call_feed_is_kept(f)) return false;
    *r = (feed_reader){.feed = call_feed_ref(f), .next = f->first, .wake = wake, .user = user};
    list_init(&r->link);
    list_put(&f->readers, &r->link);
    return true;
}

void feed_leave(feed_reader *r)
{
    call_feed *f = r->feed;
    if (!f) return;
    list_take(&r->link);
    *r = (feed_reader){0};
    f->was_full = f->was_full || call_feed_is_full(f); /* what it had read is to be read again */
    call_feed_unref(f);
}

const uint8_t *feed_peek(const feed_reader *r, size_t *ret_n)
{
    if (!r->next) return NULL;
    *ret_n = r->next->n;
    return r->next->bytes;
}

void feed_took(feed_reader *r)
{
    call_feed *f = r->feed;
    uint64_t fastest, slowest;
    r->at += r->next->n;
    r->next = r->next->next;
    find_places(f, &fastest, &slowest);
    forget_read(f, slowest);
    if (!f->was_full || f->n_put - fastest > FEED_AHEAD_BYTES / 2) return;
    f->was_full = false;
    if (f->o.room) f->o.room(f->o.user);
}

bool feed_is_read(const feed_reader *r)
{
    return r->feed && r->feed->ended && !r->next;
}

/* ---- watching for the end ------------------------------------------------------------------------ */

void feed_watch_end(feed_watch *w, call_feed *f, void (*ended)(void *user), void *user)
{
    *w = (feed_watch){.feed = call_feed_ref(f), .ended = ended, .user = user};
    list_init(&w->link);
    list_put(&f->watches, &w->link);
}

void feed_unwatch(feed_watch *w)
{
    call_feed *f = w->feed;
    if (!f) return;
    list_take(&w->link);
    *w = (feed_watch){0};
    call_feed_unref(f);
}
