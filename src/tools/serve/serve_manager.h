/* serve_manager.h: the model manager of `shoal serve`: where the store, the manifest and the book of this machine are.
 */
#ifndef SERVE_SERVE_MANAGER_H
#define SERVE_SERVE_MANAGER_H

#include "manager/manager.h"

/* Fills in o's folders and opens it. A machine without a home keeps nothing over restarts, which is logged.
 */
int serve_manager_open(manager **ret, uv_loop_t *loop, manager_options *o, shoal_err *err);

/* Where `shoal pull` puts models, and a server that is asked to fetch one: library.store, $SHOAL_MODELS, the
 * manifest's folder (that which came with an installed program is not written: "store" in the state folder
 * then), else ./models; malloc'd, NULL: no memory. */
char *serve_manager_store(const gateway_config *c, const char *manifest);

#endif
