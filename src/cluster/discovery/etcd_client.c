/* etcd_client.c: one endpoint after the other, and calls on the one that is up. */
#include "discovery/etcd_client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/file.h"
#include "logging/log.h"
#include "etcd/rpc.pb-c.h"

enum {
    CALL_MS = 3000,
    CONNECT_MS = 3000,
    PAUSE_MIN_MS = 100,
    PAUSE_MAX_MS = 5000,
    TOKEN_YOUNG_MS = 2000, /* one that is refused sooner will be refused again */
    PASSWORD_BYTES = 1024,
    TOKEN_BYTES = 4096, /* a JSON web token has some hundreds */
    PING_MS = 10000,    /* etcd hangs up on who asks more often than each 5 s */
    PING_ANSWER_MS = 3000,
};

typedef enum { WAITING, CONNECTING, AUTHENTICATING, UP } phase;

struct etcd_client {
    uv_loop_t *loop;
    env e;
    arena *strings;
    const char **endpoints;
    size_t n_endpoints, at, n_failed; /* n_failed: endpoints in a row that gave nothing */
    tls_context *tls;
    const char *user, *password_file;
    unsigned call_ms, connect_ms;
    phase phase;
    bool doomed; /* UP, but about to be left */
    grpc_channel *channel;
    env_timer *timer; /* the pause before the next endpoint, or none */
    env_timer *tell;  /* those who listen since it is up */
    uint64_t pause_ms, token_ns;
    char *token;
    char why[256];
    etcd_listener *listeners, *news;
    etcd_call *calls;
};

struct etcd_call {
    etcd_client *c;
    etcd_call *next;
    grpc_client_call *call; /* NULL: ended */
    env_timer *timer;
    etcd_answer_fn fn;
    void *user;
    uint8_t *bytes;
    size_t n;
    bool has_answer, lost; /* lost: memory was out for it */
};

static void leave(etcd_client *c, const char *why, bool at_once);

/* ---- who listens --------------------------------------------------------------------------------- */

void etcd_client_listen(etcd_client *c, etcd_listener *l)
{
    l->next = c->news;
    c->news = l;
    if (c->phase == UP) c->e.timer_start(c->tell, 0);
}

static bool unlink_from(etcd_listener **at, const etcd_listener *l)
{
    while (*at && *at != l) at = &(*at)->next;
    if (!*at) return false;
    *at = l->next;
    return true;
}

void etcd_client_unlisten(etcd_client *c, etcd_listener *l)
{
    if (!unlink_from(&c->listeners, l)) unlink_from(&c->news, l);
}

/* One at a time, since each may listen, unlisten and doubt: those told wait in the other list. */
static void tell_up(void *arg)
{
    etcd_client *c = arg;
    while (etcd_client_is_up(c) && c->news) {
        etcd_listener *l = c->news;
        c->news = l->next;
        l->next = c->listeners;
        c->listeners = l;
        l->up(l->user);
    }
}

static void tell_down(etcd_client *c, const char *why)
{
    while (c->listeners) {
        etcd_listener *l = c->listeners;
        c->listeners = l->next;
        l->next = c->news;
        c->news = l;
        l->down(l->user, why);
    }
}

bool etcd_client_is_up(const etcd_client *c)
{
    return c->phase == UP && !c->doomed;
}

const char *etcd_client_trouble(const etcd_client *c)
{
    return c->phase == UP ? "" : c->why;
}

const char *etcd_client_endpoint(const etcd_client *c)
{
    return c->endpoints[c->at];
}

const env *etcd_client_env(const etcd_client *c)
{
    return &c->e;
}

/* ---- calls --------------------------------------------------------------------------------------- */

static void call_unlink(etcd_call *x)
{
    etcd_call **at = &x->c->calls;
    while (*at != x) at = &(*at)->next;
    *at = x->next;
}

static void call_free(etcd_call *x)
{
    call_unlink(x);
    x->c->e.timer_free(x->timer);
    free(x->bytes);
    free(x);
}

void etcd_call_cancel(etcd_call *x)
{
    if (!x) return;
    if (x->call) grpc_client_cancel(x->call);
    call_free(x);
}

/* "auth store" is what changed when somebody was given or lost a role: old tokens do not do any more. */
static bool is_about_token(grpc_status status, const char *message)
{
    return status == GRPC_UNAUTHENTICATED ||
           (status == GRPC_INVALID_ARGUMENT && strstr(message, "auth store is old"));
}

