/* etcd_session.c: one endpoint after the other, calls on the one that is up, and who is told. */
#include "discovery/etcd_session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/file.h"
#include "logging/log.h"
#include "discovery/etcd_lease.h"
#include "etcd/rpc.pb-c.h"

enum {
    CALL_MS = 3000,
    CONNECT_MS = 3000,
    PAUSE_MIN_MS = 100, /* between two rounds of the endpoints */
    PAUSE_MAX_MS = 5000,
    RETRY_MIN_MS = 200, /* of a listener, on a connection that stands */
    RETRY_MAX_MS = 5000,
    TOKEN_YOUNG_MS = 2000, /* one that is refused sooner will be refused again */
    PASSWORD_BYTES = 1024,
    TOKEN_BYTES = 4096, /* a JSON web token has some hundreds */
    PING_MS = 10000,    /* etcd hangs up on a client that pings more often than each 5 s */
    PING_ANSWER_MS = 3000,
};

typedef enum { WAITING, CONNECTING, AUTHENTICATING, UP } phase;

struct etcd_session {
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
    uint64_t pause_ms, token_ns;
    char *token;
    char why[256];
    etcd_listener *listeners;
    etcd_call *calls;
    etcd_lease lease;
};

struct etcd_call {
    etcd_session *s;
    etcd_call *next;
    grpc_client_call *call; /* NULL: ended */
    env_timer *timer;
    etcd_answer_fn fn;
    void *user;
    uint8_t *bytes;
    size_t n;
    bool has_answer, lost; /* lost: memory was out for it */
};

static void session_leave(etcd_session *s, const char *why, bool at_once);
static void session_renew_token(etcd_session *s);

/* ---- listeners and their retries ------------------------------------------------------------------- */

static uint64_t doubled(uint64_t ms, uint64_t max)
{
    return ms < max / 2 ? 2 * ms : max;
}

static void listener_ready(void *arg)
{
    etcd_listener *l = arg;
    if (!etcd_session_is_up(l->s)) return;
    l->told = true;
    l->s->e.timer_stop(l->retry);
    l->ready(l->user);
}

int etcd_session_listen(etcd_session *s, etcd_listener *l, shoal_err *err)
{
    l->retry = s->e.timer_new(s->e.user, listener_ready, l);
    if (!l->retry) return err_nomem(err);
    l->s = s;
    l->pause_ms = RETRY_MIN_MS;
    l->next = s->listeners;
    s->listeners = l;
    if (etcd_session_is_up(s)) s->e.timer_start(l->retry, 0);
    return 0;
}

void etcd_session_unlisten(etcd_listener *l)
{
    if (!l->s) return;
    etcd_listener **at = &l->s->listeners;
    while (*at && *at != l) at = &(*at)->next;
    if (*at) *at = l->next;
    l->s->e.timer_free(l->retry);
    l->s = NULL;
}

void etcd_session_retry(etcd_listener *l)
{
    if (!etcd_session_is_up(l->s)) return; /* ready comes with the next connection */
    l->s->e.timer_start(l->retry, l->pause_ms);
    l->pause_ms = doubled(l->pause_ms, RETRY_MAX_MS);
}

void etcd_session_succeeded(etcd_listener *l)
{
    l->pause_ms = RETRY_MIN_MS;
}

static etcd_listener *next_told(const etcd_session *s, bool told)
{
    etcd_listener *l = s->listeners;
    while (l && l->told != told) l = l->next;
    return l;
}

/* From the first again after each, since each may listen, unlisten and doubt. */
static void tell_up(etcd_session *s)
{
    etcd_lease_up(&s->lease);
    for (etcd_listener *l; etcd_session_is_up(s) && (l = next_told(s, false));) listener_ready(l);
}

static void tell_down(etcd_session *s, const char *why)
{
    etcd_lease_down(&s->lease);
    for (etcd_listener *l; (l = next_told(s, true));) {
        l->told = false;
        s->e.timer_stop(l->retry);
        if (l->down) l->down(l->user, why);
    }
}

