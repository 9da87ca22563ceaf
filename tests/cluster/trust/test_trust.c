/* Verdicts on certificates: everything that is wrong with one has its name and its sentence. */
#include "trust/credential.h"
#include "trust_fixture.h"

static const trust_want a_node = {.role = ROLE_NODE}, a_gateway = {.role = ROLE_GATEWAY},
                        anybody = {.any_role = true};

static void expect(const trust *t, X509 *peer, const trust_want *want, int64_t now, trust_verdict wanted,
                   const char *sentence)
{
    identity id = {.name = "untouched"};
    shoal_err err = {0};
    trust_verdict v = trust_check(t, peer, want, now, &id, &err);
    if (v != wanted)
        fail_msg("%s, wanted %s: %s", trust_verdict_name(v), trust_verdict_name(wanted), err.message);
    assert_true((v == TRUST_OK) == (strcmp(id.name, "untouched") != 0));
    if (sentence) assert_true(says(&err, sentence));
}

static void a_member_is_believed_while_its_certificate_lasts(void **state)
{
    ca *c = new_ca();
    X509 *node = join(c, "pi", ROLE_NODE, NOW);
    trust *t = trust_of(c, NOW);
    expect(t, node, &a_node, NOW, TRUST_OK, NULL);
    expect(t, node, &anybody, NOW, TRUST_OK, NULL);
    expect(t, node, &a_node, NOW - CERT_SKEW_S, TRUST_OK, NULL);
    expect(t, node, &a_node, NOW - CERT_SKEW_S - 60, TRUST_TOO_EARLY, "begins in 60 s: the clock");
    expect(t, node, &a_node, NOW + 30 * DAY - 1, TRUST_OK, NULL);
    expect(t, node, &a_node, NOW + 30 * DAY + 60, TRUST_EXPIRED, "expired 60 s ago");
    expect(t, NULL, &a_node, NOW, TRUST_MISSING, "no certificate");
    expect(t, node, &(trust_want){.name = "pi"}, NOW, TRUST_OK, NULL);
    expect(t, node, &(trust_want){.name = "pie"}, NOW, TRUST_WRONG_NAME,
           "this is pi, where pie was expected");
    X509_free(node);
    trust_close(t);
    ca_close(c);
}

static void a_nodes_certificate_is_no_gateways(void **state)
{
    ca *c = new_ca();
    X509 *node = join(c, "pi", ROLE_NODE, NOW), *gateway = join(c, "boss", ROLE_GATEWAY, NOW);
    trust *t = trust_of(c, NOW);
    expect(t, node, &a_gateway, NOW, TRUST_WRONG_ROLE,
           "the certificate of pi is a node's; a gateway's is wanted here");
    expect(t, gateway, &a_node, NOW, TRUST_WRONG_ROLE, "a gateway's; a node's is wanted");
    expect(t, gateway, &a_gateway, NOW, TRUST_OK, NULL);
    X509_free(node);
    X509_free(gateway);
    trust_close(t);
    ca_close(c);
}

static void the_certificate_of_another_ca_is_refused(void **state)
{
    ca *c = new_ca(), *other;
    char there[128];
    snprintf(there, sizeof there, "%s/other", place);
    assert_int_equal(ca_init(there, "home", NOW, NULL), 0); /* of the same name */
    assert_int_equal(ca_open(&other, there, NULL), 0);
    X509 *foreign = join(other, "pi", ROLE_NODE, NOW);
    trust *t = trust_of(c, NOW);
    expect(t, foreign, &a_node, NOW, TRUST_WRONG_CA, "not signed by this cluster's CA");
    expect(t, (X509 *)ca_cert(other), &a_node, NOW, TRUST_WRONG_CA, NULL);
    expect(t, (X509 *)ca_cert(c), &a_node, NOW, TRUST_MALFORMED, NULL); /* the CA is no member */
    X509_free(foreign);
    trust_close(t);
    ca_close(other);
    ca_close(c);
}

