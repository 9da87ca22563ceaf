/* config_put.h: a configuration as data again, with its defaults: what `shoal config show` prints and what
 * two of them are compared by.
 *
 * It follows the rows of the schema. Left out are empty lists, texts without a value, and inside of lists
 * (models, stages, ...) what has its default; seeds over 2^63 are negative, paths are resolved, and keys are
 * maps whichever way they were written. */
#ifndef CONFIG_CONFIG_PUT_H
#define CONFIG_CONFIG_PUT_H

#include "json/json.h"
#include "base/sha256.h"
#include "config/config.h"

/* *ret is the caller's. hides: what nobody should read (digests of keys, values of hosts' headers, URLs with
 * passwords) is "(hidden)". */
int config_to_json(json_t **ret, const gateway_config *c, bool hides, shoal_err *err);

/* Of all that answers depend on beside models' files: pipelines, ensembles, hosts, domains, routes, and size
 * and time of each file that one of them names. Equal ones give equal answers. */
int config_fingerprint(sha256_digest *ret, const gateway_config *c, shoal_err *err);

/* The tree as YAML: maps and lists as blocks, texts plain where that is no other value, else in double
 * quotes. */
void config_put_yaml(buf *out, const json_t *tree);

#endif
