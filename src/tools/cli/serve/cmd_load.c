/* shoal load: a running server is to serve one more model. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "cli/commands.h"
#include "command/cli_loads.h"
#include "command/cli_model.h"
#include "command/cli_process.h"
#include "command/cli_tuning.h"
#include "serve/serve_given.h"

typedef struct sizes {
    long long replicas, threads, context, kv_mb, idle; /* 0: not said */
    cli_tuning own;                                    /* options of the worker */
} sizes;

/* A file of this machine by its whole path; all else is for the server to find. */
static int put_model(json_t *body, const char *model, shoal_err *err)
{
    char *real = file_exists(model) ? realpath(model, NULL) : NULL;
    bool is_path = real || *model == '/';
    int rc = json_object_set_new(body, is_path ? "path" : "model", json_string(real ? real : model));
    free(real);
    return rc == 0 ? 0 : err_set(err, SHOAL_EINVALID, "the model's name must be UTF-8");
}

static int put_sizes(json_t *body, const sizes *s, const char *name, const char *sha256, bool keep)
{
    const struct {
        const char *key;
        long long value;
    } numbers[] = {{"replicas", s->replicas},
                   {"threads", s->threads},
                   {"context", s->context},
                   {"kv_mb", s->kv_mb},
                   {"keep_alive_s", s->idle}};
    int rc = json_object_set_new(body, "stream", json_true());
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (numbers[i].value) rc |= json_object_set_new(body, numbers[i].key, json_integer(numbers[i].value));
    rc |= cli_tuning_put_json(&s->own, body);
    if (name) rc |= json_object_set_new(body, "name", json_string(name));
    if (sha256) rc |= json_object_set_new(body, "sha256", json_string(sha256));
    if (keep) rc |= json_object_set_new(body, "keep", json_true());
    return rc;
}

static int serve_cmd_load(const http_where *where, const cli_loads_ask *ask, bool json, shoal_err *err)
{
    json_t *last = NULL;
    int rc = cli_loads_send(where, ask, &last, err);
    const char *name = json_string_value(json_object_get(last, "model"));
    buf out = {0};
    if (rc == 0 && json && json_put(&out, last) == 0) cli_printf("%s\n", out.data);
    if (rc == 0 && !json) cli_printf("%s is ready\n", name ? name : ask->what);
    buf_done(&out);
    json_decref(last);
    return rc;
}

static int no_model(const char *folder, int rc, shoal_err *err)
{
    buf files = {0};
    if (strstr(err->message, "config.json: No such file") && file_is_dir(folder))
        serve_given_inside(folder, folder, &files);
    if (files.len)
        err_set(err, rc, "the folder %.200s is no model, but it holds some; load one of them: %.250s", folder,
                files.data);
    buf_done(&files);
    return rc;
}

static int cmd_load_run(int argc, char **argv)
{
    const char *server = NULL, *key = getenv("SHOAL_API_KEY"), *name = NULL, *sha256 = NULL;
    bool json = false, keep = false, quiet = false;
    sizes s = {0};
    const cli_option options[] = {
        CLI_STRING(0, "name", "NAME", "what clients call it [what its file is called]", &name),
        CLI_INT(0, "replicas", "N", 1, 64, "worker processes [1]", &s.replicas),
        CLI_INT('t', "threads", "N", 1, 64, "threads of each [all cores]", &s.threads),
        CLI_INT(0, "context", "N", 16, 1 << 20,
                "longest prompt and reply, in tokens [the model's; with 8,192 or more, what --kv-mb holds]",
                &s.context),
        CLI_KV_MB(&s.kv_mb),
        CLI_INT(0, "idle", "S", 1, 31536000, "unload it when it was not used for S seconds", &s.idle),
        CLI_STRING(0, "sha256", "HEX", "what the file must be", &sha256),
        CLI_FLAG(0, "keep", "load it again when the server starts again", &keep),
        CLI_SERVER(&server),
        CLI_KEY(&key),
        CLI_FLAG('q', "quiet", "no progress", &quiet),
        CLI_JSON(&json),
        CLI_END,
    };
    cli_args a;
    shoal_err err = {0};
    http_where where;
    int rc = cli_parse(&a, &cmd_load, cli_tuning_behind(&s.own, options), 1, 1, argc, argv);
    if (rc != CLI_GO) return rc;
    json_t *body = json_object();
    rc = body ? put_model(body, a.v[0], &err) : err_nomem(&err);
    if (rc == 0 && put_sizes(body, &s, name, sha256, keep) != 0)
        rc = err_set(&err, SHOAL_EINVALID, "names must be UTF-8");
    if (rc == 0) rc = cli_process_where(&where, server, &err);
    if (rc == 0) cli_process_own(&where); /* which takes any file */
    const cli_loads_ask ask = {
        .path = "/v1/models/load", .body = body, .what = a.v[0], .key = key, .quiet = quiet};
    if (rc == 0 && (rc = serve_cmd_load(&where, &ask, json, &err)) != 0) rc = no_model(a.v[0], rc, &err);
    json_decref(body);
    return rc ? cli_fail(&cmd_load, &err) : cli_flush(CLI_OK);
}

const cli_command cmd_load = {"load", "load a model into a running server", "MODEL", cmd_load_run, false};
