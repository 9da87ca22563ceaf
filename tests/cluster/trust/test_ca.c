/* The authority: who gets a certificate, and who does not. */
#include <openssl/x509v3.h>

#include "trust/credential.h"
#include "trust_fixture.h"

/* Enrol with this token and request; the code, and the sentence in *err. */
static int enrol(ca *c, const char *text, const buf *der, int64_t now, shoal_err *err)
{
    buf pem = {0};
    int rc = ca_enrol(c, text, (const uint8_t *)der->data, der->len, now, &pem, NULL, err);
    assert_true((rc == 0) == (pem.len > 0)); /* nothing is given out with a refusal */
    buf_done(&pem);
    return rc;
}

static void a_ca_is_made_whole_and_never_overwritten(void **state)
{
    ca *c = new_ca();
    struct stat st;
    char key[128], before[65], after[65];
    shoal_err err;
    snprintf(key, sizeof key, "%s/ca.key", ca_path);
    assert_int_equal(stat(key, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_string_equal(ca_cluster(c), "home");
    sha256_hex(ca_pin(c), before);
    assert_int_equal(ca_init(ca_path, "other", NOW, &err), SHOAL_EINVALID);
    assert_true(says(&err, "never overwritten"));
    ca_close(c);
    assert_int_equal(ca_open(&c, ca_path, NULL), 0);
    sha256_hex(ca_pin(c), after);
    assert_string_equal(before, after);
    ca_close(c);
    assert_int_equal(ca_init(ca_path, "Bad Name", NOW, &err), SHOAL_EINVALID);
}

static void a_key_that_others_may_read_is_refused(void **state)
{
    char key[128];
    shoal_err err;
    ca *c = new_ca();
    ca_close(c);
    snprintf(key, sizeof key, "%s/ca.key", ca_path);
    assert_int_equal(chmod(key, 0640), 0);
    assert_int_equal(ca_open(&c, ca_path, &err), SHOAL_EAUTH);
    assert_true(says(&err, "chmod 600"));
}

static void no_ca_says_how_to_make_one(void **state)
{
    ca *c;
    shoal_err err;
    assert_int_equal(ca_open(&c, ca_path, &err), SHOAL_ENOTFOUND);
    assert_true(says(&err, "shoal ca init"));
}

static void a_certificate_says_who_what_and_how_long(void **state)
{
    ca *c = new_ca();
    X509 *cert = join(c, "kitchen-pi", ROLE_NODE, NOW);
    identity id;
    int64_t from, until;
    char serial[CERT_SERIAL_SIZE], ou[16];
    assert_int_equal(cert_identity(cert, &id, NULL), 0);
    assert_string_equal(id.cluster, "home");
    assert_string_equal(id.name, "kitchen-pi");
    assert_int_equal(id.role, ROLE_NODE);
    assert_int_equal(cert_times(cert, &from, &until, NULL), 0);
    assert_int_equal(from, NOW - CERT_SKEW_S);
    assert_int_equal(until, NOW + 30 * DAY);
    cert_serial(cert, serial);
    assert_int_equal(strlen(serial), 32);
    X509_NAME_get_text_by_NID(X509_get_subject_name(cert), NID_organizationalUnitName, ou, sizeof ou);
    assert_string_equal(ou, "node");
    assert_int_equal(X509_get_extended_key_usage(cert), XKU_SSL_CLIENT | XKU_SSL_SERVER);
    assert_int_equal(X509_check_ca(cert), 0);
    assert_int_equal(X509_check_host(cert, "kitchen-pi", 0, 0, NULL), 1);
    X509_free(cert);
    ca_close(c);
}

static void a_token_is_good_once(void **state)
{
    ca *c = new_ca();
    char text[TOKEN_TEXT_SIZE];
    buf one = {0}, two = {0};
    shoal_err err;
    new_token(c, ROLE_NODE, text);
    EVP_PKEY_free(new_request("one", &one));
    EVP_PKEY_free(new_request("two", &two));
    assert_int_equal(enrol(c, text, &one, NOW, &err), 0);
    assert_int_equal(enrol(c, text, &two, NOW, &err), SHOAL_EAUTH);
    assert_true(says(&err, "is used by one"));
    assert_int_equal(enrol(c, text, &one, NOW, &err), SHOAL_EAUTH); /* the whole join again */
    buf_done(&one);
    buf_done(&two);
    ca_close(c);
}

static void a_refusal_does_not_use_the_token_up(void **state)
{
    ca *c = new_ca();
    char text[TOKEN_TEXT_SIZE];
    buf junk = {0}, good = {0};
    shoal_err err;
    new_token(c, ROLE_NODE, text);
    buf_puts(&junk, "no request");
    EVP_PKEY_free(new_request("one", &good));
    assert_int_equal(enrol(c, text, &junk, NOW, &err), SHOAL_EINVALID);
    assert_int_equal(enrol(c, text, &good, NOW, &err), 0);
    buf_done(&junk);
    buf_done(&good);
    ca_close(c);
}

static void a_token_ends(void **state)
{
    ca *c = new_ca();
    char text[TOKEN_TEXT_SIZE], id[TOKEN_ID_SIZE];
    buf der = {0};
    shoal_err err;
    EVP_PKEY_free(new_request("one", &der));
    new_token(c, ROLE_NODE, text);
    assert_int_equal(enrol(c, text, &der, NOW + CA_TTL_S + 1, &err), SHOAL_EAUTH);
    assert_true(says(&err, "is expired"));
    memcpy(id, text, sizeof id - 1);
    id[sizeof id - 1] = '\0';
    assert_int_equal(ca_token_revoke(c, id, NOW, NULL), 0);
    assert_int_equal(ca_token_revoke(c, id, NOW, &err), SHOAL_ENOTFOUND);
    assert_true(says(&err, "is revoked"));
    assert_int_equal(enrol(c, text, &der, NOW, &err), SHOAL_EAUTH);
    assert_true(says(&err, "is revoked"));
    assert_int_equal(ca_token_revoke(c, "0123456789abcdef", NOW, &err), SHOAL_ENOTFOUND);
    buf_done(&der);
    ca_close(c);
}

/* With the id of a token, but not its secret, nothing is learned about it: not even whether it is there. */
static void a_wrong_secret_learns_nothing(void **state)
{
    ca *c = new_ca();
    char text[TOKEN_TEXT_SIZE], wrong[TOKEN_TEXT_SIZE], unknown[TOKEN_TEXT_SIZE];
    buf der = {0};
    shoal_err said, also;
    EVP_PKEY_free(new_request("one", &der));
    new_token(c, ROLE_NODE, text);
    strcpy(wrong, text);
    wrong[20] = wrong[20] == '0' ? '1' : '0';
    strcpy(unknown, text);
    unknown[0] = unknown[0] == '0' ? '1' : '0';
    assert_int_equal(enrol(c, wrong, &der, NOW, &said), SHOAL_EAUTH);
    assert_int_equal(enrol(c, unknown, &der, NOW, &also), SHOAL_EAUTH);
    assert_string_equal(said.message, also.message);
    assert_int_equal(enrol(c, text, &der, NOW, NULL), 0);
    assert_int_equal(enrol(c, wrong, &der, NOW, &also), SHOAL_EAUTH);
    assert_string_equal(said.message, also.message); /* nor whether it was used */
    buf_done(&der);
    ca_close(c);
}

static void the_secret_of_a_token_is_nowhere_on_disk(void **state)
{
    ca *c = new_ca();
    char text[TOKEN_TEXT_SIZE], path[128];
    new_token(c, ROLE_NODE, text);
    snprintf(path, sizeof path, "%s/ledger", ca_path);
    FILE *f = fopen(path, "r");
    char all[8192] = "";
    assert_true(fread(all, 1, sizeof all - 1, f) > 0);
    fclose(f);
    text[16 + 1 + 32] = '\0';
    assert_non_null(strstr(all, (text[16] = '\0', text))); /* its id is */
    assert_null(strstr(all, text + 17));
    ca_close(c);
}

static void a_token_of_another_cluster_does_not_open_this_one(void **state)
{
    ca *c = new_ca(), *other;
    char there[128], text[TOKEN_TEXT_SIZE];
    buf der = {0};
    snprintf(there, sizeof there, "%s/other", place);
    assert_int_equal(ca_init(there, "home", NOW, NULL), 0);
    assert_int_equal(ca_open(&other, there, NULL), 0);
    new_token(other, ROLE_NODE, text);
    EVP_PKEY_free(new_request("one", &der));
    assert_int_equal(enrol(c, text, &der, NOW, NULL), SHOAL_EAUTH);
    buf_done(&der);
    ca_close(other);
    ca_close(c);
}

/* ---- names --------------------------------------------------------------------------------------- */

static void a_taken_name_needs_a_token_that_says_so(void **state)
{
    ca *c = new_ca();
    char text[TOKEN_TEXT_SIZE];
    buf der = {0};
    shoal_err err;
    X509 *first = join(c, "pi", ROLE_NODE, NOW);
    trust *t = trust_of(c, NOW);
    new_token(c, ROLE_NODE, text);
    EVP_PKEY_free(new_request("pi", &der));
    assert_int_equal(enrol(c, text, &der, NOW, &err), SHOAL_EAUTH);
    assert_true(says(&err, "--name pi --replace"));
    assert_int_equal(ca_token(c, &(ca_token_ask){.replace = true}, NOW, text, &err), SHOAL_EINVALID);
    assert_int_equal(ca_token(c, &(ca_token_ask){.replace = true, .name = "pi"}, NOW, text, &err), 0);
    assert_int_equal(enrol(c, text, &der, NOW, &err), 0);
    /* The one who had the name is out. */
    assert_int_equal(trust_check(t, first, &(trust_want){.role = ROLE_NODE}, NOW, NULL, &err), TRUST_OK);
    trust_close(t);
    t = trust_of(c, NOW);
    assert_int_equal(trust_check(t, first, &(trust_want){.role = ROLE_NODE}, NOW, NULL, &err), TRUST_REVOKED);
    buf_done(&der);
    trust_close(t);
    X509_free(first);
    ca_close(c);
}

static void a_token_for_one_name_is_good_for_that_alone(void **state)
{
    ca *c = new_ca();
    char text[TOKEN_TEXT_SIZE];
    buf der = {0};
    shoal_err err;
    assert_int_equal(ca_token(c, &(ca_token_ask){.name = "pi"}, NOW, text, &err), 0);
    EVP_PKEY_free(new_request("other", &der));
    assert_int_equal(enrol(c, text, &der, NOW, &err), SHOAL_EAUTH);
    assert_true(says(&err, "for the name pi, not other"));
    buf_done(&der);
    ca_close(c);
}

static void a_name_is_free_again_when_its_certificates_ended(void **state)
{
    ca *c = new_ca();
    X509_free(join(c, "pi", ROLE_NODE, NOW));
    X509_free(join(c, "pi", ROLE_NODE, NOW + 31 * DAY));
    assert_int_equal(ca_revoke(c, "pi", NOW + 31 * DAY, NULL, NULL), 0);
    X509_free(join(c, "pi", ROLE_NODE, NOW + 31 * DAY));
    ca_close(c);
}

static void tokens_that_make_no_sense_are_refused(void **state)
{
    ca *c = new_ca();
    char text[TOKEN_TEXT_SIZE];
    const ca_token_ask asks[] = {{.ttl_s = -1}, {.ttl_s = CA_TTL_MAX_S + 1}, {.name = "Bad"}, {.name = ""}};
    for (size_t i = 0; i < sizeof asks / sizeof *asks; i++)
        assert_int_equal(ca_token(c, &asks[i], NOW, text, NULL), SHOAL_EINVALID);
    ca_close(c);
}

/* ---- requests ------------------------------------------------------------------------------------ */

static void a_request_is_good_once(void **state)
{
    ca *c = new_ca();
    char first[TOKEN_TEXT_SIZE], second[TOKEN_TEXT_SIZE];
    buf der = {0};
    shoal_err err;
    new_token(c, ROLE_NODE, first);
    new_token(c, ROLE_GATEWAY, second);
    EVP_PKEY_free(new_request("one", &der));
    assert_int_equal(enrol(c, first, &der, NOW, &err), 0);
    assert_int_equal(enrol(c, second, &der, NOW, &err), SHOAL_EINVALID);
    assert_true(says(&err, "make a new key"));
    buf_done(&der);
    ca_close(c);
}

/* Every bit of a request counts: a changed one has a wrong signature, or is none. */
static void a_changed_request_is_refused(void **state)
{
    buf der = {0};
    request r;
    EVP_PKEY_free(new_request("kitchen-pi", &der));
    assert_int_equal(request_read(&r, (uint8_t *)der.data, der.len, NULL), 0);
    assert_string_equal(r.name, "kitchen-pi");
    request_done(&r);
    for (size_t i = 0; i < der.len; i++) {
        der.data[i] ^= 1;
        if (request_read(&r, (uint8_t *)der.data, der.len, NULL) == 0) fail_msg("byte %zu may be changed", i);
        der.data[i] ^= 1;
    }
    for (size_t n = 0; n < der.len; n++)
        assert_int_equal(request_read(&r, (uint8_t *)der.data, n, NULL), SHOAL_EINVALID);
    buf_putc(&der, '\0');
    assert_int_equal(request_read(&r, (uint8_t *)der.data, der.len, NULL), SHOAL_EINVALID);
    buf_done(&der);
}

/* A request with these common names, signed as it must be. */
static buf odd_request(EVP_PKEY *key, const char *const *names, size_t n_names)
{
    X509_REQ *req = X509_REQ_new();
    unsigned char *der = NULL;
    buf out = {0};
    for (size_t i = 0; i < n_names; i++)
        assert_int_equal(X509_NAME_add_entry_by_txt(X509_REQ_get_subject_name(req), "CN", MBSTRING_UTF8,
                                                    (const unsigned char *)names[i], -1, -1, 0),
                         1);
    assert_int_equal(X509_REQ_set_pubkey(req, key), 1);
    assert_true(X509_REQ_sign(req, key, EVP_PKEY_is_a(key, "ED25519") ? NULL : EVP_sha256()) > 0);
    int n = i2d_X509_REQ(req, &der);
    assert_true(n > 0);
    buf_append(&out, der, (size_t)n);
    OPENSSL_free(der);
    X509_REQ_free(req);
    return out;
}

static void odd_names_are_refused(void **state)
{
    static const char *const odd[] = {
        "Pi", "a,URI:shoal://home/gateway/x", "pi\n", "a/b", "*", "ä", " pi", "a DNS:b", "../../etc", "-"};
    static const char *const two[] = {"one", "two"};
    EVP_PKEY *key = NULL;
    request r;
    assert_int_equal(key_new(&key, NULL), 0);
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        buf der = odd_request(key, &odd[i], 1);
        assert_int_equal(request_read(&r, (uint8_t *)der.data, der.len, NULL), SHOAL_EINVALID);
        buf_done(&der);
    }
    for (size_t n = 0; n <= 2; n += 2) {
        shoal_err err;
        buf der = odd_request(key, two, n);
        assert_int_equal(request_read(&r, (uint8_t *)der.data, der.len, &err), SHOAL_EINVALID);
        assert_true(says(&err, "one common name"));
        buf_done(&der);
    }
    EVP_PKEY_free(key);
}

static void other_keys_than_ours_are_refused(void **state)
{
    static const char *const name[] = {"pi"};
    EVP_PKEY *keys[] = {EVP_PKEY_Q_keygen(NULL, NULL, "ED25519"), EVP_EC_gen("P-384"), EVP_RSA_gen(1024),
                        EVP_EC_gen("secp256k1")};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        request r;
        shoal_err err;
        buf der = odd_request(keys[i], name, 1);
        int rc = request_read(&r, (uint8_t *)der.data, der.len, &err);
        assert_int_equal(rc, i == 0 ? 0 : SHOAL_EINVALID);
        if (rc == 0) request_done(&r);
        if (rc != 0) assert_true(says(&err, "neither ECDSA P-256 nor Ed25519"));
        buf_done(&der);
        EVP_PKEY_free(keys[i]);
    }
}

