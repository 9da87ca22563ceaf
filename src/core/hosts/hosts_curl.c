/* hosts_curl.c: the calls of hosts.h by libcurl's multi interface, on a libuv loop.
 *
 * libcurl would look names up in a thread of its own, and wait for that thread when a call is cancelled; so
 * names are looked up by libuv, and libcurl is told what they are. A look-up cannot be stopped: a cancelled
 * call that is being looked up lives on as a shell until it has ended. */
#include <arpa/inet.h>
#include <curl/curl.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "hosts/hosts.h"

enum {
    PER_HOST_MAX = 16,
    CONNECTIONS_MAX = 64,
    ADDRESSES_MAX = 8,
    HEADER_FILE_MAX = 16384,
    HEAD_MAX = 65536,
    LOOK_MS = 20
};

typedef struct curl_hosts curl_hosts;

typedef struct known_host { /* a rule, ready */
    const host_rule *rule;
    struct curl_slist *headers;
    char name[256], port[8];
    bool is_address;
} known_host;

typedef struct curl_call {
    host_call base; /* first: it is the call */
    curl_hosts *hosts;
    const known_host *to;
    CURL *easy; /* NULL: not asked yet */
    struct curl_slist *headers, *resolved;
    char *url, *sends;
    size_t n_sends;
    host_method method;
    buf body;
    size_t n_head; /* bytes of its headers */
    bool too_long;
    char why[CURL_ERROR_SIZE];
    uint64_t start_ns, until_ns;
    bool by_deadline; /* until_ns is the request's deadline, not the host's timeout */
    void *user;
    void (*done)(void *user, const host_reply *r); /* NULL: cancelled while it was looked up */
    uv_getaddrinfo_t lookup;
    bool looking_up;
    struct curl_call *next, *prev;
} curl_call;

struct curl_hosts {
    hosts base; /* first: it is the seam */
    uv_loop_t *loop;
    CURLM *multi;
    uv_timer_t *timer; /* libcurl's */
    uv_timer_t *watch; /* while names are looked up: whether that takes too long */
    known_host *known;
    size_t n_known;
    curl_call *calls;
    size_t n_shells; /* cancelled calls that are being looked up */
    bool dying;
};

/* ---- the loop ------------------------------------------------------------------------------------------ */

static void settle_done(curl_hosts *h);

static void free_handle(uv_handle_t *h)
{
    free(h);
}

static void on_timeout(uv_timer_t *t)
{
    curl_hosts *h = t->data;
    int running;
    curl_multi_socket_action(h->multi, CURL_SOCKET_TIMEOUT, 0, &running);
    settle_done(h);
}

static int set_timer(CURLM *multi, long ms, void *user)
{
    curl_hosts *h = user;
    if (ms < 0)
        uv_timer_stop(h->timer);
    else
        uv_timer_start(h->timer, on_timeout, (uint64_t)ms, 0);
    return 0;
}

typedef struct socket_poll {
    uv_poll_t poll; /* first: the handle is freed as this */
    curl_hosts *hosts;
    curl_socket_t fd;
} socket_poll;

static void on_socket(uv_poll_t *poll, int status, int events)
{
    socket_poll *s = (socket_poll *)poll;
    curl_hosts *h = s->hosts;
    int running, bits = status < 0 ? CURL_CSELECT_ERR : 0;
    if (events & UV_READABLE) bits |= CURL_CSELECT_IN;
    if (events & UV_WRITABLE) bits |= CURL_CSELECT_OUT;
    curl_multi_socket_action(h->multi, s->fd, bits, &running);
    settle_done(h);
}

static socket_poll *poll_new(curl_hosts *h, curl_socket_t fd)
{
    socket_poll *s = calloc(1, sizeof *s);
    if (!s || uv_poll_init_socket(h->loop, &s->poll, fd) != 0) {
        free(s);
        return NULL;
    }
    s->hosts = h;
    s->fd = fd;
    curl_multi_assign(h->multi, fd, s);
    return s;
}

