/* control_join.c: certificates for those who bring a token, or a certificate that is valid. The CA blocks on
 * the disk, so it works on the thread pool, one job at a time: its handle belongs to one thread. */
#include <openssl/crypto.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "logging/log.h"
#include "base/signal_stack.h"
#include "control/control_impl.h"
#include "join/join.h"
#include "trust/cert.h"
#include "trust/key.h"

enum { JOBS_MAX = 64 };

struct control_job {
    control_job *next;
    control *g;
    uv_work_t work;
    grpc_call *call; /* NULL: the caller has left */
    bool renews;
    bool passed_on; /* by a gateway, which counts the attempts that fail */
    char *token;
    char serial[65], from[64];
    uint8_t *request;
    size_t n_request;
    int rc;
    shoal_err err;
    identity id;
    buf cert, ca, crl;
};

static void control_join_job_free(control_job *j)
{
    if (j->token) OPENSSL_cleanse(j->token, strlen(j->token));
    free(j->token);
    free(j->request);
    buf_done(&j->cert);
    buf_done(&j->ca);
    buf_done(&j->crl);
    free(j);
}

/* ---- on the pool --------------------------------------------------------------------------------- */

static int do_enrol(control_job *j, ca *c, int64_t now)
{
    int rc = ca_enrol(c, j->token, j->request, j->n_request, now, &j->cert, &j->id, &j->err);
    if (rc == 0) rc = ca_put_cert(c, &j->ca, &j->err);
    if (rc == 0) rc = ca_put_crl(c, now, &j->crl, &j->err);
    return rc;
}

static void work(uv_work_t *w)
{
    signal_stack_open();
    control_job *j = w->data;
    ca *c = j->g->credential.ca;
    j->rc = j->renews ? ca_renew(c, j->serial, j->request, j->n_request, control_now(), &j->cert, &j->err)
                      : do_enrol(j, c, control_now());
}

/* ---- answers ------------------------------------------------------------------------------------- */

static void control_join_answer(grpc_call *c, const ProtobufCMessage *m)
{
    size_t n = protobuf_c_message_get_packed_size(m);
    uint8_t *bytes = malloc(n ? n : 1);
    if (!bytes) {
        grpc_call_end(c, GRPC_RESOURCE_EXHAUSTED, "out of memory");
        return;
    }
    protobuf_c_message_pack(m, bytes);
    grpc_call_send(c, bytes, n);
    grpc_call_end(c, GRPC_OK, NULL);
    free(bytes);
}

static void answer_enrolled(const control_job *j)
{
    Shoal__V1__EnrolReply m = SHOAL__V1__ENROL_REPLY__INIT;
    m.certificate = j->cert.data;
    m.ca = j->ca.data;
    m.revoked = j->crl.data;
    m.cluster = (char *)j->id.cluster;
    m.name = (char *)j->id.name;
    control_join_answer(j->call, &m.base);
}

static void answer_renewed(const control_job *j)
{
    Shoal__V1__RenewReply m = SHOAL__V1__RENEW_REPLY__INIT;
    m.certificate = j->cert.data;
    control_join_answer(j->call, &m.base);
}

static void log_outcome(const control_job *j)
{
    const char *event = j->renews ? "renew" : "join";
    if ((j->rc != 0 || j->renews) && !control_may_log(j->g, j->from)) return;
    if (j->rc != 0)
        LOG(LOG_WARN, "control", j->renews ? "renew_refused" : "join_refused", LOG_S("from", j->from),
            LOG_S("reason", j->err.message));
    else if (j->renews)
        LOG(LOG_INFO, "control", event, LOG_S("serial", j->serial));
    else
        LOG(LOG_INFO, "control", event, LOG_S("name", j->id.name), LOG_S("role", role_name(j->id.role)),
            LOG_S("from", j->from));
}

static void start_next(control *g);