/* What a request asks for beside its name and key is not given. */
static void a_request_cannot_ask_for_more(void **state)
{
    ca *c = new_ca();
    char text[TOKEN_TEXT_SIZE];
    EVP_PKEY *key = NULL;
    X509_REQ *req = X509_REQ_new();
    unsigned char *der = NULL;
    buf pem = {0};
    identity id;
    X509 *cert;
    assert_int_equal(key_new(&key, NULL), 0);
    X509_NAME *subject = X509_REQ_get_subject_name(req);
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const unsigned char *)"pi", -1, -1, 0);
    X509_NAME_add_entry_by_txt(subject, "OU", MBSTRING_ASC, (const unsigned char *)"gateway", -1, -1, 0);
    STACK_OF(X509_EXTENSION) *exts = sk_X509_EXTENSION_new_null();
    sk_X509_EXTENSION_push(exts, X509V3_EXT_conf_nid(NULL, NULL, NID_basic_constraints, "critical,CA:TRUE"));
    sk_X509_EXTENSION_push(
        exts, X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, "URI:shoal://home/gateway/pi"));
    assert_int_equal(X509_REQ_add_extensions(req, exts), 1);
    assert_int_equal(X509_REQ_set_pubkey(req, key), 1);
    assert_true(X509_REQ_sign(req, key, EVP_sha256()) > 0);
    int n = i2d_X509_REQ(req, &der);
    new_token(c, ROLE_NODE, text);
    assert_int_equal(ca_enrol(c, text, der, (size_t)n, NOW, &pem, &id, NULL), 0);
    assert_int_equal(id.role, ROLE_NODE);
    assert_int_equal(cert_from_pem(&cert, pem.data, pem.len, "new", NULL), 0);
    assert_int_equal(cert_identity(cert, &id, NULL), 0);
    assert_int_equal(id.role, ROLE_NODE);
    assert_int_equal(X509_check_ca(cert), 0);
    X509_free(cert);
    buf_done(&pem);
    OPENSSL_free(der);
    sk_X509_EXTENSION_pop_free(exts, X509_EXTENSION_free);
    X509_REQ_free(req);
    EVP_PKEY_free(key);
    ca_close(c);
}

