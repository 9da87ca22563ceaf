/* cmd_top.c: `shoal top`: what a running Shoal does, drawn anew each second on a terminal, or as blocks of
 * lines. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/clock.h"
#include "logging/sanitise.h"
#include "json/json.h"
#include "cli/commands.h"
#include "client/http_client.h"
#include "command/cli_model.h"
#include "command/cli_process.h"
#include "view/top_view.h"

#define STATUS_MAX_BYTES ((size_t)64 << 20)

typedef struct top {
    http_client client;
    const char *url;
    char headers[600];
    bool json, once, drawn; /* drawn: on a terminal */
    long long interval_ms;
    json_t *now, *before;
    uint64_t now_ns, before_ns;
} top;

static volatile sig_atomic_t stopped;

static void cmd_top_on_signal(int sig)
{
    stopped = 1;
}

/* ---- looking ------------------------------------------------------------------------------------- */

static int cmd_top_refuse(const top *t, shoal_err *err)
{
    if (t->client.status == 401)
        return err_set(err, SHOAL_EUNAVAILABLE,
                       "%s wants an API key: give one with --key or in SHOAL_API_KEY", t->url);
    return err_set(err, SHOAL_EPROTOCOL, "%s answered GET /v1/status with %d: is it a Shoal of this version?",
                   t->url, t->client.status);
}

static int cmd_top_look(top *t, shoal_err *err)
{
    json_t *status = NULL;
    http_ask ask = {.method = "GET", .path = "/v1/status", .headers = *t->headers ? t->headers : NULL};
    int rc = http_client_exchange(&t->client, &ask, err);
    if (rc == SHOAL_EUNAVAILABLE) rc = cli_process_nobody(err);
    if (rc == 0 && t->client.status != 200) rc = cmd_top_refuse(t, err);
    if (rc == 0 && t->client.body.len > STATUS_MAX_BYTES)
        rc = err_set(err, SHOAL_ELIMIT, "%s: its status is over %zu bytes long", t->url, STATUS_MAX_BYTES);
    if (rc == 0) rc = json_parse(&status, t->client.body.data, t->client.body.len, t->url, err);
    if (rc != 0) return rc;
    json_decref(t->before);
    t->before = t->now;
    t->before_ns = t->now_ns;
    t->now = status;
    t->now_ns = clock_ns();
    return 0;
}

/* ---- showing ------------------------------------------------------------------------------------- */

static double seconds(const top *t)
{
    return t->before ? (double)(t->now_ns - t->before_ns) / 1e9 : 0;
}

static int cmd_top_print_json(const top *t, shoal_err *err)
{
    json_t *all = top_view_json(t->now, t->before, seconds(t));
    if (!all) return err_nomem(err);
    int rc = cli_print_json(all, JSON_COMPACT | JSON_REAL_PRECISION(12));
    json_decref(all);
    return rc == CLI_OK ? 0 : err_set(err, SHOAL_EIO, "the answer could not be written");
}

/* The last row of the window, where it has several. */
static void put_keys(buf *out, const top *t, size_t width)
{
    size_t from = out->len;
    buf_printf(out, "q or Ctrl-C leaves, space looks at once; every %g s", (double)t->interval_ms / 1e3);
    sanitise_line(out, from, width);
}

static int print_lines(const top *t, shoal_err *err)
{
    buf out = {0};
    struct winsize size = {0};
    ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
    bool keys = t->drawn && size.ws_row != 1 && size.ws_row != 2;
    size_t height = t->drawn && size.ws_row ? (size_t)size.ws_row - keys : 0;
    top_view_put(&out, t->now, t->before, seconds(t), size.ws_col, height);
    if (keys) put_keys(&out, t, size.ws_col);
    int rc = out.failed ? err_nomem(err) : 0;
    if (rc == 0 && t->drawn) fputs("\x1b[H", stdout);
    for (size_t at = 0; rc == 0 && at < out.len;) {
        size_t n = strcspn(out.data + at, "\n");
        bool last = at + n + 1 >= out.len;
        fwrite(out.data + at, 1, n, stdout);
        if (t->drawn) fputs("\x1b[K", stdout);
        if (!t->drawn || !last) putchar('\n'); /* on the last line of a terminal it would scroll */
        at += n + 1;
    }
    if (rc == 0 && t->drawn) fputs("\x1b[J", stdout);
    if (!t->drawn && !t->once) putchar('\n');
    buf_done(&out);
    return rc;
}

/* What went wrong stands where the table stood, and the next look may go well. */
static void print_trouble(const shoal_err *err)
{
    fputs("\x1b[H", stdout);
    cli_printf("%s", err->message);
    fputs("\x1b[K\n\x1b[J", stdout);
}