/* Certificates signed with the CA's key, but not as the CA signs them. */
static void a_certificate_that_names_no_member_is_refused(void **state)
{
    ca *c = new_ca();
    trust *t = trust_of(c, NOW);
    EVP_PKEY *key = NULL, *ca_key = NULL;
    buf pem = {0};
    folder f = FOLDER_NONE;
    assert_int_equal(key_new(&key, NULL), 0);
    assert_int_equal(folder_open(&f, ca_path, false, NULL), 0);
    assert_int_equal(folder_read(&f, "ca.key", 9999, true, &pem, NULL), 0);
    assert_int_equal(key_from_pem(&ca_key, pem.data, pem.len, "ca.key", NULL), 0);
    X509 *ca_crt = (X509 *)ca_cert(c), *cert;
    identity id = {.cluster = "away", .name = "pi"};
    assert_int_equal(cert_make(&cert, (cert_signer){ca_crt, ca_key}, &id, key, NOW, NOW + DAY, NULL), 0);
    expect(t, cert, &a_node, NOW, TRUST_WRONG_CA, "a member of the cluster away, not of home");
    int at = X509_get_ext_by_NID(cert, NID_subject_alt_name, -1);
    X509_EXTENSION_free(X509_delete_ext(cert, at));
    X509_sign(cert, ca_key, EVP_sha256());
    expect(t, cert, &a_node, NOW, TRUST_MALFORMED, "does not name a member");
    X509_set_notAfter(cert, X509_get0_notBefore(cert)); /* no longer signed */
    expect(t, cert, &a_node, NOW, TRUST_WRONG_CA, NULL);
    X509_free(cert);
    /* A member's key signs another's certificate: members are no CAs. */
    X509 *member = NULL, *child = NULL;
    strcpy(id.cluster, "home");
    assert_int_equal(cert_make(&member, (cert_signer){ca_crt, ca_key}, &id, key, NOW, NOW + DAY, NULL), 0);
    id.role = ROLE_GATEWAY;
    assert_int_equal(cert_make(&child, (cert_signer){member, key}, &id, key, NOW, NOW + DAY, NULL), 0);
    expect(t, child, &a_gateway, NOW, TRUST_WRONG_CA, NULL);
    X509_free(member);
    X509_free(child);
    EVP_PKEY_free(key);
    EVP_PKEY_free(ca_key);
    buf_wipe(&pem);
    folder_close(&f);
    trust_close(t);
    ca_close(c);
}

static void a_revoked_member_is_refused_and_others_are_not(void **state)
{
    ca *c = new_ca();
    X509 *bad = join(c, "bad", ROLE_NODE, NOW), *good = join(c, "good", ROLE_NODE, NOW);
    trust *t = trust_of(c, NOW);
    uint64_t before = trust_crl_number(t);
    buf crl = {0}, old = {0};
    shoal_err err;
    assert_int_equal(ca_put_crl(c, NOW, &old, NULL), 0);
    assert_int_equal(ca_revoke(c, "bad", NOW, NULL, NULL), 0);
    expect(t, bad, &a_node, NOW, TRUST_OK, NULL); /* nobody has told t */
    assert_int_equal(ca_put_crl(c, NOW, &crl, NULL), 0);
    assert_int_equal(trust_revocations(t, crl.data, crl.len, &err), 0);
    assert_true(trust_crl_number(t) > before);
    expect(t, bad, &a_node, NOW, TRUST_REVOKED, "the certificate of bad was revoked");
    char serial[CERT_SERIAL_SIZE];
    cert_serial(bad, serial);
    assert_true(trust_serial_is_revoked(t, serial));
    cert_serial(good, serial);
    assert_false(trust_serial_is_revoked(t, serial));
    assert_true(trust_serial_is_revoked(t, "no serial"));
    expect(t, good, &a_node, NOW, TRUST_OK, NULL);
    expect(t, bad, &a_node, NOW + 40 * DAY, TRUST_EXPIRED, NULL);
    /* Playing an old list back does not let it in again. */
    assert_int_equal(trust_revocations(t, old.data, old.len, &err), SHOAL_EINVALID);
    expect(t, bad, &a_node, NOW, TRUST_REVOKED, NULL);
    X509_free(bad);
    X509_free(good);
    buf_done(&crl);
    buf_done(&old);
    trust_close(t);
    ca_close(c);
}

static void a_list_that_another_signed_is_refused(void **state)
{
    ca *c = new_ca(), *other;
    char there[128];
    buf crl = {0};
    shoal_err err;
    trust *t = trust_of(c, NOW);
    snprintf(there, sizeof there, "%s/other", place);
    assert_int_equal(ca_init(there, "home", NOW, NULL), 0);
    assert_int_equal(ca_open(&other, there, NULL), 0);
    assert_int_equal(ca_put_crl(other, NOW, &crl, NULL), 0);
    assert_int_equal(trust_revocations(t, crl.data, crl.len, &err), SHOAL_EAUTH);
    assert_int_equal(trust_revocations(t, "junk", 4, &err), SHOAL_EFORMAT);
    for (size_t n = 0; n + 30 < crl.len; n += 7) assert_true(trust_revocations(t, crl.data, n, &err) < 0);
    buf_done(&crl);
    trust_close(t);
    ca_close(other);
    ca_close(c);
}

static void the_list_is_signed_afresh_before_it_is_old(void **state)
{
    ca *c = new_ca();
    buf first = {0}, same = {0}, later = {0};
    assert_int_equal(ca_put_crl(c, NOW, &first, NULL), 0);
    assert_int_equal(ca_put_crl(c, NOW + 14 * DAY, &same, NULL), 0);
    assert_string_equal(first.data, same.data);
    assert_int_equal(ca_put_crl(c, NOW + 16 * DAY, &later, NULL), 0);
    assert_string_not_equal(first.data, later.data);
    buf_done(&first);
    buf_done(&same);
    buf_done(&later);
    ca_close(c);
}