static void tell_lease(etcd_session *s, etcd_lease_event what)
{
    for (etcd_listener *l = s->listeners, *next; l; l = next) {
        next = l->next;
        if (l->lease) l->lease(l->user, what);
    }
}

bool etcd_session_is_up(const etcd_session *s)
{
    return s->phase == UP && !s->doomed;
}

const char *etcd_session_trouble(const etcd_session *s)
{
    return s->phase == UP ? "" : s->why;
}

const char *etcd_session_endpoint(const etcd_session *s)
{
    return s->endpoints[s->at];
}

const env *etcd_session_env(const etcd_session *s)
{
    return &s->e;
}

int64_t etcd_session_lease(const etcd_session *s)
{
    return s->lease.id;
}

uint64_t etcd_session_lease_until_ns(const etcd_session *s)
{
    return s->lease.id ? s->lease.until_ns : 0;
}

void etcd_session_doubt_lease(etcd_session *s)
{
    etcd_lease_doubt(&s->lease);
}

void etcd_session_revoke(etcd_session *s, void (*done)(void *user), void *user)
{
    etcd_lease_revoke(&s->lease, done, user);
}

/* ---- calls --------------------------------------------------------------------------------------- */

static void call_unlink(etcd_call *x)
{
    etcd_call **at = &x->s->calls;
    while (*at != x) at = &(*at)->next;
    *at = x->next;
}

static void etcd_session_call_free(etcd_call *x)
{
    call_unlink(x);
    x->s->e.timer_free(x->timer);
    free(x->bytes);
    free(x);
}

void etcd_call_cancel(etcd_call *x)
{
    if (!x) return;
    if (x->call) grpc_client_cancel(x->call);
    etcd_session_call_free(x);
}

/* "auth store" is what changed when somebody was given or lost a role: old tokens do not do any more. */
static bool is_about_token(grpc_status status, const char *message)
{
    return status == GRPC_UNAUTHENTICATED ||
           (status == GRPC_INVALID_ARGUMENT && strstr(message, "auth store is old"));
}

static void call_message(void *user, const uint8_t *msg, size_t n)
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
static void call_answer(etcd_call *x, const etcd_answer *a)
{
    etcd_answer_fn fn = x->fn;
    void *user = x->user;
    uint8_t *bytes = x->bytes;
    x->bytes = NULL;
    etcd_session_call_free(x);
    fn(user, a);
    free(bytes);
}

/* What such an end says of the endpoint is acted upon after its caller has heard it, who finds the client not
 * up, and waits. */
static void call_ended(void *user, grpc_status status, const char *message)
{
    etcd_call *x = user;
    etcd_session *s = x->s;
    char said[160];
    if (status == GRPC_OK && (!x->has_answer || x->lost)) status = GRPC_INTERNAL;
    snprintf(said, sizeof said, "%s", message && *message ? message : grpc_status_name(status));
    etcd_answer a = {.status = status, .message = said, .bytes = x->bytes, .n = x->n};
    if (status == GRPC_OK) {
        s->pause_ms = PAUSE_MIN_MS;
        s->n_failed = 0;
    }
    bool stale = is_about_token(status, said);
    bool acts = etcd_session_is_up(s) && (stale || status == GRPC_UNAVAILABLE);
    s->doomed = s->doomed || acts;
    call_answer(x, &a);
    if (!acts || s->phase != UP) return;
    if (stale)
        session_renew_token(s);
    else
        session_leave(s, said, false);
}

static void call_late(void *arg)
{
    etcd_call *x = arg;
    char why[64];
    snprintf(why, sizeof why, "no answer in %u ms", x->s->call_ms);
    session_leave(x->s, why, false); /* which ends x */
}