static void on_message(void *user, const uint8_t *msg, size_t n)
{
    etcd_call *x = user;
    if (x->has_answer) return;
    x->bytes = malloc(n ? n : 1);
    x->lost = !x->bytes;
    x->has_answer = true;
    if (x->lost) return;
    if (n) memcpy(x->bytes, msg, n);
    x->n = n;
}

/* The answer, and what is left of the call: nothing. */
static void give_answer(etcd_call *x, const etcd_answer *a)
{
    etcd_answer_fn fn = x->fn;
    void *user = x->user;
    uint8_t *bytes = x->bytes;
    x->bytes = NULL;
    call_free(x);
    fn(user, a);
    free(bytes);
}

/* What such an end says of the endpoint is acted upon after its caller has heard it, who finds the client not
 * up, and waits. */
static void call_ended(void *user, grpc_status status, const char *message)
{
    etcd_call *x = user;
    etcd_client *c = x->c;
    char said[160];
    if (status == GRPC_OK && (!x->has_answer || x->lost)) status = GRPC_INTERNAL;
    snprintf(said, sizeof said, "%s", message && *message ? message : grpc_status_name(status));
    etcd_answer a = {.status = status, .message = said, .bytes = x->bytes, .n = x->n};
    if (status == GRPC_OK) {
        c->pause_ms = PAUSE_MIN_MS;
        c->n_failed = 0;
    }
    bool stale = is_about_token(status, said), gone = status == GRPC_UNAVAILABLE;
    bool acts = c->phase == UP && !c->doomed && (stale || gone);
    c->doomed = c->doomed || acts;
    give_answer(x, &a);
    if (!acts || c->phase != UP) return;
    if (stale)
        etcd_client_renew(c);
    else
        leave(c, said, false);
}

static void call_late(void *arg)
{
    etcd_call *x = arg;
    char why[64];
    snprintf(why, sizeof why, "no answer in %u ms", x->c->call_ms);
    leave(x->c, why, false); /* which ends x */
}

static grpc_client_call *start(etcd_client *c, const char *path, const ProtobufCMessage *m, etcd_call *x)
{
    const grpc_client_events ev = {.user = x, .message = on_message, .end = call_ended};
    const http_header meta[] = {{"token", c->token}};
    const grpc_call_options o = {.metadata = meta, .n_metadata = 1, .max_message = ETCD_MESSAGE_MAX};
    grpc_client_call *call = grpc_call_open(c->channel, path, &o, &ev);
    if (!call) return NULL;
    if (etcd_stream_send(call, m) != 0) {
        grpc_client_cancel(call);
        return NULL;
    }
    grpc_client_half_close(call);
    return call;
}

/* Also before it is up: for Authenticate. */
static etcd_call *begin_call(etcd_client *c, const char *path, const ProtobufCMessage *m, etcd_answer_fn fn,
                             void *user)
{
    etcd_call *x = calloc(1, sizeof *x);
    if (!x) return NULL;
    *x = (etcd_call){.c = c, .fn = fn, .user = user, .next = c->calls};
    c->calls = x;
    x->timer = c->e.timer_new(c->e.user, call_late, x);
    x->call = x->timer ? start(c, path, m, x) : NULL;
    if (!x->call) {
        call_free(x);
        return NULL;
    }
    c->e.timer_start(x->timer, c->call_ms);
    return x;
}

etcd_call *etcd_client_call(etcd_client *c, const char *path, const ProtobufCMessage *m, etcd_answer_fn fn,
                            void *user)
{
    return etcd_client_is_up(c) ? begin_call(c, path, m, fn, user) : NULL;
}

grpc_client_call *etcd_client_stream(etcd_client *c, const char *path, const grpc_client_events *ev)
{
    const http_header meta[] = {{"token", c->token}, {"hasleader", "true"}};
    const grpc_call_options o = {.metadata = meta, .n_metadata = 2, .max_message = ETCD_MESSAGE_MAX};
    return etcd_client_is_up(c) ? grpc_call_open(c->channel, path, &o, ev) : NULL;
}

int etcd_stream_send(grpc_client_call *s, const ProtobufCMessage *m)
{
    size_t n = protobuf_c_message_get_packed_size(m);
    uint8_t *bytes = malloc(n ? n : 1);
    if (!bytes) return SHOAL_ENOMEM;
    protobuf_c_message_pack(m, bytes);
    int rc = grpc_client_send(s, bytes, n);
    free(bytes);
    return rc;
}

