/* Content codings: which one a client is given, what they give back, and what of them is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include <zlib.h>

#include "base/buf.h"
#include "wire/coding.h"

static void coding_is_the_one_that_weighs_most(void **state)
{
    static const struct {
        const char *accept;
        coding wanted;
    } CASES[] = {
        {NULL, CODING_NONE},
        {"", CODING_NONE},
        {"gzip", CODING_GZIP},
        {"GZip", CODING_GZIP},
        {"x-gzip", CODING_GZIP},
        {"gzip, deflate, br", CODING_GZIP},
        {"gzip, deflate, br, zstd", CODING_ZSTD},
        {"zstd;q=0.5, gzip;q=0.8", CODING_GZIP},
        {"zstd ; q=0.5\t,gzip; Q=0.499", CODING_ZSTD},
        {"gzip;q=0", CODING_NONE},
        {"gzip;q=0.000, zstd;q=0.001", CODING_ZSTD},
        {"*", CODING_ZSTD},
        {"*, zstd;q=0", CODING_GZIP},
        {"*;q=0", CODING_NONE},
        {"identity, *;q=0", CODING_NONE},
        {"identity;q=1, gzip;q=0.5", CODING_NONE},
        {"identity;q=0.5, gzip;q=0.5", CODING_GZIP},
        {"identity;q=0, br", CODING_NONE},
        {"gzip;q=2", CODING_NONE},
        {"gzip;q=0.1234", CODING_NONE},
        {"gzip;q=", CODING_NONE},
        {"gzip;q=x", CODING_NONE},
        {"gzip;level=9;q=0", CODING_NONE},
        {"gzip;;q=0", CODING_NONE},
        {"gzipped, zst", CODING_NONE},
        {",,gzip,,", CODING_GZIP},
        {";q=1, gzip", CODING_GZIP},
        {"gzip zstd", CODING_GZIP},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        coding c = coding_choose(CASES[i].accept, CODING_GZIP | CODING_ZSTD);
        if (c != CASES[i].wanted) fail_msg("'%s' gives %s", CASES[i].accept, coding_name(c));
    }
    assert_int_equal(coding_choose("gzip, zstd", CODING_GZIP), CODING_GZIP);
    assert_int_equal(coding_choose("zstd", CODING_GZIP), CODING_NONE);
}

/* ---- bytes --------------------------------------------------------------------------------------- */

static const coding CODINGS[] = {CODING_GZIP, CODING_ZSTD};

static bool keep(void *user, const uint8_t *bytes, size_t n)
{
    return buf_append(user, bytes, n) == 0;
}

/* Unpack in pieces of `piece` bytes. */
static int unpack(coding c, const buf *packed, size_t piece, size_t most, buf *out)
{
    coding_reader *r;
    shoal_err err;
    assert_int_equal(coding_reader_new(&r, c, most, &err), 0);
    int rc = 0;
    for (size_t at = 0; rc == 0 && at < packed->len; at += piece) {
        size_t n = packed->len - at < piece ? packed->len - at : piece;
        rc = coding_reader_add(r, packed->data + at, n, keep, out, &err);
    }
    if (rc == 0) rc = coding_reader_end(r, &err);
    coding_reader_free(r);
    return rc;
}

/* Text that repeats itself now and then. */
static void fill(char *out, size_t n)
{
    uint32_t x = 12345;
    for (size_t i = 0; i < n; i++) {
        x = x * 1664525u + 1013904223u;
        out[i] = i % 97 < 60 ? (char)('a' + i % 97 % 26) : (char)('a' + (x >> 24) % 26);
    }
}

static void coding_gives_back_what_it_was_given(void **state)
{
    static const size_t SIZES[] = {0, 1, 100, 511, 512, 513, 4096, 32768, 65537, 300000};
    static char text[300000];
    fill(text, sizeof text);
    for (size_t k = 0; k < 2; k++)
        for (size_t i = 0; i < sizeof SIZES / sizeof *SIZES; i++)
            for (size_t piece = 1; piece <= SIZES[i] + 1; piece = piece * 7 + 3) {
                buf packed = {0}, out = {0};
                assert_int_equal(coding_pack(CODINGS[k], text, SIZES[i], &packed), 0);
                assert_int_equal(unpack(CODINGS[k], &packed, piece, SIZES[i], &out), 0);
                assert_int_equal(out.len, SIZES[i]);
                if (out.len) assert_memory_equal(out.data, text, out.len);
                if (SIZES[i] > 1000) assert_true(packed.len < SIZES[i]);
                buf_done(&packed);
                buf_done(&out);
            }
}

