/* shoal ps: the models that a running Shoal serves, and what they do. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "json/json.h"
#include "cli/commands.h"
#include "command/cli_model.h"
#include "command/cli_process.h"
#include "view/ps_view.h"

static int cmd_ps_show(const http_where *where, const char *key, bool json, shoal_err *err)
{
    buf answer = {0}, out = {0};
    json_t *status = NULL, *models = NULL;
    int rc = cli_process_get(where, "/v1/status", key, &answer, err);
    if (rc == 0) rc = json_parse(&status, answer.data, answer.len, "the answer", err);
    if (rc == 0 && !(models = ps_view_models(status))) rc = err_nomem(err);
    if (rc == 0 && json) {
        buf_puts(&out, "{\"models\":");
        json_put(&out, models);
        buf_puts(&out, "}\n");
    } else if (rc == 0) {
        ps_view_put(&out, models, (long long)time(NULL), cli_columns(0));
    }
    if (rc == 0 && out.failed) rc = err_nomem(err);
    if (rc == 0) cli_write(out.data, out.len);
    json_decref(models);
    json_decref(status);
    buf_done(&out);
    buf_done(&answer);
    return rc;
}

static int cmd_ps_run(int argc, char **argv)
{
    const char *server = NULL, *key = getenv("SHOAL_API_KEY");
    bool json = false;
    const cli_option options[] = {
        CLI_SERVER(&server),
        CLI_KEY(&key),
        CLI_JSON(&json),
        CLI_END,
    };
    cli_args a;
    int rc = cli_parse(&a, &cmd_ps, options, 0, 0, argc, argv);
    if (rc != CLI_GO) return rc;
    shoal_err err = {0};
    http_where where;
    rc = cli_process_where(&where, server, &err);
    if (rc == 0) rc = cmd_ps_show(&where, key, json, &err);
    return cli_flush(rc == 0 ? CLI_OK : cli_fail(&cmd_ps, &err));
}

const cli_command cmd_ps = {"ps", "list the models that a running Shoal serves, and their load", "",
                            cmd_ps_run, false};
