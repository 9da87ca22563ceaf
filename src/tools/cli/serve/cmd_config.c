/* shoal config check|show|docs: check a configuration without starting anything, show it with its defaults, and
 * print the tables of keys of docs/configuration.md. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/commands.h"
#include "json/json_put.h"
#include "command/cli_home.h"
#include "config/config_docs.h"
#include "config/config_faults.h"
#include "config/config_put.h"
#include "serve/serve_check.h"
#include "serve/serve_models.h"
#include "rules/home.h"

/* ---- check ------------------------------------------------------------------------------------------- */

static int look_over(const gateway_config *c, json_t *notes, shoal_err *err)
{
    worker_spec *specs = NULL;
    int rc = serve_models_find(&specs, c, err);
    if (rc == 0) rc = serve_check(c, specs, notes, err);
    if (rc == 0) rc = serve_check_notes(notes, c, (int64_t)time(NULL), err);
    serve_models_free(specs, specs ? c->n_models : 0);
    return rc;
}

static void say_right(const gateway_config *c, const char *path, const json_t *notes)
{
    for (size_t i = 0; i < json_array_size(notes); i++)
        cli_say("note: %s\n", json_string_value(json_array_get(notes, i)));
    printf("%s: OK (%zu model%s, %zu pipeline%s, %zu API key%s, listens on %s)\n", path, c->n_models,
           c->n_models == 1 ? "" : "s", c->n_pipelines, c->n_pipelines == 1 ? "" : "s", c->n_api_keys,
           c->n_api_keys == 1 ? "" : "s", c->listen);
}

static void put_faults(buf *out, const config_faults *all)
{
    buf_puts(out, ",\"errors\":[");
    for (size_t i = 0; i < all->n; i++) {
        buf_puts(out, i ? "," : "");
        json_put_string(out, all->list[i].sentence, strlen(all->list[i].sentence));
    }
    buf_putc(out, ']');
}

/* {"file", "right", "error", "notes", "errors"} */
static int say_json(const char *path, const json_t *notes, const config_faults *all, shoal_err *err)
{
    buf out = {0};
    buf_putc(&out, '{');
    json_put_text(&out, "file", path);
    buf_printf(&out, ",\"right\":%s,\"error\":", all->n == 0 ? "true" : "false");
    if (all->n == 0)
        buf_puts(&out, "null");
    else
        json_put_string(&out, all->list[0].sentence, strlen(all->list[0].sentence));
    buf_puts(&out, ",\"notes\":");
    json_put(&out, notes);
    put_faults(&out, all);
    if (!out.failed) cli_printf("%s}\n", out.data);
    int failed = out.failed;
    buf_done(&out);
    return failed ? err_nomem(err) : all->n == 0 ? CLI_OK : CLI_FAILED;
}

/* All that is wrong with the file, in the order of its lines. `all` is empty if it is right. */
static int find_faults(gateway_config **ret, const char *path, json_t *notes, config_faults *all,
                       shoal_err *err)
{
    int rc = config_load_all(ret, &HOME_STAGES, path, all, err);
    if (rc == 0) rc = look_over(*ret, notes, err);
    if (rc == SHOAL_ENOMEM) return rc;
    if (rc != 0 && all->n == 0) rc = config_faults_add(all, SHOAL_EINVALID, err); /* no YAML, no file */
    config_faults_sort(all);
    return rc == SHOAL_ENOMEM ? rc : 0;
}

static int cmd_config_check(const char *path, bool json, shoal_err *err)
{
    gateway_config *c = NULL;
    json_t *notes = json_array();
    config_faults all = {0};
    int rc = notes ? find_faults(&c, path, notes, &all, err) : err_nomem(err);
    for (size_t i = 0; rc == 0 && i < all.n; i++) cli_say("shoal config: %s\n", all.list[i].sentence);
    if (rc == 0 && json)
        rc = say_json(path, notes, &all, err);
    else if (rc == 0 && all.n == 0)
        say_right(c, path, notes);
    else if (rc == 0)
        rc = CLI_FAILED;
    json_decref(notes);
    config_free(c);
    config_faults_done(&all);
    return rc;
}

/* ---- show -------------------------------------------------------------------------------------------- */

static int cmd_config_show(const char *path, bool json, shoal_err *err)
{
    gateway_config *c = NULL;
    json_t *tree = NULL;
    buf out = {0};
    int rc = config_load(&c, &HOME_STAGES, path, err);
    if (rc == 0) {
        http_limits_fill(&c->limits);
        rc = config_to_json(&tree, c, true, err);
    }
    if (rc == 0 && json)
        json_put(&out, tree), buf_putc(&out, '\n');
    else if (rc == 0)
        config_put_yaml(&out, tree);
    if (rc == 0 && out.failed) rc = err_nomem(err);
    if (rc == 0) fwrite(out.data, 1, out.len, stdout);
    buf_done(&out);
    json_decref(tree);
    config_free(c);
    return rc;
}

/* ---- docs -------------------------------------------------------------------------------------------- */

static int docs(const cli_args *a, shoal_err *err)
{
    buf out = {0};
    int rc = config_docs_put(&out, &HOME_STAGES, (const char *const *)a->v, (size_t)a->n, err);
    if (rc == 0) fwrite(out.data, 1, out.len, stdout);
    buf_done(&out);
    return rc;
}

/* ---- the command ------------------------------------------------------------------------------------- */

enum { KEYS_MAX = 64 };

static const cli_verb VERBS[] = {
    {"check", "[FILE]", "say whether shoal serve would take it, and if not, why and in which line", 0, 1},
    {"show", "[FILE]", "print it with its defaults and whole paths; secrets are hidden", 0, 1},
    {"docs", "[KEY...]", "print the reference of all keys, or of these, as a Markdown table", 0, KEYS_MAX},
    CLI_VERB_END};

static int (*const RUN[])(const char *path, bool json, shoal_err *err) = {cmd_config_check, cmd_config_show};

static int cmd_config_run(int argc, char **argv)
{
    bool json = false;
    const cli_option opts[] = {CLI_JSON(&json), CLI_END};
    cli_args a;
    shoal_err err = {0};
    const cli_verb *verb;
    char *usual = NULL;
    int rc = cli_parse_verb(&a, &verb, &cmd_config, opts, VERBS, argc, argv);
    if (rc != CLI_GO) return rc;
    size_t which = (size_t)(verb - VERBS);
    if (which == sizeof RUN / sizeof *RUN) {
        rc = docs(&a, &err);
    } else {
        rc = a.n > 0 ? 0 : cli_home_find(&usual, &err);
        if (rc == 0) rc = RUN[which](a.n > 0 ? a.v[0] : usual, json, &err);
    }
    free(usual);
    return rc < 0 ? cli_fail(&cmd_config, &err) : cli_flush(rc);
}

const cli_command cmd_config = {"config", "check a configuration, show it with its defaults, list all keys",
                                "check|show [FILE], docs [KEY...]", cmd_config_run, false};
