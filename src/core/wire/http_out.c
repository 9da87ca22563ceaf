/* http_out.c: see http_out.h. libcurl's multi interface, driven by a libuv loop.
 *
 * libcurl would look names up in a thread of its own, and wait for that thread when a call is cancelled. So libuv
 * looks names up, and libcurl gets the addresses. A lookup cannot be stopped: a call that is cancelled meanwhile
 * stays allocated until its lookup has ended. */
#include "wire/http_out.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/list.h"

enum { ADDRESSES_MAX = 8, LOOKUP_CHECK_MS = 20 };

struct http_out_call {
    http_out *out;
    CURL *easy;
    bool added; /* to the multi handle */
    struct curl_slist *headers, *resolved;
    char *host, *port; /* libcurl's */
    size_t n_head;
    uint64_t n_body, max_bytes, until_ns;
    bool not_admitted, stopped, starved; /* starved: no memory to watch its socket */
    bool in_head;                        /* its head has begun and not ended */
    char why[CURL_ERROR_SIZE];
    bool (*admit)(const struct sockaddr *address);
    void (*head)(void *user, const char *line, size_t n);
    int (*data)(void *user, int status, const char *data, size_t n);
    void (*done)(void *user, const http_out_end *end); /* NULL: cancelled while its name was looked up */
    void *user;
    uv_getaddrinfo_t lookup;
    bool looking_up;
    list_node link; /* in the calls of out */
};

struct http_out {
    uv_loop_t *loop;
    CURLM *multi; /* NULL: closed */
    http_out_options o;
    uv_timer_t timer; /* libcurl's */
    uv_timer_t watch; /* while names are looked up: whether that takes too long */
    list_node calls;
    bool starved;  /* one of them is */
    size_t n_open; /* timers, lookups of cancelled calls, and those who go through the calls */
};

static void out_release(http_out *out)
{
    if (--out->n_open == 0) free(out);
}

/* ---- the loop ---------------------------------------------------------------------------------------- */

static void settle_done(http_out *out);

static void on_timeout(uv_timer_t *t)
{
    http_out *out = t->data;
    int running;
    curl_multi_socket_action(out->multi, CURL_SOCKET_TIMEOUT, 0, &running);
    settle_done(out);
}

static int set_timer(CURLM *multi, long ms, void *user)
{
    http_out *out = user;
    if (ms < 0)
        uv_timer_stop(&out->timer);
    else
        uv_timer_start(&out->timer, on_timeout, (uint64_t)ms, 0);
    return 0;
}

typedef struct socket_poll {
    uv_poll_t poll; /* first: the handle is freed as this */
    http_out *out;
    curl_socket_t fd;
} socket_poll;

static void free_poll(uv_handle_t *h)
{
    free(h);
}

static void on_socket(uv_poll_t *poll, int status, int events)
{
    socket_poll *s = (socket_poll *)poll;
    http_out *out = s->out;
    int running, bits = status < 0 ? CURL_CSELECT_ERR : 0;
    if (events & UV_READABLE) bits |= CURL_CSELECT_IN;
    if (events & UV_WRITABLE) bits |= CURL_CSELECT_OUT;
    curl_multi_socket_action(out->multi, s->fd, bits, &running);
    settle_done(out);
}

static socket_poll *poll_new(http_out *out, curl_socket_t fd)
{
    socket_poll *s = calloc(1, sizeof *s);
    if (!s || uv_poll_init_socket(out->loop, &s->poll, fd) != 0) {
        free(s);
        return NULL;
    }
    s->out = out;
    s->fd = fd;
    curl_multi_assign(out->multi, fd, s);
    return s;
}

/* An error from watch_socket would end all calls, and those to come; so this one alone is ended (settle_done). */
static int starve(http_out *out, CURL *easy)
{
    http_out_call *x = NULL;
    curl_easy_getinfo(easy, CURLINFO_PRIVATE, (char **)&x);
    if (x) out->starved = x->starved = true;
    return 0;
}