/* ---- renewal ------------------------------------------------------------------------------------- */

static int renew(ca *c, X509 *peer, const char *name, int64_t now, X509 **ret, shoal_err *err)
{
    buf der = {0}, pem = {0};
    char serial[CERT_SERIAL_SIZE];
    cert_serial(peer, serial);
    EVP_PKEY_free(new_request(name, &der));
    int rc = ca_renew(c, serial, (uint8_t *)der.data, der.len, now, &pem, err);
    if (rc == 0 && ret) assert_int_equal(cert_from_pem(ret, pem.data, pem.len, "new", NULL), 0);
    buf_done(&der);
    buf_done(&pem);
    return rc;
}

static void a_member_renews_its_own_name_and_role_alone(void **state)
{
    ca *c = new_ca();
    X509 *node = join(c, "pi", ROLE_NODE, NOW), *other = join(c, "other", ROLE_NODE, NOW), *fresh = NULL;
    identity id;
    int64_t from, until;
    shoal_err err;
    assert_int_equal(renew(c, node, "pi", NOW + 20 * DAY, &fresh, &err), 0);
    assert_int_equal(cert_identity(fresh, &id, NULL), 0);
    assert_string_equal(id.name, "pi");
    assert_int_equal(id.role, ROLE_NODE);
    assert_int_equal(cert_times(fresh, &from, &until, NULL), 0);
    assert_int_equal(until, NOW + 50 * DAY);
    assert_int_equal(renew(c, node, "other", NOW, NULL, &err), SHOAL_EAUTH);
    assert_true(says(&err, "pi may renew its own certificate, not one of other"));
    X509_free(node);
    X509_free(other);
    X509_free(fresh);
    ca_close(c);
}