/* ---- leaving an endpoint ------------------------------------------------------------------------- */

/* A quarter more or less, so that those who lost the same server do not come back in one instant. */
static uint64_t drawn(etcd_client *c, uint64_t ms)
{
    return ms - ms / 4 + c->e.random(c->e.user) % (ms / 2 + 1);
}

static void plan_next(etcd_client *c, bool at_once)
{
    uint64_t ms = 1;
    c->phase = WAITING;
    if (!at_once) {
        c->at = (c->at + 1) % c->n_endpoints;
        c->n_failed++;
        if (c->n_failed >= c->n_endpoints) {
            ms = drawn(c, c->pause_ms);
            c->pause_ms = c->pause_ms < PAUSE_MAX_MS / 2 ? 2 * c->pause_ms : PAUSE_MAX_MS;
        }
    }
    c->e.timer_start(c->timer, ms);
}

static void close_channel(etcd_client *c)
{
    grpc_channel *ch = c->channel;
    c->channel = NULL;
    if (ch) grpc_channel_close(ch); /* ends its calls */
    free(c->token);
    c->token = NULL;
}

/* at_once: the same endpoint again, nothing is wrong with it. */
static void leave(etcd_client *c, const char *why, bool at_once)
{
    bool was_up = c->phase == UP;
    if (c->phase == WAITING) return;
    char text[sizeof c->why];
    snprintf(text, sizeof text, "etcd at %.100s: %.140s", c->endpoints[c->at], why);
    if (!at_once) /* each endpoint once, until one has answered */
        LOG(c->n_failed < c->n_endpoints ? LOG_WARN : LOG_DEBUG, "etcd", was_up ? "lost" : "unreachable",
            LOG_S("endpoint", c->endpoints[c->at]), LOG_S("reason", why));
    memcpy(c->why, text, sizeof text);
    c->phase = WAITING;
    c->doomed = false;
    close_channel(c);
    plan_next(c, at_once);
    if (was_up) tell_down(c, text);
}

void etcd_client_doubt(etcd_client *c, const char *why)
{
    char text[160];
    snprintf(text, sizeof text, "%s", why);
    leave(c, text, false);
}

void etcd_client_renew(etcd_client *c)
{
    if (c->phase != UP) return;
    bool young = c->e.now_ns(c->e.user) - c->token_ns < TOKEN_YOUNG_MS * UINT64_C(1000000);
    LOG(LOG_INFO, "etcd", "token_renewed", LOG_S("endpoint", c->endpoints[c->at]));
    leave(c, c->user ? "it takes our token no more" : "it wants a user and a password (discovery.etcd.user)",
          c->user && !young);
}

/* ---- coming to one ------------------------------------------------------------------------------- */

static void set_up(etcd_client *c)
{
    c->phase = UP;
    c->token_ns = c->e.now_ns(c->e.user);
    LOG(LOG_INFO, "etcd", "connected", LOG_S("endpoint", c->endpoints[c->at]));
    tell_up(c);
}

/* The password: the file's first line. */
static int read_password(const etcd_client *c, buf *out, shoal_err *err)
{
    int rc = c->password_file ? file_read(out, c->password_file, PASSWORD_BYTES, err) : 0;
    if (rc == 0) rc = buf_append(out, "", 1);
    if (rc == 0) out->data[strcspn(out->data, "\r\n")] = '\0';
    return rc;
}

static bool keep_token(etcd_client *c, const etcd_answer *a)
{
    Etcdserverpb__AuthenticateResponse *m = etcdserverpb__authenticate_response__unpack(NULL, a->n, a->bytes);
    size_t n = m ? strlen(m->token) : 0;
    if (n > 0 && n <= TOKEN_BYTES) c->token = strdup(m->token);
    if (m) etcdserverpb__authenticate_response__free_unpacked(m, NULL);
    return c->token != NULL;
}

static void on_authenticated(void *user, const etcd_answer *a)
{
    etcd_client *c = user;
    if (c->phase != AUTHENTICATING) return;
    if (a->status == GRPC_OK && keep_token(c, a)) {
        set_up(c);
    } else if (a->status == GRPC_FAILED_PRECONDITION && strstr(a->message, "not enabled")) {
        LOG(LOG_WARN, "etcd", "authentication_is_off", LOG_S("endpoint", c->endpoints[c->at]));
        set_up(c);
    } else {
        char why[160];
        c->pause_ms = PAUSE_MAX_MS; /* a guess costs the server a slow hash, and locks nobody out */
        snprintf(why, sizeof why, "user %.40s: %.100s", c->user,
                 a->status == GRPC_OK ? "its token makes no sense" : a->message);
        leave(c, why, false);
    }
}

