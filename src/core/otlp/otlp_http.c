/* otlp_http.c: see otlp_http.h. */
#include "otlp/otlp_http.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "wire/coding.h"
#include "wire/http_out.h"

enum { TIMEOUT_MS = 10000, RETRY_AFTER_MAX_S = 3600 };
#define MS_NS 1000000u

struct otlp_http {
    http_out *out;
    char *urls[OTLP_N_SIGNALS], *headers[OTLP_N_SIGNALS], *ca;
    otlp_http_options o;
};

typedef struct post {
    http_out_call *call;
    buf answer;
    uint64_t retry_after_ms;
    otlp_replied done;
    void *user;
} post;

static void post_free(post *p)
{
    buf_done(&p->answer);
    free(p);
}

uint64_t otlp_retry_after_ms(const char *line, size_t n)
{
    static const char NAME[] = "retry-after:";
    size_t at = sizeof NAME - 1;
    uint64_t s = 0;
    if (n < at || strncasecmp(line, NAME, at) != 0) return 0;
    while (at < n && (line[at] == ' ' || line[at] == '\t')) at++;
    size_t begin = at;
    for (; at < n && line[at] >= '0' && line[at] <= '9'; at++)
        if (s <= RETRY_AFTER_MAX_S) s = s * 10 + (uint64_t)(line[at] - '0');
    bool ends = at == n || line[at] == '\r' || line[at] == '\n' || line[at] == ' ';
    if (at == begin || !ends) return 0;
    return (s < RETRY_AFTER_MAX_S ? s : RETRY_AFTER_MAX_S) * 1000;
}

static void on_head(void *user, const char *line, size_t n)
{
    post *p = user;
    uint64_t ms = otlp_retry_after_ms(line, n);
    if (ms) p->retry_after_ms = ms;
}

static int on_data(void *user, int status, const char *data, size_t n)
{
    return buf_append(&((post *)user)->answer, data, n);
}

static const char *why_of(const http_out_end *e)
{
    switch (e->fault) {
    case HTTP_OUT_NO_ADDRESS: return "its name has no address";
    case HTTP_OUT_NO_LISTENER: return "nobody listens there";
    case HTTP_OUT_UNTRUSTED: return "its certificate is not trusted";
    case HTTP_OUT_LATE: return "it does not answer in time";
    case HTTP_OUT_BODY_TOO_LONG:
    case HTTP_OUT_HEAD_TOO_LONG: return "its answer is too long";
    case HTTP_OUT_UNUSABLE: return "the URL or the file of CAs cannot be used";
    case HTTP_OUT_NO_MEMORY:
    case HTTP_OUT_STOPPED: return "out of memory";
    default: return "the connection broke";
    }
}

static void on_done(void *user, const http_out_end *e)
{
    post *p = user;
    bool whole = e->fault == HTTP_OUT_OK;
    otlp_reply r = {.status = whole ? e->status : 0,
                    .why = why_of(e),
                    .json = strncmp(e->type, "application/json", 16) == 0,
                    .retry_after_ms = p->retry_after_ms,
                    .body = buf_text(&p->answer),
                    .n_body = p->answer.len};
    p->done(p->user, &r);
    post_free(p);
}

/* What is sent: the body, or the same in gzip. */
static const buf *packed(const otlp_http *h, const buf *body, buf *room)
{
    if (!h->o.gzip) return body;
    return coding_pack(CODING_GZIP, body->data, body->len, room) == 0 ? room : NULL;
}

static void *http_post(void *user, otlp_signal s, const buf *body, otlp_replied done, void *done_user)
{
    otlp_http *h = user;
    buf room = {0};
    post *p = calloc(1, sizeof *p);
    const buf *sent = p ? packed(h, body, &room) : NULL;
    if (p) {
        p->done = done;
        p->user = done_user;
    }
    if (sent)
        p->call = http_out_start(h->out, &(http_out_request){.method = "POST",
                                                             .url = h->urls[s],
                                                             .headers = h->headers[s],
                                                             .body = sent->data,
                                                             .n_body = sent->len,
                                                             .ca = h->ca,
                                                             .until_ns = clock_ns() + h->o.timeout_ms * MS_NS,
                                                             .max_bytes = OTLP_ANSWER_MAX,
                                                             .head = on_head,
                                                             .data = on_data,
                                                             .done = on_done,
                                                             .user = p});
    buf_done(&room);
    if (p && p->call) return p;
    if (p) post_free(p);
    return NULL;
}

static void http_cancel(void *user, void *call)
{
    post *p = call;
    http_out_cancel(p->call);
    post_free(p);
}

otlp_transport otlp_http_transport(otlp_http *h)
{
    return (otlp_transport){.user = h, .post = http_post, .cancel = http_cancel};
}

void otlp_http_close(otlp_http *h)
{
    if (!h) return;
    http_out_close(h->out);
    for (size_t i = 0; i < OTLP_N_SIGNALS; i++) {
        free(h->urls[i]);
        free(h->headers[i]);
    }
    free(h->ca);
    free(h);
}

/* Its headers, behind those of every request. Expect: libcurl would ask before a long body, and wait. */
static char *headers_of(const otlp_http_options *o, otlp_signal s)
{
    buf b = {0};
    buf_printf(&b, "Content-Type: %s\r\nExpect:\r\n", otlp_content_type(o->protocol));
    if (o->gzip) buf_puts(&b, "Content-Encoding: gzip\r\n");
    if (o->headers[s]) buf_puts(&b, o->headers[s]);
    return buf_take(&b);
}

static int copy_options(otlp_http *h, const otlp_http_options *o)
{
    bool have = !o->ca || (h->ca = strdup(o->ca));
    for (size_t i = 0; have && i < OTLP_N_SIGNALS; i++) {
        if (!o->urls[i]) continue;
        h->urls[i] = strdup(o->urls[i]);
        h->headers[i] = headers_of(o, (otlp_signal)i);
        have = h->urls[i] && h->headers[i];
    }
    return have ? 0 : SHOAL_ENOMEM;
}

int otlp_http_open(otlp_http **ret, uv_loop_t *loop, const otlp_http_options *o, shoal_err *err)
{
    otlp_http *h = calloc(1, sizeof *h);
    if (!h) return err_nomem(err);
    h->o = *o;
    if (!h->o.timeout_ms) h->o.timeout_ms = TIMEOUT_MS;
    int rc = copy_options(h, o) ? err_nomem(err) : http_out_open(&h->out, loop, &(http_out_options){0}, err);
    if (rc == 0)
        *ret = h;
    else
        otlp_http_close(h);
    return rc;
}