/* libcurl says which of its sockets wait for what. -1 ends the transfers: no memory for a handle. */
static int watch_socket(CURL *easy, curl_socket_t fd, int what, void *user, void *socket_user)
{
    curl_hosts *h = user;
    socket_poll *s = socket_user;
    if (what == CURL_POLL_REMOVE) {
        if (!s) return 0;
        curl_multi_assign(h->multi, fd, NULL);
        uv_poll_stop(&s->poll);
        uv_close((uv_handle_t *)&s->poll, free_handle);
        return 0;
    }
    if (!s && !(s = poll_new(h, fd))) return -1;
    int events = (what & CURL_POLL_IN ? UV_READABLE : 0) | (what & CURL_POLL_OUT ? UV_WRITABLE : 0);
    return uv_poll_start(&s->poll, events, on_socket) == 0 ? 0 : -1;
}

/* ---- one call's end --------------------------------------------------------------------------------- */

static void call_free(curl_call *c)
{
    if (c->easy) {
        curl_multi_remove_handle(c->hosts->multi, c->easy);
        curl_easy_cleanup(c->easy);
    }
    curl_slist_free_all(c->headers);
    curl_slist_free_all(c->resolved);
    free(c->url);
    free(c->sends);
    buf_done(&c->body);
    free(c);
}

static void unlink_call(curl_call *c)
{
    if (c->prev)
        c->prev->next = c->next;
    else
        c->hosts->calls = c->next;
    if (c->next) c->next->prev = c->prev;
}

static void hosts_release(curl_hosts *h);

/* Freed now, or when its look-up has ended. */
static void let_go(curl_call *c)
{
    if (!c->looking_up) {
        call_free(c);
        return;
    }
    c->hosts->n_shells++;
    uv_cancel((uv_req_t *)&c->lookup);
}

static void drop(curl_call *c)
{
    unlink_call(c);
    c->done = NULL;
    let_go(c);
}

static void finish(curl_call *c, int status, const char *message, int http)
{
    char *type = NULL;
    if (c->easy) curl_easy_getinfo(c->easy, CURLINFO_CONTENT_TYPE, &type);
    host_reply r = {.status = status,
                    .message = message,
                    .http = http,
                    .type = type ? type : "",
                    .body = c->body.data ? c->body.data : "",
                    .n_body = c->body.len,
                    .ms = clock_ms_since(c->start_ns)};
    void (*done)(void *, const host_reply *) = c->done;
    void *user = c->user;
    unlink_call(c);
    c->done = NULL;
    done(user, &r);
    let_go(c);
}

static void finish_late(curl_call *c)
{
    char message[160];
    if (c->by_deadline)
        snprintf(message, sizeof message, "the deadline passed while '%.64s' was asked", c->to->rule->name);
    else
        snprintf(message, sizeof message, "'%.64s' did not answer within %llu ms", c->to->rule->name,
                 (unsigned long long)c->to->rule->timeout_ms);
    finish(c, SHOAL_EDEADLINE, message, 0);
}

/* Success is an answer of 2xx: of others nothing is known that a stage could read. */
static void finish_answered(curl_call *c)
{
    char message[200];
    const char *name = c->to->rule->name;
    long http = 0;
    curl_easy_getinfo(c->easy, CURLINFO_RESPONSE_CODE, &http);
    if (http >= 200 && http < 300) {
        finish(c, 0, "", (int)http);
        return;
    }
    snprintf(message, sizeof message, "'%.64s' answers %ld%s", name, http,
             http >= 300 && http < 400 ? ", a redirect, and those are not followed" : "");
    finish(c, SHOAL_EUNAVAILABLE, message, (int)http);
}

