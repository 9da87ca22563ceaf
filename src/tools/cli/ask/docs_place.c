/* docs_place.c: see docs_place.h. */
#define _GNU_SOURCE
#include "cli/ask/docs_place.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "json/json.h"
#include "command/cli_home.h"
#include "command/cli_process.h"

enum { PATIENCE_S = 3600, LOG_MAX = 1 << 20 };

/* ---- a server of our own ------------------------------------------------------------------------------- */

static void run_child(const char *config, const char *folder, int ready)
{
    char socket_[96], log[96];
    snprintf(socket_, sizeof socket_, "unix:%s/socket", folder);
    snprintf(log, sizeof log, "%s/log", folder);
    prctl(PR_SET_PDEATHSIG, SIGTERM); /* it does not outlive us */
    int out = open(log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (out < 0 || dup2(ready, STDOUT_FILENO) < 0 || dup2(out, STDERR_FILENO) < 0) _exit(127);
    execl("/proc/self/exe", "shoal", "serve", "-c", config, "-l", socket_, (char *)NULL);
    _exit(127);
}

/* The reason is the last error of its log. */
static int why_it_ended(const docs_place *at, shoal_err *err)
{
    char path[96];
    buf log = {0};
    snprintf(path, sizeof path, "%s/log", at->folder);
    file_read(&log, path, LOG_MAX, NULL);
    while (log.len && log.data[log.len - 1] == '\n') log.data[--log.len] = 0;
    const char *last = log.len ? strrchr(log.data, '\n') : NULL;
    int rc = err_set(err, SHOAL_EUNAVAILABLE, "no server runs, and one of our own did not start: %.300s",
                     last      ? last + 1
                     : log.len ? log.data
                               : "it said nothing");
    buf_done(&log);
    return rc;
}

/* Its first line says that every model is there. */
static int await_child(docs_place *at, int ready, shoal_err *err)
{
    char c;
    ssize_t n;
    do n = read(ready, &c, 1);
    while (n == 1 ? c != '\n' : n < 0 && errno == EINTR);
    return n == 1 ? 0 : why_it_ended(at, err);
}

static int start_own(docs_place *at, shoal_err *err)
{
    char *config = NULL;
    int ends[2], rc = cli_home_find(&config, err);
    if (rc != 0) return rc;
    snprintf(at->folder, sizeof at->folder, "/tmp/shoal-docs-XXXXXX");
    if (!mkdtemp(at->folder)) {
        *at->folder = 0;
        rc = err_set(err, SHOAL_EIO, "/tmp: %s", strerror(errno));
    } else if (pipe2(ends, O_CLOEXEC) != 0) {
        rc = err_set(err, SHOAL_EIO, "pipe: %s", strerror(errno));
    } else {
        at->child = fork();
        if (at->child == 0) run_child(config, at->folder, ends[1]);
        close(ends[1]);
        rc = at->child > 0 ? await_child(at, ends[0], err)
                           : err_set(err, SHOAL_EIO, "fork: %s", strerror(errno));
        close(ends[0]);
    }
    free(config);
    return rc;
}

static void stop_own(docs_place *at)
{
    char path[96];
    if (at->child > 0) {
        kill(at->child, SIGTERM);
        while (waitpid(at->child, NULL, 0) < 0 && errno == EINTR) {
        }
    }
    for (size_t i = 0; *at->folder && i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", at->folder, i ? "log" : "socket");
        unlink(path);
    }
    if (*at->folder) rmdir(at->folder);
}

/* ---- asking ----------------------------------------------------------------------------------------- */

static int make_headers(docs_place *at, const char *key, shoal_err *err)
{
    buf_printf(&at->headers, "x-shoal-deadline-ms: %d\r\n", PATIENCE_S * 1000);
    return cli_process_headers(&at->headers, key, err);
}

static int refused(int status, const char *json, size_t n, shoal_err *err)
{
    json_t *o = NULL;
    int code = status == 404   ? SHOAL_ENOTFOUND
               : status == 413 ? SHOAL_ELIMIT
               : status < 500  ? SHOAL_EINVALID
                               : SHOAL_EUNAVAILABLE;
    const char *why = json_parse(&o, json, n, "the answer", NULL) == 0
                          ? json_string_value(json_object_get(json_object_get(o, "error"), "message"))
                          : NULL;
    err_set(err, code, "%s%s", why ? why : "the server refuses without a reason",
            status == 401   ? "; give the key with --key or SHOAL_API_KEY"
            : status == 413 ? "; retrieval.max_document_mb of its configuration says how much"
                            : "");
    json_decref(o);
    return code;
}

int docs_place_call(docs_place *at, const char *method, const char *path, const char *body, size_t n,
                    buf *ret_json, shoal_err *err)
{
    at->client.until_ns = clock_ns() + PATIENCE_S * 1000000000ull;
    http_ask ask = {.method = method, .path = path, .body = body, .n_body = n, .headers = at->headers.data};
    int rc = http_client_exchange(&at->client, &ask, err);
    if (rc != 0) return rc;
    const buf *b = &at->client.body;
    if (at->client.status != 200) return refused(at->client.status, b->data ? b->data : "", b->len, err);
    return ret_json && buf_append(ret_json, b->data, b->len) != 0 ? err_nomem(err) : 0;
}

static int find_server(docs_place *at, const char *server, shoal_err *err)
{
    http_where where;
    int status, rc = cli_process_where(&where, server, err);
    if (rc == 0) rc = http_client_once(&where, &(http_ask){.path = "/healthz"}, &status, NULL, err);
    if (rc == SHOAL_EUNAVAILABLE && !cli_process_named(server)) {
        fprintf(stderr, "shoal docs: no server runs: starting one for this command\n");
        rc = start_own(at, err);
        char url[96];
        snprintf(url, sizeof url, "unix:%s/socket", at->folder);
        if (rc == 0) rc = http_where_parse(&where, url, err);
    }
    if (rc == SHOAL_EUNAVAILABLE) rc = cli_process_nobody(err);
    if (rc == 0) http_client_init(&at->client, &where);
    return rc;
}

int docs_place_open(docs_place *ret, const char *server, const char *key, shoal_err *err)
{
    *ret = (docs_place){.client.fd = -1};
    int rc = find_server(ret, server, err);
    if (rc == 0) rc = make_headers(ret, key, err);
    if (rc != 0) docs_place_close(ret);
    return rc;
}

void docs_place_close(docs_place *at)
{
    http_client_done(&at->client);
    stop_own(at);
    buf_done(&at->headers);
    *at = (docs_place){.client.fd = -1};
}