/* As RFC 9110 has it: in the format of zlib, and with its check. */
static void coding_reads_deflate(void **state)
{
    static char text[70000];
    static Bytef packed[80000];
    uLongf n_packed = sizeof packed;
    fill(text, sizeof text);
    assert_int_equal(compress(packed, &n_packed, (const Bytef *)text, sizeof text), Z_OK);
    for (size_t piece = 1; piece <= n_packed; piece = piece * 7 + 3) {
        buf in = {.data = (char *)packed, .len = n_packed}, out = {0};
        assert_int_equal(unpack(CODING_DEFLATE, &in, piece, sizeof text, &out), 0);
        assert_int_equal(out.len, sizeof text);
        assert_memory_equal(out.data, text, out.len);
        buf_done(&out);
        in.len--;
        assert_int_equal(unpack(CODING_DEFLATE, &in, piece, sizeof text, &out), SHOAL_EFORMAT);
        buf_done(&out);
        in.len++;
        assert_int_equal(unpack(CODING_DEFLATE, &in, piece, sizeof text - 1, &out), SHOAL_ELIMIT);
        buf_done(&out);
    }
    packed[n_packed - 1] ^= 1;
    buf in = {.data = (char *)packed, .len = n_packed}, out = {0};
    assert_int_equal(unpack(CODING_DEFLATE, &in, n_packed, sizeof text, &out), SHOAL_EFORMAT);
    buf_done(&out);
}

/* No event waits for the next: after each, all so far can be read. */
static void coding_of_a_stream_can_be_read_to_each_event(void **state)
{
    for (size_t k = 0; k < 2; k++) {
        coding_writer *w;
        coding_reader *r;
        buf said = {0}, heard = {0};
        assert_int_equal(coding_writer_new(&w, CODINGS[k], NULL), 0);
        assert_int_equal(coding_reader_new(&r, CODINGS[k], 1 << 20, NULL), 0);
        for (int i = 0; i < 300; i++) {
            buf event = {0}, out = {0};
            for (int j = 0; j <= i * i % 50; j++)
                buf_printf(&event, "data: {\"token\":%d,\"of\":%d}\n\n", i, j);
            assert_int_equal(coding_writer_add(w, event.data, event.len, false, &out), 0);
            assert_int_equal(coding_reader_add(r, out.data, out.len, keep, &heard, NULL), 0);
            buf_append(&said, event.data, event.len);
            assert_int_equal(heard.len, said.len);
            assert_true(coding_reader_end(r, NULL) != 0);
            buf_done(&event);
            buf_done(&out);
        }
        buf out = {0};
        assert_int_equal(coding_writer_add(w, NULL, 0, true, &out), 0);
        assert_int_equal(coding_reader_add(r, out.data, out.len, keep, &heard, NULL), 0);
        assert_int_equal(coding_reader_end(r, NULL), 0);
        assert_memory_equal(heard.data, said.data, said.len);
        coding_writer_free(w);
        coding_reader_free(r);
        buf_done(&out);
        buf_done(&said);
        buf_done(&heard);
    }
}

/* 64 MiB of nothing in a few kilobytes, and boxes in a row. */
static void coding_that_grows_too_far_is_cut_off(void **state)
{
    size_t n = (size_t)64 << 20;
    char *zeros = calloc(1, n);
    assert_non_null(zeros);
    for (size_t k = 0; k < 2; k++) {
        buf bomb = {0}, out = {0};
        assert_int_equal(coding_pack(CODINGS[k], zeros, n, &bomb), 0);
        assert_true(bomb.len < n / 100);
        assert_int_equal(unpack(CODINGS[k], &bomb, 4096, 100000, &out), SHOAL_ELIMIT);
        assert_true(out.len <= 100000);
        buf_clear(&out);
        assert_int_equal(unpack(CODINGS[k], &bomb, 4096, n - 1, &out), SHOAL_ELIMIT);
        buf_done(&bomb);
        buf_done(&out);
    }
    free(zeros);
}