static void a_pin_finds_the_ca_in_a_chain_and_nothing_else(void **state)
{
    ca *c = new_ca();
    X509 *gateway = join(c, "boss", ROLE_GATEWAY, NOW);
    STACK_OF(X509) *chain = sk_X509_new_null();
    sha256_digest leaf_pin, wrong = *ca_pin(c);
    trust *t = NULL;
    shoal_err err;
    assert_int_equal(trust_from_pin(&t, chain, ca_pin(c), &err), SHOAL_EAUTH);
    assert_int_equal(trust_from_pin(&t, NULL, ca_pin(c), &err), SHOAL_EAUTH);
    sk_X509_push(chain, gateway);
    assert_int_equal(trust_from_pin(&t, chain, ca_pin(c), &err), SHOAL_EAUTH);
    sk_X509_push(chain, (X509 *)ca_cert(c));
    assert_int_equal(trust_from_pin(&t, chain, ca_pin(c), &err), 0);
    expect(t, gateway, &a_gateway, NOW, TRUST_OK, NULL);
    trust_close(t);
    wrong.bytes[31] ^= 1;
    assert_int_equal(trust_from_pin(&t, chain, &wrong, &err), SHOAL_EAUTH);
    assert_true(says(&err, "not of the cluster that the token is for"));
    /* The pin of a certificate that is no CA's makes no CA of it. */
    assert_int_equal(key_digest(X509_get0_pubkey(gateway), &leaf_pin, NULL), 0);
    assert_int_equal(trust_from_pin(&t, chain, &leaf_pin, &err), SHOAL_EAUTH);
    sk_X509_free(chain);
    X509_free(gateway);
    ca_close(c);
}

/* ---- a member's own folder ----------------------------------------------------------------------- */

static void a_member_keeps_its_place(void **state)
{
    ca *c = new_ca();
    char text[TOKEN_TEXT_SIZE], path[128];
    buf der = {0}, pem = {0}, ca_pem = {0}, crl = {0};
    folder f = FOLDER_NONE;
    credential m = {0}, back = {0};
    struct stat st;
    shoal_err err;
    snprintf(path, sizeof path, "%s/a/b/node", place);
    assert_int_equal(folder_open(&f, path, true, NULL), 0);
    assert_int_equal(credential_load(&m, &f, &err), SHOAL_ENOTFOUND);
    EVP_PKEY *key = new_request("pi", &der), *other = NULL;
    new_token(c, ROLE_NODE, text);
    assert_int_equal(ca_enrol(c, text, (uint8_t *)der.data, der.len, NOW, &pem, NULL, NULL), 0);
    assert_int_equal(ca_put_cert(c, &ca_pem, NULL), 0);
    assert_int_equal(key_new(&other, NULL), 0);
    assert_int_equal(credential_make(&m, other, pem.data, pem.len, ca_pem.data, ca_pem.len, NOW, &err),
                     SHOAL_EAUTH);
    assert_int_equal(
        credential_make(&m, key, pem.data, pem.len, ca_pem.data, ca_pem.len, NOW + 99 * DAY, &err),
        SHOAL_EAUTH);
    assert_int_equal(credential_make(&m, key, pem.data, pem.len, ca_pem.data, ca_pem.len, NOW, &err), 0);
    assert_int_equal(credential_save(&m, &f, &err), 0);
    assert_int_equal(ca_put_crl(c, NOW, &crl, NULL), 0);
    assert_int_equal(credential_revocations(&m, &f, crl.data, crl.len, &err), 0);
    if (credential_load(&back, &f, &err) != 0) fail_msg("%s", err.message);
    assert_string_equal(back.id.name, "pi");
    assert_int_equal(trust_crl_number(back.trust), trust_crl_number(m.trust));
    assert_int_equal(credential_renew_at(&back), NOW + 20 * DAY);
    snprintf(path, sizeof path, "%s/member.pem", f.path);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    credential_done(&back);
    credential_done(&m);
    EVP_PKEY_free(key);
    EVP_PKEY_free(other);
    folder_close(&f);
    buf_done(&der);
    buf_done(&pem);
    buf_done(&ca_pem);
    buf_done(&crl);
    ca_close(c);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, place_open, place_close)
    const struct CMUnitTest tests[] = {
        TEST(a_member_is_believed_while_its_certificate_lasts),
        TEST(a_nodes_certificate_is_no_gateways),
        TEST(the_certificate_of_another_ca_is_refused),
        TEST(a_certificate_that_names_no_member_is_refused),
        TEST(a_revoked_member_is_refused_and_others_are_not),
        TEST(a_list_that_another_signed_is_refused),
        TEST(the_list_is_signed_afresh_before_it_is_old),
        TEST(a_pin_finds_the_ca_in_a_chain_and_nothing_else),
        TEST(a_member_keeps_its_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
