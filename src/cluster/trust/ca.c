/* ca.c: the authority's folder, and the changes to its ledger. */
#define _GNU_SOURCE
#include "trust/ca.h"

#include <errno.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "trust/folder.h"
#include "trust/key.h"

struct ca {
    folder dir;
    X509 *cert;
    EVP_PKEY *key;
    char cluster[IDENTITY_NAME_SIZE];
    sha256_digest pin;
};

const char *ca_cluster(const ca *c)
{
    return c->cluster;
}

const sha256_digest *ca_pin(const ca *c)
{
    return &c->pin;
}

const X509 *ca_cert(const ca *c)
{
    return c->cert;
}

int ca_put_cert(const ca *c, buf *out, shoal_err *err)
{
    return cert_put_pem(out, c->cert, err);
}

static cert_signer signer(const ca *c)
{
    return (cert_signer){.cert = c->cert, .key = c->key};
}

/* ---- the files --------------------------------------------------------------------------------- */

static int write_ledger(const ca *c, const ledger *l, shoal_err *err)
{
    buf text = {0};
    int rc = ledger_put(l, &text, err);
    if (rc == 0) rc = folder_write(&c->dir, "ledger", 0600, text.data, text.len, err);
    buf_done(&text);
    return rc;
}

static int read_ledger(const ca *c, ledger *ret, shoal_err *err)
{
    buf text = {0};
    char what[512];
    snprintf(what, sizeof what, "%s/ledger", c->dir.path);
    int rc = folder_read(&c->dir, "ledger", LEDGER_BYTES_MAX, true, &text, err);
    if (rc == 0) rc = ledger_parse(ret, text.data, text.len, what, err);
    buf_done(&text);
    return rc;
}

/* Those that would be believed but for the list. */
static int write_crl(const ca *c, const ledger *l, int64_t now, shoal_err *err)
{
    cert_revoked *revoked = calloc(l->n_certs ? l->n_certs : 1, sizeof *revoked);
    if (!revoked) return err_nomem(err);
    size_t n = 0;
    for (size_t i = 0; i < l->n_certs; i++)
        if (l->certs[i].revoked)
            revoked[n++] = (cert_revoked){.serial = l->certs[i].serial, .at = l->certs[i].revoked};
    X509_CRL *crl = NULL;
    buf pem = {0};
    int rc = cert_make_crl(&crl, signer(c), revoked, n, l->crl_number, now, err);
    if (rc == 0) rc = cert_put_crl_pem(&pem, crl, err);
    if (rc == 0) rc = folder_write(&c->dir, "crl.pem", 0644, pem.data, pem.len, err);
    X509_CRL_free(crl);
    buf_done(&pem);
    free(revoked);
    return rc;
}

/* Is crl.pem that of this ledger, and young? */
static bool crl_is_current(const ca *c, const ledger *l, int64_t now)
{
    buf pem = {0};
    X509_CRL *crl = NULL;
    int64_t from = now, until;
    cert_times(c->cert, &from, &until, NULL);
    time_t at =
        (time_t)(from > now ? from : now); /* a clock that is behind the CA makes none that is better */
    time_t half = (time_t)(now + CERT_CRL_DAYS * CERT_DAY_S / 2);
    bool ok = folder_read(&c->dir, "crl.pem", CERT_CRL_BYTES_MAX, false, &pem, NULL) == 0 &&
              cert_crl_from_pem(&crl, pem.data, pem.len, "crl.pem", NULL) == 0 &&
              cert_crl_number(crl) == l->crl_number && X509_CRL_verify(crl, c->key) == 1 &&
              X509_cmp_time(X509_CRL_get0_lastUpdate(crl), &at) < 0 && /* not of a clock that was ahead */
              X509_cmp_time(X509_CRL_get0_nextUpdate(crl), &half) > 0;
    X509_CRL_free(crl);
    buf_done(&pem);
    return ok;
}

/* ---- making ------------------------------------------------------------------------------------ */

static int write_all(ca *c, int64_t now, shoal_err *err)
{
    buf key = {0}, cert = {0};
    ledger empty = {.crl_number = 1};
    int rc = key_put_pem(&key, c->key, err);
    if (rc == 0) rc = folder_write(&c->dir, "ca.key", 0600, key.data, key.len, err);
    if (rc == 0) rc = cert_put_pem(&cert, c->cert, err);
    if (rc == 0) rc = folder_write(&c->dir, "ca.crt", 0644, cert.data, cert.len, err);
    if (rc == 0) rc = write_ledger(c, &empty, err);
    if (rc == 0) rc = write_crl(c, &empty, now, err);
    buf_wipe(&key);
    buf_done(&cert);
    return rc;
}

