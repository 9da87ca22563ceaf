/* A gateway's certificate and its list of revoked ones, where this machine's clock is wrong for a while. */
#include "../trust/trust_fixture.h"

#include "control/node_credential.h"

static void open_at(node_credential *s, int64_t now)
{
    shoal_err err = {0};
    if (node_credential_open(s, place, "boss", now, &err) != 0) fail_msg("%s", err.message);
}

static int64_t begin_of(const node_credential *s)
{
    int64_t from, until;
    assert_int_equal(cert_times(s->own.cert, &from, &until, NULL), 0);
    return from;
}

static void read_list(buf *out)
{
    folder f = FOLDER_NONE;
    assert_int_equal(folder_open(&f, place, false, NULL), 0);
    assert_int_equal(folder_read(&f, "crl.pem", CERT_CRL_BYTES_MAX, false, out, NULL), 0);
    folder_close(&f);
}

/* It serves what it has, and goes on with the same certificate and list when the clock is right. */
static void a_clock_behind_the_ca_ends_no_gateway(void **state)
{
    node_credential s = {0};
    buf before = {0}, after = {0};
    unsigned changed;
    shoal_err err;
    ca_close(new_ca());
    open_at(&s, NOW);
    read_list(&before);
    node_credential_close(&s);
    open_at(&s, NOW - 7000 * DAY);
    assert_int_equal(node_credential_tick(&s, NOW - 7000 * DAY + 1, &changed, &err), 0);
    assert_int_equal(changed & NODE_CREDENTIAL_CERT, 0);
    assert_int_equal(node_credential_tick(&s, NOW + 1, &changed, &err), 0);
    assert_int_equal(changed, 0);
    read_list(&after);
    assert_int_equal(after.len, before.len);
    assert_memory_equal(after.data, before.data, after.len);
    buf_done(&before);
    buf_done(&after);
    node_credential_close(&s);
}

/* A certificate that another version signed while the clock was ahead is replaced at once. */
static void a_certificate_of_the_future_is_replaced(void **state)
{
    node_credential s = {0};
    unsigned changed;
    shoal_err err;
    ca_close(new_ca());
    open_at(&s, NOW);
    s.own.from = NOW + 20 * DAY;
    assert_int_equal(node_credential_tick(&s, NOW + 1, &changed, &err), 0);
    assert_true(changed & NODE_CREDENTIAL_CERT);
    assert_true(begin_of(&s) <= NOW);
    node_credential_close(&s);
}

/* What was signed while the clock was ahead is valid when it is right again. */
static void a_clock_that_was_ahead_leaves_a_valid_certificate(void **state)
{
    node_credential s = {0};
    unsigned changed;
    shoal_err err;
    ca_close(new_ca());
    open_at(&s, NOW);
    assert_int_equal(node_credential_tick(&s, NOW + 40 * DAY, &changed, &err), 0);
    assert_true(changed & NODE_CREDENTIAL_CERT);
    assert_true(begin_of(&s) <= NOW);
    assert_int_equal(node_credential_tick(&s, NOW + 1, &changed, &err), 0);
    assert_int_equal(changed & NODE_CREDENTIAL_CERT, 0);
    node_credential_close(&s);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, place_open, place_close)
    const struct CMUnitTest tests[] = {
        TEST(a_clock_behind_the_ca_ends_no_gateway),
        TEST(a_certificate_of_the_future_is_replaced),
        TEST(a_clock_that_was_ahead_leaves_a_valid_certificate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