static void finish_transfer(curl_call *c, CURLcode code)
{
    char message[400];
    const char *name = c->to->rule->name;
    if (code == CURLE_OK) {
        finish_answered(c);
    } else if (code == CURLE_OUT_OF_MEMORY || c->body.failed) {
        finish(c, SHOAL_ENOMEM, "out of memory", 0);
    } else if (c->n_head > HEAD_MAX) {
        snprintf(message, sizeof message, "'%.64s' sent more than %d bytes of headers", name, HEAD_MAX);
        finish(c, SHOAL_ELIMIT, message, 0);
    } else if (c->too_long || code == CURLE_FILESIZE_EXCEEDED) {
        snprintf(message, sizeof message, "'%.64s' sent more than %llu KiB, which its max_kb allows", name,
                 (unsigned long long)c->to->rule->max_bytes >> 10);
        finish(c, SHOAL_ELIMIT, message, 0);
    } else if (code == CURLE_OPERATION_TIMEDOUT) {
        finish_late(c);
    } else {
        snprintf(message, sizeof message, "'%.64s' cannot be asked: %.256s", name,
                 *c->why ? c->why : curl_easy_strerror(code));
        finish(c, SHOAL_EUNAVAILABLE, message, 0);
    }
}

/* Callbacks may ask and cancel as they like: the list is taken anew each time. */
static void settle_done(curl_hosts *h)
{
    CURLMsg *m;
    int left;
    while ((m = curl_multi_info_read(h->multi, &left))) {
        curl_call *c = NULL;
        if (m->msg != CURLMSG_DONE) continue;
        CURLcode code = m->data.result;
        curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, (char **)&c);
        finish_transfer(c, code);
    }
}

/* ---- one call's way --------------------------------------------------------------------------------- */

static size_t on_bytes(char *data, size_t one, size_t n, void *user)
{
    curl_call *c = user;
    c->too_long = c->body.len + n > c->to->rule->max_bytes;
    return c->too_long || buf_append(&c->body, data, n) ? CURL_WRITEFUNC_ERROR : n;
}

/* What it says of itself is not kept, but libcurl keeps it: that is bounded, too. */
static size_t on_head(char *data, size_t one, size_t n, void *user)
{
    curl_call *c = user;
    c->n_head += n;
    return c->n_head > HEAD_MAX ? 0 : n;
}

static bool add_header(struct curl_slist **list, const char *name, const char *value)
{
    buf line = {0};
    buf_printf(&line, "%s: %s", name, value);
    struct curl_slist *more = line.failed ? NULL : curl_slist_append(*list, line.data);
    buf_done(&line);
    if (more) *list = more;
    return more != NULL;
}

static bool make_headers(curl_call *c, const char *request_id)
{
    bool ok = true;
    for (const struct curl_slist *h = c->to->headers; h && ok; h = h->next) {
        struct curl_slist *more = curl_slist_append(c->headers, h->data);
        ok = more != NULL;
        if (ok) c->headers = more;
    }
    if (ok && c->sends) ok = add_header(&c->headers, "Content-Type", "application/json");
    if (ok && request_id && *request_id) ok = add_header(&c->headers, "x-request-id", request_id);
    return ok && add_header(&c->headers, "Accept", "application/json, text/plain;q=0.9, */*;q=0.1");
}

