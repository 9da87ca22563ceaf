/* config_diff.h: what two configurations differ in, key by key.
 *
 *     static void each(void *user, const config_change *c) { ... }
 *     config_diff(old, new, each, user, err);
 *         limits.max_requests: 256, now 64
 *         api_keys[tv].models[1]: now "tv-*"
 *         pipelines[home].stages[grounder].prompt: ...
 *
 * Entries of lists that have names are compared by them, so that one more at the front is one more. Files
 * that a configuration names are not looked into. */
#ifndef CONFIG_CONFIG_DIFF_H
#define CONFIG_CONFIG_DIFF_H

#include "config/config.h"

/* From when on a new value counts. */
typedef enum config_when {
    CONFIG_NOW,     /* a server that reads its file again takes it */
    CONFIG_MODELS,  /* models are loaded and unloaded by requests, or at a start */
    CONFIG_RESTART, /* at the next start alone */
} config_when;

typedef struct config_change { /* borrowed for the call */
    const char *path;
    const char *from, *to; /* short values as JSON, "..." for long ones; NULL: not there */
    config_when when;
} config_change;

/* each comes for every difference; what only b has comes behind what both have. */
int config_diff(const gateway_config *a, const gateway_config *b,
                void (*each)(void *user, const config_change *c), void *user, shoal_err *err);
config_when config_when_of(const char *path);

#endif
