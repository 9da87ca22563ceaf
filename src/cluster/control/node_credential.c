/* node_credential.c: opening the state folder, signing one's own certificate, following the list of the
 * revoked. */
#define _GNU_SOURCE
#include "control/node_credential.h"

#include <openssl/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "trust/key.h"
#include "trust/state.h"

enum { LIST_LOOK_S = 3600 };

/* ---- the certificate ----------------------------------------------------------------------------- */

/* A fresh key and a certificate for it, from the CA at hand. */
static int issue(node_credential *s, const char *name, int64_t now, shoal_err *err)
{
    identity id = {.role = ROLE_GATEWAY};
    EVP_PKEY *key = NULL;
    buf cert = {0}, root = {0};
    credential fresh = {0};
    int rc = identity_name_check(name, strlen(name), "gateway", err);
    if (rc != 0) return rc;
    strcpy(id.name, name);
    strcpy(id.cluster, ca_cluster(s->ca));
    rc = key_new(&key, err);
    if (rc == 0) rc = ca_issue(s->ca, &id, key, now, &cert, err);
    if (rc == 0) rc = ca_put_cert(s->ca, &root, err);
    if (rc == 0) rc = credential_make(&fresh, key, cert.data, cert.len, root.data, root.len, now, err);
    if (rc == 0) rc = credential_save(&fresh, &s->dir, err);
    if (rc == 0) {
        credential_done(&s->own);
        s->own = fresh;
    } else {
        credential_done(&fresh);
    }
    EVP_PKEY_free(key);
    buf_done(&cert);
    buf_done(&root);
    return rc;
}

/* One that was signed while this clock was ahead. Where the clock is behind the CA itself, a new one would be
 * no better. */
static bool begins_too_late(const node_credential *s, int64_t now)
{
    int64_t from, until;
    return now < s->own.from && s->ca && cert_times(ca_cert(s->ca), &from, &until, NULL) == 0 && from <= now;
}

/* Is the certificate that is there still the one to show? */
static bool is_good(const node_credential *s, const char *name, int64_t now)
{
    if (!s->own.cert || now >= credential_renew_at(&s->own) || s->own.id.role != ROLE_GATEWAY) return false;
    if (begins_too_late(s, now)) return false;
    if (strcmp(s->own.id.name, name) != 0) return false;
    char serial[CERT_SERIAL_SIZE];
    cert_serial(s->own.cert, serial);
    if (trust_serial_is_revoked(s->own.trust, serial)) return false;
    /* Of a CA that was made anew an older certificate is worth nothing. */
    return !s->ca || X509_verify(s->own.cert, X509_get0_pubkey(ca_cert(s->ca))) == 1;
}

static int check_given(const node_credential *s, const char *name, int64_t now, shoal_err *err)
{
    const identity *id = &s->own.id;
    if (id->role != ROLE_GATEWAY)
        return err_set(
            err, SHOAL_EAUTH,
            "%s/member.pem is a node's certificate; a gateway joins with: shoal token create --role gateway",
            s->dir.path);
    if (now > s->own.until)
        return err_set(err, SHOAL_EAUTH,
                       "%s/member.pem has expired: set this machine's clock (NTP) if it is wrong, else join "
                       "again with a new "
                       "token",
                       s->dir.path);
    if (name && strcmp(name, id->name) != 0)
        return err_set(err, SHOAL_EAUTH, "%s/member.pem is for the name %s, not %s", s->dir.path, id->name,
                       name);
    return 0;
}

static int set_up_own(node_credential *s, const char *name, int64_t now, shoal_err *err)
{
    char host[256] = "", usual[IDENTITY_NAME_SIZE];
    int rc = credential_load(&s->own, &s->dir, err);
    if (!s->ca && rc == SHOAL_ENOTFOUND)
        return err_set(err, rc, "%s: no CA and no certificate is there; make one with: shoal ca init",
                       s->dir.path);
    if (!s->ca) return rc != 0 ? rc : check_given(s, name, now, err);
    if (rc != 0 && rc != SHOAL_ENOTFOUND) return rc;
    gethostname(host, sizeof host - 1);
    identity_name_from_host(usual, host);
    if (!name) name = rc == 0 && s->own.id.role == ROLE_GATEWAY ? s->own.id.name : usual;
    char wanted[IDENTITY_NAME_SIZE];
    snprintf(wanted, sizeof wanted, "%s", name); /* it may be that of the certificate, which goes */
    return is_good(s, wanted, now) ? 0 : issue(s, wanted, now, err);
}

/* ---- the list of the revoked --------------------------------------------------------------------- */