static void who_is_revoked_expired_or_unknown_renews_nothing(void **state)
{
    ca *c = new_ca(), *other;
    char there[128];
    shoal_err err;
    X509 *node = join(c, "pi", ROLE_NODE, NOW);
    assert_int_equal(renew(c, node, "pi", NOW + 31 * DAY, NULL, &err), SHOAL_EAUTH);
    assert_true(says(&err, "is expired"));
    assert_int_equal(ca_revoke(c, "pi", NOW, NULL, NULL), 0);
    assert_int_equal(renew(c, node, "pi", NOW, NULL, &err), SHOAL_EAUTH);
    assert_true(says(&err, "is revoked"));
    snprintf(there, sizeof there, "%s/other", place);
    assert_int_equal(ca_init(there, "home", NOW, NULL), 0);
    assert_int_equal(ca_open(&other, there, NULL), 0);
    assert_int_equal(renew(other, node, "pi", NOW, NULL, &err), SHOAL_EAUTH);
    assert_true(says(&err, "not in the CA's ledger"));
    X509_free(node);
    ca_close(other);
    ca_close(c);
}

/* A request that somebody else made, caught on its way, renews nothing for another. */
static void a_caught_request_renews_nothing(void **state)
{
    ca *c = new_ca();
    char text[TOKEN_TEXT_SIZE];
    buf der = {0};
    shoal_err err;
    X509 *node = join(c, "pi", ROLE_NODE, NOW);
    new_token(c, ROLE_GATEWAY, text);
    EVP_PKEY_free(new_request("boss", &der));
    assert_int_equal(enrol(c, text, &der, NOW, &err), 0);
    char serial[CERT_SERIAL_SIZE];
    cert_serial(node, serial);
    assert_int_equal(ca_renew(c, serial, (uint8_t *)der.data, der.len, NOW, NULL, &err), SHOAL_EAUTH);
    buf_done(&der);
    X509_free(node);
    ca_close(c);
}

