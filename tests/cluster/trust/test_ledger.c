/* The CA's ledger: nothing that was cut or changed is taken for one. */
#include "base/clock.h"
#include "trust_fixture.h"

static void draw_digits(char *ret, size_t n_bytes, uint64_t *seed)
{
    uint8_t bytes[32];
    for (size_t i = 0; i < n_bytes; i++) bytes[i] = (uint8_t)rng_mix((*seed)++);
    hex_put(ret, bytes, n_bytes);
}

static ledger drawn(size_t n_certs, size_t n_tokens, uint64_t seed)
{
    ledger l = {.crl_number = rng_mix(seed++) % 100};
    for (size_t i = 0; i < n_certs; i++) {
        ledger_cert c = {
            .role = rng_mix(seed++) % 2 ? ROLE_NODE : ROLE_GATEWAY, .from = NOW, .until = NOW + DAY};
        draw_digits(c.serial, 16, &seed);
        snprintf(c.name, sizeof c.name, "node-%zu", i / 2);
        if (rng_mix(seed++) % 3 == 0) c.revoked = NOW + 5;
        assert_int_equal(ledger_add_cert(&l, &c, NULL), 0);
    }
    for (size_t i = 0; i < n_tokens; i++) {
        ledger_token t = {.made = NOW, .until = NOW + 3600, .replace = i % 4 == 0};
        draw_digits(t.id, 8, &seed);
        if (i % 2) strcpy(t.name, "kitchen-pi");
        if (i % 3 == 0) {
            t.used = NOW + 1;
            strcpy(t.used_by, "kitchen-pi");
        }
        assert_int_equal(ledger_add_token(&l, &t, NULL), 0);
    }
    return l;
}

static void a_ledger_is_read_back(void **state)
{
    for (uint64_t seed = 0; seed < 200; seed++) {
        ledger l = drawn(rng_mix(seed) % 20, rng_mix(seed + 1) % 20, seed), back;
        buf text = {0}, again = {0};
        assert_int_equal(ledger_put(&l, &text, NULL), 0);
        assert_int_equal(ledger_parse(&back, text.data, text.len, "ledger", NULL), 0);
        assert_int_equal(back.n_certs, l.n_certs);
        assert_int_equal(back.n_tokens, l.n_tokens);
        if (l.n_certs) assert_memory_equal(back.certs, l.certs, l.n_certs * sizeof *l.certs);
        if (l.n_tokens) assert_memory_equal(back.tokens, l.tokens, l.n_tokens * sizeof *l.tokens);
        assert_int_equal(ledger_put(&back, &again, NULL), 0);
        assert_string_equal(again.data, text.data);
        buf_done(&text);
        buf_done(&again);
        ledger_done(&l);
        ledger_done(&back);
    }
}

static void a_cut_or_changed_ledger_is_refused(void **state)
{
    ledger l = drawn(6, 6, 1), back;
    buf text = {0};
    shoal_err err;
    assert_int_equal(ledger_put(&l, &text, NULL), 0);
    for (size_t n = 0; n < text.len; n++) {
        assert_int_equal(ledger_parse(&back, text.data, n, "ca/ledger", &err), SHOAL_EFORMAT);
        assert_true(says(&err, "ca/ledger: "));
    }
    for (size_t i = 0; i < text.len; i++)
        for (int bit = 0; bit < 8; bit++) {
            text.data[i] ^= (char)(1 << bit);
            assert_int_equal(ledger_parse(&back, text.data, text.len, "ca/ledger", &err), SHOAL_EFORMAT);
            text.data[i] ^= (char)(1 << bit);
        }
    buf_puts(&text, "cert\n");
    assert_int_equal(ledger_parse(&back, text.data, text.len, "ca/ledger", &err), SHOAL_EFORMAT);
    buf_done(&text);
    ledger_done(&l);
}

static void what_has_ended_is_forgotten_in_time(void **state)
{
    ledger l = drawn(10, 10, 3);
    ledger_prune(&l, NOW + DAY + LEDGER_KEEP_DAYS * DAY);
    assert_int_equal(l.n_certs, 10);
    assert_int_equal(l.n_tokens, 0); /* they ended a day earlier */
    ledger_prune(&l, NOW + DAY + LEDGER_KEEP_DAYS * DAY + 1);
    assert_int_equal(l.n_certs, 0);
    ledger_done(&l);
}

static void a_name_lives_while_one_of_its_certificates_does(void **state)
{
    ledger l = {0};
    ledger_cert c = {.serial = "00", .name = "pi", .from = NOW, .until = NOW + 10};
    assert_int_equal(ledger_add_cert(&l, &c, NULL), 0);
    assert_true(ledger_name_lives(&l, "pi", NOW + 10));
    assert_false(ledger_name_lives(&l, "pi", NOW + 11));
    assert_false(ledger_name_lives(&l, "p", NOW));
    assert_int_equal(ledger_revoke_name(&l, "pi", NOW + 20), 0); /* expired: nothing to revoke */
    assert_int_equal(l.crl_number, 0);
    assert_int_equal(ledger_revoke_name(&l, "pi", NOW + 5), 1);
    assert_int_equal(ledger_revoke_name(&l, "pi", NOW + 6), 0);
    assert_int_equal(l.crl_number, 1);
    assert_false(ledger_name_lives(&l, "pi", NOW + 5));
    ledger_done(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_ledger_is_read_back),
        cmocka_unit_test(a_cut_or_changed_ledger_is_refused),
        cmocka_unit_test(what_has_ended_is_forgotten_in_time),
        cmocka_unit_test(a_name_lives_while_one_of_its_certificates_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