/* That of the CA at hand, copied to where TLS and this gateway's nodes get it. */
static int follow_list(node_credential *s, int64_t now, bool *ret_changed, shoal_err *err)
{
    buf pem = {0}, old = {0};
    int rc = ca_put_crl(s->ca, now, &pem, err);
    if (rc == 0) rc = trust_revocations(s->own.trust, pem.data, pem.len, err);
    bool same = rc == 0 && folder_read(&s->dir, "crl.pem", CERT_CRL_BYTES_MAX, false, &old, NULL) == 0 &&
                old.len == pem.len && memcmp(old.data, pem.data, pem.len) == 0;
    if (rc == 0 && !same) rc = folder_write(&s->dir, "crl.pem", 0644, pem.data, pem.len, err);
    if (rc == 0) *ret_changed = !same;
    buf_done(&pem);
    buf_done(&old);
    return rc;
}

/* Has a command changed it since it was looked at, or was that long ago? */
static bool list_is_due(node_credential *s, int64_t now)
{
    struct stat st;
    if (fstatat(s->dir.fd, "ca/crl.pem", &st, 0) != 0) return true;
    bool moved = st.st_mtim.tv_sec != s->crl_seen.tv_sec || st.st_mtim.tv_nsec != s->crl_seen.tv_nsec;
    bool due = moved || now - s->crl_looked >= LIST_LOOK_S || now < s->crl_looked;
    if (!due) return false;
    s->crl_seen = st.st_mtim;
    s->crl_looked = now;
    return true;
}

/* ---- life ---------------------------------------------------------------------------------------- */

static int open_ca(node_credential *s, shoal_err *err)
{
    char *path = NULL;
    if (!folder_has(&s->dir, "ca")) return 0;
    if (asprintf(&path, "%s/ca", s->dir.path) < 0) return err_nomem(err);
    int rc = ca_open(&s->ca, path, err);
    free(path);
    return rc;
}

static int name_files(node_credential *s, shoal_err *err)
{
    bool ok = asprintf(&s->cert_file, "%s/member.pem", s->dir.path) > 0;
    ok = ok && asprintf(&s->ca_file, "%s/ca.crt", s->dir.path) > 0;
    ok = ok && asprintf(&s->crl_file, "%s/crl.pem", s->dir.path) > 0;
    return ok ? 0 : err_nomem(err);
}

int node_credential_open(node_credential *ret, const char *state, const char *name, int64_t now,
                         shoal_err *err)
{
    node_credential s = {.dir = FOLDER_NONE};
    char *path = NULL;
    unsigned changed;
    int rc = state_path(&path, state, NULL, err);
    if (rc == 0) rc = folder_open(&s.dir, path, false, err);
    if (rc == SHOAL_ENOTFOUND)
        rc = err_set(err, rc, "%s: no CA and no certificate is there; make one with: shoal ca init", path);
    if (rc == 0) rc = name_files(&s, err);
    if (rc == 0) rc = open_ca(&s, err);
    if (rc == 0) rc = set_up_own(&s, name, now, err);
    if (rc == 0) rc = node_credential_tick(&s, now, &changed, err);
    free(path);
    if (rc == 0)
        *ret = s;
    else
        node_credential_close(&s);
    return rc;
}

int node_credential_tick(node_credential *s, int64_t now, unsigned *ret_changed, shoal_err *err)
{
    int rc = 0;
    bool listed = false;
    *ret_changed = 0;
    if (!s->ca) return 0;
    char name[IDENTITY_NAME_SIZE];
    memcpy(name, s->own.id.name, sizeof name);
    if (!is_good(s, name, now)) {
        rc = issue(s, name, now, err);
        *ret_changed |= rc == 0 ? NODE_CREDENTIAL_CERT : 0;
        s->crl_seen = (struct timespec){0}; /* the new credential knows no list yet */
    }
    if (rc == 0 && list_is_due(s, now)) rc = follow_list(s, now, &listed, err);
    if (listed) *ret_changed |= NODE_CREDENTIAL_CRL;
    return rc;
}

int node_credential_reload(node_credential *s, shoal_err *err)
{
    credential fresh = {0};
    int rc = credential_load(&fresh, &s->dir, err);
    if (rc != 0) return rc;
    credential_done(&s->own);
    s->own = fresh;
    return 0;
}

void node_credential_close(node_credential *s)
{
    credential_done(&s->own);
    ca_close(s->ca);
    if (s->dir.path) folder_close(&s->dir);
    free(s->cert_file);
    free(s->ca_file);
    free(s->crl_file);
    *s = (node_credential){.dir = FOLDER_NONE};
}