/* libcurl says which of its sockets wait for what. */
static int watch_socket(CURL *easy, curl_socket_t fd, int what, void *user, void *socket_user)
{
    http_out *out = user;
    socket_poll *s = socket_user;
    if (what == CURL_POLL_REMOVE) {
        if (!s) return 0;
        curl_multi_assign(out->multi, fd, NULL);
        uv_poll_stop(&s->poll);
        uv_close((uv_handle_t *)&s->poll, free_poll);
        return 0;
    }
    if (!s && !(s = poll_new(out, fd))) return starve(out, easy);
    int events = (what & CURL_POLL_IN ? UV_READABLE : 0) | (what & CURL_POLL_OUT ? UV_WRITABLE : 0);
    return uv_poll_start(&s->poll, events, on_socket) == 0 ? 0 : starve(out, easy);
}

/* ---- a call's end ------------------------------------------------------------------------------------ */

static void http_out_call_free(http_out_call *x)
{
    curl_easy_cleanup(x->easy);
    curl_slist_free_all(x->headers);
    curl_slist_free_all(x->resolved);
    curl_free(x->host);
    curl_free(x->port);
    free(x);
}

/* Out of the list and of libcurl's hands: `out` may be closed before the call is freed. */
static void call_unlink(http_out_call *x)
{
    if (x->added) curl_multi_remove_handle(x->out->multi, x->easy);
    list_take(&x->link);
}

/* Freed now, or when its lookup has ended. */
static void call_drop(http_out_call *x)
{
    x->done = NULL;
    if (!x->looking_up) {
        http_out_call_free(x);
        return;
    }
    x->out->n_open++;
    uv_cancel((uv_req_t *)&x->lookup);
}

void http_out_cancel(http_out_call *x)
{
    if (!x) return;
    call_unlink(x);
    call_drop(x);
}

static void http_out_finish(http_out_call *x, http_out_fault fault, const char *why)
{
    long status = 0;
    char *type = NULL;
    curl_easy_getinfo(x->easy, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_getinfo(x->easy, CURLINFO_CONTENT_TYPE, &type);
    call_unlink(x);
    x->done(x->user, &(http_out_end){fault, why, (int)status, type ? type : ""});
    call_drop(x);
}

static http_out_fault fault_of(const http_out_call *x, CURLcode code)
{
    if (code == CURLE_OK) return HTTP_OUT_OK;
    if (x->stopped) return HTTP_OUT_STOPPED;
    if (x->not_admitted) return HTTP_OUT_NOT_ADMITTED;
    if (x->n_head > HTTP_OUT_HEAD_MAX) return HTTP_OUT_HEAD_TOO_LONG;
    if (x->max_bytes && x->n_body > x->max_bytes) return HTTP_OUT_BODY_TOO_LONG;
    switch (code) {
    case CURLE_OUT_OF_MEMORY: return x->in_head ? HTTP_OUT_FAILED : HTTP_OUT_NO_MEMORY;
    case CURLE_FILESIZE_EXCEEDED: return HTTP_OUT_BODY_TOO_LONG;
    case CURLE_OPERATION_TIMEDOUT: return HTTP_OUT_LATE;
    case CURLE_COULDNT_RESOLVE_HOST: return HTTP_OUT_NO_ADDRESS;
    case CURLE_COULDNT_CONNECT: return HTTP_OUT_NO_LISTENER;
    case CURLE_PEER_FAILED_VERIFICATION: return HTTP_OUT_UNTRUSTED;
    case CURLE_PARTIAL_FILE:
    case CURLE_GOT_NOTHING: return HTTP_OUT_CUT_OFF;
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL: return HTTP_OUT_UNUSABLE;
    default: return HTTP_OUT_FAILED;
    }
}

/* libcurl bounds a line of the head by 100 KiB, and reports a longer one as lack of memory. */
static const char *why_of(const http_out_call *x, CURLcode code)
{
    if (code == CURLE_OK) return "";
    if (code == CURLE_OUT_OF_MEMORY && x->in_head)
        return "a line of the answer's head is over 100 KiB, or memory ran out";
    return *x->why ? x->why : curl_easy_strerror(code);
}

static http_out_call *first_starved(const http_out *out)
{
    if (!out->starved) return NULL;
    list_each (x, &out->calls, http_out_call, link)
        if (x->starved) return x;
    return NULL;
}

/* Callbacks may start and cancel calls and close `out`, so all is looked at anew each time. */
static void settle_done(http_out *out)
{
    http_out_call *x;
    CURLMsg *m;
    int left;
    out->n_open++;
    while (out->multi && (m = curl_multi_info_read(out->multi, &left))) {
        if (m->msg != CURLMSG_DONE) continue;
        CURLcode code = m->data.result;
        curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, (char **)&x);
        http_out_finish(x, fault_of(x, code), why_of(x, code));
    }
    while ((x = first_starved(out))) http_out_finish(x, HTTP_OUT_NO_MEMORY, "out of memory");
    out->starved = false;
    out_release(out);
}

