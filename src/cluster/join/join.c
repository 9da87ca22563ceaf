/* join.c: one call on a channel that knows the CA's key and shows no certificate. */
#include "join/join.h"

#include <openssl/crypto.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

#include "base/clock.h"
#include "logging/log.h"
#include "trust/key.h"
#include "trust/token.h"
#include "grpc/grpc.h"

enum { RESET_WAIT_MS = 1000, RESETS_MAX = 30 };
enum { ROOM_BYTES = 64 << 10 }; /* for certificate, CA and list, and then some */

typedef struct joining {
    uv_loop_t loop;
    grpc_channel *channel;
    uint8_t *message; /* the packed EnrolRequest */
    size_t n_message;
    uint64_t deadline_ns;
    const char *address;
    Shoal__V1__EnrolReply *reply; /* NULL: none came */
    int rc;
    shoal_err *err;
} joining;

static void join_finish(joining *j)
{
    if (j->channel) grpc_channel_close(j->channel);
    j->channel = NULL;
}

/* ---- the call ------------------------------------------------------------------------------------ */

static void join_on_reply(void *user, const uint8_t *msg, size_t n)
{
    joining *j = user;
    if (!j->reply) j->reply = shoal__v1__enrol_reply__unpack(NULL, n, msg);
}

static void join_on_end(void *user, grpc_status status, const char *message)
{
    joining *j = user;
    if (!j->channel) return; /* we left */
    if (status != GRPC_OK)
        j->rc = err_set(j->err, status == GRPC_UNAUTHENTICATED ? SHOAL_EAUTH : grpc_status_to_err(status),
                        "the gateway says: %s", *message ? message : grpc_status_name(status));
    else
        j->rc = j->reply ? 0 : err_set(j->err, SHOAL_EPROTOCOL, "the gateway's answer cannot be read");
    join_finish(j);
}

static void join_on_connected(void *user)
{
    joining *j = user;
    const grpc_client_events ev = {.user = j, .message = join_on_reply, .end = join_on_end};
    if (grpc_call_start(j->channel, "/shoal.v1.Join/Enrol", j->message, j->n_message, NULL, 0, j->deadline_ns,
                        &ev))
        return;
    j->rc = err_set(j->err, SHOAL_EUNAVAILABLE, "the gateway takes no call now");
    join_finish(j);
}

/* What a person can do about it, in words behind the reason. */
static const char *advice(const char *why)
{
    static const struct {
        const char *why, *advice;
    } ROWS[] = {
        {"cannot be resolved", ": is the host spelled right?"},
        {"cannot be reached",
         ": does shoal serve run there, with cluster: {listen: \":7080\"} in its shoal.yaml, "
         "and is no firewall between?"},
        {"does not speak TLS", ": machines join at the port that stands in the gateway's shoal.yaml under "
                               "cluster.listen (7080 as a rule), not where clients ask"},
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++)
        if (strstr(why, ROWS[i].why)) return ROWS[i].advice;
    return "";
}

static void on_disconnected(void *user, const char *why)
{
    joining *j = user;
    if (!j->channel) return;
    j->rc = err_set(j->err, SHOAL_EUNAVAILABLE, "%s: %s%s", j->address, why, advice(why));
    join_finish(j);
}

/* ---- what is asked ------------------------------------------------------------------------------- */

static int join_pack(joining *j, const join_ask *ask, EVP_PKEY *key, shoal_err *err)
{
    Shoal__V1__EnrolRequest m = SHOAL__V1__ENROL_REQUEST__INIT;
    buf der = {0};
    int rc = key_request(key, ask->name, &der, err);
    m.token = (char *)ask->token;
    m.request.data = (uint8_t *)der.data;
    m.request.len = der.len;
    m.facts = (Shoal__V1__NodeFacts *)ask->facts;
    j->n_message = rc == 0 ? shoal__v1__enrol_request__get_packed_size(&m) : 0;
    j->message = rc == 0 ? malloc(j->n_message) : NULL;
    if (rc == 0 && !j->message) rc = err_nomem(err);
    if (rc == 0) shoal__v1__enrol_request__pack(&m, j->message);
    buf_done(&der);
    return rc;
}

/* Of the members of the cluster a gateway alone may be given the token. */
static bool join_admit(void *user, const tls_identity *who, char why[TLS_WHY_BYTES])
{
    if (strcmp(who->unit, role_name(ROLE_GATEWAY)) == 0) return true;
    snprintf(why, TLS_WHY_BYTES, "it shows a node's certificate, and is no gateway");
    return false;
}

