/* shoal rm: a model goes out of the store: that of a running server, or of this machine. A server removes what was
 * pulled; what came with the program, or lies there as a copy, only the person at the machine does. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/utf8.h"
#include "cli/commands.h"
#include "command/cli_loads.h"
#include "command/cli_process.h"
#include "command/served.h"
#include "fetch/pull_manifest.h"
#include "fetch/pull_plan.h"
#include "kinds/model_kind.h"
#include "model/model.h"
#include "serve/serve_manager.h"

typedef struct removing {
    const char *model, *server, *key, *from;
    bool force, yes, json;
    char *store;       /* of this machine */
    pull_removal what; /* in it, then what has gone */
    http_where where;
    bool asked; /* the person has said yes */
    bool far;   /* a server has removed it */
} removing;

/* ---- the person ---------------------------------------------------------------------------------------- */

static void put_what(buf *out, const removing *r)
{
    const pull_removal *w = &r->what;
    if (w->entry && w->n_files == 0) {
        buf_printf(out, "the entry of '%s' in %s/models.json", r->model, r->store);
        return;
    }
    if (w->n_files > 1) buf_printf(out, "%u files of ", w->n_files);
    buf_puts(out, w->path);
    if (w->n_files) {
        buf_puts(out, " (");
        pull_put_size(out, w->bytes);
        buf_putc(out, ')');
    }
    if (w->entry) buf_printf(out, " and its entry in %s/models.json", r->store);
}