/* ---- what libcurl is told ---------------------------------------------------------------------------- */

static size_t on_data(char *data, size_t one, size_t n, void *user)
{
    http_out_call *x = user;
    long status = 0;
    x->n_body += n;
    if (x->max_bytes && x->n_body > x->max_bytes) return CURL_WRITEFUNC_ERROR;
    curl_easy_getinfo(x->easy, CURLINFO_RESPONSE_CODE, &status);
    x->stopped = x->data && x->data(x->user, (int)status, data, n) != 0;
    return x->stopped ? CURL_WRITEFUNC_ERROR : n;
}

/* libcurl keeps headers, too, so they are bounded. */
static size_t on_head(char *line, size_t one, size_t n, void *user)
{
    http_out_call *x = user;
    x->n_head += n;
    x->in_head = n > 2; /* "\r\n" ends it */
    if (x->n_head > HTTP_OUT_HEAD_MAX) return 0;
    if (x->head) x->head(x->user, line, n);
    return n;
}

static curl_socket_t open_socket(void *user, curlsocktype purpose, struct curl_sockaddr *a)
{
    http_out_call *x = user;
    if (!x->admit(&a->addr)) {
        x->not_admitted = true;
        return CURL_SOCKET_BAD;
    }
    return socket(a->family, a->socktype | SOCK_CLOEXEC, a->protocol);
}

static bool set_headers(http_out_call *x, const char *lines)
{
    buf line = {0};
    bool ok = true;
    for (size_t n; ok && lines && *lines; lines += n + 2) {
        n = strcspn(lines, "\r");
        buf_clear(&line);
        struct curl_slist *more =
            buf_append(&line, lines, n) == 0 ? curl_slist_append(x->headers, line.data) : NULL;
        ok = more != NULL;
        if (ok) x->headers = more;
    }
    buf_done(&line);
    return ok && curl_easy_setopt(x->easy, CURLOPT_HTTPHEADER, x->headers) == CURLE_OK;
}

static bool set_request(http_out_call *x, const http_out_request *r)
{
    CURL *e = x->easy;
    int code = curl_easy_setopt(e, CURLOPT_URL, r->url);
    if (r->body) {
        curl_easy_setopt(e, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)r->n_body);
        code |= curl_easy_setopt(e, CURLOPT_COPYPOSTFIELDS, r->body);
    }
    if (r->method) code |= curl_easy_setopt(e, CURLOPT_CUSTOMREQUEST, r->method);
    code |= curl_easy_setopt(e, CURLOPT_USERAGENT, "shoal/" SHOAL_VERSION);
    code |= curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http,https");
    if (!x->out->o.proxies) code |= curl_easy_setopt(e, CURLOPT_PROXY, "");
    if (r->ca) {
        code |= curl_easy_setopt(e, CURLOPT_CAINFO, r->ca);
        code |= curl_easy_setopt(e, CURLOPT_CAPATH, NULL);
    }
    return code == CURLE_OK && set_headers(x, r->headers);
}

