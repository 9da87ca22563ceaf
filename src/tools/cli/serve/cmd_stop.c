/* shoal stop: unload a model from a running server. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "command/cli_loads.h"
#include "command/cli_process.h"

/* The server names the field of its request; here it is an option. */
static void name_option(shoal_err *err)
{
    static const char field[] = "\"force\": true", option[] = "--force";
    char *at = strstr(err->message, field);
    if (!at) return;
    memcpy(at, option, sizeof option - 1);
    memmove(at + sizeof option - 1, at + sizeof field - 1, strlen(at + sizeof field - 1) + 1);
}

static int cmd_stop_run(int argc, char **argv)
{
    const char *server = NULL, *key = getenv("SHOAL_API_KEY");
    bool json = false, now = false, force = false, quiet = false;
    const cli_option options[] = {
        CLI_FLAG(0, "now", "do not wait for the answers that it is giving", &now),
        CLI_FLAG(0, "force", "though pipelines, routes or ensembles use it", &force),
        CLI_SERVER(&server),
        CLI_KEY(&key),
        CLI_FLAG('q', "quiet", "no progress", &quiet),
        CLI_JSON(&json),
        CLI_END,
    };
    cli_args a;
    shoal_err err = {0};
    http_where where;
    json_t *last = NULL;
    buf out = {0};
    int rc = cli_parse(&a, &cmd_stop, options, 1, 1, argc, argv);
    if (rc != CLI_GO) return rc;
    json_t *body =
        json_pack("{s:s,s:b,s:b,s:b}", "model", a.v[0], "drain", !now, "force", force, "stream", true);
    rc = body ? cli_process_where(&where, server, &err)
              : err_set(&err, SHOAL_EINVALID, "the model's name must be UTF-8");
    const cli_loads_ask ask = {
        .path = "/v1/models/unload", .body = body, .what = a.v[0], .key = key, .quiet = quiet};
    if (rc == 0) rc = cli_loads_send(&where, &ask, &last, &err);
    if (rc != 0) name_option(&err);
    if (rc == 0 && json && json_put(&out, last) == 0) cli_printf("%s\n", out.data);
    if (rc == 0 && !json) cli_printf("%s is unloaded\n", a.v[0]);
    json_decref(last);
    json_decref(body);
    buf_done(&out);
    return rc ? cli_fail(&cmd_stop, &err) : cli_flush(CLI_OK);
}

const cli_command cmd_stop = {"stop", "unload a model from a running server", "MODEL", cmd_stop_run, false};