static int talk(joining *j, const char *address, const token *t, shoal_err *err)
{
    tls_context *tls = NULL;
    const tls_options o = {.ca_key_sha256 = t->pin.bytes, .any_name = true, .admit = join_admit};
    const grpc_channel_events ev = {
        .user = j, .connected = join_on_connected, .disconnected = on_disconnected};
    int rc = tls_context_new(&tls, TLS_CLIENT, &o, err);
    if (rc != 0) return rc;
    if (uv_loop_init(&j->loop) != 0) {
        tls_context_unref(tls);
        return err_nomem(err);
    }
    j->rc = SHOAL_EUNAVAILABLE;
    j->deadline_ns = clock_ns() + JOIN_TIMEOUT_MS * UINT64_C(1000000);
    rc = grpc_channel_open(&j->channel, &j->loop, address, &(grpc_channel_options){.tls = tls}, &ev, err);
    uv_run(&j->loop, UV_RUN_DEFAULT);
    uv_loop_close(&j->loop);
    tls_context_unref(tls);
    return rc != 0 ? rc : j->rc;
}

/* ---- what comes of it ---------------------------------------------------------------------------- */

/* The CA that the reply names is the one that the token pins, and the certificate is for the name that was
 * asked. */
static int join_take(const joining *j, const join_ask *ask, const token *t, EVP_PKEY *key, credential *ret,
                     shoal_err *err)
{
    const Shoal__V1__EnrolReply *r = j->reply;
    sha256_digest d;
    int rc = credential_make(ret, key, r->certificate, strlen(r->certificate), r->ca, strlen(r->ca),
                             (int64_t)time(NULL), err);
    if (rc != 0) return rc;
    rc = key_digest(X509_get0_pubkey(trust_ca(ret->trust)), &d, err);
    if (rc == 0 && memcmp(&d, &t->pin, sizeof d) != 0)
        rc = err_set(err, SHOAL_EAUTH, "the gateway names another CA than the token does");
    if (rc == 0 && strcmp(ret->id.name, ask->name) != 0)
        rc = err_set(err, SHOAL_EAUTH, "the gateway gave a certificate for %s, not %s", ret->id.name,
                     ask->name);
    if (rc != 0) credential_done(ret);
    return rc;
}

/* The certificate comes last: with it the machine has joined. */
static int join_keep(credential *c, const join_ask *ask, const token *t, const char *revoked,
                     const folder *dir, shoal_err *err)
{
    int rc = folder_write(dir, "gateway", 0644, ask->address, strlen(ask->address), err);
    if (rc == 0) rc = folder_write(dir, "token", 0644, t->id, strlen(t->id), err);
    if (rc == 0) rc = trust_revocations(c->trust, revoked, strlen(revoked), err);
    if (rc == 0) rc = folder_write(dir, "crl.pem", 0644, revoked, strlen(revoked), err);
    return rc != 0 ? rc : credential_save(c, dir, err);
}

/* A token that is used up by a machine that cannot keep its certificate is lost: look before. */
static int look_at_folder(const folder *dir, shoal_err *err)
{
    static const char room[ROOM_BYTES];
    shoal_err why;
    int rc = folder_write(dir, "room", 0600, room, sizeof room, &why);
    unlinkat(dir->fd, "room", 0);
    if (rc == 0) return 0;
    return err_set(
        err, rc,
        "%s: the state folder must be one that this user can write, with room in it; say where with "
        "--state DIR. The token is still good",
        why.message);
}

static int look_at_address(const char *address, shoal_err *err)
{
    if (!strstr(address, "://")) return 0;
    return err_set(err, SHOAL_EINVALID, "%s: a cluster port is HOST:PORT, with nothing before it", address);
}

/* At that one of them. */
static int join_at(const join_ask *ask, const char *address, const folder *dir, shoal_err *err)
{
    joining j = {.err = err, .address = address};
    token t = {0};
    EVP_PKEY *key = NULL;
    credential c = {0};
    int rc = token_parse(&t, ask->token, strlen(ask->token), err);
    if (rc == 0) rc = look_at_folder(dir, err);
    if (rc == 0) rc = key_new(&key, err);
    if (rc == 0) rc = join_pack(&j, ask, key, err);
    if (rc == 0) rc = talk(&j, address, &t, err);
    if (rc == 0) rc = join_take(&j, ask, &t, key, &c, err);
    if (rc == 0) rc = join_keep(&c, ask, &t, j.reply->revoked, dir, err);
    credential_done(&c);
    if (j.reply) shoal__v1__enrol_reply__free_unpacked(j.reply, NULL);
    if (j.message) OPENSSL_cleanse(j.message, j.n_message);
    free(j.message);
    EVP_PKEY_free(key);
    token_forget(&t);
    return rc;
}