static void set_bounds(http_out_call *x, const http_out_request *r)
{
    CURL *e = x->easy;
    if (r->max_bytes) curl_easy_setopt(e, CURLOPT_MAXFILESIZE_LARGE, (curl_off_t)r->max_bytes);
    if (r->connect_s) curl_easy_setopt(e, CURLOPT_CONNECTTIMEOUT, (long)r->connect_s);
    curl_easy_setopt(e, CURLOPT_LOW_SPEED_LIMIT, r->stall_s ? 1L : 0L);
    curl_easy_setopt(e, CURLOPT_LOW_SPEED_TIME, (long)r->stall_s);
    curl_easy_setopt(e, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(e, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    curl_easy_setopt(e, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
    if (x->out->o.read_bytes) curl_easy_setopt(e, CURLOPT_BUFFERSIZE, (long)x->out->o.read_bytes);
}

static void set_callbacks(http_out_call *x)
{
    CURL *e = x->easy;
    curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, on_data);
    curl_easy_setopt(e, CURLOPT_WRITEDATA, x);
    curl_easy_setopt(e, CURLOPT_HEADERFUNCTION, on_head);
    curl_easy_setopt(e, CURLOPT_HEADERDATA, x);
    curl_easy_setopt(e, CURLOPT_ERRORBUFFER, x->why);
    curl_easy_setopt(e, CURLOPT_PRIVATE, x);
    if (!x->admit) return;
    curl_easy_setopt(e, CURLOPT_OPENSOCKETFUNCTION, open_socket);
    curl_easy_setopt(e, CURLOPT_OPENSOCKETDATA, x);
    curl_easy_setopt(e, CURLOPT_FRESH_CONNECT, 1L); /* the address of a kept connection was not asked about */
}

/* ---- a call's beginning ------------------------------------------------------------------------------ */

static int go(http_out_call *x)
{
    uint64_t now = clock_ns(), left_ms = x->until_ns > now ? (x->until_ns - now) / 1000000u : 0;
    if (x->until_ns) curl_easy_setopt(x->easy, CURLOPT_TIMEOUT_MS, (long)(left_ms ? left_ms : 1));
    x->added = curl_multi_add_handle(x->out->multi, x->easy) == CURLM_OK;
    return x->added ? 0 : SHOAL_ENOMEM;
}

/* "+api.lan:8443:192.0.2.7,[2001:db8::7]" */
static bool set_addresses(http_out_call *x, const struct addrinfo *list)
{
    buf line = {0};
    int n = 0;
    buf_printf(&line, "+%s:%s:", x->host, x->port);
    for (const struct addrinfo *a = list; a && n < ADDRESSES_MAX; a = a->ai_next) {
        char text[INET6_ADDRSTRLEN];
        bool six = a->ai_family == AF_INET6;
        const void *from =
            six ? (const void *)&((const struct sockaddr_in6 *)(const void *)a->ai_addr)->sin6_addr
                : (const void *)&((const struct sockaddr_in *)(const void *)a->ai_addr)->sin_addr;
        if ((!six && a->ai_family != AF_INET) || !inet_ntop(a->ai_family, from, text, sizeof text)) continue;
        buf_printf(&line, six ? "%s[%s]" : "%s%s", n++ ? "," : "", text);
    }
    x->resolved = line.failed ? NULL : curl_slist_append(NULL, line.data);
    buf_done(&line);
    return x->resolved && curl_easy_setopt(x->easy, CURLOPT_RESOLVE, x->resolved) == CURLE_OK;
}

static void on_looked_up(uv_getaddrinfo_t *req, int status, struct addrinfo *list)
{
    http_out_call *x = req->data;
    http_out *out = x->out;
    x->looking_up = false;
    if (!x->done) {
        http_out_call_free(x);
        out_release(out);
    } else if (status) {
        http_out_finish(x, status == UV_ENOMEM ? HTTP_OUT_NO_MEMORY : HTTP_OUT_NO_ADDRESS,
                        uv_strerror(status));
    } else if (x->until_ns && clock_ns() >= x->until_ns) {
        http_out_finish(x, HTTP_OUT_LATE, "its name was not looked up in time");
    } else if (!set_addresses(x, list) || go(x) != 0) {
        http_out_finish(x, HTTP_OUT_NO_MEMORY, "out of memory");
    }
    uv_freeaddrinfo(list);
}

/* The first call whose name is looked up and should have been by then. */
static http_out_call *late_lookup(http_out *out, uint64_t until_ns)
{
    list_each (x, &out->calls, http_out_call, link) {
        if (x->looking_up && x->until_ns && x->until_ns <= until_ns) return x;
    }
    return NULL;
}

static void on_watch(uv_timer_t *t)
{
    http_out *out = t->data;
    out->n_open++;
    for (http_out_call *x; (x = late_lookup(out, clock_ns()));)
        http_out_finish(x, HTTP_OUT_LATE, "its name was not looked up in time");
    if (!late_lookup(out, UINT64_MAX)) uv_timer_stop(t);
    out_release(out);
}

static int look_up(http_out_call *x)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_family = AF_UNSPEC};
    x->lookup.data = x;
    int rc = uv_getaddrinfo(x->out->loop, &x->lookup, on_looked_up, x->host, x->port, &hints);
    x->looking_up = rc == 0;
    if (rc == 0 && !uv_is_active((uv_handle_t *)&x->out->watch))
        uv_timer_start(&x->out->watch, on_watch, LOOKUP_CHECK_MS, LOOKUP_CHECK_MS);
    return rc == 0 ? 0 : SHOAL_ENOMEM;
}

