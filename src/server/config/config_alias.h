/* config_alias.h: `aliases` of shoal.yaml, further names for what is served.
 *
 *     aliases: {gpt-4o-mini: home-chat-s, "llama3:latest": home-chat-s}
 *
 * Clients made for other services ask for names that nobody here would give to a model. A request that names
 * an alias is one for its target: a model, MODEL:ADAPTER, an ensemble, a route or a pipeline of the same
 * file. The file itself names targets only. */
#ifndef CONFIG_CONFIG_ALIAS_H
#define CONFIG_CONFIG_ALIAS_H

#include <stdbool.h>

#include "base/err.h"

enum { CONFIG_ALIAS_BYTES = 95 }; /* longest name */

struct gateway_config;

typedef struct config_alias {
    const char *name, *model; /* model: the target */
} config_alias;

/* NULL: `name` is no alias, or NULL. */
const config_alias *config_alias_find(const struct gateway_config *c, const char *name);

/* May an alias have this name? */
bool config_alias_is_fine(const char *s);

/* Names that can be asked for and are not in use, targets that exist. The sentence begins with the field's
 * path, "aliases.gpt-4o-mini: ...". SHOAL_EINVALID. */
int config_check_aliases(const struct gateway_config *c, shoal_err *err);

#endif
