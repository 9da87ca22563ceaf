/* pull_http.c: see pull_http.h. Redirects are followed here, so that each address is checked. wire/http_out.h makes
 * the transfers, on a loop that runs only while a request is waited for. */
#include "fetch/pull_http.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "wire/http_out.h"
#include "wire/loop.h"

enum {
    REDIRECTS_MAX = 10,
    DROPPED_MAX = 1 << 20,
    CONNECT_S = 20,
    STALL_S = 30,
    STOP_CHECK_MS = 100,
    READ_BYTES = 262144,
    DESCRIPTORS_MAX = 256, /* of this process: a few files, a few connections */
    TRIES = 6,
    TRIES_UNHEARD = 2
};

struct pull_client {
    uv_loop_t loop;
    http_out *out;
    uv_timer_t tick; /* ends each wait, so that `stop` is looked at */
    int stall_s, tries;
    bool heard;       /* a server has answered this client */
    bool unreachable; /* the last try found no machine or no listener */
    const volatile sig_atomic_t *stop;
    const char *const *hosts;
    size_t n_hosts;
};

/* One response on its way. */
typedef struct exchange {
    pull_client *c;
    const pull_request *r;
    pull_reply *reply;
    const char *url; /* r's, or where a redirect leads */
    bool begun, ended;
    size_t dropped;
    int rc;
    shoal_err *err;
} exchange;

static void on_tick(uv_timer_t *t) {}

int pull_client_new(pull_client **ret, const pull_client_options *o, shoal_err *err)
{
    pull_client *c = calloc(1, sizeof *c);
    if (!c) return err_nomem(err);
    int rc = loop_open(&c->loop, DESCRIPTORS_MAX, err);
    if (rc != 0) {
        free(c);
        return rc;
    }
    uv_timer_init(&c->loop, &c->tick);
    rc =
        http_out_open(&c->out, &c->loop, &(http_out_options){.proxies = true, .read_bytes = READ_BYTES}, err);
    c->stall_s = o->stall_s > 0 ? o->stall_s : STALL_S;
    c->tries = o->tries > 0 ? o->tries : TRIES;
    c->stop = o->stop;
    c->hosts = o->hosts;
    c->n_hosts = o->n_hosts;
    if (rc == 0)
        *ret = c;
    else
        pull_client_free(c);
    return rc;
}

void pull_client_free(pull_client *c)
{
    if (!c) return;
    http_out_close(c->out);
    uv_close((uv_handle_t *)&c->tick, NULL);
    uv_run(&c->loop, UV_RUN_DEFAULT);
    uv_loop_close(&c->loop);
    free(c);
}

bool pull_client_stopped(const pull_client *c)
{
    return c->stop && *c->stop;
}

int pull_client_tries(const pull_client *c)
{
    bool unheard = c->unreachable && !c->heard && c->tries > TRIES_UNHEARD;
    return unheard ? TRIES_UNHEARD : c->tries;
}

void pull_client_sleep(const pull_client *c, int ms)
{
    for (; ms > 0 && !pull_client_stopped(c); ms -= 50) {
        struct timespec t = {.tv_nsec = 50 * 1000000L};
        nanosleep(&t, NULL);
    }
}

/* ---- addresses ----------------------------------------------------------------------------------------- */

bool pull_host_is_loopback(const char *host)
{
    size_t n = host[0] == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":");
    if (n == 5 && strncmp(host, "[::1]", 5) == 0) return true;
    if (n == 9 && strncasecmp(host, "localhost", 9) == 0) return true;
    if (strncmp(host, "127.", 4) != 0) return false;
    for (size_t i = 0; i < n; i++)
        if (!isdigit((unsigned char)host[i]) && host[i] != '.') return false; /* not "127.evil.example" */
    return true;
}

/* Part of a URL, to be curl_free'd; NULL when it has none or is none. */
static char *url_part(const char *url, CURLUPart part)
{
    char *s = NULL;
    CURLU *u = curl_url();
    if (u && curl_url_set(u, CURLUPART_URL, url, 0) == CURLUE_OK)
        curl_url_get(u, part, &s, part == CURLUPART_PORT ? CURLU_DEFAULT_PORT : 0);
    curl_url_cleanup(u);
    return s;
}

