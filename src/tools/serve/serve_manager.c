/* serve_manager.c: see serve_manager.h. */
#include "serve/serve_manager.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "os/installed.h"
#include "logging/log.h"
#include "model/model.h"
#include "trust/state.h"

char *serve_manager_store(const gateway_config *c, const char *manifest)
{
    const char *env = getenv("SHOAL_MODELS");
    char *own = NULL;
    shoal_err err;
    if (c && c->library.store) return strdup(c->library.store);
    if (env && *env) return strdup(env);
    if (manifest && installed_has(manifest)) {
        int rc = state_path(&own, c ? c->cluster_state : NULL, "store",
                            &err);                             /* DIR/models is what gateways have sent */
        if (rc != SHOAL_EINVALID) return rc == 0 ? own : NULL; /* else there is no home */
    }
    return manifest ? file_folder(manifest) : strdup("models");
}

int serve_manager_open(manager **ret, uv_loop_t *loop, manager_options *o, shoal_err *err)
{
    shoal_err why;
    char *manifest = o->config->manifest ? strdup(o->config->manifest) : NULL, *book = NULL;
    if (!manifest && manifest_locate(&manifest, &why) == SHOAL_ENOMEM) return err_nomem(err);
    int rc = state_path(&book, o->config->cluster_state, "loaded.json", &why);
    char *store = rc == SHOAL_ENOMEM ? NULL : serve_manager_store(o->config, manifest);
    if (rc != 0 && rc != SHOAL_ENOMEM) LOG(LOG_WARN, "serve", "keeps_nothing", LOG_S("reason", why.message));
    o->store = store;
    o->manifest = manifest;
    o->book = rc == 0 ? book : NULL;
    rc = store ? manager_open(ret, loop, o, err) : err_nomem(err);
    free(store);
    free(book);
    free(manifest);
    return rc;
}