static void remove_all(const char *path)
{
    static const char *const names[] = {"ca.key", "ca.crt", "ledger", "crl.pem", "ca.key.new"};
    char file[4096];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(file, sizeof file, "%s/%s", path, names[i]);
        unlink(file);
    }
    rmdir(path);
}

/* A folder beside `path` that takes its name once it is whole: rename(2) replaces no folder that holds
 * something, so that of two who try at once one is refused. */
static int build(ca *c, const char *path, int64_t now, shoal_err *err)
{
    char *fresh = NULL;
    if (asprintf(&fresh, "%s.new.%d", path, (int)getpid()) < 0) return err_nomem(err);
    int rc = folder_open(&c->dir, fresh, true, err);
    if (rc == 0) rc = key_new(&c->key, err);
    if (rc == 0) rc = cert_make_ca(&c->cert, c->key, c->cluster, now, err);
    if (rc == 0) rc = write_all(c, now, err);
    if (rc == 0 && rename(fresh, path) != 0)
        rc = errno == EEXIST || errno == ENOTEMPTY || errno == ENOTDIR
                 ? err_set(err, SHOAL_EINVALID, "%s: a CA is there already; it is never overwritten", path)
                 : err_set(err, SHOAL_EIO, "%s: %s", path, strerror(errno));
    if (rc == 0)
        rc = file_sync_name(path, err);
    else
        remove_all(fresh);
    free(fresh);
    return rc;
}

int ca_init(const char *path, const char *cluster, int64_t now, shoal_err *err)
{
    ca *c = calloc(1, sizeof *c);
    if (!c) return err_nomem(err);
    c->dir = FOLDER_NONE;
    int rc = identity_name_check(cluster, strlen(cluster), "cluster", err);
    if (rc == 0 && file_exists(path))
        rc = err_set(err, SHOAL_EINVALID, "%s: a CA is there already; it is never overwritten", path);
    if (rc == 0) {
        strcpy(c->cluster, cluster);
        rc = build(c, path, now, err);
    }
    ca_close(c);
    return rc;
}

/* ---- opening ----------------------------------------------------------------------------------- */

static int ca_load(ca *c, shoal_err *err)
{
    buf key = {0}, cert = {0};
    char what[512];
    int rc = folder_read(&c->dir, "ca.key", PEM_BYTES_MAX, true, &key, err);
    snprintf(what, sizeof what, "%s/ca.key", c->dir.path);
    if (rc == 0) rc = key_from_pem(&c->key, key.data, key.len, what, err);
    if (rc == 0) rc = folder_read(&c->dir, "ca.crt", PEM_BYTES_MAX, false, &cert, err);
    snprintf(what, sizeof what, "%s/ca.crt", c->dir.path);
    if (rc == 0) rc = cert_from_pem(&c->cert, cert.data, cert.len, what, err);
    if (rc == 0 && X509_check_private_key(c->cert, c->key) != 1)
        rc = ossl_fail(err, SHOAL_EFORMAT, "ca.key is not the key of ca.crt");
    if (rc == 0) rc = cert_cluster(c->cert, c->cluster, err);
    if (rc == 0) rc = key_digest(c->key, &c->pin, err);
    buf_wipe(&key);
    buf_done(&cert);
    return rc;
}

int ca_open(ca **ret, const char *path, shoal_err *err)
{
    ca *c = calloc(1, sizeof *c);
    if (!c) return err_nomem(err);
    c->dir = FOLDER_NONE;
    int rc = folder_open(&c->dir, path, false, err);
    if (rc == SHOAL_ENOTFOUND)
        rc = err_set(err, rc, "%s: no cluster CA is there; make one with: shoal ca init", path);
    if (rc == 0) rc = ca_load(c, err);
    if (rc == 0)
        *ret = c;
    else
        ca_close(c);
    return rc;
}

void ca_close(ca *c)
{
    if (!c) return;
    X509_free(c->cert);
    EVP_PKEY_free(c->key);
    folder_close(&c->dir);
    free(c);
}