uint64_t join_retry_ms(const char *sentence)
{
    unsigned long long s = 0;
    const char *at = strstr(sentence, "try again in ");
    if (!at || sscanf(at, JOIN_RETRY, &s) != 1) return 0;
    return s < JOIN_RETRY_MAX_MS / 1000 ? s * 1000 : JOIN_RETRY_MAX_MS;
}

static int join_any(const join_ask *ask, const gateways *all, const folder *dir, shoal_err *err)
{
    int rc = SHOAL_EUNAVAILABLE;
    for (size_t i = 0; i < all->n && (i == 0 || rc == SHOAL_EUNAVAILABLE); i++)
        rc = join_at(ask, all->list[i].address, dir, err);
    return rc;
}

/* As long as told, and up to as long again, so that all who were told the same do not come back at once. */
static void wait_as_told(uint64_t ms, const char *why, uint64_t attempt)
{
    ms += (uint64_t)(rng_uniform((uint64_t)getpid() ^ clock_ns(), attempt) * (double)ms);
    LOG(LOG_WARN, "join", "waits", LOG_I("ms", ms), LOG_S("reason", why));
    const struct timespec t = {.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000};
    nanosleep(&t, NULL); /* a signal that does not end the process ends the wait: no harm */
}

/* A gateway resets connections that are too many for it (http_limits.max_unauthenticated), as does one that is
 * starting again; but so may what is no gateway at all, which is not asked for ever. */
static uint64_t pause_ms(const char *why, uint64_t attempt)
{
    uint64_t told_ms = join_retry_ms(why);
    if (told_ms > 0 || attempt >= RESETS_MAX) return told_ms;
    return strstr(why, "reset by the peer") ? RESET_WAIT_MS : 0;
}

int join_cluster(const join_ask *ask, const folder *dir, shoal_err *err)
{
    gateways all = {0};
    shoal_err why = {0};
    uint64_t ms;
    int rc = look_at_address(ask->address, err);
    if (rc == 0) rc = gateways_give(&all, ask->address, err);
    if (rc != 0) return rc;
    for (uint64_t i = 0; (rc = join_any(ask, &all, dir, &why)) != 0 && (ms = pause_ms(why.message, i)) > 0;
         i++)
        wait_as_told(ms, why.message, i);
    return rc != 0 ? err_set(err, rc, "%s", why.message) : 0;
}

int join_move(const folder *dir, const char *address, shoal_err *err)
{
    gateways all = {0};
    buf was = {0};
    int rc = look_at_address(address, err);
    if (rc == 0) rc = gateways_give(&all, address, err);
    bool same = rc == 0 && folder_read(dir, "gateway", JOIN_ADDRESS_MAX, false, &was, NULL) == 0 &&
                was.data && strcmp(was.data, address) == 0;
    if (rc == 0 && !same) rc = folder_write(dir, "gateway", 0644, address, strlen(address), err);
    buf_done(&was);
    return rc;
}

bool join_was_by(const folder *dir, const char *text)
{
    token t = {0};
    buf kept = {0};
    bool same = token_parse(&t, text, strlen(text), NULL) == 0 && folder_has(dir, "member.pem") &&
                folder_read(dir, "token", TOKEN_ID_SIZE, false, &kept, NULL) == 0 &&
                kept.len == strlen(t.id) && memcmp(kept.data, t.id, kept.len) == 0;
    token_forget(&t);
    buf_done(&kept);
    return same;
}

int join_address(const folder *dir, char **ret, shoal_err *err)
{
    buf text = {0};
    int rc = folder_read(dir, "gateway", JOIN_ADDRESS_MAX, false, &text, err);
    if (rc == SHOAL_ENOTFOUND)
        rc = err_set(err, rc, "%s: this machine has not joined a cluster: give --join HOST:PORT and a token",
                     dir->path);
    char *address = rc == 0 ? buf_take(&text) : NULL;
    buf_done(&text);
    if (rc == 0 && !address) return err_nomem(err);
    *ret = address;
    return rc;
}