/* ---- waiting ------------------------------------------------------------------------------------- */

/* False: it is time to leave. A change of the window's size draws anew. */
static bool wait_ms(const top *t, long long ms)
{
    struct pollfd in = {.fd = t->drawn ? STDIN_FILENO : -1, .events = POLLIN};
    uint64_t end = clock_ns() + (uint64_t)ms * 1000000u;
    char key;
    while (!stopped) {
        uint64_t now = clock_ns();
        if (now >= end) return true;
        int n = poll(&in, 1, (int)((end - now + 999999) / 1000000));
        if (n < 0 && errno == EINTR) return !stopped;
        if (n > 0 && (read(STDIN_FILENO, &key, 1) <= 0 || key == 'q' || key == 'Q')) return false;
        if (n > 0 && key == ' ') return true;
    }
    return false;
}

static void on_resize(int sig) {}

static int cmd_top_enter(struct termios *before)
{
    struct termios raw;
    struct sigaction stop = {.sa_handler = cmd_top_on_signal}, resize = {.sa_handler = on_resize};
    sigaction(SIGINT, &stop, NULL);
    sigaction(SIGTERM, &stop, NULL);
    sigaction(SIGHUP, &stop, NULL);
    sigaction(SIGWINCH, &resize, NULL);
    if (tcgetattr(STDIN_FILENO, before) != 0) return -1;
    raw = *before;
    raw.c_lflag &= (tcflag_t) ~(ICANON | ECHO);
    tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    fputs("\x1b[?1049h\x1b[?25l\x1b[2J", stdout); /* the other screen, no cursor */
    return 0;
}

static void cmd_top_leave(const struct termios *before)
{
    fputs("\x1b[?25h\x1b[?1049l", stdout);
    fflush(stdout);
    tcsetattr(STDIN_FILENO, TCSANOW, before);
}

static int cmd_top_watch(top *t, shoal_err *err)
{
    int rc = cmd_top_look(t, err);
    while (rc == 0 && wait_ms(t, t->interval_ms)) {
        rc = cmd_top_look(t, err);
        if (rc == 0) rc = t->json ? cmd_top_print_json(t, err) : print_lines(t, err);
        if (rc != 0 && t->drawn) {
            print_trouble(err);
            rc = 0;
        }
        fflush(stdout);
        if (t->once || ferror(stdout)) break;
    }
    return rc;
}

static int run_top(top *t, shoal_err *err)
{
    struct termios before;
    t->drawn = t->drawn && cmd_top_enter(&before) == 0;
    int rc = cmd_top_watch(t, err);
    if (t->drawn) cmd_top_leave(&before);
    http_client_done(&t->client);
    json_decref(t->now);
    json_decref(t->before);
    return rc;
}

static int cmd_top_run(int argc, char **argv)
{
    const char *url = NULL, *key = getenv("SHOAL_API_KEY");
    top t = {.interval_ms = 1000};
    const cli_option options[] = {
        CLI_SERVER(&url),
        CLI_URL(&url),
        CLI_STRING('k', "key", "KEY", "its API key [SHOAL_API_KEY]", &key),
        CLI_INT('i', "interval", "MS", 100, 3600000, "from one look to the next [1000]", &t.interval_ms),
        CLI_FLAG('1', "once", "one block of lines, and leave", &t.once),
        CLI_JSON(&t.json),
        CLI_END,
    };
    cli_args a;
    int rc = cli_parse(&a, &cmd_top, options, 0, 0, argc, argv);
    if (rc != CLI_GO) return rc;
    shoal_err err = {0};
    http_where where;
    if ((rc = cli_process_where(&where, url, &err)) != 0) return cli_fail(&cmd_top, &err);
    if (key && (strlen(key) > 500 || strpbrk(key, "\r\n"))) {
        err_set(&err, SHOAL_EINVALID, "--key: an API key is one line of at most 500 bytes");
        return cli_fail(&cmd_top, &err);
    }
    if (key) snprintf(t.headers, sizeof t.headers, "authorization: Bearer %s\r\n", key);
    t.url = url ? url : "the server";
    t.drawn = !t.once && !t.json && isatty(STDOUT_FILENO) && isatty(STDIN_FILENO);
    http_client_init(&t.client, &where);
    rc = run_top(&t, &err);
    return cli_flush(rc == 0 ? CLI_OK : cli_fail(&cmd_top, &err));
}

const cli_command cmd_top = {"top", "watch what a running Shoal does: replicas, tokens/s, queues, moves", "",
                             cmd_top_run, false};
