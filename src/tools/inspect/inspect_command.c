/* inspect_command.c: see inspect_command.h. */
#include "inspect/inspect_command.h"

#include <stdlib.h>

#include "command/cli_model.h"
#include "infer/model_about.h"
#include "inspect/inspect.h"
#include "inspect/inspect_trees.h"

enum { FIELD_COLUMNS = 14 }; /* before what a field says */

static int find_digest(inspect_report *r, model *m, shoal_err *err)
{
    sha256_digest d;
    int rc = model_digest(m, &d, err);
    if (rc == 0) sha256_hex(&d, r->digest);
    return rc;
}

static int inspect_network(buf *out, model *m, const char *path, inspect_wish w, bool *ret_runs,
                           shoal_err *err)
{
    inspect_report r;
    int rc = inspect_model(&r, m, !w.quick, err);
    if (rc == 0 && w.digest) rc = find_digest(&r, m, err);
    if (rc != 0) return rc;
    (w.json ? inspect_put_json : inspect_put)(out, &r, m, path);
    *ret_runs = !*r.unsupported;
    return 0;
}

int inspect_command(const cli_command *cmd, const char *name, const char *manifest, inspect_wish w)
{
    shoal_err err = {0};
    char *path = NULL, *sha256 = NULL;
    model_about a = {0};
    bool runs = true;
    buf out = {0};
    int rc = manifest_resolve(name, manifest, &path, &sha256, &err);
    if (rc == 0) rc = cli_opened(model_about_open(&a, path, NULL, &err), &err);
    if (rc == 0 && a.network)
        rc = inspect_network(&out, a.network, path, w, &runs, &err);
    else if (rc == 0)
        (w.json ? inspect_trees_put_json : inspect_trees_put)(&out, a.trees.trees, path);
    model_about_close(&a);
    rc = rc ? cli_fail(cmd, &err) : w.json ? cli_print(&out) : cli_print_folded(&out, FIELD_COLUMNS);
    buf_done(&out);
    free(path);
    free(sha256);
    return rc == CLI_OK && !runs ? CLI_FAILED : rc;
}
