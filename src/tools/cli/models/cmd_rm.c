/* shoal rm: a model goes out of the store: that of a running server, or of this machine where none runs. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "cli/commands.h"
#include "command/cli_loads.h"
#include "command/cli_process.h"
#include "fetch/pull_manifest.h"
#include "model/model.h"
#include "serve/serve_manager.h"

static void put_path(buf *out, const char *model, bool force)
{
    buf_puts(out, "/v1/models/");
    percent_encode(out, model, strlen(model), "");
    if (force) buf_puts(out, "?force=true");
}

static int remove_there(const http_where *where, const char *model, const char *key, bool force,
                        shoal_err *err)
{
    json_t *last = NULL;
    buf path = {0};
    put_path(&path, model, force);
    const cli_loads_ask ask = {
        .method = "DELETE", .path = path.data, .what = model, .key = key, .quiet = true};
    int rc = path.failed ? err_nomem(err) : cli_loads_send(where, &ask, &last, err);
    json_decref(last);
    buf_done(&path);
    return rc;
}

static int remove_here(const char *model, const char *folder, shoal_err *err)
{
    char *manifest = NULL;
    shoal_err why;
    if (!folder && manifest_locate(&manifest, &why) == SHOAL_ENOMEM) return err_nomem(err);
    char *store = folder ? strdup(folder) : serve_manager_store(NULL, manifest);
    int rc = store ? pull_manifest_drop(store, model, err) : err_nomem(err);
    free(store);
    free(manifest);
    return rc;
}

static void print_removed(const char *model, bool json)
{
    buf out = {0};
    json_put_string(&out, model, strlen(model));
    if (json)
        cli_printf("{\"id\":%s,\"deleted\":true}\n", out.data ? out.data : "\"\"");
    else
        cli_printf("%s is removed\n", model);
    buf_done(&out);
}

static int cmd_rm_run(int argc, char **argv)
{
    const char *server = NULL, *key = getenv("SHOAL_API_KEY"), *from = NULL;
    bool force = false, json = false;
    const cli_option options[] = {
        CLI_FLAG(0, "force", "though it is served: it is unloaded first", &force),
        CLI_STRING(0, "from", "DIR", "of this folder, whatever a server serves [that of models.json]", &from),
        CLI_SERVER(&server),
        CLI_KEY(&key),
        CLI_JSON(&json),
        CLI_END,
    };
    cli_args a;
    shoal_err err = {0};
    http_where where;
    int rc = cli_parse(&a, &cmd_rm, options, 1, 1, argc, argv);
    if (rc != CLI_GO) return rc;
    rc = from ? 0 : cli_process_where(&where, server, &err);
    if (rc == 0 && !from) rc = remove_there(&where, a.v[0], key, force, &err);
    if (from || (rc == SHOAL_EUNAVAILABLE && !cli_process_named(server)))
        rc = remove_here(a.v[0], from, &err);
    if (rc == 0) print_removed(a.v[0], json);
    return rc ? cli_fail(&cmd_rm, &err) : cli_flush(CLI_OK);
}

const cli_command cmd_rm = {"rm", "remove a model's file from the store", "MODEL", cmd_rm_run, false};
