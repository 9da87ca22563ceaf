/* stage_name.h: what the workers of a model in stages are called: "home-chat@8:16" has layers 8 to 15 of it.
 *
 * The first stage serves the model under its own name and only its id says its layers ("home-chat@0:8/0"); a
 * later one is a member of "home-chat@8:16", of which no client can ask: names in requests have no '@'. */
#ifndef CLUSTER_STAGE_NAME_H
#define CLUSTER_STAGE_NAME_H

#include <stdbool.h>
#include <stddef.h>

/* False: no room. */
bool stage_name_put(char *ret, size_t size, const char *model, size_t first, size_t end);
/* Of a name or an id ("NODE/..." is none); false: it is no stage's. ret_n_model: bytes of the model's name.
 * May be NULL, as may the next two. */
bool stage_name_parse(const char *name, size_t *ret_n_model, size_t *ret_first, size_t *ret_end);

#endif