/* One member that renews without end does not fill the ledger, and others renew. */
static void who_renews_without_end_has_to_wait(void **state)
{
    ca *c = new_ca();
    X509 *node = join(c, "pi", ROLE_NODE, NOW), *other = join(c, "other", ROLE_NODE, NOW);
    shoal_err err;
    for (int i = 1; i < CA_RENEWALS_A_DAY; i++)
        assert_int_equal(renew(c, node, "pi", NOW + i, NULL, &err), 0);
    assert_int_equal(renew(c, node, "pi", NOW + 100, NULL, &err), SHOAL_ELIMIT);
    assert_true(says(&err, "pi has had 24 certificates within a day"));
    assert_int_equal(renew(c, other, "other", NOW + 100, NULL, &err), 0);
    assert_int_equal(renew(c, node, "pi", NOW + DAY + 100, NULL, &err), 0);
    assert_int_equal(renew(c, node, "pi", NOW - DAY, NULL, &err), 0); /* the clock was ahead */
    X509_free(node);
    X509_free(other);
    ca_close(c);
}

static void revoking_says_whom_it_found(void **state)
{
    ca *c = new_ca();
    size_t n = 0;
    shoal_err err;
    X509 *node = join(c, "pi", ROLE_NODE, NOW), *again = NULL;
    assert_int_equal(renew(c, node, "pi", NOW, &again, &err), 0);
    assert_int_equal(ca_revoke(c, "pi", NOW, &n, NULL), 0);
    assert_int_equal(n, 2);
    assert_int_equal(ca_revoke(c, "pi", NOW, &n, &err), SHOAL_ENOTFOUND);
    assert_int_equal(ca_revoke(c, "nobody", NOW, &n, &err), SHOAL_ENOTFOUND);
    assert_true(says(&err, "\"nobody\""));
    X509_free(node);
    X509_free(again);
    ca_close(c);
}