int pull_url_check(const char *url, shoal_err *err)
{
    char *scheme = url_part(url, CURLUPART_SCHEME), *host = url_part(url, CURLUPART_HOST);
    char *user = url_part(url, CURLUPART_USER);
    int rc = 0;
    if (!scheme || !host)
        rc = err_set(err, SHOAL_EPROTOCOL, "\"%.200s\" is no address", url);
    else if (user)
        rc = err_set(err, SHOAL_EAUTH, "an address with a user name in it is not taken; use --token-file");
    else if (strcmp(scheme, "http") == 0 && !pull_host_is_loopback(host))
        rc = err_set(err, SHOAL_EAUTH,
                     "http://%.200s is not encrypted; only https is taken from other machines", host);
    else if (strcmp(scheme, "http") != 0 && strcmp(scheme, "https") != 0)
        rc = err_set(err, SHOAL_EAUTH, "\"%.200s\" is neither https nor http", url);
    curl_free(scheme);
    curl_free(host);
    curl_free(user);
    return rc;
}

bool pull_url_same_origin(const char *a, const char *b)
{
    static const CURLUPart parts[] = {CURLUPART_SCHEME, CURLUPART_HOST, CURLUPART_PORT};
    bool same = true;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        char *x = url_part(a, parts[i]), *y = url_part(b, parts[i]);
        same &= x && y && strcasecmp(x, y) == 0;
        curl_free(x);
        curl_free(y);
    }
    return same;
}

/* ---- near and far ----------------------------------------------------------------------------------- */

/* RFC 6890: what is reached from here alone, and what no server has. */
static bool is_near_4(uint32_t a)
{
    static const struct {
        uint32_t net;
        int bits;
    } NEAR[] = {{0x00000000, 8},  {0x0A000000, 8},  {0x64400000, 10}, {0x7F000000, 8},  {0xA9FE0000, 16},
                {0xAC100000, 12}, {0xC0000000, 24}, {0xC0A80000, 16}, {0xC6120000, 15}, {0xE0000000, 3}};
    for (size_t i = 0; i < sizeof NEAR / sizeof *NEAR; i++)
        if (a >> (32 - NEAR[i].bits) == NEAR[i].net >> (32 - NEAR[i].bits)) return true;
    return false;
}

static bool is_near_6(const uint8_t a[16])
{
    static const uint8_t MAPPED[12] = {[10] = 0xFF, [11] = 0xFF}, NAT64[12] = {0, 0x64, 0xFF, 0x9B},
                         NONE[12] = {0};
    uint32_t v4 = (uint32_t)a[12] << 24 | (uint32_t)a[13] << 16 | (uint32_t)a[14] << 8 | a[15];
    if (memcmp(a, MAPPED, 12) == 0 || memcmp(a, NAT64, 12) == 0) return is_near_4(v4);
    if (memcmp(a, NONE, 12) == 0) return true; /* ::, ::1 */
    return (a[0] & 0xFE) == 0xFC || (a[0] == 0xFE && a[1] >= 0x80) || a[0] == 0xFF;
}

bool pull_address_is_near(const struct sockaddr *a)
{
    if (a->sa_family == AF_INET)
        return is_near_4(ntohl(((const struct sockaddr_in *)(const void *)a)->sin_addr.s_addr));
    if (a->sa_family == AF_INET6)
        return is_near_6(((const struct sockaddr_in6 *)(const void *)a)->sin6_addr.s6_addr);
    return true;
}

/* "host" or "host:port", the one that is asked or one of the list. */
static bool pull_http_is_named(const pull_client *c, const char *asked, const char *url)
{
    char *host = url_part(url, CURLUPART_HOST), *port = url_part(url, CURLUPART_PORT),
         *first = url_part(asked, CURLUPART_HOST);
    buf both = {0};
    buf_printf(&both, "%s:%s", host ? host : "", port ? port : "");
    bool is = host && first && c->n_hosts == 0 && strcasecmp(host, first) == 0;
    for (size_t i = 0; i < c->n_hosts && host && !both.failed; i++)
        is |= strcasecmp(c->hosts[i], host) == 0 || strcasecmp(c->hosts[i], both.data) == 0;
    buf_done(&both);
    curl_free(host);
    curl_free(port);
    curl_free(first);
    return is;
}

/* Through a proxy the name is resolved elsewhere, and the address that is connected to is the proxy's. */
static bool has_proxy(void)
{
    static const char *const NAMES[] = {"http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"};
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
        if (getenv(NAMES[i]) && *getenv(NAMES[i])) return true;
    return false;
}

static bool address_is_far(const struct sockaddr *a)
{
    return !pull_address_is_near(a);
}

/* ---- headers ------------------------------------------------------------------------------------------- */

static void copy_text(char *to, size_t size, const char *s, size_t n)
{
    if (n >= size) n = 0; /* too long to be of use; half of it would be wrong */
    memcpy(to, s, n);
    to[n] = '\0';
}

