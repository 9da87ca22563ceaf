/* settings.h: a configuration at work, and what it made of the gateway: keys, calls over the replicas, hosts.
 *
 * There is one that new requests get. When the file is read again another one takes its place
 * (gateway_reload), and each request goes on with those that it came with; the last of them takes the old
 * ones away. What does not depend on the file, or cannot change while it is in use, is the gateway's and
 * stays: connections, the replicas and the calls to them, the cache, conversations, collections.
 *
 *     settings *s = settings_ref(g->settings);
 *     ...
 *     settings_unref(s);                          // freed later, by settings_sweep
 *
 * Loop thread. */
#ifndef REQUEST_SETTINGS_H
#define REQUEST_SETTINGS_H

#include "calls/fallback_calls.h"
#include "config/config.h"
#include "access/auth.h"
#include "request/ensembles.h"
#include "hosts/hosts.h"
#include "mcp/mcp_client.h"

struct gateway;

typedef struct settings {
    unsigned refs;
    struct gateway *gateway;
    const gateway_config *config;
    gateway_config *own; /* the same, where it goes with this; NULL: whoever made the gateway has it */
    uint64_t number;     /* of those that answer alike, 0 of the first: part of what answers are kept by */
    sha256_digest print; /* config_fingerprint */
    auth *auth;
    calls *calls;
    fallback_rule *fallbacks; /* one a model that has stand-ins; strings are the configuration's */
    ensembles *ensembles;     /* NULL: none are configured */
    hosts *hosts;             /* that http stages ask; NULL: the configuration names none */
    mcp_client *mcp;          /* whose tools generate stages call; NULL: the configuration names none */
    struct settings *next;    /* the gateway's, present ones and old ones */
} settings;

/* One reference, the caller's; in the gateway's row. c must outlive them. */
int settings_new(settings **ret, struct gateway *g, const gateway_config *c, shoal_err *err);
settings *settings_ref(settings *s);
void settings_unref(settings *s); /* accepts NULL */
/* Free those that nobody has any more: from the loop itself, as the last one may have gone in the midst of a
 * call that they are made of. */
void settings_sweep(struct gateway *g);
void settings_free_all(struct gateway *g);

#endif