static void the_machine_of_the_ca_is_no_node_and_gateway_in_one(void **state)
{
    ca *c = new_ca();
    EVP_PKEY *key = NULL;
    buf pem = {0};
    identity id = {.role = ROLE_GATEWAY, .cluster = "home", .name = "pi"};
    shoal_err err;
    X509_free(join(c, "pi", ROLE_NODE, NOW));
    assert_int_equal(key_new(&key, NULL), 0);
    assert_int_equal(ca_issue(c, &id, key, NOW, &pem, &err), SHOAL_EAUTH);
    strcpy(id.name, "boss");
    assert_int_equal(ca_issue(c, &id, key, NOW, &pem, &err), 0);
    assert_int_equal(ca_issue(c, &id, key, NOW, &pem, &err), 0); /* at every start, if it likes */
    EVP_PKEY_free(key);
    buf_done(&pem);
    ca_close(c);
}

/* A clock that was ahead and is right again: what was signed meanwhile is believed, not only from that time
 * on. */
static void a_clock_that_was_ahead_locks_nobody_out(void **state)
{
    enum { AHEAD_DAYS = 40 };
    ca *c = new_ca();
    int64_t ahead = NOW + AHEAD_DAYS * DAY, from, until;
    time_t now = (time_t)NOW + 1;
    buf pem = {0};
    X509_CRL *crl = NULL;
    X509 *cert = join(c, "kitchen-pi", ROLE_NODE, ahead);
    assert_int_equal(cert_times(cert, &from, &until, NULL), 0);
    assert_int_equal(from, NOW - CERT_SKEW_S);
    assert_int_equal(until, ahead + 30 * DAY);
    assert_int_equal(ca_put_crl(c, ahead, &pem, NULL), 0);
    assert_int_equal(cert_crl_from_pem(&crl, pem.data, pem.len, "crl.pem", NULL), 0);
    assert_true(X509_cmp_time(X509_CRL_get0_lastUpdate(crl), &now) < 0);
    now = (time_t)ahead;
    assert_true(X509_cmp_time(X509_CRL_get0_nextUpdate(crl), &now) > 0);
    X509_CRL_free(crl);
    X509_free(cert);
    buf_done(&pem);
    ca_close(c);
}

