/* config_keys.h: who may come in, and what for.
 *
 *     api_keys:
 *       - sha256:9f86...                  # whoever has this key may do everything
 *       - phone=sha256:60303...           # the same, with a name
 *       - name: kitchen                   # a map says what a key may do
 *         sha256: fcde...
 *         expires: 2027-01-01
 *         models: [home, home-chat-*]
 *         limits: {requests_per_minute: 60}
 *
 * A file never holds a key, only its SHA-256. */
#ifndef CONFIG_CONFIG_KEYS_H
#define CONFIG_CONFIG_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/sha256.h"

struct gateway_config;

typedef struct config_key {
    const char *name;    /* as written, NULL where a text stands in place of the map; then, "" for none */
    const char *sha256;  /* "sha256:HEX" or HEX; of a text all of it until it is checked */
    const char *expires; /* RFC 3339, a date or a date with a time; NULL: never */
    int64_t expires_s;   /* the same, in seconds since 1970 */
    const char **models; /* names and patterns of what it may name as model or pipeline; none: all */
    size_t n_models;
    const char **endpoints; /* the same of endpoints' names and paths */
    size_t n_endpoints;
    bool admin;                                                    /* also what shows or changes the server */
    unsigned requests_per_minute, tokens_per_minute, n_concurrent; /* 0: any number */
} config_key;

/* With which key /metrics is read, where there are keys at all. */
typedef enum config_metrics_key { METRICS_KEY_ADMIN, METRICS_KEY_ANY, METRICS_KEY_NONE } config_metrics_key;

/* Whose names of metrics /metrics has besides our own. */
typedef enum config_metrics_compat { METRICS_COMPAT_NONE, METRICS_COMPAT_VLLM } config_metrics_compat;

/* The digest that is written; false: it is none. */
bool config_key_digest(const config_key *k, sha256_digest *ret);
/* "2027-01-01" (its first moment in UTC) or "2027-01-01T12:00:00+02:00" (RFC 3339, section 5.6) in seconds
 * since 1970; a leap second is the next minute's first. False: it is neither. */
bool config_time_parse(const char *s, int64_t *ret_s);
/* Of the whole file's keys; takes texts apart. Errors as of config_check, and never with what may be a key.
 */
int config_check_keys(struct gateway_config *c, shoal_err *err);

#endif
