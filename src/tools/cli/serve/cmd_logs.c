/* shoal logs: what a running Shoal has logged, and with -f what it logs from now on. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "logging/tty_style.h"
#include "json/json.h"
#include "cli/commands.h"
#include "command/cli_process.h"
#include "command/sse_client.h"
#include "view/log_view.h"

typedef struct view {
    log_form form;
    bool colour;
} view;

/* Not 0: nobody reads. */
static int cmd_logs_show(const view *v, const char *line, size_t n)
{
    buf out = {0};
    if (v->form == LOG_FORM_JSON || !log_view_put(&out, v->form, cli_columns(80), v->colour, line, n)) {
        if (v->form == LOG_FORM_JSON) cli_printf("%.*s\n", (int)n, line);
    } else {
        fwrite(out.data, 1, out.len, stdout); /* sanitised, with its colours */
    }
    buf_done(&out);
    return ferror(stdout);
}

static int cmd_logs_on_event(void *user, const sse_event *e)
{
    int rc = cmd_logs_show(user, e->data, e->n_data);
    return rc || fflush(stdout) != 0;
}

static int show_kept(const view *v, const http_where *where, const char *path, const char *key,
                     shoal_err *err)
{
    buf answer = {0};
    json_t *parsed = NULL, *line;
    size_t i;
    int rc = cli_process_get(where, path, key, &answer, err);
    if (rc == 0) rc = json_parse(&parsed, answer.data, answer.len, "the answer", err);
    json_array_foreach(json_object_get(parsed, "lines"), i, line)
    {
        char *text = json_dumps(line, JSON_COMPACT | JSON_REAL_PRECISION(6));
        if (text) cmd_logs_show(v, text, strlen(text));
        free(text);
    }
    json_decref(parsed);
    buf_done(&answer);
    return rc;
}

static sse_client following;

static void cmd_logs_on_signal(int number)
{
    (void)number;
    sse_client_stop(&following);
}

static int follow(const view *v, const http_where *where, const char *path, const char *key, shoal_err *err)
{
    struct sigaction act = {.sa_handler = cmd_logs_on_signal};
    following = (sse_client){.event = cmd_logs_on_event, .user = (void *)v, .http.fd = -1};
    sigaction(SIGINT, &act, NULL);
    sigaction(SIGTERM, &act, NULL);
    int rc = sse_client_ask(&following, where, path, NULL, key, err);
    if (rc == SHOAL_ECANCELLED) return 0;
    return rc == 0 && !following.enough ? err_set(err, SHOAL_EUNAVAILABLE, "the server has ended") : rc;
}

static log_form choose_form(bool json)
{
    const char *form = getenv("SHOAL_LOG");
    if (json) return LOG_FORM_JSON;
    if (isatty(STDOUT_FILENO) || tty_style_always()) return LOG_FORM_TERMINAL;
    return form && strcmp(form, "pairs") == 0 ? LOG_FORM_PAIRS : LOG_FORM_JSON;
}

static int cmd_logs_run(int argc, char **argv)
{
    const char *server = NULL, *key = getenv("SHOAL_API_KEY"), *level = "info", *color = NULL;
    bool json = false, follows = false;
    long long lines = 100;
    const cli_option options[] = {
        CLI_FLAG('f', "follow", "go on with what is logged from now on", &follows),
        CLI_INT('n', "lines", "N", 0, 10000, "the last N lines [100]", &lines),
        CLI_STRING(0, "level", "LEVEL", "debug, info, warn or error, and above [info]", &level),
        CLI_SERVER(&server),
        CLI_KEY(&key),
        CLI_COLOR(&color),
        CLI_FLAG(0, "json", "JSON lines on a terminal, too", &json),
        CLI_END,
    };
    cli_args a;
    int rc = cli_parse(&a, &cmd_logs, options, 0, 0, argc, argv);
    if (rc != CLI_GO) return rc;
    shoal_err err = {0};
    http_where where;
    char path[80];
    int known = log_level_parse(level);
    rc = tty_style_choose(color, &err);
    if (rc == 0 && (known < 0 || known == LOG_OFF))
        rc = err_set(&err, SHOAL_EINVALID, "--level is debug, info, warn or error, not '%.40s'", level);
    if (rc == 0) rc = cli_process_where(&where, server, &err);
    const view v = {.form = choose_form(json), .colour = tty_style_shows(STDOUT_FILENO)};
    snprintf(path, sizeof path, "/v1/logs?lines=%lld&level=%s%s", lines,
             known < 0 ? "" : log_level_name(known), follows ? "&follow=true" : "");
    if (rc == 0) rc = (follows ? follow : show_kept)(&v, &where, path, key, &err);
    return cli_flush(rc == 0 ? CLI_OK : cli_fail(&cmd_logs, &err));
}

const cli_command cmd_logs = {"logs", "show what a running Shoal has logged, or follow it", "", cmd_logs_run,
                              false};
