/* sse_client.c: see sse_client.h; the format is that of the HTML standard, "Server-sent events". Shoal's
 * events have one line of data each. */
#include "command/sse_client.h"

#include <string.h>
#include <sys/socket.h>

#include "json/json.h"
#include "command/cli_process.h"

static void take_line(sse_event *e, const char *line, size_t n)
{
    const struct {
        const char *name;
        const char **at;
        size_t *n;
    } fields[] = {
        {"event:", &e->name, &e->n_name}, {"data:", &e->data, &e->n_data}, {"id:", &e->id, &e->n_id}};
    if (n > 0 && line[n - 1] == '\r') n--;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        size_t skip = strlen(fields[i].name);
        if (n < skip || memcmp(line, fields[i].name, skip) != 0) continue;
        if (n > skip && line[skip] == ' ') skip++;
        *fields[i].at = line + skip;
        *fields[i].n = n - skip;
    }
}

size_t sse_event_read(sse_event *ret, const char *s, size_t n)
{
    *ret = (sse_event){.name = "", .data = "", .id = ""};
    for (size_t at = 0; at < n;) {
        const char *eol = memchr(s + at, '\n', n - at);
        if (!eol) return 0;
        size_t len = (size_t)(eol - s) - at;
        if (len == 0 || (len == 1 && s[at] == '\r')) return (size_t)(eol + 1 - s);
        take_line(ret, s + at, len);
        at = (size_t)(eol + 1 - s);
    }
    return 0;
}

void sse_client_stop(sse_client *c)
{
    c->stopped = 1;
    if (c->http.fd >= 0) shutdown(c->http.fd, SHUT_RDWR);
}

static void on_piece(void *user, size_t n_bytes)
{
    sse_client *c = user;
    buf *b = &c->http.body;
    size_t at = 0;
    sse_event e;
    if (c->http.status != 200) return; /* its body is a reason, in one piece */
    for (size_t n; !c->enough && !c->stopped && (n = sse_event_read(&e, b->data + at, b->len - at)) > 0;
         at += n)
        if (e.n_data) c->enough = c->event(c->user, &e) != 0;
    if (at) buf_consume(b, at);
    c->too_long = b->len > SSE_EVENT_MAX;
    if (c->enough || c->too_long || c->stopped) shutdown(c->http.fd, SHUT_RDWR);
}

static int finish(sse_client *c, int rc, shoal_err *err)
{
    json_t *answer = NULL;
    if (c->stopped) return err_set(err, SHOAL_ECANCELLED, "stopped");
    if (c->too_long) return err_set(err, SHOAL_EPROTOCOL, "an event of the stream has no end");
    if (c->enough) return 0;
    if (rc == SHOAL_EUNAVAILABLE) return cli_process_nobody(err);
    if (rc == 0 && c->http.status != 200) {
        json_parse(&answer, c->http.body.data ? c->http.body.data : "", c->http.body.len, "the answer", NULL);
        rc = cli_process_refused(c->http.status, answer, err);
        json_decref(answer);
    }
    return rc;
}

int sse_client_ask(sse_client *c, const http_where *where, const char *path, const char *body,
                   const char *key, shoal_err *err)
{
    buf headers = {0};
    http_client_init(&c->http, where);
    c->http.piece = on_piece;
    c->http.piece_user = c;
    c->enough = c->too_long = false;
    buf_puts(&headers, "accept: text/event-stream\r\n");
    int rc = cli_process_headers(&headers, key, err);
    http_ask ask = {.path = path, .body = body, .headers = headers.data};
    if (rc == 0) rc = finish(c, http_client_exchange(&c->http, &ask, err), err);
    http_client_done(&c->http);
    c->http.fd = -1;
    buf_done(&headers);
    return rc;
}
