/* shoal profile: where the time of a model's steps goes, or of a request that was served. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench_profile.h"
#include "cli/commands.h"
#include "command/cli_process.h"
#include "json/json.h"
#include "view/request_view.h"

/* The path of the list that holds it: one, or the latest of them. */
static int path_of(buf *path, const char *id, shoal_err *err)
{
    if (strcmp(id, "last") == 0) {
        buf_puts(path, "/v1/requests?limit=1");
    } else {
        for (const char *p = id; *p; p++)
            if (strchr("&=?#% \t\r\n", *p) || (unsigned char)*p < ' ')
                return err_set(err, SHOAL_EINVALID,
                               "--request wants the id of an answer's x-request-id, or \"last\"");
        buf_printf(path, "/v1/requests?limit=1&id=%s", id);
    }
    return path->failed ? err_nomem(err) : 0;
}

static int show_request(const http_where *where, const char *key, const char *id, bool json, shoal_err *err)
{
    buf path = {0}, answer = {0}, out = {0};
    json_t *list = NULL, *view = NULL;
    int rc = path_of(&path, id, err);
    if (rc == 0) rc = cli_process_get(where, path.data, key, &answer, err);
    if (rc == 0) rc = json_parse(&list, buf_text(&answer), answer.len, "the answer", err);
    const json_t *request = json_array_get(json_object_get(list, "data"), 0);
    if (rc == 0 && !request)
        rc = err_set(err, SHOAL_ENOTFOUND, "the server does not list a request %.60s: it holds the last 512",
                     id);
    if (rc == 0 && json && !(view = request_view_json(request))) rc = err_nomem(err);
    if (rc == 0 && !json) rc = request_view_put(&out, request, cli_columns(SIZE_MAX), err);
    if (rc == 0 && json && json_put(&out, view) != 0) rc = err_nomem(err);
    if (rc == 0 && json) buf_putc(&out, '\n');
    if (rc == 0) cli_write(buf_text(&out), out.len);
    json_decref(view);
    json_decref(list);
    buf_done(&out);
    buf_done(&answer);
    buf_done(&path);
    return rc;
}

static int cmd_profile_run(int argc, char **argv)
{
    bench_profile_options o = {.prompt_tokens = 512, .decode = 64, .repeat = 5};
    const char *server = NULL, *key = getenv("SHOAL_API_KEY"), *request = NULL;
    const cli_option options[] = {
        CLI_INT('p', "prompt-tokens", "N", 1, 1000000, "tokens of the prompt, or of the text [512]",
                &o.prompt_tokens),
        CLI_INT('n', "decode", "N", 0, 100000, "tokens of the reply, each a step [64]", &o.decode),
        CLI_INT('r', "repeat", "N", 1, 64, "runs; the one with the median time is shown [5]", &o.repeat),
        CLI_FLAG(0, "layers", "also a row for each layer", &o.layers),
        CLI_STRING(0, "svg", "FILE", "also draw layers and operations into FILE", &o.svg),
        CLI_STRING(0, "request", "ID",
                   "of a running server: where that request's time went; \"last\": the latest one's",
                   &request),
        CLI_SERVER(&server),
        CLI_KEY(&key),
        CLI_MODEL_OPTIONS(&o.model),
        CLI_JSON(&o.json),
        CLI_END,
    };
    cli_args a;
    int rc = cli_parse(&a, &cmd_profile, options, 0, 1, argc, argv);
    if (rc != CLI_GO) return rc;
    shoal_err err = {0};
    http_where where;
    rc = 0;
    if (!request == (a.n == 0))
        rc = err_set(&err, SHOAL_EINVALID,
                     "name either a MODEL, or a request of a running server with --request ID");
    else if (request && (rc = cli_process_where(&where, server, &err)) == 0)
        rc = show_request(&where, key, request, o.json, &err);
    else if (!request)
        rc = bench_profile(&o, a.v[0], &err);
    return cli_flush(rc == 0 ? CLI_OK : cli_fail(&cmd_profile, &err));
}

const cli_command cmd_profile = {"profile", "where the time of a model's steps, or of a request, goes",
                                 "[MODEL]", cmd_profile_run, false};