/* ---- changes ----------------------------------------------------------------------------------- */

typedef struct change { /* a ledger that is read, changed and written under the lock */
    ledger l;
    int lock;
    uint64_t crl_number; /* before */
} change;

static int change_begin(ca *c, change *x, shoal_err *err)
{
    *x = (change){.lock = -1};
    int rc = folder_lock(&c->dir, &x->lock, err);
    if (rc != 0) return rc;
    rc = read_ledger(c, &x->l, err);
    x->crl_number = x->l.crl_number;
    if (rc != 0) folder_unlock(x->lock);
    return rc;
}

/* rc: of what was done in between; nothing is written unless it is 0. */
static int change_end(ca *c, change *x, int rc, int64_t now, shoal_err *err)
{
    if (rc == 0) {
        ledger_prune(&x->l, now);
        rc = write_ledger(c, &x->l, err);
    }
    if (rc == 0 && x->l.crl_number != x->crl_number) rc = write_crl(c, &x->l, now, err);
    ledger_done(&x->l);
    folder_unlock(x->lock);
    return rc;
}

int ca_ledger(ca *c, ledger *ret, shoal_err *err)
{
    return read_ledger(c, ret, err); /* renamed into place, so always whole */
}

int ca_put_crl(ca *c, int64_t now, buf *out, shoal_err *err)
{
    change x;
    int rc = change_begin(c, &x, err);
    if (rc != 0) return rc;
    if (!crl_is_current(c, &x.l, now)) rc = write_crl(c, &x.l, now, err);
    if (rc == 0) rc = folder_read(&c->dir, "crl.pem", CERT_CRL_BYTES_MAX, false, out, err);
    ledger_done(&x.l);
    folder_unlock(x.lock);
    return rc;
}

/* ---- tokens ------------------------------------------------------------------------------------ */

static int check_ask(const ca_token_ask *ask, shoal_err *err)
{
    if (ask->replace && !ask->name)
        return err_set(err, SHOAL_EINVALID, "a token that replaces a member must say which: give its name");
    if (ask->ttl_s < 0 || ask->ttl_s > CA_TTL_MAX_S)
        return err_set(err, SHOAL_EINVALID, "a token lives 1 s to %d days", CA_TTL_MAX_S / 86400);
    return ask->name ? identity_name_check(ask->name, strlen(ask->name), role_name(ask->role), err) : 0;
}

int ca_token(ca *c, const ca_token_ask *ask, int64_t now, char ret_text[TOKEN_TEXT_SIZE], shoal_err *err)
{
    int rc = check_ask(ask, err);
    if (rc != 0) return rc;
    token t;
    change x;
    token_draw(&t, &c->pin);
    ledger_token kept = {.role = ask->role,
                         .replace = ask->replace,
                         .made = now,
                         .until = now + (ask->ttl_s ? ask->ttl_s : CA_TTL_S)};
    strcpy(kept.id, t.id);
    if (ask->name) strcpy(kept.name, ask->name);
    token_secret_digest(&t, &kept.secret);
    rc = change_begin(c, &x, err);
    if (rc == 0) rc = change_end(c, &x, ledger_add_token(&x.l, &kept, err), now, err);
    if (rc == 0) token_format(ret_text, &t);
    token_forget(&t);
    return rc;
}

int ca_token_revoke(ca *c, const char *id, int64_t now, shoal_err *err)
{
    change x;
    int rc = change_begin(c, &x, err);
    if (rc != 0) return rc;
    ledger_token *t = ledger_find_token(&x.l, id);
    if (!t)
        rc = err_set(err, SHOAL_ENOTFOUND, "no token has the id \"%.40s\"; see: shoal token list", id);
    else if (strcmp(ledger_token_state(t, now), "open") != 0)
        rc = err_set(err, SHOAL_ENOTFOUND, "token %s is not open: it is %s", t->id,
                     ledger_token_state(t, now));
    else
        t->revoked = now;
    return change_end(c, &x, rc, now, err);
}

/* ---- certificates ------------------------------------------------------------------------------ */

/* With the time when it was signed. */
static int record(ledger *l, const X509 *cert, const identity *id, const sha256_digest *key, int64_t now,
                  shoal_err *err)
{
    ledger_cert r = {.role = id->role, .key = *key};
    strcpy(r.name, id->name);
    cert_serial(cert, r.serial);
    int rc = cert_times(cert, &r.from, &r.until, err);
    r.from = now;
    return rc != 0 ? rc : ledger_add_cert(l, &r, err);
}