static void worked(uv_work_t *w, int status)
{
    control_job *j = w->data;
    control *g = j->g;
    log_outcome(j);
    bool is_attempt = j->rc == SHOAL_EAUTH || j->rc == SHOAL_EINVALID;
    if (!j->renews && !j->passed_on && is_attempt)
        guard_failed(&g->guard, j->from, control_now_ns(g) / 1000000);
    if (j->call && j->rc != 0)
        grpc_call_end(j->call, j->rc == SHOAL_EAUTH ? GRPC_UNAUTHENTICATED : grpc_status_from_err(j->rc),
                      j->err.message);
    else if (j->call)
        (j->renews ? answer_renewed : answer_enrolled)(j);
    if (j->rc == 0 && !j->renews && j->id.role == ROLE_NODE) placer_enrolled(g, j->id.name);
    g->jobs = j->next;
    if (!g->jobs) g->last_job = &g->jobs;
    control_join_job_free(j);
    start_next(g);
}

static void start_next(control *g)
{
    if (!g->jobs || g->closing)
        control_release(g);
    else
        uv_queue_work(g->loop, &g->jobs->work, work, worked);
}

/* Its caller is told nothing more, and tells it nothing more. */
static void control_join_let_go(control_job *j)
{
    if (j->call) grpc_call_set_data(j->call, NULL);
    j->call = NULL;
}

void control_jobs_forget(control *g)
{
    control_job *waiting = g->jobs ? g->jobs->next : NULL;
    if (g->jobs) {
        control_join_let_go(g->jobs);
        g->jobs->next = NULL;
        g->last_job = &g->jobs->next;
    }
    while (waiting) {
        control_job *next = waiting->next;
        control_join_let_go(waiting);
        control_join_job_free(waiting);
        waiting = next;
    }
}

/* ---- questions ----------------------------------------------------------------------------------- */

static void on_caller_gone(void *user, grpc_call *c)
{
    control_job *j = grpc_call_data(c);
    if (j) j->call = NULL;
}

/* Takes j. */
static void control_join_submit(control *g, control_job *j, grpc_call *c)
{
    j->g = g;
    j->work.data = j;
    j->call = c;
    grpc_call_set_data(c, j);
    grpc_call_on_cancel(c, on_caller_gone, NULL);
    bool idle = !g->jobs;
    *g->last_job = j;
    g->last_job = &j->next;
    if (idle) start_next(g);
}

static size_t count_jobs(const control *g)
{
    size_t n = 0;
    for (const control_job *j = g->jobs; j; j = j->next) n++;
    return n;
}

void control_end_crowded(grpc_call *c)
{
    char message[96];
    snprintf(message, sizeof message, "too many are joining at once; " JOIN_RETRY, 1ull);
    grpc_call_end(c, GRPC_RESOURCE_EXHAUSTED, message);
}

/* May anything be asked of the CA now? Else the call has been ended. */
static bool is_possible(control *g, grpc_call *c)
{
    if (count_jobs(g) >= JOBS_MAX)
        control_end_crowded(c);
    else
        return true;
    return false;
}

/* One renewal of a member at a time: one that asks without end does not take the places of others. */
static bool waits_already(const control *g, const char *serial)
{
    for (const control_job *j = g->jobs; j; j = j->next)
        if (j->renews && strcmp(j->serial, serial) == 0) return true;
    return false;
}

static bool is_gateway(const tls_identity *who)
{
    return who && strcmp(who->unit, role_name(ROLE_GATEWAY)) == 0;
}

static bool is_patient(control *g, grpc_call *c)
{
    char message[96];
    if (is_gateway(grpc_call_peer(c))) return true;
    uint64_t wait = guard_wait_ms(&g->guard, grpc_call_from(c), control_now_ns(g) / 1000000);
    if (wait == 0) return true;
    snprintf(message, sizeof message, "too many failed attempts to join; " JOIN_RETRY,
             (unsigned long long)(wait + 999) / 1000);
    grpc_call_end(c, GRPC_RESOURCE_EXHAUSTED, message);
    return false;
}

static control_job *control_join_job_new(grpc_call *c, const ProtobufCBinaryData *request, const char *token)
{
    control_job *j = calloc(1, sizeof *j);
    if (j) {
        j->request = malloc(request->len ? request->len : 1);
        j->token = token ? strdup(token) : NULL;
    }
    if (!j || !j->request || (token && !j->token)) {
        if (j) control_join_job_free(j);
        grpc_call_end(c, GRPC_RESOURCE_EXHAUSTED, "out of memory");
        return NULL;
    }
    if (request->len) memcpy(j->request, request->data, request->len);
    j->n_request = request->len;
    snprintf(j->from, sizeof j->from, "%s", grpc_call_from(c));
    j->passed_on = is_gateway(grpc_call_peer(c));
    return j;
}

