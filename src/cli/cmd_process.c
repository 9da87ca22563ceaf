/* shoal process TEXT: what a running cluster makes of a request. */
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/file.h"
#include "cli/cli_model.h"
#include "cli/cli_process.h"

enum { DEVICES_MAX_BYTES = 1 << 20 };

static int answer(const char *server, cli_process_ask *ask, const char *devices_file, const char *text,
                  bool json, shoal_err *err)
{
    buf input = {0}, devices = {0}, reply = {0};
    http_where where;
    json_t *parsed = NULL;
    int rc = cli_process_where(&where, server, err);
    if (rc == 0) rc = cli_text(&input, text, err);
    if (rc == 0 && devices_file) rc = file_read(&devices, devices_file, DEVICES_MAX_BYTES, err);
    ask->text = input.data;
    ask->devices = devices_file ? devices.data : NULL;
    if (rc == 0) rc = cli_process_send(&where, ask, &reply, err);
    if (rc == 0) rc = json_parse(&parsed, reply.data, reply.len, "the answer", err);
    if (rc == 0 && json)
        printf("%s\n", reply.data);
    else if (rc == 0)
        cli_process_print(parsed);
    json_decref(parsed);
    buf_done(&reply);
    buf_done(&devices);
    buf_done(&input);
    return rc;
}

static int run(int argc, char **argv)
{
    const char *server = NULL, *devices = NULL;
    bool json = false;
    cli_process_ask ask = {.key = getenv("SHOAL_API_KEY")};
    const cli_option options[] = {
        CLI_STRING('p', "pipeline", "NAME", "the pipeline to run (needed when there are several)",
                   &ask.pipeline),
        CLI_STRING('s', "server", "URL", "http://ADDRESS:PORT or unix:PATH [shoal.yaml's]", &server),
        CLI_STRING('d', "devices", "FILE", "the home's devices: JSON, or lines: id 'Name' = state", &devices),
        CLI_STRING(0, "key", "KEY", "the API key [SHOAL_API_KEY]", &ask.key),
        CLI_JSON(&json),
        CLI_END,
    };
    cli_args a;
    int rc = cli_parse(&a, &cmd_process, options, 1, 1, argc, argv);
    if (rc != CLI_GO) return rc;
    shoal_err err = {0};
    rc = answer(server, &ask, devices, a.v[0], json, &err);
    return rc == 0 ? CLI_OK : cli_fail(&cmd_process, &err);
}

const cli_command cmd_process = {"process", "send a request to a running cluster's pipeline", "TEXT", run,
                                 false};
