/* shoal process [TEXT]: what a running cluster makes of a request: a text, sound, a picture, a table; without
 * any of these, of each line of standard input. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "json/json.h"
#include "logging/fold.h"
#include "cli/commands.h"
#include "command/cli_model.h"
#include "command/cli_process.h"
#include "command/line_editor.h"

enum { DEVICES_MAX_BYTES = 1 << 20, FILE_MAX_BYTES = 128 << 20 };

typedef struct given { /* paths of files; NULL: none */
    const char *server, *text, *devices, *audio, *image, *csv;
} given;

typedef struct form { /* of the answer */
    bool json, trace;
} form;

/* A file that goes along; *ret stays NULL without a path. */
static int take_file(const char *path, buf *to, const buf **ret, shoal_err *err)
{
    if (!path) return 0;
    int rc = file_read(to, strcmp(path, "-") == 0 ? "/dev/stdin" : path, FILE_MAX_BYTES, err);
    if (rc == 0 && to->len == 0) rc = err_set(err, SHOAL_EINVALID, "%s: the file is empty", path);
    if (rc == 0) *ret = to;
    return rc;
}

static int take_all(const given *g, cli_process_ask *ask, buf text[5], shoal_err *err)
{
    int rc = g->text ? cli_text(&text[0], g->text, err) : 0;
    if (rc == 0 && g->devices) rc = file_read(&text[1], g->devices, DEVICES_MAX_BYTES, err);
    ask->text = g->text ? text[0].data : NULL;
    ask->devices = g->devices ? text[1].data : NULL;
    if (rc == 0) rc = take_file(g->audio, &text[2], &ask->audio, err);
    if (rc == 0) rc = take_file(g->image, &text[3], &ask->image, err);
    return rc == 0 ? take_file(g->csv, &text[4], &ask->csv, err) : rc;
}

/* The text, shown as it comes: each line behind the margin, as cli_process_print has it. */
typedef struct shown {
    fold fold;
    bool any;
} shown;

static void put_rows(buf *rows)
{
    if (rows->len) cli_write(rows->data, rows->len);
    buf_done(rows);
}

static void show_live(void *user, const char *text, size_t n)
{
    shown *s = user;
    buf rows = {0};
    fold_put(&s->fold, &rows, text, n);
    put_rows(&rows);
    s->any = true;
    fflush(stdout);
}

static void end_live(shown *s)
{
    buf rows = {0};
    bool open = s->fold.at > 0 || s->fold.held.len > 0;
    fold_end(&s->fold, &rows);
    if (open) buf_putc(&rows, '\n');
    put_rows(&rows);
}

static int cmd_process_ask(const http_where *where, cli_process_ask *ask, form as, shoal_err *err)
{
    shown s = {.fold = {.width = cli_columns(0), .margin = 2}};
    buf reply = {0};
    json_t *parsed = NULL;
    if (!as.json && isatty(STDOUT_FILENO)) {
        ask->live = show_live;
        ask->user = &s;
    }
    int rc = cli_process_send(where, ask, &reply, err);
    end_live(&s);
    if (rc == 0) rc = json_parse(&parsed, reply.data, reply.len, "the answer", err);
    if (rc == 0 && as.json)
        cli_printf("%s\n", reply.data);
    else if (rc == 0)
        cli_process_print(parsed, s.any, as.trace);
    json_decref(parsed);
    buf_done(&reply);
    return rc;
}

/* Each line is a request; what one is refused for is said, and the next one has its turn. *ret_failed: how
 * many. */
static int ask_lines(const http_where *where, cli_process_ask *with, form as, size_t *ret_failed,
                     shoal_err *err)
{
    bool person = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
    uint64_t drawn[2];
    char session[33];
    rng_bytes(drawn, sizeof drawn);
    snprintf(session, sizeof session, "%016llx%016llx", (unsigned long long)drawn[0],
             (unsigned long long)drawn[1]);
    with->session = session; /* "yes" is an answer to the line before */
    line_editor *e = NULL;
    const char *line;
    size_t n = 0;
    int rc = line_editor_open(&e, &(line_editor_options){.prompt = "> ", .edit = person}, err);
    while (rc == 0 && line_editor_read(e, &line)) {
        if (!line[strspn(line, " \t\r")]) continue;
        with->text = line;
        if (!as.json && !person) printf("%s> %s\n", n ? "\n" : "", line);
        n++;
        rc = cmd_process_ask(where, with, as, err);
        fflush(stdout);
        if (rc == 0 || cli_process_ends(rc, err)) continue;
        cli_say("shoal process: %s\n", err->message);
        ++*ret_failed;
        rc = 0;
    }
    with->session = NULL;
    line_editor_close(e);
    if (rc == 0 && n == 0 && !person)
        rc = err_set(err, SHOAL_EINVALID,
                     "give a TEXT, lines on standard input, or --audio, --image or --csv with a FILE");
    return rc;
}

static int cmd_process_answer(const given *g, cli_process_ask *with, form as, size_t *ret_failed,
                              shoal_err *err)
{
    buf read[5] = {{0}};
    http_where where;
    bool lines = !g->text && !g->audio && !g->image && !g->csv;
    int rc = cli_process_where(&where, g->server, err);
    if (rc == 0) rc = take_all(g, with, read, err);
    if (rc == 0)
        rc = lines ? ask_lines(&where, with, as, ret_failed, err) : cmd_process_ask(&where, with, as, err);
    for (size_t i = 0; i < 5; i++) buf_done(&read[i]);
    return rc;
}

static int cmd_process_run(int argc, char **argv)
{
    given g = {0};
    form as = {0};
    cli_process_ask with = {.key = getenv("SHOAL_API_KEY")};
    const cli_option options[] = {
        CLI_STRING('p', "pipeline", "NAME", "the pipeline to run (needed when there are several)",
                   &with.pipeline),
        CLI_SERVER(&g.server),
        CLI_STRING('d', "devices", "FILE", "the home's devices: JSON, or lines: id 'Name' = state",
                   &g.devices),
        CLI_STRING('a', "audio", "FILE", "sound that is listened to; - reads standard input", &g.audio),
        CLI_STRING('i', "image", "FILE", "a picture, PNG or JPEG", &g.image),
        CLI_STRING(0, "csv", "FILE", "a table or series, with a header", &g.csv),
        CLI_KEY(&with.key),
        CLI_FLAG(0, "trace", "show what ran, why and for how long, behind the answer", &as.trace),
        CLI_JSON(&as.json),
        CLI_END,
    };
    cli_args a;
    int rc = cli_parse(&a, &cmd_process, options, 0, 1, argc, argv);
    if (rc != CLI_GO) return rc;
    shoal_err err = {0};
    size_t n_failed = 0;
    g.text = a.n ? a.v[0] : NULL;
    rc = cmd_process_answer(&g, &with, as, &n_failed, &err);
    return rc ? cli_fail(&cmd_process, &err) : cli_flush(n_failed ? CLI_FAILED : CLI_OK);
}

const cli_command cmd_process = {"process", "send a request to a running cluster's pipeline", "[TEXT]",
                                 cmd_process_run, false};