/* The same of a clock that is behind: it was right when the CA was made. */
static void a_clock_that_was_behind_signs_what_is_valid(void **state)
{
    ca *c = new_ca();
    int64_t from, until;
    X509 *cert = join(c, "kitchen-pi", ROLE_NODE, NOW - DAY);
    assert_int_equal(cert_times(cert, &from, &until, NULL), 0);
    assert_int_equal(from, NOW - DAY - CERT_SKEW_S);
    X509_free(cert);
    ca_close(c);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, place_open, place_close)
    const struct CMUnitTest tests[] = {
        TEST(a_ca_is_made_whole_and_never_overwritten),
        TEST(a_key_that_others_may_read_is_refused),
        TEST(no_ca_says_how_to_make_one),
        TEST(a_certificate_says_who_what_and_how_long),
        TEST(a_token_is_good_once),
        TEST(a_refusal_does_not_use_the_token_up),
        TEST(a_token_ends),
        TEST(a_wrong_secret_learns_nothing),
        TEST(the_secret_of_a_token_is_nowhere_on_disk),
        TEST(a_token_of_another_cluster_does_not_open_this_one),
        TEST(a_taken_name_needs_a_token_that_says_so),
        TEST(a_token_for_one_name_is_good_for_that_alone),
        TEST(a_name_is_free_again_when_its_certificates_ended),
        TEST(tokens_that_make_no_sense_are_refused),
        TEST(a_request_is_good_once),
        TEST(a_changed_request_is_refused),
        TEST(odd_names_are_refused),
        TEST(other_keys_than_ours_are_refused),
        TEST(a_request_cannot_ask_for_more),
        TEST(a_member_renews_its_own_name_and_role_alone),
        TEST(who_is_revoked_expired_or_unknown_renews_nothing),
        TEST(a_caught_request_renews_nothing),
        TEST(who_renews_without_end_has_to_wait),
        TEST(revoking_says_whom_it_found),
        TEST(a_clock_that_was_ahead_locks_nobody_out),
        TEST(a_clock_that_was_behind_signs_what_is_valid),
        TEST(the_machine_of_the_ca_is_no_node_and_gateway_in_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