static void set_bounds(CURL *e, const curl_call *c)
{
    uint64_t now = clock_ns(), left_ms = c->until_ns > now ? (c->until_ns - now) / 1000000u : 0;
    curl_easy_setopt(e, CURLOPT_TIMEOUT_MS, (long)(left_ms ? left_ms : 1));
    curl_easy_setopt(e, CURLOPT_MAXFILESIZE_LARGE, (curl_off_t)c->to->rule->max_bytes);
    curl_easy_setopt(e, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(e, CURLOPT_PROXY, "");
    curl_easy_setopt(e, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    curl_easy_setopt(e, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
}

static void set_request(CURL *e, curl_call *c)
{
    curl_easy_setopt(e, CURLOPT_URL, c->url);
    if (c->sends) {
        curl_easy_setopt(e, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)c->n_sends);
        curl_easy_setopt(e, CURLOPT_POSTFIELDS, c->sends);
    }
    if (c->method != HOST_GET || c->sends)
        curl_easy_setopt(e, CURLOPT_CUSTOMREQUEST, host_method_name(c->method));
    curl_easy_setopt(e, CURLOPT_HTTPHEADER, c->headers);
    curl_easy_setopt(e, CURLOPT_USERAGENT, "shoal/" SHOAL_VERSION);
    curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, on_bytes);
    curl_easy_setopt(e, CURLOPT_WRITEDATA, c);
    curl_easy_setopt(e, CURLOPT_HEADERFUNCTION, on_head);
    curl_easy_setopt(e, CURLOPT_HEADERDATA, c);
    curl_easy_setopt(e, CURLOPT_ERRORBUFFER, c->why);
    curl_easy_setopt(e, CURLOPT_PRIVATE, c);
}

/* The address is known: off it goes. SHOAL_ENOMEM, or 0. */
static int go(curl_call *c)
{
    CURL *e = curl_easy_init();
    if (!e) return SHOAL_ENOMEM;
    set_bounds(e, c);
    set_request(e, c);
    if (c->to->rule->ca) {
        curl_easy_setopt(e, CURLOPT_CAINFO, c->to->rule->ca);
        curl_easy_setopt(e, CURLOPT_CAPATH, NULL);
    }
    if (c->resolved) curl_easy_setopt(e, CURLOPT_RESOLVE, c->resolved);
    if (curl_multi_add_handle(c->hosts->multi, e) != CURLM_OK) {
        curl_easy_cleanup(e);
        return SHOAL_ENOMEM;
    }
    c->easy = e;
    return 0;
}

/* "api.lan:8443:192.0.2.7,[2001:db8::7]" */
static bool note_addresses(curl_call *c, const struct addrinfo *list)
{
    buf line = {0};
    int n = 0;
    buf_printf(&line, "+%s:%s:", c->to->name, c->to->port);
    for (const struct addrinfo *a = list; a && n < ADDRESSES_MAX; a = a->ai_next) {
        char text[INET6_ADDRSTRLEN];
        bool six = a->ai_family == AF_INET6;
        const void *from =
            six ? (const void *)&((const struct sockaddr_in6 *)(const void *)a->ai_addr)->sin6_addr
                : (const void *)&((const struct sockaddr_in *)(const void *)a->ai_addr)->sin_addr;
        if ((!six && a->ai_family != AF_INET) || !inet_ntop(a->ai_family, from, text, sizeof text)) continue;
        buf_printf(&line, six ? "%s[%s]" : "%s%s", n++ ? "," : "", text);
    }
    c->resolved = line.failed ? NULL : curl_slist_append(NULL, line.data);
    buf_done(&line);
    return c->resolved != NULL;
}

static void on_looked_up(uv_getaddrinfo_t *req, int status, struct addrinfo *list)
{
    curl_call *c = req->data;
    char message[200];
    c->looking_up = false;
    if (!c->done) {
        curl_hosts *h = c->hosts;
        call_free(c);
        h->n_shells--;
        hosts_release(h);
    } else if (status) {
        snprintf(message, sizeof message, "'%.64s' cannot be asked: its address is not known (%s)",
                 c->to->rule->name, uv_strerror(status));
        finish(c, status == UV_ENOMEM ? SHOAL_ENOMEM : SHOAL_EUNAVAILABLE, message, 0);
    } else if (clock_ns() >= c->until_ns) {
        finish_late(c);
    } else if (!note_addresses(c, list) || go(c) != 0) {
        finish(c, SHOAL_ENOMEM, "out of memory", 0);
    }
    uv_freeaddrinfo(list);
}

/* The first call that is being looked up, or that has been for too long. */
static curl_call *looking_up(curl_hosts *h, uint64_t until_ns)
{
    curl_call *c = h->calls;
    while (c && !(c->looking_up && c->until_ns <= until_ns)) c = c->next;
    return c;
}

static void on_watch(uv_timer_t *t)
{
    curl_hosts *h = t->data;
    for (curl_call *c; (c = looking_up(h, clock_ns()));) finish_late(c);
    if (!looking_up(h, UINT64_MAX)) uv_timer_stop(t);
}

static int look_up(curl_call *c)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_family = AF_UNSPEC};
    c->lookup.data = c;
    int rc = uv_getaddrinfo(c->hosts->loop, &c->lookup, on_looked_up, c->to->name, c->to->port, &hints);
    c->looking_up = rc == 0;
    if (rc == 0 && !uv_is_active((uv_handle_t *)c->hosts->watch))
        uv_timer_start(c->hosts->watch, on_watch, LOOK_MS, LOOK_MS);
    return rc == 0 ? 0 : SHOAL_ENOMEM;
}