static grpc_client_call *call_start(etcd_session *s, const char *path, const ProtobufCMessage *m,
                                    etcd_call *x)
{
    const grpc_client_events ev = {.user = x, .message = call_message, .end = call_ended};
    const http_header meta[] = {{"token", s->token}};
    const grpc_call_options o = {.metadata = meta, .n_metadata = 1, .max_message = ETCD_MESSAGE_MAX};
    grpc_client_call *call = grpc_call_open(s->channel, path, &o, &ev);
    if (!call) return NULL;
    if (etcd_stream_send(call, m) != 0) {
        grpc_client_cancel(call);
        return NULL;
    }
    grpc_client_half_close(call);
    return call;
}

/* Also before it is up: for Authenticate. */
static etcd_call *call_begin(etcd_session *s, const char *path, const ProtobufCMessage *m, etcd_answer_fn fn,
                             void *user)
{
    etcd_call *x = calloc(1, sizeof *x);
    if (!x) return NULL;
    *x = (etcd_call){.s = s, .fn = fn, .user = user, .next = s->calls};
    s->calls = x;
    x->timer = s->e.timer_new(s->e.user, call_late, x);
    x->call = x->timer ? call_start(s, path, m, x) : NULL;
    if (!x->call) {
        etcd_session_call_free(x);
        return NULL;
    }
    s->e.timer_start(x->timer, s->call_ms);
    return x;
}

etcd_call *etcd_session_call(etcd_session *s, const char *path, const ProtobufCMessage *m, etcd_answer_fn fn,
                             void *user)
{
    return etcd_session_is_up(s) ? call_begin(s, path, m, fn, user) : NULL;
}

grpc_client_call *etcd_session_stream(etcd_session *s, const char *path, const grpc_client_events *ev)
{
    const http_header meta[] = {{"token", s->token}, {"hasleader", "true"}};
    const grpc_call_options o = {.metadata = meta, .n_metadata = 2, .max_message = ETCD_MESSAGE_MAX};
    return etcd_session_is_up(s) ? grpc_call_open(s->channel, path, &o, ev) : NULL;
}

int etcd_stream_send(grpc_client_call *stream, const ProtobufCMessage *m)
{
    size_t n = protobuf_c_message_get_packed_size(m);
    uint8_t *bytes = malloc(n ? n : 1);
    if (!bytes) return SHOAL_ENOMEM;
    protobuf_c_message_pack(m, bytes);
    int rc = grpc_client_send(stream, bytes, n);
    free(bytes);
    return rc;
}

/* ---- leaving an endpoint ------------------------------------------------------------------------- */

/* A quarter more or less, so that those who lost the same server do not come back in one instant. */
static uint64_t session_draw(etcd_session *s, uint64_t ms)
{
    return ms - ms / 4 + s->e.random(s->e.user) % (ms / 2 + 1);
}

static void session_plan_next(etcd_session *s, bool at_once)
{
    uint64_t ms = 1;
    s->phase = WAITING;
    if (!at_once) {
        s->at = (s->at + 1) % s->n_endpoints;
        s->n_failed++;
        if (s->n_failed >= s->n_endpoints) {
            ms = session_draw(s, s->pause_ms);
            s->pause_ms = doubled(s->pause_ms, PAUSE_MAX_MS);
        }
    }
    s->e.timer_start(s->timer, ms);
}

static void session_close_channel(etcd_session *s)
{
    grpc_channel *ch = s->channel;
    s->channel = NULL;
    if (ch) grpc_channel_close(ch); /* ends its calls */
    free(s->token);
    s->token = NULL;
}

/* at_once: the same endpoint again, nothing is wrong with it. */
static void session_leave(etcd_session *s, const char *why, bool at_once)
{
    bool was_up = s->phase == UP;
    if (s->phase == WAITING) return;
    char text[sizeof s->why];
    snprintf(text, sizeof text, "etcd at %.100s: %.140s", s->endpoints[s->at], why);
    if (!at_once) /* each endpoint once, until one has answered */
        LOG(s->n_failed < s->n_endpoints ? LOG_WARN : LOG_DEBUG, "etcd", was_up ? "lost" : "unreachable",
            LOG_S("endpoint", s->endpoints[s->at]), LOG_S("reason", why));
    memcpy(s->why, text, sizeof text);
    s->phase = WAITING;
    s->doomed = false;
    session_close_channel(s);
    session_plan_next(s, at_once);
    if (was_up) tell_down(s, text);
}