static void take_header(pull_reply *r, const char *name, size_t name_len, const char *v, size_t n)
{
    const struct {
        const char *name;
        char *to;
        size_t size;
    } texts[] = {
        {"etag", r->etag, sizeof r->etag},
        {"www-authenticate", r->authenticate, sizeof r->authenticate},
        {"link", r->link, sizeof r->link},
        {"location", r->location, sizeof r->location},
        {"content-type", r->type, sizeof r->type},
    };
    char number[64];
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (strlen(texts[i].name) == name_len && strncasecmp(name, texts[i].name, name_len) == 0)
            copy_text(texts[i].to, texts[i].size, v, n);
    copy_text(number, sizeof number, v, n);
    if (name_len == 14 && strncasecmp(name, "content-length", 14) == 0) {
        char *end;
        r->length = strtoull(number, &end, 10);
        r->has_length = end != number && *number != '-';
    } else if (name_len == 13 && strncasecmp(name, "content-range", 13) == 0) {
        unsigned long long from;
        r->has_range = sscanf(number, "bytes %llu-", &from) == 1;
        r->range_from = r->has_range ? from : 0;
    } else if (name_len == 11 && strncasecmp(name, "retry-after", 11) == 0) {
        r->retry_after_s = atoi(number);
    }
}

/* A status line begins a response anew (after 100 Continue). */
static void on_head(void *user, const char *line, size_t len)
{
    exchange *x = user;
    const char *colon = memchr(line, ':', len);
    if (len > 5 && memcmp(line, "HTTP/", 5) == 0) *x->reply = (pull_reply){0};
    if (!colon) return;
    const char *v = colon + 1, *end = line + len;
    while (v < end && (*v == ' ' || *v == '\t')) v++;
    while (end > v && isspace((unsigned char)end[-1])) end--;
    take_header(x->reply, line, (size_t)(colon - line), v, (size_t)(end - v));
}

/* ---- bodies -------------------------------------------------------------------------------------------- */

static bool is_good(int status)
{
    return status >= 200 && status < 300;
}

static int pull_http_begin(exchange *x, int status)
{
    x->reply->status = status;
    x->begun = true;
    return is_good(status) && x->r->begin ? x->r->begin(x->r->user, x->reply, x->err) : 0;
}

static int pull_http_on_data(void *user, int status, const char *data, size_t n)
{
    exchange *x = user;
    if (!x->begun) x->rc = pull_http_begin(x, status);
    if (x->rc != 0) return x->rc;
    if (!is_good(status)) return (x->dropped += n) > DROPPED_MAX;
    if (x->r->data) x->rc = x->r->data(x->r->user, data, n, x->err);
    return x->rc;
}

/* ---- requests ------------------------------------------------------------------------------------------ */

static void put_headers(buf *to, const pull_request *r, bool authorized)
{
    buf_printf(to, "Accept: %s\r\n", r->accept ? r->accept : "*/*");
    if (authorized && r->authorization) buf_printf(to, "Authorization: %s\r\n", r->authorization);
    if (r->from) buf_printf(to, "Range: bytes=%llu-\r\n", (unsigned long long)r->from);
    if (r->from && r->if_range) buf_printf(to, "If-Range: %s\r\n", r->if_range);
}

static int refuse_near(const char *asked, const char *host, shoal_err *err)
{
    return err_set(
        err, SHOAL_EAUTH,
        "%.150s sends the download on to %.100s, an address of this machine or a private network, which no "
        "one has allowed (library.fetch_from names hosts)",
        asked, host);
}

static const char *fault_text(const http_out_end *end)
{
    switch (end->fault) {
    case HTTP_OUT_CUT_OFF: return "the connection was cut off";
    case HTTP_OUT_LATE: return "no answer in time";
    case HTTP_OUT_NO_LISTENER: return "nobody answers there; is the address right, and the server running?";
    case HTTP_OUT_NO_ADDRESS: return "no machine has this name, or there is no network";
    case HTTP_OUT_UNTRUSTED: return "its certificate is wrong, or signed by a CA that is not trusted here";
    default: return end->why;
    }
}

static int transfer_failed(const exchange *x, const http_out_end *end)
{
    if (x->rc != 0) return x->rc;
    if (end->fault == HTTP_OUT_NO_MEMORY) return err_nomem(x->err);
    bool never = end->fault == HTTP_OUT_UNTRUSTED || end->fault == HTTP_OUT_UNUSABLE;
    char *host = url_part(x->url, CURLUPART_HOST);
    int rc = end->fault == HTTP_OUT_NOT_ADMITTED
                 ? refuse_near(x->r->url, host ? host : "nowhere", x->err)
                 : err_set(x->err, never ? SHOAL_EPROTOCOL : SHOAL_EUNAVAILABLE, "%.200s: %s",
                           host ? host : x->url, fault_text(end));
    curl_free(host);
    return rc;
}