static void coding_that_is_damaged_is_refused(void **state)
{
    char text[2000];
    fill(text, sizeof text);
    for (size_t k = 0; k < 2; k++) {
        buf packed = {0}, twice = {0}, out = {0};
        assert_int_equal(coding_pack(CODINGS[k], text, sizeof text, &packed), 0);
        for (size_t cut = 1; cut < packed.len; cut++) {
            buf part = {.data = packed.data, .len = cut};
            assert_int_equal(unpack(CODINGS[k], &part, 100, sizeof text, &out), SHOAL_EFORMAT);
        }
        packed.data[0] ^= 1;
        assert_int_equal(unpack(CODINGS[k], &packed, 100, sizeof text, &out), SHOAL_EFORMAT);
        packed.data[0] ^= 1;
        buf_clear(&out);
        buf_append(&twice, packed.data, packed.len); /* one behind the other is one text */
        buf_append(&twice, packed.data, packed.len);
        assert_int_equal(unpack(CODINGS[k], &twice, 7, 2 * sizeof text, &out), 0);
        assert_int_equal(out.len, 2 * sizeof text);
        buf_puts(&twice, "and more");
        assert_int_equal(unpack(CODINGS[k], &twice, 7, 4 * sizeof text, &out), SHOAL_EFORMAT);
        buf_done(&packed);
        buf_done(&twice);
        buf_done(&out);
    }
}

static bool refuse(void *user, const uint8_t *bytes, size_t n)
{
    ++*(int *)user;
    return false;
}

static void coding_stops_when_nobody_listens(void **state)
{
    static char text[200000];
    for (size_t k = 0; k < 2; k++) {
        buf packed = {0};
        coding_reader *r;
        int n_told = 0;
        coding_pack(CODINGS[k], text, sizeof text, &packed);
        assert_int_equal(coding_reader_new(&r, CODINGS[k], sizeof text, NULL), 0);
        assert_int_equal(coding_reader_add(r, packed.data, packed.len, refuse, &n_told, NULL), 0);
        assert_int_equal(n_told, 1);
        coding_reader_free(r);
        buf_done(&packed);
    }
}

static void coding_of_a_stream_is_asked_for(void **state)
{
    assert_int_equal(coding_choose_for_stream("gzip, deflate, br, zstd", CODING_ALL), CODING_NONE);
    assert_int_equal(coding_choose_for_stream("gzip, identity;q=0.5", CODING_ALL), CODING_GZIP);
    assert_int_equal(coding_choose_for_stream("zstd, identity;q=0", CODING_ALL), CODING_ZSTD);
    assert_int_equal(coding_choose_for_stream("gzip, *;q=0", CODING_ALL), CODING_GZIP);
    assert_int_equal(coding_choose_for_stream("gzip;q=0.5, identity", CODING_ALL), CODING_NONE);
    assert_int_equal(coding_choose_for_stream("gzip, identity", CODING_ALL), CODING_NONE);
    assert_int_equal(coding_choose_for_stream("br, identity;q=0", CODING_ALL), CODING_NONE);
    assert_int_equal(coding_choose_for_stream(NULL, CODING_ALL), CODING_NONE);
}

static void coding_of_a_body_is_one_that_is_known(void **state)
{
    coding c;
    assert_true(coding_parse(NULL, &c) && c == CODING_NONE);
    assert_true(coding_parse("identity", &c) && c == CODING_NONE);
    assert_true(coding_parse("GZIP", &c) && c == CODING_GZIP);
    assert_true(coding_parse("zstd", &c) && c == CODING_ZSTD);
    assert_false(coding_parse("br", &c));
    assert_false(coding_parse("gzip, gzip", &c));
    assert_true(coding_parse("Deflate", &c));
    assert_int_equal(c, CODING_DEFLATE);
    assert_false(coding_parse("br", &c));
}

static void what_is_worth_packing(void **state)
{
    static const struct {
        size_t n;
        unsigned want;
    } CASES[] = {{0, 0},
                 {1023, 0},
                 {1024, CODING_ALL},
                 {256 << 10, CODING_ALL},
                 {(256 << 10) + 1, CODING_ZSTD},
                 {1 << 20, CODING_ZSTD},
                 {(1 << 20) + 1, 0}};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        assert_int_equal(coding_worth(CASES[i].n), CASES[i].want);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_worth_packing),
        cmocka_unit_test(coding_is_the_one_that_weighs_most),
        cmocka_unit_test(coding_of_a_stream_is_asked_for),
        cmocka_unit_test(coding_of_a_body_is_one_that_is_known),
        cmocka_unit_test(coding_gives_back_what_it_was_given),
        cmocka_unit_test(coding_reads_deflate),
        cmocka_unit_test(coding_of_a_stream_can_be_read_to_each_event),
        cmocka_unit_test(coding_that_grows_too_far_is_cut_off),
        cmocka_unit_test(coding_that_is_damaged_is_refused),
        cmocka_unit_test(coding_stops_when_nobody_listens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
