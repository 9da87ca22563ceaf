/* A CA in a folder of its own, and what joins it. */
#ifndef TESTS_TRUST_FIXTURE_H
#define TESTS_TRUST_FIXTURE_H

#include <openssl/x509.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trust/ca.h"
#include "trust/cert.h"
#include "trust/folder.h"
#include "trust/key.h"
#include "trust/trust.h"

#define NOW INT64_C(1800000000)
#define DAY CERT_DAY_S

static char place[64];   /* of this test */
static char ca_path[80]; /* place/ca */

static inline int place_open(void **state)
{
    strcpy(place, "/tmp/trust-test-XXXXXX");
    if (!mkdtemp(place)) return -1;
    snprintf(ca_path, sizeof ca_path, "%s/ca", place);
    return 0;
}

static inline void remove_tree(const char *path)
{
    DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d));) {
        char sub[4096];
        if (snprintf(sub, sizeof sub, "%s/%s", path, e->d_name) >= (int)sizeof sub) continue;
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
        if (unlink(sub) != 0) remove_tree(sub);
    }
    if (d) closedir(d);
    rmdir(path);
}

static inline int place_close(void **state)
{
    remove_tree(place);
    return 0;
}

static inline ca *new_ca(void)
{
    shoal_err err = {0};
    ca *c = NULL;
    if (ca_init(ca_path, "home", NOW, &err) != 0) fail_msg("%s", err.message);
    assert_int_equal(ca_open(&c, ca_path, &err), 0);
    return c;
}

static inline void new_token(ca *c, role r, char text[TOKEN_TEXT_SIZE])
{
    assert_int_equal(ca_token(c, &(ca_token_ask){.role = r}, NOW, text, NULL), 0);
}

/* A request of a fresh key, which is the caller's. */
static inline EVP_PKEY *new_request(const char *name, buf *ret_der)
{
    EVP_PKEY *key = NULL;
    assert_int_equal(key_new(&key, NULL), 0);
    assert_int_equal(key_request(key, name, ret_der, NULL), 0);
    return key;
}

/* Enrol under a name with a token of that role; the certificate is the caller's. */
static inline X509 *join(ca *c, const char *name, role r, int64_t now)
{
    char text[TOKEN_TEXT_SIZE];
    buf der = {0}, pem = {0};
    X509 *cert = NULL;
    shoal_err err = {0};
    assert_int_equal(ca_token(c, &(ca_token_ask){.role = r}, now, text, NULL), 0);
    EVP_PKEY_free(new_request(name, &der));
    if (ca_enrol(c, text, (uint8_t *)der.data, der.len, now, &pem, NULL, &err) != 0)
        fail_msg("%s", err.message);
    assert_int_equal(cert_from_pem(&cert, pem.data, pem.len, "new", NULL), 0);
    buf_done(&der);
    buf_done(&pem);
    return cert;
}

static inline trust *trust_of(ca *c, int64_t now)
{
    buf pem = {0}, crl = {0};
    trust *t = NULL;
    assert_int_equal(ca_put_cert(c, &pem, NULL), 0);
    assert_int_equal(trust_open(&t, pem.data, pem.len, "ca.crt", NULL), 0);
    assert_int_equal(ca_put_crl(c, now, &crl, NULL), 0);
    assert_int_equal(trust_revocations(t, crl.data, crl.len, NULL), 0);
    buf_done(&pem);
    buf_done(&crl);
    return t;
}

static inline bool says(const shoal_err *err, const char *part)
{
    if (!strstr(err->message, part)) print_error("\"%s\" does not say \"%s\"\n", err->message, part);
    return strstr(err->message, part) != NULL;
}

#endif
