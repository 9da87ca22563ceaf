/* shoal demo URL: five real requests to a running home cluster, with answers, routes and times. */
#include <stdio.h>

#include "json/json.h"
#include "cli/commands.h"
#include "command/cli_process.h"

static const char *const sentences[] = {
    "turn off the kitchen light",
    "is the front door locked?",
    "set the bedroom lamp to blue",
    "wake me up at seven tomorrow",
    "sensor vibration asset=pump-12 change=+64% threshold=20% window=30s",
};

static int cmd_demo_ask(const http_where *where, const char *sentence, bool json, shoal_err *err)
{
    buf reply = {0};
    json_t *a = NULL;
    int rc = cli_process_send(where, &(cli_process_ask){.text = sentence, .pipeline = "home"}, &reply, err);
    if (rc == 0) rc = json_parse(&a, reply.data, reply.len, "the answer", err);
    if (rc == 0 && json) {
        cli_printf("%s\n", reply.data);
    } else if (rc == 0) {
        cli_printf("\n> %s\n", sentence);
        cli_process_print(a, false, true);
    }
    json_decref(a);
    buf_done(&reply);
    return rc;
}

static int cmd_demo_run(int argc, char **argv)
{
    bool json = false;
    const char *server = NULL;
    const cli_option options[] = {CLI_SERVER(&server), CLI_JSON(&json), CLI_END};
    cli_args a;
    int rc = cli_parse(&a, &cmd_demo, options, 0, 1, argc, argv);
    if (rc != CLI_GO) return rc;
    shoal_err err = {0};
    http_where where;
    rc = cli_process_where(&where, a.n ? a.v[0] : server, &err);
    for (size_t i = 0; i < sizeof sentences / sizeof *sentences && rc == 0; i++)
        rc = cmd_demo_ask(&where, sentences[i], json, &err);
    return rc == 0 ? CLI_OK : cli_fail(&cmd_demo, &err);
}

const cli_command cmd_demo = {"demo", "send five requests to a running home cluster", "[URL]", cmd_demo_run,
                              false};