/* Sign, and write it into the ledger. *ret is the caller's. */
static int sign(const ca *c, ledger *l, const identity *id, EVP_PKEY *key, const sha256_digest *key_hash,
                int64_t now, X509 **ret, shoal_err *err)
{
    int rc = cert_make(ret, signer(c), id, key, cert_begin(c->cert, now), now + CERT_DAYS * CERT_DAY_S, err);
    if (rc == 0) rc = record(l, *ret, id, key_hash, now, err);
    return rc;
}

/* Does the token open this ledger? To an unauthenticated peer no more is said than that it does not; who
 * knows the secret learns why not. */
static int check_token(const ca *c, const ledger *l, const token *t, int64_t now, ledger_token **ret,
                       shoal_err *err)
{
    static const sha256_digest nobody = {{0}};
    ledger_token *kept = ledger_find_token(l, t->id);
    bool right = token_secret_is(t, kept ? &kept->secret : &nobody);
    if (!kept || !right || memcmp(&t->pin, &c->pin, sizeof t->pin) != 0)
        return err_set(err, SHOAL_EAUTH,
                       "the token is not one of this cluster's; make one with: shoal token create");
    const char *state = ledger_token_state(kept, now);
    if (strcmp(state, "open") != 0)
        return err_set(err, SHOAL_EAUTH, "token %s is %s%s%s; make another with: shoal token create",
                       kept->id, state, kept->used ? " by " : "", kept->used_by);
    *ret = kept;
    return 0;
}

static int check_name(ledger *l, const ledger_token *t, const request *r, int64_t now, shoal_err *err)
{
    if (*t->name && strcmp(t->name, r->name) != 0)
        return err_set(err, SHOAL_EAUTH, "token %s is for the name %s, not %s", t->id, t->name, r->name);
    if (ledger_find_key(l, &r->key_digest))
        return err_set(err, SHOAL_EINVALID,
                       "the request's key has had a certificate: make a new key to join again");
    if (!ledger_name_lives(l, r->name, now)) return 0;
    if (!t->replace)
        return err_set(
            err, SHOAL_EAUTH,
            "the name %s is taken; join under another with --name, or if it is this machine's own: "
            "shoal token create --name %s --replace",
            r->name, r->name);
    ledger_revoke_name(l, r->name, now);
    return 0;
}

static int enrol(ca *c, ledger *l, const token *t, const request *r, int64_t now, X509 **ret,
                 identity *ret_id, shoal_err *err)
{
    ledger_token *kept = NULL;
    int rc = check_token(c, l, t, now, &kept, err);
    if (rc == 0) rc = check_name(l, kept, r, now, err);
    if (rc != 0) return rc;
    identity id = {.role = kept->role};
    strcpy(id.cluster, c->cluster);
    strcpy(id.name, r->name);
    rc = sign(c, l, &id, r->key, &r->key_digest, now, ret, err);
    if (rc != 0) return rc;
    kept->used = now;
    strcpy(kept->used_by, r->name);
    *ret_id = id;
    return 0;
}

int ca_enrol(ca *c, const char *text, const uint8_t *der, size_t n, int64_t now, buf *ret_pem,
             identity *ret_id, shoal_err *err)
{
    token t;
    request r;
    change x;
    identity id;
    X509 *cert = NULL;
    int rc = token_parse(&t, text, strlen(text), err);
    if (rc != 0) return rc;
    rc = request_read(&r, der, n, err);
    if (rc != 0) {
        token_forget(&t);
        return rc;
    }
    rc = change_begin(c, &x, err);
    if (rc == 0) rc = change_end(c, &x, enrol(c, &x.l, &t, &r, now, &cert, &id, err), now, err);
    if (rc == 0) rc = cert_put_pem(ret_pem, cert, err);
    if (rc == 0 && ret_id) *ret_id = id;
    token_forget(&t);
    request_done(&r);
    X509_free(cert);
    return rc;
}

/* A member that renews without end would fill the ledger, and nobody could join any more. What was signed
 * while the clock was ahead is not of this day. */