static void set_until(curl_call *c, uint64_t deadline_ns)
{
    c->start_ns = clock_ns();
    c->until_ns = c->start_ns + c->to->rule->timeout_ms * 1000000u;
    c->by_deadline = deadline_ns && deadline_ns < c->until_ns;
    if (c->by_deadline) c->until_ns = deadline_ns;
}

static bool copy_request(curl_call *c, const host_ask *a)
{
    const char *base = c->to->rule->url;
    size_t n = strlen(base);
    buf url = {0};
    while (n && base[n - 1] == '/') n--;
    buf_append(&url, base, n);
    buf_puts(&url, a->path);
    c->url = buf_take(&url);
    if (a->body && (c->sends = malloc(a->n_body + 1))) memcpy(c->sends, a->body, a->n_body);
    c->n_sends = a->n_body;
    return c->url && (!a->body || c->sends) && make_headers(c, a->request_id);
}

static host_call *ask(hosts *base, const host_ask *a)
{
    curl_hosts *h = (curl_hosts *)base;
    const known_host *to = h->known;
    while (strcmp(to->rule->name, a->host) != 0) to++; /* the configuration was checked */
    curl_call *c = calloc(1, sizeof *c);
    if (!c) return NULL;
    *c = (curl_call){.base = {base->ops},
                     .hosts = h,
                     .to = to,
                     .method = a->method,
                     .user = a->user,
                     .done = a->done,
                     .next = h->calls};
    set_until(c, a->deadline_ns);
    if (h->calls) h->calls->prev = c;
    h->calls = c;
    if (copy_request(c, a) && (to->is_address ? go(c) : look_up(c)) == 0) return &c->base;
    drop(c);
    return NULL;
}

static void cancel(host_call *call)
{
    drop((curl_call *)call);
}

/* ---- life ---------------------------------------------------------------------------------------------- */

static void hosts_release(curl_hosts *h)
{
    if (!h->dying || h->n_shells) return;
    for (size_t i = 0; i < h->n_known; i++) curl_slist_free_all(h->known[i].headers);
    free(h->known);
    free(h);
}

static void free_hosts(hosts *base)
{
    curl_hosts *h = (curl_hosts *)base;
    while (h->calls) drop(h->calls);
    curl_multi_cleanup(h->multi);
    if (h->timer) uv_close((uv_handle_t *)h->timer, free_handle);
    if (h->watch) uv_close((uv_handle_t *)h->watch, free_handle);
    h->dying = true;
    hosts_release(h);
}

/* The first line of a file, as a header's value. */
static int read_value(const host_header *from, buf *ret, shoal_err *err)
{
    shoal_err why;
    int rc = file_read(ret, from->file, HEADER_FILE_MAX, &why);
    if (rc == SHOAL_ENOMEM) return err_nomem(err);
    if (rc) return err_set(err, SHOAL_EINVALID, "%s", why.message);
    size_t n = ret->data ? strcspn(ret->data, "\r\n") : 0;
    if (n) ret->data[n] = 0;
    if (n && n == strlen(ret->data) && host_header_value_ok(ret->data)) return 0;
    return err_set(err, SHOAL_EINVALID, "%s: its first line is no header's value", from->file);
}