void etcd_session_doubt(etcd_session *s, const char *why)
{
    char text[160];
    snprintf(text, sizeof text, "%s", why);
    session_leave(s, text, false);
}

static void session_renew_token(etcd_session *s)
{
    bool young = s->e.now_ns(s->e.user) - s->token_ns < TOKEN_YOUNG_MS * UINT64_C(1000000);
    LOG(LOG_INFO, "etcd", "token_renewed", LOG_S("endpoint", s->endpoints[s->at]));
    session_leave(
        s, s->user ? "it takes our token no more" : "it wants a user and a password (discovery.etcd.user)",
        s->user && !young);
}

bool etcd_stream_may_reopen(etcd_session *s, grpc_status status, const char *message)
{
    char why[160];
    if (!etcd_session_is_up(s)) return false;
    snprintf(why, sizeof why, "it ended a stream: %s",
             message && *message ? message : grpc_status_name(status));
    if (is_about_token(status, why))
        session_renew_token(s);
    else if (status == GRPC_UNAVAILABLE || status == GRPC_CANCELLED)
        session_leave(s, why, false);
    return etcd_session_is_up(s);
}

/* ---- coming to one ------------------------------------------------------------------------------- */

static void session_set_up(etcd_session *s)
{
    s->phase = UP;
    s->token_ns = s->e.now_ns(s->e.user);
    LOG(LOG_INFO, "etcd", "connected", LOG_S("endpoint", s->endpoints[s->at]));
    tell_up(s);
}

/* The password: the file's first line. */
static int session_read_password(const etcd_session *s, buf *out, shoal_err *err)
{
    int rc = s->password_file ? file_read(out, s->password_file, PASSWORD_BYTES, err) : 0;
    if (rc == 0) rc = buf_append(out, "", 1);
    if (rc == 0) out->data[strcspn(out->data, "\r\n")] = '\0';
    return rc;
}

static bool session_keep_token(etcd_session *s, const etcd_answer *a)
{
    Etcdserverpb__AuthenticateResponse *m = etcdserverpb__authenticate_response__unpack(NULL, a->n, a->bytes);
    size_t n = m ? strlen(m->token) : 0;
    if (n > 0 && n <= TOKEN_BYTES) s->token = strdup(m->token);
    if (m) etcdserverpb__authenticate_response__free_unpacked(m, NULL);
    return s->token != NULL;
}

static void session_authenticated(void *user, const etcd_answer *a)
{
    etcd_session *s = user;
    if (s->phase != AUTHENTICATING) return;
    if (a->status == GRPC_OK && session_keep_token(s, a)) {
        session_set_up(s);
    } else if (a->status == GRPC_FAILED_PRECONDITION && strstr(a->message, "not enabled")) {
        LOG(LOG_WARN, "etcd", "authentication_is_off", LOG_S("endpoint", s->endpoints[s->at]));
        session_set_up(s);
    } else {
        char why[160];
        s->pause_ms = PAUSE_MAX_MS; /* a guess costs the server a slow hash, and locks nobody out */
        snprintf(why, sizeof why, "user %.40s: %.100s", s->user,
                 a->status == GRPC_OK ? "its token makes no sense" : a->message);
        session_leave(s, why, false);
    }
}

static void session_authenticate(etcd_session *s)
{
    Etcdserverpb__AuthenticateRequest m = ETCDSERVERPB__AUTHENTICATE_REQUEST__INIT;
    shoal_err err = {0};
    buf password = {0};
    s->phase = AUTHENTICATING;
    int rc = session_read_password(s, &password, &err);
    m.name = (char *)s->user;
    m.password = password.data;
    bool asks = rc == 0 && call_begin(s, ETCD_AUTHENTICATE, &m.base, session_authenticated, s);
    if (password.data) explicit_bzero(password.data, password.len);
    buf_done(&password);
    if (!asks) session_leave(s, rc != 0 ? err.message : "out of memory", false);
}

