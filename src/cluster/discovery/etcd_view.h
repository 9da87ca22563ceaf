/* etcd_view.h: the keys under a prefix, kept up to date: listed once, then watched.
 *
 * A lost connection costs nothing: the watch goes on from the last revision. What etcd has compacted
 * meanwhile, or a store that was put back from a copy, is listed anew, and only differences are told. Silence
 * is noticed: etcd is asked for a sign of life, and its endpoint left when none comes.
 *
 *     etcd_view_open(&v, session, &(etcd_view_options){.prefix = "/shoal/v1/home/", .keys = {...}}, err);
 *     etcd_view_close(v);
 *
 * While nothing is heard nothing is told: the keys stay as they were. Loop thread. */
#ifndef DISCOVERY_ETCD_VIEW_H
#define DISCOVERY_ETCD_VIEW_H

#include "discovery/etcd_session.h"
#include "discovery/etcd_keys.h"

typedef struct etcd_view etcd_view;

typedef struct etcd_view_options {
    const char *prefix; /* copied */
    etcd_keys_events keys;
    void (*synced)(void *user); /* all there is has been said (again); keys.user */
    /* Nothing is heard, for more than grace_ms; and why. Until synced again. */
    void (*away)(void *user, const char *why);
    unsigned grace_ms;   /* [1500] */
    unsigned silence_ms; /* [5000] */
    unsigned page;       /* [512] keys of a page */
} etcd_view_options;

/* The session must outlive it. */
int etcd_view_open(etcd_view **ret, etcd_session *s, const etcd_view_options *o, shoal_err *err);
void etcd_view_close(etcd_view *v);           /* keys.drop of each; accepts NULL */
bool etcd_view_is_synced(const etcd_view *v); /* and nothing is amiss */
const etcd_keys *etcd_view_keys(const etcd_view *v);

/* The first key behind all that begin with these n bytes: the last byte that can be is one higher. Returns
 * its length; 0: there is none, and etcd takes a single zero byte for "to the end". out holds n bytes. */
size_t etcd_prefix_end(const char *prefix, size_t n, uint8_t *out);

#endif
