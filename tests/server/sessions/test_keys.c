/* Keys and seals: what is read back, what is refused, and what a change of keys does. */
#define _GNU_SOURCE
#include "check.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "sessions/seal.h"

#define A "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define B "ffeeddccbbaa99887766554433221100ffeeddccbbaa99887766554433221100"

static keyring parse(const char *text)
{
    keyring k;
    assert_ok(keyring_parse(&k, text, strlen(text), "keys", &err_));
    return k;
}

static void the_last_line_is_the_newest_key(void **state)
{
    (void)state;
    keyring k = parse("# keys\r\n\n  " A " \n" B);
    assert_int_equal(k.n, 2);
    assert_int_equal(keyring_newest(&k)->key[0], 0xff);
    assert_ptr_equal(keyring_find(&k, k.keys[0].id), &k.keys[0]);
    assert_null(keyring_find(&k, (const uint8_t *)"12345678"));
    assert_memory_not_equal(k.keys[0].id, k.keys[0].key, KEY_ID_BYTES);
}

static void says_what_is_wrong_with_a_key_file(void **state)
{
    (void)state;
    static const struct {
        const char *text, *why;
    } BAD[] = {{"", "has no key"},
               {"# nothing\n", "has no key"},
               {A "\n" A "0\n", "keys:2: must be a key of 64 hex digits"},
               {A "\n\nabc\n", "keys:3:"},
               {"g" A, "keys:1:"}};
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        keyring k;
        shoal_err err;
        assert_int_equal(keyring_parse(&k, BAD[i].text, strlen(BAD[i].text), "keys", &err), SHOAL_EINVALID);
        if (!strstr(err.message, BAD[i].why)) fail_msg("%s", err.message);
    }
}

static void a_missing_key_file_is_made_for_this_account_alone(void **state)
{
    (void)state;
    char dir[64], path[128];
    struct stat st;
    keyring a, b;
    shoal_err err;
    make_folder(dir);
    snprintf(path, sizeof path, "%s/deep/er/keys", dir);
    assert_ok(keyring_open(&a, path, &err_));
    assert_ok(keyring_open(&b, path, &err_));
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(a.n, 1);
    assert_memory_equal(a.keys[0].key, b.keys[0].key, KEY_BYTES);
    assert_int_equal(chmod(path, 0644), 0);
    assert_int_equal(keyring_open(&b, path, &err), SHOAL_EAUTH);
    remove_folder(dir);
}

static buf seal(const keyring *k, const char *place, const char *text)
{
    buf b = {0};
    assert_ok(seal_put(&b, k, place, strlen(place), text, strlen(text), &err_));
    return b;
}

static void a_seal_opens_with_its_key_at_its_place_only(void **state)
{
    (void)state;
    keyring a = parse(A), b = parse(B), both = parse(A "\n" B);
    buf s = seal(&a, "here", "a secret of the kitchen"), t = {0};
    bool old;
    shoal_err err;
    assert_null(memmem(s.data, s.len, "secret", 6));
    assert_ok(seal_open(&t, &a, "here", 4, s.data, s.len, &old, &err_));
    assert_string_equal(t.data, "a secret of the kitchen");
    assert_false(old);
    assert_ok(seal_open(&t, &both, "here", 4, s.data, s.len, &old, &err_));
    assert_true(old);
    assert_int_equal(t.len, 2 * strlen("a secret of the kitchen"));
    size_t had = t.len;
    assert_int_equal(seal_open(&t, &a, "hera", 4, s.data, s.len, &old, &err), SHOAL_EFORMAT);
    assert_int_equal(seal_open(&t, &b, "here", 4, s.data, s.len, &old, &err), SHOAL_EAUTH);
    assert_int_equal(t.len, had);
    buf_done(&t);
    buf_done(&s);
}

/* Every single changed bit and every shorter length is noticed. */
static void a_changed_seal_does_not_open(void **state)
{
    (void)state;
    keyring a = parse(A);
    buf s = seal(&a, "here", "text"), t = {0};
    bool old;
    shoal_err err;
    for (size_t i = 0; i < s.len * 8; i++) {
        s.data[i / 8] = (char)(s.data[i / 8] ^ 1 << i % 8);
        assert_int_not_equal(seal_open(&t, &a, "here", 4, s.data, s.len, &old, &err), 0);
        s.data[i / 8] = (char)(s.data[i / 8] ^ 1 << i % 8);
    }
    for (size_t n = 0; n < s.len; n++)
        assert_int_equal(seal_open(&t, &a, "here", 4, s.data, n, &old, &err), SHOAL_EFORMAT);
    assert_ok(seal_open(&t, &a, "here", 4, s.data, s.len, &old, &err_));
    buf_done(&t);
    buf_done(&s);
}

static void equal_texts_look_different(void **state)
{
    (void)state;
    keyring a = parse(A);
    buf s = seal(&a, "here", ""), t = seal(&a, "here", "");
    assert_int_equal(s.len, SEAL_MORE);
    assert_memory_not_equal(s.data, t.data, s.len);
    buf_done(&s);
    buf_done(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_last_line_is_the_newest_key),
                                       cmocka_unit_test(says_what_is_wrong_with_a_key_file),
                                       cmocka_unit_test(a_missing_key_file_is_made_for_this_account_alone),
                                       cmocka_unit_test(a_seal_opens_with_its_key_at_its_place_only),
                                       cmocka_unit_test(a_changed_seal_does_not_open),
                                       cmocka_unit_test(equal_texts_look_different)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