static void on_done(void *user, const http_out_end *end)
{
    exchange *x = user;
    bool enough = end->fault == HTTP_OUT_STOPPED && x->rc == 0; /* of an error's body */
    x->ended = true;
    x->c->unreachable = end->fault == HTTP_OUT_NO_LISTENER || end->fault == HTTP_OUT_NO_ADDRESS;
    x->c->heard |= end->status != 0;
    if (end->fault != HTTP_OUT_OK && !enough)
        x->rc = transfer_failed(x, end);
    else if (!x->begun)
        x->rc = pull_http_begin(x, end->status);
}

/* Run the loop until the call has ended, or until stopped. */
static int await(exchange *x, http_out_call *call)
{
    pull_client *c = x->c;
    uv_timer_start(&c->tick, on_tick, STOP_CHECK_MS, STOP_CHECK_MS);
    while (!x->ended && !pull_client_stopped(c)) uv_run(&c->loop, UV_RUN_ONCE);
    uv_timer_stop(&c->tick);
    if (x->ended) return x->rc;
    http_out_cancel(call);
    return err_set(x->err, SHOAL_ECANCELLED, "stopped");
}

/* One exchange, without redirects. */
static int get_once(pull_client *c, const pull_request *r, const char *url, bool authorized, bool far_only,
                    pull_reply *ret, shoal_err *err)
{
    exchange x = {.c = c, .r = r, .url = url, .reply = ret, .err = err};
    buf headers = {0};
    *ret = (pull_reply){0};
    put_headers(&headers, r, authorized);
    http_out_request o = {.url = url,
                          .headers = headers.data,
                          .connect_s = CONNECT_S,
                          .stall_s = (unsigned)c->stall_s,
                          .admit = far_only ? address_is_far : NULL,
                          .head = on_head,
                          .data = pull_http_on_data,
                          .done = on_done,
                          .user = &x};
    http_out_call *call = headers.failed ? NULL : http_out_start(c->out, &o);
    buf_done(&headers);
    return call ? await(&x, call) : err_nomem(err);
}

/* Where a redirect points, seen from `url`; to be curl_free'd. */
static char *resolve(const char *url, const char *location)
{
    char *next = NULL;
    CURLU *u = curl_url();
    if (u && *location && curl_url_set(u, CURLUPART_URL, url, 0) == CURLUE_OK &&
        curl_url_set(u, CURLUPART_URL, location, 0) == CURLUE_OK)
        curl_url_get(u, CURLUPART_URL, &next, 0);
    curl_url_cleanup(u);
    return next;
}

static bool is_redirect(int status)
{
    return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

int pull_http_get(pull_client *c, const pull_request *r, pull_reply *ret, shoal_err *err)
{
    char *url = NULL; /* of a redirect, curl's */
    const char *now = r->url;
    int rc = pull_url_check(now, err);
    for (int hop = 0; rc == 0; hop++) {
        bool first = pull_url_same_origin(now, r->url);
        rc = get_once(c, r, now, first, !first && !pull_http_is_named(c, r->url, now) && !has_proxy(), ret,
                      err);
        if (rc != 0 || !is_redirect(ret->status)) break;
        char *next = resolve(now, ret->location);
        if (hop == REDIRECTS_MAX || !next)
            rc = err_set(err, SHOAL_EPROTOCOL, "%.200s: %s", r->url,
                         next ? "too many redirects" : "a redirect to nowhere");
        else
            rc = pull_url_check(next, err);
        if (rc != 0) {
            curl_free(next);
            break;
        }
        curl_free(url);
        now = url = next;
    }
    curl_free(url);
    return rc;
}

bool pull_challenge_word(const char *authenticate, const char *word, buf *to)
{
    const char *at = authenticate;
    size_t n = strlen(word);
    if (strncasecmp(at, "Bearer ", 7) != 0) return false;
    for (at += 7; *at;) {
        while (*at == ' ' || *at == ',') at++;
        size_t key = strcspn(at, "=, ");
        const char *v = at + key;
        if (*v != '=') return false;
        bool ours = key == n && strncasecmp(at, word, n) == 0, quoted = *++v == '"';
        v += quoted;
        size_t len = strcspn(v, quoted ? "\"" : ", ");
        if (quoted && v[len] != '"') return false;
        if (ours) return buf_append(to, v, len) == 0 && len > 0;
        at = v + len + quoted;
    }
    return false;
}