static size_t certs_between(const ledger *l, const char *name, int64_t then, int64_t now)
{
    size_t n = 0;
    for (size_t i = 0; i < l->n_certs; i++)
        n += l->certs[i].from > then && l->certs[i].from <= now && strcmp(l->certs[i].name, name) == 0;
    return n;
}

/* The ledger's word on a certificate that is asked to be renewed, whatever a list of revoked ones said
 * before. */
static int check_renewal(const ledger *l, const char *serial, const request *r, int64_t now, identity *ret_id,
                         shoal_err *err)
{
    const ledger_cert *had = ledger_find_serial(l, serial);
    const ledger_cert *same_key = ledger_find_key(l, &r->key_digest);
    if (!had || !ledger_cert_lives(had, now))
        return err_set(err, SHOAL_EAUTH, "the certificate of %s is %s; it has to join again with a new token",
                       r->name,
                       !had           ? "not in the CA's ledger"
                       : had->revoked ? "revoked"
                                      : "expired");
    if (strcmp(r->name, had->name) != 0)
        return err_set(err, SHOAL_EAUTH, "%s may renew its own certificate, not one of %s", had->name,
                       r->name);
    if (same_key && (strcmp(same_key->name, had->name) != 0 || same_key->role != had->role))
        return err_set(err, SHOAL_EAUTH, "the request's key is that of %s", same_key->name);
    if (certs_between(l, had->name, now - CERT_DAY_S, now) >= CA_RENEWALS_A_DAY)
        return err_set(err, SHOAL_ELIMIT, "%s has had %d certificates within a day; try again tomorrow",
                       had->name, CA_RENEWALS_A_DAY);
    ret_id->role = had->role;
    strcpy(ret_id->name, had->name);
    return 0;
}

int ca_renew(ca *c, const char *serial, const uint8_t *der, size_t n, int64_t now, buf *ret_pem,
             shoal_err *err)
{
    request r;
    identity id = {0};
    change x;
    X509 *cert = NULL;
    int rc = request_read(&r, der, n, err);
    if (rc != 0) return rc;
    strcpy(id.cluster, c->cluster);
    rc = change_begin(c, &x, err);
    if (rc == 0) {
        rc = check_renewal(&x.l, serial, &r, now, &id, err);
        if (rc == 0) rc = sign(c, &x.l, &id, r.key, &r.key_digest, now, &cert, err);
        rc = change_end(c, &x, rc, now, err);
    }
    if (rc == 0) rc = cert_put_pem(ret_pem, cert, err);
    request_done(&r);
    X509_free(cert);
    return rc;
}

static bool name_is_another_roles(const ledger *l, const identity *id, int64_t now)
{
    for (size_t i = 0; i < l->n_certs; i++)
        if (ledger_cert_lives(&l->certs[i], now) && strcmp(l->certs[i].name, id->name) == 0 &&
            l->certs[i].role != id->role)
            return true;
    return false;
}

int ca_issue(ca *c, const identity *id, EVP_PKEY *key, int64_t now, buf *ret_pem, shoal_err *err)
{
    sha256_digest hash;
    change x;
    X509 *cert = NULL;
    int rc = identity_name_check(id->name, strlen(id->name), role_name(id->role), err);
    if (rc == 0) rc = key_digest(key, &hash, err);
    if (rc == 0) rc = change_begin(c, &x, err);
    if (rc != 0) return rc;
    if (name_is_another_roles(&x.l, id, now))
        rc = err_set(err, SHOAL_EAUTH, "the name %s is taken by a member of another role", id->name);
    if (rc == 0) rc = sign(c, &x.l, id, key, &hash, now, &cert, err);
    rc = change_end(c, &x, rc, now, err);
    if (rc == 0) rc = cert_put_pem(ret_pem, cert, err);
    X509_free(cert);
    return rc;
}

int ca_revoke(ca *c, const char *name, int64_t now, size_t *ret_n, shoal_err *err)
{
    change x;
    int rc = change_begin(c, &x, err);
    if (rc != 0) return rc;
    size_t n = ledger_revoke_name(&x.l, name, now);
    if (n == 0)
        rc = err_set(err, SHOAL_ENOTFOUND,
                     "no member called \"%.64s\" has a certificate that is valid; see: shoal ca show", name);
    rc = change_end(c, &x, rc, now, err);
    if (rc == 0 && ret_n) *ret_n = n;
    return rc;
}