void control_on_enrol(void *user, grpc_call *c, const uint8_t *msg, size_t n)
{
    control *g = user;
    if (!is_patient(g, c)) return;
    if (!g->credential.ca) {
        control_pass_on(g, c, "/shoal.v1.Join/Enrol", msg, n);
        return;
    }
    if (!is_possible(g, c)) return;
    Shoal__V1__EnrolRequest *m = shoal__v1__enrol_request__unpack(NULL, n, msg);
    if (!m) {
        guard_failed(&g->guard, grpc_call_from(c), control_now_ns(g) / 1000000);
        grpc_call_end(c, GRPC_INVALID_ARGUMENT, "the request cannot be read");
        return;
    }
    control_job *j = control_join_job_new(c, &m->request, m->token);
    if (j) control_join_submit(g, j, c);
    OPENSSL_cleanse(m->token, strlen(m->token));
    shoal__v1__enrol_request__free_unpacked(m, NULL);
}

/* The serial of the certificate that is to be renewed: the caller's own, or, where a gateway passes it on,
 * the one whose key has signed the request. False: the call has been ended. */
static bool find_serial(const control *g, grpc_call *c, const Shoal__V1__RenewRequest *m, char ret[65])
{
    const tls_identity *peer = grpc_call_peer(c);
    X509 *cert = NULL;
    shoal_err err;
    snprintf(ret, 65, "%s", peer->serial);
    if (!is_gateway(peer) || !*m->certificate) return true;
    size_t n = strlen(m->certificate);
    int rc = n > PEM_BYTES_MAX ? err_set(&err, SHOAL_EINVALID, "the certificate is too long")
                               : cert_from_pem(&cert, m->certificate, n, "the certificate", &err);
    char serial[CERT_SERIAL_SIZE] = "";
    if (rc == 0) cert_serial(cert, serial);
    bool own = rc == 0 && strcmp(serial, peer->serial) == 0;
    const trust_want want = {.role = ROLE_NODE};
    if (rc == 0 && !own &&
        trust_check(g->credential.own.trust, cert, &want, control_now(), NULL, &err) != TRUST_OK)
        rc = SHOAL_EAUTH;
    if (rc == 0 && !own &&
        !key_has_signed(X509_get0_pubkey(cert), JOIN_RENEW, m->request.data, m->request.len,
                        m->signature.data, m->signature.len))
        rc = err_set(&err, SHOAL_EAUTH, "the key of the certificate has not signed this request");
    if (rc == 0) snprintf(ret, 65, "%s", serial);
    if (rc != 0) grpc_call_end(c, GRPC_UNAUTHENTICATED, err.message);
    X509_free(cert);
    return rc == 0;
}

static void renew(control *g, grpc_call *c, const Shoal__V1__RenewRequest *m)
{
    char serial[65];
    if (!find_serial(g, c, m, serial)) return;
    if (waits_already(g, serial)) {
        grpc_call_end(c, GRPC_RESOURCE_EXHAUSTED, "this certificate is being renewed");
        return;
    }
    control_job *j = control_join_job_new(c, &m->request, NULL);
    if (!j) return;
    j->renews = true;
    memcpy(j->serial, serial, sizeof j->serial);
    control_join_submit(g, j, c);
}

void control_on_renew(void *user, grpc_call *c, const uint8_t *msg, size_t n)
{
    control *g = user;
    if (!grpc_call_peer(c)) {
        grpc_call_end(c, GRPC_UNAUTHENTICATED,
                      "a certificate is renewed by who shows it; join with a token instead");
        return;
    }
    if (!g->credential.ca) {
        control_pass_on(g, c, "/" JOIN_RENEW, msg, n);
        return;
    }
    if (!is_possible(g, c)) return;
    Shoal__V1__RenewRequest *m = shoal__v1__renew_request__unpack(NULL, n, msg);
    if (m)
        renew(g, c, m);
    else
        grpc_call_end(c, GRPC_INVALID_ARGUMENT, "the request cannot be read");
    if (m) shoal__v1__renew_request__free_unpacked(m, NULL);
}