static int read_headers(known_host *k, size_t i_rule, shoal_err *err)
{
    int rc = 0;
    for (size_t i = 0; i < k->rule->n_headers && !rc; i++) {
        const host_header *from = &k->rule->headers[i];
        shoal_err why = {0};
        buf value = {0};
        rc = from->file ? read_value(from, &value, &why) : 0;
        if (!rc && !add_header(&k->headers, from->name, from->file ? value.data : from->value))
            rc = err_nomem(err);
        if (rc == SHOAL_EINVALID)
            rc = err_set(err, rc, "hosts[%zu].headers[%zu].file: %s", i_rule, i, why.message);
        buf_done(&value);
    }
    return rc;
}

/* Name and port of the URL, which was checked. */
static void take_apart(known_host *k)
{
    bool secure = strncmp(k->rule->url, "https", 5) == 0;
    const char *at = k->rule->url + (secure ? 8 : 7);
    size_t n = strcspn(at, "/");
    const char *end = *at == '[' ? memchr(at, ']', n) : NULL,
               *colon = memchr(end ? end : at, ':', n - (end ? (size_t)(end - at) : 0));
    size_t n_name = colon ? (size_t)(colon - at) : n;
    struct in_addr four;
    snprintf(k->name, sizeof k->name, "%.*s", (int)n_name, at);
    snprintf(k->port, sizeof k->port, "%.*s", (int)(colon ? n - n_name - 1 : 3),
             colon    ? colon + 1
             : secure ? "443"
                      : "80");
    k->is_address = *at == '[' || inet_pton(AF_INET, k->name, &four) == 1;
}

static int check_ca(const host_rule *r, size_t i, shoal_err *err)
{
    if (!r->ca || file_exists(r->ca)) return 0;
    return err_set(err, SHOAL_EINVALID, "hosts[%zu].ca: %s: there is no such file", i, r->ca);
}

static int open_known(curl_hosts *h, const host_rule *rules, size_t n, shoal_err *err)
{
    int rc = 0;
    h->known = calloc(n + 1, sizeof *h->known);
    if (!h->known) return err_nomem(err);
    for (; h->n_known < n && !rc; h->n_known++) {
        known_host *k = &h->known[h->n_known];
        k->rule = &rules[h->n_known];
        take_apart(k);
        rc = check_ca(k->rule, h->n_known, err);
        if (!rc) rc = read_headers(k, h->n_known, err);
    }
    return rc;
}

static uv_timer_t *timer_new(curl_hosts *h)
{
    uv_timer_t *t = malloc(sizeof *t);
    if (!t) return NULL;
    uv_timer_init(h->loop, t);
    t->data = h;
    return t;
}

static int open_multi(curl_hosts *h)
{
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK || !(h->multi = curl_multi_init()))
        return SHOAL_ENOMEM;
    h->timer = timer_new(h);
    h->watch = h->timer ? timer_new(h) : NULL;
    if (!h->watch) return SHOAL_ENOMEM;
    curl_multi_setopt(h->multi, CURLMOPT_SOCKETFUNCTION, watch_socket);
    curl_multi_setopt(h->multi, CURLMOPT_SOCKETDATA, h);
    curl_multi_setopt(h->multi, CURLMOPT_TIMERFUNCTION, set_timer);
    curl_multi_setopt(h->multi, CURLMOPT_TIMERDATA, h);
    curl_multi_setopt(h->multi, CURLMOPT_MAX_HOST_CONNECTIONS, (long)PER_HOST_MAX);
    curl_multi_setopt(h->multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, (long)CONNECTIONS_MAX);
    return 0;
}

int hosts_open(hosts **ret, uv_loop_t *loop, const host_rule *rules, size_t n, shoal_err *err)
{
    static const hosts_ops OPS = {.ask = ask, .cancel = cancel, .free = free_hosts};
    curl_hosts *h = calloc(1, sizeof *h);
    if (!h) return err_nomem(err);
    h->base.ops = &OPS;
    h->loop = loop;
    int rc = open_known(h, rules, n, err);
    if (!rc && open_multi(h)) rc = err_nomem(err);
    if (rc)
        free_hosts(&h->base);
    else
        *ret = &h->base;
    return rc;
}
