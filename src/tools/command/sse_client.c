/* sse_client.c: see sse_client.h. */
#include "command/sse_client.h"

#include <string.h>
#include <sys/socket.h>

#include "json/json.h"
#include "command/cli_process.h"

void sse_client_stop(sse_client *c)
{
    c->stopped = 1;
    if (c->http.fd >= 0) shutdown(c->http.fd, SHUT_RDWR);
}

static void sse_client_on_piece(void *user, size_t n_bytes)
{
    sse_client *c = user;
    buf *b = &c->http.body;
    size_t at = 0;
    sse_event e;
    if (c->http.status != 200) return; /* its body is a reason, in one piece */
    for (size_t n; !c->enough && !c->stopped && (n = sse_read(&e, b->data + at, b->len - at)) > 0; at += n)
        if (e.n_data) c->enough = c->event(c->user, &e) != 0;
    if (at) buf_consume(b, at);
    c->too_long = b->len > SSE_EVENT_MAX;
    if (c->enough || c->too_long || c->stopped) shutdown(c->http.fd, SHUT_RDWR);
}

static int sse_client_finish(sse_client *c, int rc, shoal_err *err)
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
    c->http.piece = sse_client_on_piece;
    c->http.piece_user = c;
    c->enough = c->too_long = false;
    buf_puts(&headers, "accept: text/event-stream\r\n");
    int rc = cli_process_headers(&headers, key, err);
    http_ask ask = {.path = path, .body = body, .headers = headers.data};
    if (rc == 0) rc = sse_client_finish(c, http_client_exchange(&c->http, &ask, err), err);
    http_client_done(&c->http);
    c->http.fd = -1;
    buf_done(&headers);
    return rc;
}