/* Host and port of a URL. libcurl says what is wrong with one that has none. */
static bool take_apart(http_out_call *x, const char *url)
{
    CURLU *u = curl_url();
    CURLUcode code = u ? curl_url_set(u, CURLUPART_URL, url, 0) : CURLUE_OUT_OF_MEMORY;
    if (code == CURLUE_OK) code = curl_url_get(u, CURLUPART_HOST, &x->host, 0);
    if (code == CURLUE_OK) code = curl_url_get(u, CURLUPART_PORT, &x->port, CURLU_DEFAULT_PORT);
    curl_url_cleanup(u);
    return code != CURLUE_OUT_OF_MEMORY;
}

static bool needs_lookup(const http_out_call *x)
{
    struct in_addr four;
    return !x->out->o.proxies && x->port && *x->host != '[' && inet_pton(AF_INET, x->host, &four) != 1;
}

http_out_call *http_out_start(http_out *out, const http_out_request *r)
{
    http_out_call *x = calloc(1, sizeof *x);
    if (!x) return NULL;
    *x = (http_out_call){.out = out,
                         .easy = curl_easy_init(),
                         .until_ns = r->until_ns,
                         .max_bytes = r->max_bytes,
                         .admit = r->admit,
                         .head = r->head,
                         .data = r->data,
                         .done = r->done,
                         .user = r->user};
    list_put(&out->calls, &x->link);
    bool ok = x->easy && set_request(x, r) && take_apart(x, r->url);
    if (ok) {
        set_bounds(x, r);
        set_callbacks(x);
        ok = (needs_lookup(x) ? look_up(x) : go(x)) == 0;
    }
    if (ok) return x;
    http_out_cancel(x);
    return NULL;
}

/* ---- life -------------------------------------------------------------------------------------------- */

static void on_timer_closed(uv_handle_t *h)
{
    out_release(h->data);
}

void http_out_close(http_out *out)
{
    if (!out) return;
    for (http_out_call *x; (x = list_first(&out->calls, http_out_call, link));) http_out_cancel(x);
    curl_multi_cleanup(out->multi);
    out->multi = NULL;
    uv_close((uv_handle_t *)&out->timer, on_timer_closed);
    uv_close((uv_handle_t *)&out->watch, on_timer_closed);
}

int http_out_open(http_out **ret, uv_loop_t *loop, const http_out_options *o, shoal_err *err)
{
    http_out *out = calloc(1, sizeof *out);
    if (out && curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK) out->multi = curl_multi_init();
    if (!out || !out->multi) {
        free(out);
        return err_nomem(err);
    }
    out->loop = loop;
    out->o = *o;
    list_init(&out->calls);
    uv_timer_init(loop, &out->timer);
    uv_timer_init(loop, &out->watch);
    out->timer.data = out->watch.data = out;
    out->n_open = 2;
    curl_multi_setopt(out->multi, CURLMOPT_SOCKETFUNCTION, watch_socket);
    curl_multi_setopt(out->multi, CURLMOPT_SOCKETDATA, out);
    curl_multi_setopt(out->multi, CURLMOPT_TIMERFUNCTION, set_timer);
    curl_multi_setopt(out->multi, CURLMOPT_TIMERDATA, out);
    curl_multi_setopt(out->multi, CURLMOPT_MAX_HOST_CONNECTIONS, (long)o->per_host_max);
    curl_multi_setopt(out->multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, (long)o->connections_max);
    *ret = out;
    return 0;
}
