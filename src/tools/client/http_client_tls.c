/* http_client_tls.c: TLS between an http_client and its socket; see http_client_impl.h. */
#include <stdlib.h>

#include "client/http_client_impl.h"
#include "wire/tls_link.h"

enum { RAW_BYTES = 16384 };

struct http_client_tls {
    tls_context *context; /* with the CAs, which are read once */
    tls_link *link;       /* of this connection; NULL: there is none */
    buf out;              /* ciphertext on its way */
};

static int broken(const http_client *c, shoal_err *err)
{
    return err_set(err, SHOAL_EPROTOCOL, "https://%s:%d: %s", c->where.host, c->where.port,
                   tls_link_why(c->tls->link));
}

static int flush(http_client *c, shoal_err *err)
{
    struct http_client_tls *t = c->tls;
    buf_clear(&t->out);
    tls_link_take(t->link, &t->out);
    return t->out.failed ? err_nomem(err) : http_client_send_raw(c, buf_text(&t->out), t->out.len, err);
}

/* More ciphertext, for a link that waits for it. */
static int feed(http_client *c, shoal_err *err)
{
    uint8_t raw[RAW_BYTES];
    size_t n = 0;
    int rc = flush(c, err);
    if (rc == 0) rc = http_client_receive_raw(c, raw, sizeof raw, &n, err);
    return rc == 0 && tls_link_feed(c->tls->link, raw, n) != 0 ? err_nomem(err) : rc;
}

static int shake_hands(http_client *c, shoal_err *err)
{
    size_t n;
    uint8_t none;
    for (;;) {
        tls_step step = tls_link_step(c->tls->link, &none, sizeof none, &n);
        if (step == TLS_OPENED) return flush(c, err);
        if (step == TLS_BROKEN) {
            shoal_err unsent;
            (void)flush(c, &unsent); /* the alert says why */
            return broken(c, err);
        }
        int rc = feed(c, err);
        if (rc != 0) return rc;
    }
}

int http_client_tls_begin(http_client *c, shoal_err *err)
{
    const tls_options o = {.ca_file = c->where.ca_file, .web = true};
    const tls_target to = {.name = c->where.host, .alpn = "http/1.1"};
    if (!c->tls && !(c->tls = calloc(1, sizeof *c->tls))) return err_nomem(err);
    http_client_tls_end(c);
    int rc = c->tls->context ? 0 : tls_context_new(&c->tls->context, TLS_CLIENT, &o, err);
    if (rc == 0) rc = tls_link_new(&c->tls->link, c->tls->context, &to, err);
    return rc == 0 ? shake_hands(c, err) : rc;
}

int http_client_tls_send(http_client *c, const char *bytes, size_t n, shoal_err *err)
{
    struct http_client_tls *t = c->tls;
    buf_clear(&t->out);
    if (tls_link_write(t->link, bytes, n, &t->out) != 0) return broken(c, err);
    return t->out.failed ? err_nomem(err) : http_client_send_raw(c, buf_text(&t->out), t->out.len, err);
}

int http_client_tls_receive(http_client *c, void *bytes, size_t cap, size_t *ret_n, shoal_err *err)
{
    for (;;) {
        switch (tls_link_step(c->tls->link, bytes, cap, ret_n)) {
        case TLS_PLAIN: return 0;
        case TLS_ENDED: c->ended = true; return err_set(err, SHOAL_EIO, "the server closed the connection");
        case TLS_BROKEN: return broken(c, err);
        default: break;
        }
        int rc = feed(c, err);
        c->ended = false; /* an end that the server has not signed could be anybody's */
        if (rc != 0) return rc;
    }
}

void http_client_tls_end(http_client *c)
{
    if (!c->tls) return;
    tls_link_free(c->tls->link);
    c->tls->link = NULL;
}

void http_client_tls_done(http_client *c)
{
    if (!c->tls) return;
    http_client_tls_end(c);
    tls_context_unref(c->tls->context);
    buf_done(&c->tls->out);
    free(c->tls);
    c->tls = NULL;
}
