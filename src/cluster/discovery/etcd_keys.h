/* etcd_keys.h: the keys under a prefix as etcd last told them: a table, and what changed in it.
 *
 * Pure: bytes of answers go in, put and drop come out; who asked for them is etcd_view. A listing is said
 * page by page and dropped is what no page named; a watch's answers go on from there. Values are not kept.
 *
 *     etcd_keys_new(&k, "/shoal/v1/home/", &ev, err);
 *     etcd_keys_begin_list(k);
 *     etcd_keys_hear_page(k, bytes, n, &page, err);     // until !page.more
 *     etcd_keys_end_list(k);
 *     etcd_keys_hear_watch(k, bytes, n, &news, err);    // from etcd_keys_revision(k) + 1 on
 *
 * What the bytes say is checked: a key outside the prefix, too long or not text is left out with a line in
 * the log, the others are not disturbed. One thread. */
#ifndef DISCOVERY_ETCD_KEYS_H
#define DISCOVERY_ETCD_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum {
    ETCD_KEYS_MAX = 65536,
    ETCD_KEY_BYTES = 512, /* of a key behind the prefix */
};

typedef struct etcd_keys etcd_keys;

typedef struct etcd_key {
    const char *name; /* behind the prefix: printable, at least one byte */
    int64_t create_revision, mod_revision;
    void *data; /* the listener's, NULL at first */
} etcd_key;

/* A listener may not call back into the table. */
typedef struct etcd_keys_events {
    void *user;
    void (*put)(void *user, etcd_key *k, const uint8_t *value, size_t n); /* new or changed; borrowed */
    void (*drop)(void *user, etcd_key *k);                                /* k is freed after it */
} etcd_keys_events;

int etcd_keys_new(etcd_keys **ret, const char *prefix, const etcd_keys_events *ev, shoal_err *err);
void etcd_keys_free(etcd_keys *k); /* tells a drop of each key; accepts NULL */

size_t etcd_keys_count(const etcd_keys *k);
int64_t etcd_keys_revision(const etcd_keys *k);           /* all up to here is known; 0: nothing is */
etcd_key *etcd_keys_next(const etcd_keys *k, size_t *at); /* as strmap_next */

/* ---- a listing ----------------------------------------------------------------------------------- */

typedef struct etcd_page {
    bool more;
    int64_t revision; /* the one to ask the other pages of */
    char *next;       /* more: the whole key at which the next page begins; for free() */
    size_t n_next;
} etcd_page;

void etcd_keys_begin_list(etcd_keys *k);
/* A RangeResponse. SHOAL_EPROTOCOL: it is none. */
int etcd_keys_hear_page(etcd_keys *k, const uint8_t *bytes, size_t n, etcd_page *ret, shoal_err *err);
void etcd_keys_end_list(etcd_keys *k);

/* ---- a watch ------------------------------------------------------------------------------------- */

typedef enum etcd_news {
    ETCD_NEWS,      /* changes, or nothing but a sign of life */
    ETCD_CREATED,   /* the watch stands */
    ETCD_FORGOTTEN, /* what came after our revision was compacted, or the store is another one: list again */
    ETCD_ENDED,     /* the server ended the watch; err has its reason */
} etcd_news;

/* A WatchResponse. SHOAL_EPROTOCOL: it is none. */
int etcd_keys_hear_watch(etcd_keys *k, const uint8_t *bytes, size_t n, etcd_news *ret, shoal_err *err);

#endif