/* SHOAL_ECANCELLED: no. Who is not at a terminal, and who says --yes or --force, is not asked. */
static int confirm(removing *r, bool there, shoal_err *err)
{
    char answer[16] = "";
    buf what = {0};
    if (r->asked || r->yes || r->force || r->json || !isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
        return 0;
    if (there)
        buf_printf(&what, "'%s' from the store of the server", r->model);
    else
        put_what(&what, r);
    if (what.failed) {
        buf_done(&what);
        return err_nomem(err);
    }
    cli_say("remove %s?\n", what.data);
    fputs("[y/N] ", stderr);
    buf_done(&what);
    r->asked = fgets(answer, sizeof answer, stdin) && (answer[0] == 'y' || answer[0] == 'Y');
    return r->asked ? 0 : err_set(err, SHOAL_ECANCELLED, "nothing was removed");
}

/* ---- there --------------------------------------------------------------------------------------------- */

static void put_path(buf *out, const removing *r)
{
    buf_puts(out, "/v1/models/");
    percent_encode(out, r->model, strlen(r->model), "");
    if (r->force) buf_puts(out, "?force=true");
}

static int remove_there(removing *r, shoal_err *err)
{
    json_t *last = NULL;
    buf path = {0};
    put_path(&path, r);
    const cli_loads_ask ask = {
        .method = "DELETE", .path = path.data, .what = r->model, .key = r->key, .quiet = true};
    int rc = path.failed ? err_nomem(err) : cli_loads_send(&r->where, &ask, &last, err);
    if (rc == 0) {
        r->far = true;
        r->what.n_files = (unsigned)json_integer_value(json_object_get(last, "files"));
        r->what.bytes = (uint64_t)json_integer_value(json_object_get(last, "bytes"));
    }
    json_decref(last);
    buf_done(&path);
    return rc;
}

/* ---- here ---------------------------------------------------------------------------------------------- */

/* The file of an entry that nobody pulled, or a copy: nothing that runs loses it unasked. */
static int check_unserved(const removing *r, shoal_err *err)
{
    served at = {0};
    char stem[sizeof at.model];
    const char *dot = strrchr(r->model, '.');
    snprintf(stem, sizeof stem, "%.*s", dot ? (int)(dot - r->model) : 0, r->model);
    if (r->force || r->from || served_find(&at, NULL, r->model, NULL, r->key, err) != 0) return 0;
    if (!*at.model && *stem && served_find(&at, NULL, stem, NULL, r->key, err) != 0) return 0;
    return *at.model ? err_set(err, SHOAL_EUNAVAILABLE,
                               "%s is served by the Shoal at %s: shoal stop %s first, or --force", at.model,
                               at.url, at.model)
                     : 0;
}

static int check_here(const removing *r, shoal_err *err)
{
    const pull_removal *w = &r->what;
    if (w->origin == PULL_NOWHERE || (w->origin == PULL_COPIED && !model_kind_named(w->path)))
        return err_set(err, SHOAL_ENOTFOUND,
                       "%s/models.json has no \"%.100s\", and no model's file is called so there", r->store,
                       r->model);
    if (w->origin == PULL_LISTED && !r->force)
        return err_set(err, SHOAL_EAUTH,
                       "'%.100s' was not pulled: it came with the program, or a person listed it; --force "
                       "removes it all the same",
                       r->model);
    return w->origin == PULL_PULLED ? 0 : check_unserved(r, err);
}

static int remove_here(removing *r, shoal_err *err)
{
    pull_removal *w = &r->what;
    int rc = check_here(r, err);
    if (rc == 0) rc = confirm(r, false, err);
    if (rc != 0) return rc;
    if (w->is_folder) return pull_manifest_drop_folder(w->path, w, err);
    if (w->entry) return pull_manifest_drop(r->store, r->model, r->force, w, err);
    return unlink(w->path) == 0 ? 0 : err_set(err, SHOAL_EIO, "%s: %s", w->path, strerror(errno));
}

static int find_here(removing *r, shoal_err *err)
{
    char *manifest = NULL;
    shoal_err why;
    if (!r->from && manifest_locate(&manifest, &why) == SHOAL_ENOMEM) return err_nomem(err);
    r->store = r->from ? strdup(r->from) : serve_manager_store(NULL, manifest);
    free(manifest);
    return r->store ? pull_manifest_look(r->store, r->model, &r->what, err) : err_nomem(err);
}

/* A server first, of what it may remove: it unloads what it serves. */
static int remove_model(removing *r, shoal_err *err)
{
    bool named = cli_process_named(r->server);
    int rc = named && !r->from ? 0 : find_here(r, err);
    bool ours = r->from || r->what.origin == PULL_LISTED || r->what.origin == PULL_COPIED;
    if (rc != 0 && (r->from || rc == SHOAL_ENOMEM)) return rc;
    if (ours) return remove_here(r, err);
    rc = cli_process_where(&r->where, r->server, err);
    if (rc == 0) rc = confirm(r, r->what.origin == PULL_NOWHERE, err);
    if (rc == 0) rc = remove_there(r, err);
    return rc == SHOAL_EUNAVAILABLE && !named ? remove_here(r, err) : rc;
}

/* ---- the command --------------------------------------------------------------------------------------- */

static void print_removed(const removing *r)
{
    buf out = {0};
    if (r->json) {
        buf_puts(&out, "{\"id\":");
        json_put_string(&out, r->model, strlen(r->model));
        buf_printf(&out, ",\"deleted\":true,\"files\":%u,\"bytes\":%llu}", r->what.n_files,
                   (unsigned long long)r->what.bytes);
    } else if (r->far && r->what.n_files == 0) { /* made of another model: it has no file */
        buf_printf(&out, "removed '%s'", r->model);
    } else if (r->far) {
        buf_printf(&out, "removed '%s': %u file%s, ", r->model, r->what.n_files,
                   r->what.n_files == 1 ? "" : "s");
        pull_put_size(&out, r->what.bytes);
    } else {
        buf_puts(&out, "removed ");
        put_what(&out, r);
    }
    cli_print_line(2, "%s", out.failed ? r->model : out.data);
    buf_done(&out);
}

static int cmd_rm_run(int argc, char **argv)
{
    removing r = {.key = getenv("SHOAL_API_KEY")};
    const cli_option options[] = {
        CLI_FLAG('y', "yes", "do not ask", &r.yes),
        CLI_FLAG(0, "force",
                 "though it is served (it is unloaded first), or came with the program; do not ask",
                 &r.force),
        CLI_STRING(0, "from", "DIR", "of this folder, whatever a server serves [that of models.json]",
                   &r.from),
        CLI_SERVER(&r.server),
        CLI_KEY(&r.key),
        CLI_JSON(&r.json),
        CLI_END,
    };
    cli_args a;
    shoal_err err = {0};
    int rc = cli_parse(&a, &cmd_rm, options, 1, 1, argc, argv);
    if (rc != CLI_GO) return rc;
    r.model = a.v[0];
    rc = remove_model(&r, &err);
    if (rc == 0) print_removed(&r);
    free(r.store);
    return rc ? cli_fail(&cmd_rm, &err) : cli_flush(CLI_OK);
}

const cli_command cmd_rm = {"rm", "remove a model's file from the store", "MODEL", cmd_rm_run, false};
