/* shoal completions bash|zsh|fish: the script that tells a shell what stands behind `shoal`. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "json/json.h"
#include "logging/sanitise.h"
#include "cli/commands.h"
#include "cli/shell/completions.h"
#include "command/cli_model.h"
#include "command/cli_process.h"
#include "model/model.h"

enum { PATIENCE_MS = 500 }; /* a person waits behind the tab key */

/* ---- names of models ---------------------------------------------------------------------------------- */

/* Shells read a line each and show it as it stands: a name with control characters is not offered. */
static void cmd_completions_add(json_t *names, const char *name)
{
    size_t i;
    json_t *known;
    if (!sanitise_is(name)) return;
    json_array_foreach(names, i, known) if (strcmp(json_string_value(known), name) == 0) return;
    json_array_append_new(names, json_string(name));
}

/* Those of a running server. Without one, without its key, or when it is slow: none. */
static void add_served(json_t *names, const char *server)
{
    const char *key = getenv("SHOAL_API_KEY");
    http_where where;
    http_client c;
    char headers[600] = "";
    json_t *answer = NULL, *model;
    size_t i;
    shoal_err err;
    if (cli_process_where(&where, server, &err) != 0) return;
    if (key && strlen(key) < 500 && !strpbrk(key, "\r\n"))
        snprintf(headers, sizeof headers, "authorization: Bearer %s\r\n", key);
    http_client_init(&c, &where);
    c.until_ns = clock_ns() + PATIENCE_MS * 1000000ull;
    if (http_client_exchange(&c, &(http_ask){.path = "/v1/models", .headers = headers}, &err) == 0 &&
        c.status == 200 && c.body.len && json_parse(&answer, c.body.data, c.body.len, "answer", &err) == 0)
        json_array_foreach(json_object_get(answer, "data"), i, model)
        {
            const char *id = json_string_value(json_object_get(model, "id"));
            if (id) cmd_completions_add(names, id);
        }
    json_decref(answer);
    http_client_done(&c);
}

static void add_listed(json_t *names)
{
    manifest *m = NULL;
    char *path = NULL;
    shoal_err err;
    if (manifest_locate(&path, &err) == 0 && manifest_open(&m, path, &err) == 0)
        for (size_t i = 0; i < manifest_count(m); i++) cmd_completions_add(names, manifest_at(m, i)->name);
    manifest_free(m);
    free(path);
}

static int put_models(const char *server, bool json)
{
    json_t *names = json_array(), *name;
    size_t i;
    if (!names) return CLI_FAILED;
    add_served(names, server);
    add_listed(names);
    if (json) cli_print_json(names, JSON_COMPACT);
    json_array_foreach(names, i, name) if (!json) printf("%s\n", json_string_value(name));
    json_decref(names);
    return CLI_OK;
}

static int put_manual_of(const char *name)
{
    const cli_command *cmd = cli_find(name);
    if (!cmd) {
        cli_say("shoal completions: there is no command %s\n", name);
        return CLI_USAGE;
    }
    completions_man_page(stdout, cmd);
    return CLI_OK;
}

/* ---- the command -------------------------------------------------------------------------------------- */

static int cmd_completions_run(int argc, char **argv)
{
    static const cli_verb VERBS[] = {
        {"bash", "", "the script for bash; try it: . <(shoal completions bash)", 0, 0},
        {"zsh", "", "for zsh; it is to lie as _shoal in a folder of $fpath", 0, 0},
        {"fish", "", "for fish: shoal completions fish | source", 0, 0},
        {"models", "", "the names of models: of a running server and of the manifest", 0, 0},
        {"manual", "[COMMAND]", "the OPTIONS of shoal(1); of COMMAND its own manual page", 0, 1},
        {"table", "", "commands, verbs and options as JSON", 0, 0},
        CLI_VERB_END};
    static void (*const WRITE[])(FILE *) = {completions_bash, completions_zsh, completions_fish, NULL,
                                            completions_man,  completions_json};
    const char *server = NULL;
    bool json = false;
    const cli_option options[] = {
        CLI_STRING('s', "server", "URL", "models: " CLI_SERVER_HELP, &server),
        CLI_FLAG(0, "json", "models: print JSON", &json),
        CLI_END,
    };
    cli_args a;
    const cli_verb *verb;
    int rc = cli_parse_verb(&a, &verb, &cmd_completions, options, VERBS, argc, argv);
    if (rc != CLI_GO) return rc;
    if (!WRITE[verb - VERBS]) return cli_flush(put_models(server, json));
    if (a.n) return cli_flush(put_manual_of(a.v[0]));
    WRITE[verb - VERBS](stdout);
    return cli_flush(CLI_OK);
}

const cli_command cmd_completions = {"completions", "write what bash, zsh or fish offers behind the tab key",
                                     "bash|zsh|fish", cmd_completions_run, false};
