/* shoal process [TEXT]: what a running cluster makes of a request: a text, sound, a picture, a table; without
 * any of these, of each line of standard input. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "json/json.h"
#include "cli/commands.h"
#include "command/cli_model.h"
#include "command/cli_process.h"
#include "command/line_editor.h"

enum { DEVICES_MAX_BYTES = 1 << 20, FILE_MAX_BYTES = 128 << 20 };

typedef struct given { /* paths of files; NULL: none */
    const char *server, *text, *devices, *audio, *image, *csv;
} given;

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

/* What was shown: some text, whose last line may be open; some stage. */
typedef struct shown {
    bool any, open, stages;
} shown;

/* Each line behind the margin, as cli_process_print has it. */
static void show_live(void *user, const char *text, size_t n)
{
    shown *s = user;
    for (size_t i = 0; i < n;) {
        const char *end = memchr(text + i, '\n', n - i);
        size_t len = end ? (size_t)(end + 1 - text) - i : n - i;
        if (!s->open) fputs("  ", stdout);
        s->open = !end;
        cli_write(text + i, len);
        i += len;
    }
    s->any = true;
    fflush(stdout);
}

static void show_stage(void *user, const json_t *entry)
{
    shown *s = user;
    if (s->open) putchar('\n');
    s->open = false;
    s->stages = true;
    cli_process_print_stage(entry);
    fflush(stdout);
}

static int cmd_process_ask(const http_where *where, cli_process_ask *ask, bool json, shoal_err *err)
{
    shown s = {0};
    buf reply = {0};
    json_t *parsed = NULL;
    if (!json && isatty(STDOUT_FILENO)) {
        ask->live = show_live;
        ask->stage = show_stage;
        ask->user = &s;
    }
    int rc = cli_process_send(where, ask, &reply, err);
    if (s.open) putchar('\n');
    if (rc == 0) rc = json_parse(&parsed, reply.data, reply.len, "the answer", err);
    if (rc == 0 && json)
        cli_printf("%s\n", reply.data);
    else if (rc == 0)
        cli_process_print(parsed, s.any, s.stages);
    json_decref(parsed);
    buf_done(&reply);
    return rc;
}

/* Each line is a request; what one is refused for is said, and the next one has its turn. *ret_failed: how
 * many. */
static int ask_lines(const http_where *where, cli_process_ask *with, bool json, size_t *ret_failed,
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
        if (!json && !person) printf("%s> %s\n", n ? "\n" : "", line);
        n++;
        rc = cmd_process_ask(where, with, json, err);
        fflush(stdout);
        if (rc == 0 || rc == SHOAL_ENOMEM || strncmp(err->message, "no Shoal", 8) == 0) continue;
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

static int cmd_process_answer(const given *g, cli_process_ask *with, bool json, size_t *ret_failed,
                              shoal_err *err)
{
    buf read[5] = {{0}};
    http_where where;
    bool lines = !g->text && !g->audio && !g->image && !g->csv;
    int rc = cli_process_where(&where, g->server, err);
    if (rc == 0) rc = take_all(g, with, read, err);
    if (rc == 0)
        rc =
            lines ? ask_lines(&where, with, json, ret_failed, err) : cmd_process_ask(&where, with, json, err);
    for (size_t i = 0; i < 5; i++) buf_done(&read[i]);
    return rc;
}

static int cmd_process_run(int argc, char **argv)
{
    given g = {0};
    bool json = false;
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
        CLI_JSON(&json),
        CLI_END,
    };
    cli_args a;
    int rc = cli_parse(&a, &cmd_process, options, 0, 1, argc, argv);
    if (rc != CLI_GO) return rc;
    shoal_err err = {0};
    size_t n_failed = 0;
    g.text = a.n ? a.v[0] : NULL;
    rc = cmd_process_answer(&g, &with, json, &n_failed, &err);
    return rc ? cli_fail(&cmd_process, &err) : cli_flush(n_failed ? CLI_FAILED : CLI_OK);
}

const cli_command cmd_process = {"process", "send a request to a running cluster's pipeline", "[TEXT]",
                                 cmd_process_run, false};
