#define _GNU_SOURCE
#include "cli/load_client.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"

#define TIMEOUT_S 60

typedef struct connection {
    const char *host;
    int port, fd;
    buf in;   /* bytes received and not used yet */
    buf out;  /* the request being written */
    buf body; /* of the answer */
    int status;
    uint64_t first_ns; /* when the body began */
} connection;

/* The first address that answers: a name such as localhost has several. */
static int dial(connection *c, shoal_err *err)
{
    char port[16];
    snprintf(port, sizeof port, "%d", c->port);
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list = NULL;
    int rc = getaddrinfo(c->host, port, &hints, &list), one = 1;
    if (rc != 0) return err_set(err, SHOAL_EINVALID, "%s: %s", c->host, gai_strerror(rc));
    struct timeval limit = {.tv_sec = TIMEOUT_S};
    for (const struct addrinfo *a = list; a && c->fd < 0; a = a->ai_next) {
        c->fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (c->fd < 0 || connect(c->fd, a->ai_addr, a->ai_addrlen) == 0) continue;
        int why = errno;
        close(c->fd);
        errno = why;
        c->fd = -1;
    }
    if (c->fd < 0) rc = err_set(err, SHOAL_EUNAVAILABLE, "%s:%d: %s", c->host, c->port, strerror(errno));
    freeaddrinfo(list);
    if (rc != 0) return rc;
    setsockopt(c->fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    buf_clear(&c->in);
    return 0;
}

static void hang_up(connection *c)
{
    if (c->fd >= 0) close(c->fd);
    c->fd = -1;
}

static void connection_done(connection *c)
{
    hang_up(c);
    buf_done(&c->in);
    buf_done(&c->out);
    buf_done(&c->body);
}

static int send_all(connection *c, shoal_err *err)
{
    for (size_t done = 0; done < c->out.len;) {
        ssize_t n = send(c->fd, c->out.data + done, c->out.len - done, MSG_NOSIGNAL);
        if (n < 0 && errno != EINTR) return err_set(err, SHOAL_EIO, "send: %s", strerror(errno));
        if (n > 0) done += (size_t)n;
    }
    return 0;
}

static int receive_more(connection *c, shoal_err *err)
{
    if (buf_reserve(&c->in, 16384) != 0) return err_nomem(err);
    ssize_t n = recv(c->fd, c->in.data + c->in.len, 16384, 0);
    if (n == 0) return err_set(err, SHOAL_EIO, "the server closed the connection");
    if (n < 0) return err_set(err, SHOAL_EIO, "receive: %s", strerror(errno));
    c->in.len += (size_t)n;
    c->in.data[c->in.len] = '\0';
    return 0;
}

/* Until c->in holds a whole line; *ret_len counts its CRLF. */
static int need_line(connection *c, size_t *ret_len, shoal_err *err)
{
    for (;;) {
        char *end = c->in.len ? memmem(c->in.data, c->in.len, "\r\n", 2) : NULL;
        if (end) {
            *ret_len = (size_t)(end - c->in.data) + 2;
            return 0;
        }
        int rc = receive_more(c, err);
        if (rc != 0) return rc;
    }
}

static int take_body(connection *c, size_t n, shoal_err *err)
{
    while (c->in.len < n) {
        int rc = receive_more(c, err);
        if (rc != 0) return rc;
    }
    if (!c->first_ns && n) c->first_ns = clock_ns();
    buf_append(&c->body, c->in.data, n);
    buf_consume(&c->in, n);
    return 0;
}

static int read_chunks(connection *c, shoal_err *err)
{
    for (;;) {
        size_t len;
        int rc = need_line(c, &len, err);
        if (rc != 0) return rc;
        size_t n = strtoul(c->in.data, NULL, 16);
        buf_consume(&c->in, len);
        if (n > 0 && (rc = take_body(c, n, err)) != 0) return rc;
        if ((rc = need_line(c, &len, err)) != 0) return rc;
        buf_consume(&c->in, len);
        if (n == 0) return 0;
    }
}

static int read_answer(connection *c, bool *ret_close, shoal_err *err)
{
    size_t len, length = 0;
    bool chunked = false;
    int rc = need_line(c, &len, err);
    if (rc != 0) return rc;
    if (sscanf(c->in.data, "HTTP/1.1 %d", &c->status) != 1)
        return err_set(err, SHOAL_EPROTOCOL, "the answer is not HTTP/1.1");
    buf_consume(&c->in, len);
    for (;;) {
        if ((rc = need_line(c, &len, err)) != 0) return rc;
        if (len == 2) break;
        if (strncasecmp(c->in.data, "content-length:", 15) == 0) length = strtoul(c->in.data + 15, NULL, 10);
        if (strncasecmp(c->in.data, "transfer-encoding:", 18) == 0) chunked = true;
        if (strncasecmp(c->in.data, "connection: close", 17) == 0) *ret_close = true;
        buf_consume(&c->in, len);
    }
    buf_consume(&c->in, 2);
    return chunked ? read_chunks(c, err) : take_body(c, length, err);
}

static int exchange(connection *c, const load_request *r, shoal_err *err)
{
    int rc = c->fd < 0 ? dial(c, err) : 0;
    if (rc != 0) return rc;
    buf_clear(&c->out);
    buf_clear(&c->body);
    c->first_ns = 0;
    size_t n = r->body ? strlen(r->body) : 0;
    buf_printf(
        &c->out,
        "%s %s HTTP/1.1\r\nhost: %s\r\ncontent-type: application/json\r\n%scontent-length: %zu\r\n\r\n",
        r->method, r->path, c->host, r->headers ? r->headers : "", n);
    buf_append(&c->out, r->body, n);
    bool close_after = false;
    rc = send_all(c, err);
    if (rc == 0) rc = read_answer(c, &close_after, err);
    if (rc != 0 || close_after) hang_up(c);
    return rc;
}

int load_parse_url(const char *url, char host[64], int *ret_port, shoal_err *err)
{
    char extra[2];
    if (sscanf(url, "http://%63[^:/]:%d%1[^/]", host, ret_port, extra) == 2 && *ret_port > 0 &&
        *ret_port < 65536)
        return 0;
    return err_set(err, SHOAL_EINVALID, "\"%s\" is not http://ADDRESS:PORT", url);
}

int load_once(const char *host, int port, const load_request *r, int *ret_status, buf *ret_body,
              shoal_err *err)
{
    connection c = {.host = host, .port = port, .fd = -1};
    int rc = exchange(&c, r, err);
    if (rc == 0) {
        *ret_status = c.status;
        if (ret_body) buf_append(ret_body, c.body.data, c.body.len);
    }
    connection_done(&c);
    return rc;
}

typedef struct client {
    pthread_t thread;
    const load_plan *plan;
    atomic_size_t *next;
    double *whole_ms, *first_ms; /* [n_requests], -1 where it failed; shared, each index written once */
    size_t n_tokens, n_failed;
    char first_failure[200];
    int index;
} client;

/* Tokens of an answer, by its own count (an event may stand for several). An error event fails the
 * request. */
static size_t count_tokens(const buf *body, bool *ret_error)
{
    static const char key[] = "\"completion_tokens\":";
    if (!body->len) return 0;
    if (strstr(body->data, "data: {\"error\"")) *ret_error = true;
    const char *p = strstr(body->data, key);
    return p ? strtoul(p + sizeof key - 1, NULL, 10) : 0;
}

static void note_failure(client *me, const char *why)
{
    me->n_failed++;
    if (!me->first_failure[0]) snprintf(me->first_failure, sizeof me->first_failure, "%s", why);
}

static void *client_main(void *arg)
{
    client *me = arg;
    const load_plan *p = me->plan;
    connection c = {.host = p->host, .port = p->port, .fd = -1};
    buf scratch = {0};
    for (size_t i; (i = atomic_fetch_add(me->next, 1)) < p->n_requests;) {
        load_request r = {0};
        shoal_err err = {0};
        buf_clear(&scratch);
        p->make(p->user, i, &scratch, &r);
        uint64_t start = clock_ns();
        int rc = exchange(&c, &r, &err);
        double ms = clock_ms_since(start);
        bool error_event = false;
        if (rc == 0) me->n_tokens += count_tokens(&c.body, &error_event);
        bool ok = rc == 0 && c.status / 100 == 2 && !error_event;
        me->whole_ms[i] = ok ? ms : -1;
        me->first_ms[i] = ok && c.first_ns ? (double)(c.first_ns - start) / 1e6 : -1;
        if (!ok) {
            char why[200];
            snprintf(why, sizeof why, "status %d: %.150s", c.status,
                     rc != 0       ? err.message
                     : c.body.data ? c.body.data
                                   : "");
            note_failure(me, why);
        }
        if (me->index == 0 && p->progress) p->progress(p->user, i + 1, p->n_requests);
    }
    buf_done(&scratch);
    connection_done(&c);
    return NULL;
}

static int compare_doubles(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return a < b ? -1 : a > b;
}

/* The q-quantile of sorted values, nearest rank; negative values (failures) sort first and are skipped. */
static double quantile(double *values, size_t n, double q)
{
    qsort(values, n, sizeof *values, compare_doubles);
    size_t skip = 0;
    while (skip < n && values[skip] < 0) skip++;
    n -= skip;
    if (n == 0) return 0;
    size_t rank = (size_t)(q * (double)n);
    return values[skip + (rank < n ? rank : n - 1)];
}

int load_run(const load_plan *plan, load_result *ret, shoal_err *err)
{
    atomic_size_t next = 0;
    size_t n = plan->n_requests;
    client *clients = calloc((size_t)plan->n_clients, sizeof *clients);
    double *whole = calloc(n ? n : 1, sizeof *whole), *first = calloc(n ? n : 1, sizeof *first);
    int rc = clients && whole && first ? 0 : err_nomem(err), started = 0;
    uint64_t start = clock_ns();
    for (; rc == 0 && started < plan->n_clients; started++) {
        clients[started] =
            (client){.plan = plan, .next = &next, .whole_ms = whole, .first_ms = first, .index = started};
        if (pthread_create(&clients[started].thread, NULL, client_main, &clients[started]) != 0) {
            rc = err_set(err, SHOAL_ENOMEM, "cannot start client %d", started);
            break;
        }
    }
    load_result r = {0};
    for (int i = 0; i < started; i++) {
        pthread_join(clients[i].thread, NULL);
        r.n_failed += clients[i].n_failed;
        r.n_tokens += clients[i].n_tokens;
        if (!r.first_failure[0]) memcpy(r.first_failure, clients[i].first_failure, sizeof r.first_failure);
    }
    if (rc == 0) {
        r.seconds = clock_ms_since(start) / 1e3;
        r.n_ok = n - r.n_failed;
        r.p50_ms = quantile(whole, n, 0.50);
        r.p99_ms = quantile(whole, n, 0.99);
        r.max_ms = n ? whole[n - 1] : 0;
        r.first_p50_ms = quantile(first, n, 0.50);
        r.first_p99_ms = quantile(first, n, 0.99);
        *ret = r;
    }
    free(first);
    free(whole);
    free(clients);
    return rc;
}