static void authenticate(etcd_client *c)
{
    Etcdserverpb__AuthenticateRequest m = ETCDSERVERPB__AUTHENTICATE_REQUEST__INIT;
    shoal_err err = {0};
    buf password = {0};
    c->phase = AUTHENTICATING;
    int rc = read_password(c, &password, &err);
    m.name = (char *)c->user;
    m.password = password.data;
    bool asks = rc == 0 && begin_call(c, ETCD_AUTHENTICATE, &m.base, on_authenticated, c);
    if (password.data) explicit_bzero(password.data, password.len);
    buf_done(&password);
    if (!asks) leave(c, rc != 0 ? err.message : "out of memory", false);
}

static void on_connected(void *user)
{
    etcd_client *c = user;
    if (c->phase != CONNECTING) return;
    if (c->user)
        authenticate(c);
    else
        set_up(c);
}

static void on_disconnected(void *user, const char *why)
{
    leave(user, why, false);
}

static void connect_next(void *arg)
{
    etcd_client *c = arg;
    shoal_err err = {0};
    const grpc_channel_events ev = {.user = c, .connected = on_connected, .disconnected = on_disconnected};
    const grpc_channel_options o = {.tls = c->tls,
                                    .connect_timeout_ms = c->connect_ms,
                                    .keepalive_ms = PING_MS,
                                    .keepalive_timeout_ms = PING_ANSWER_MS};
    c->phase = CONNECTING;
    if (grpc_channel_open(&c->channel, c->loop, c->endpoints[c->at], &o, &ev, &err) != 0) {
        c->channel = NULL;
        leave(c, err.message, false);
    }
}

/* ---- life ---------------------------------------------------------------------------------------- */

static int copy_options(etcd_client *c, const etcd_client_options *o, shoal_err *err)
{
    bool ok = (c->strings = arena_new(0)) != NULL;
    c->endpoints = ok ? arena_alloc(c->strings, o->n_endpoints * sizeof *c->endpoints) : NULL;
    ok = ok && c->endpoints;
    for (size_t i = 0; ok && i < o->n_endpoints; i++)
        ok = (c->endpoints[i] = arena_strdup(c->strings, o->endpoints[i])) != NULL;
    if (ok && o->user) ok = (c->user = arena_strdup(c->strings, o->user)) != NULL;
    if (ok && o->password_file) ok = (c->password_file = arena_strdup(c->strings, o->password_file)) != NULL;
    c->n_endpoints = o->n_endpoints;
    c->call_ms = o->call_ms ? o->call_ms : CALL_MS;
    c->connect_ms = o->connect_ms ? o->connect_ms : CONNECT_MS;
    c->tls = o->tls ? tls_context_ref(o->tls) : NULL;
    return ok ? 0 : err_nomem(err);
}

int etcd_client_open(etcd_client **ret, uv_loop_t *loop, const env *e, const etcd_client_options *o,
                     shoal_err *err)
{
    if (o->n_endpoints == 0) return err_set(err, SHOAL_EINVALID, "etcd needs at least one endpoint");
    etcd_client *c = calloc(1, sizeof *c);
    if (!c) return err_nomem(err);
    c->loop = loop;
    c->e = *e;
    c->pause_ms = PAUSE_MIN_MS;
    c->timer = e->timer_new(e->user, connect_next, c);
    c->tell = e->timer_new(e->user, tell_up, c);
    int rc = c->timer && c->tell ? copy_options(c, o, err) : err_nomem(err);
    if (rc != 0) {
        etcd_client_close(c);
        return rc;
    }
    c->at = e->random(e->user) % c->n_endpoints; /* all gateways on one member would be a herd */
    e->timer_start(c->timer, 0);
    *ret = c;
    return 0;
}

void etcd_client_close(etcd_client *c)
{
    if (!c) return;
    c->phase = WAITING;
    for (etcd_call *x; (x = c->calls);) etcd_call_cancel(x);
    c->listeners = c->news = NULL;
    close_channel(c);
    c->e.timer_free(c->timer);
    c->e.timer_free(c->tell);
    tls_context_unref(c->tls);
    arena_free(c->strings);
    free(c);
}
