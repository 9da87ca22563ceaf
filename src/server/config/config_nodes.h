/* config_nodes.h: a cluster as a file says it is: its nodes, and what runs on them; for `shoal plan`.
 *
 *     nodes:
 *       - {name: pi, site: home, cores: 4, memory_mb: 4096, gb_per_s: 8.5, labels: [kitchen]}
 *     now:
 *       - {model: home-intent, node: pi}
 *
 * JSON is YAML, so that what `shoal nodes --json` prints can be read, too. Errors name file, line and field.
 */
#ifndef CONFIG_CONFIG_NODES_H
#define CONFIG_CONFIG_NODES_H

#include "cluster/placement.h"

typedef struct config_nodes {
    node *nodes;
    size_t n_nodes;
    placement_now *now;
    size_t n_now;
} config_nodes;

/* SHOAL_EINVALID for what is wrong in it. */
int config_nodes_load(config_nodes **ret, const char *path, shoal_err *err);
void config_nodes_free(config_nodes *n); /* accepts NULL */

#endif