static void session_connected(void *user)
{
    etcd_session *s = user;
    if (s->phase != CONNECTING) return;
    if (s->user)
        session_authenticate(s);
    else
        session_set_up(s);
}

static void session_disconnected(void *user, const char *why)
{
    session_leave(user, why, false);
}

static void session_connect(void *arg)
{
    etcd_session *s = arg;
    shoal_err err = {0};
    const grpc_channel_events ev = {
        .user = s, .connected = session_connected, .disconnected = session_disconnected};
    const grpc_channel_options o = {.tls = s->tls,
                                    .connect_timeout_ms = s->connect_ms,
                                    .keepalive_ms = PING_MS,
                                    .keepalive_timeout_ms = PING_ANSWER_MS};
    s->phase = CONNECTING;
    if (grpc_channel_open(&s->channel, s->loop, s->endpoints[s->at], &o, &ev, &err) != 0) {
        s->channel = NULL;
        session_leave(s, err.message, false);
    }
}

/* ---- life ---------------------------------------------------------------------------------------- */

static int session_copy_options(etcd_session *s, const etcd_session_options *o, shoal_err *err)
{
    bool ok = (s->strings = arena_new(0)) != NULL;
    s->endpoints = ok ? arena_alloc(s->strings, o->n_endpoints * sizeof *s->endpoints) : NULL;
    ok = ok && s->endpoints;
    for (size_t i = 0; ok && i < o->n_endpoints; i++)
        ok = (s->endpoints[i] = arena_strdup(s->strings, o->endpoints[i])) != NULL;
    if (ok && o->user) ok = (s->user = arena_strdup(s->strings, o->user)) != NULL;
    if (ok && o->password_file) ok = (s->password_file = arena_strdup(s->strings, o->password_file)) != NULL;
    s->n_endpoints = o->n_endpoints;
    s->call_ms = o->call_ms ? o->call_ms : CALL_MS;
    s->connect_ms = o->connect_ms ? o->connect_ms : CONNECT_MS;
    s->tls = o->tls ? tls_context_ref(o->tls) : NULL;
    return ok ? 0 : err_nomem(err);
}

int etcd_session_open(etcd_session **ret, uv_loop_t *loop, const env *e, const etcd_session_options *o,
                      shoal_err *err)
{
    if (o->n_endpoints == 0) return err_set(err, SHOAL_EINVALID, "etcd needs at least one endpoint");
    etcd_session *s = calloc(1, sizeof *s);
    if (!s) return err_nomem(err);
    s->loop = loop;
    s->e = *e;
    s->pause_ms = PAUSE_MIN_MS;
    s->lease = (etcd_lease){.s = s, .e = &s->e, .tell = tell_lease, .ttl_s = o->lease_s};
    s->timer = e->timer_new(e->user, session_connect, s);
    int rc = s->timer ? session_copy_options(s, o, err) : err_nomem(err);
    if (rc == 0) rc = etcd_lease_open(&s->lease, err);
    if (rc != 0) {
        etcd_session_close(s);
        return rc;
    }
    s->at = e->random(e->user) % s->n_endpoints; /* all gateways on one member would be a herd */
    e->timer_start(s->timer, 0);
    *ret = s;
    return 0;
}

void etcd_session_close(etcd_session *s)
{
    if (!s) return;
    s->phase = WAITING;
    for (etcd_call *x; (x = s->calls);) etcd_call_cancel(x);
    etcd_lease_close(&s->lease);
    session_close_channel(s);
    s->e.timer_free(s->timer);
    tls_context_unref(s->tls);
    arena_free(s->strings);
    free(s);
}
