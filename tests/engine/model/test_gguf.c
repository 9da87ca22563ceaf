#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/file.h"
#include "gguf_bytes.h"
#include "model/files/gguf.h"

#define DATA SHOAL_SOURCE_DIR "/tests/data/"

/* Parse the bytes from a heap copy of exactly their length, so that sanitizers see every overrun. */
static int parse(const buf *b, shoal_err *err)
{
    void *exact = malloc(b->len ? b->len : 1);
    memcpy(exact, b->data ? b->data : "", b->len);
    gguf *g = NULL;
    int rc = gguf_parse(&g, exact, b->len, "t.gguf", err);
    gguf_free(g);
    free(exact);
    return rc;
}

static void expect(buf *b, int code, const char *sentence)
{
    shoal_err err = {0};
    int rc = parse(b, &err);
    if (rc != code || (sentence && !strstr(err.message, sentence)))
        fail_msg("got %d \"%s\", expected %d \"%s\"", rc, err.message, code, sentence ? sentence : "");
    buf_done(b);
}

/* Two F32 tensors of 8 x 4 (128 bytes each) behind two keys. */
static void small_file(buf *b)
{
    g_head(b, 3, 2, 2);
    g_kv_str(b, "general.architecture", "llama");
    g_kv_u32(b, "general.alignment", 64);
    g_tensor(b, "a.weight", 8, 4, 0, 0);
    g_tensor(b, "b.weight", 8, 4, 0, 128);
    g_pad(b, 64);
    g_zeros(b, 256);
}

static void gguf_reads_keys_and_tensors(void **state)
{
    (void)state;
    buf b = {0};
    small_file(&b);
    gguf *g = NULL;
    shoal_err err;
    assert_int_equal(gguf_parse(&g, b.data, b.len, "t.gguf", &err), 0);
    const char *family = NULL;
    int64_t n = 0;
    assert_int_equal(gguf_get_str(g, "general.architecture", &family, &err), 0);
    assert_string_equal(family, "llama");
    assert_int_equal(gguf_get_int(g, "general.alignment", 0, 100, &n, &err), 0);
    assert_int_equal(n, 64);
    assert_int_equal(gguf_get_int(g, "general.alignment", 0, 63, &n, &err), SHOAL_EFORMAT);
    assert_int_equal(gguf_get_int(g, "general.architecture", 0, 63, &n, &err), SHOAL_EFORMAT);
    assert_non_null(strstr(err.message, "of type string"));
    assert_null(gguf_find(g, "absent"));
    assert_int_equal(g->n_tensors, 2);
    assert_string_equal(g->tensors[1].name, "b.weight");
    assert_int_equal(g->tensors[1].bytes, 128);
    assert_ptr_equal(g->tensors[1].data, b.data + b.len - 128);
    gguf_free(g);
    buf_done(&b);
}

static void gguf_reads_every_value_type(void **state)
{
    (void)state;
    static const struct {
        uint32_t type;
        size_t bytes;
    } plain[] = {{0, 1}, {1, 1}, {2, 2}, {3, 2}, {4, 4}, {5, 4}, {6, 4}, {7, 1}, {10, 8}, {11, 8}, {12, 8}};
    const size_t n = sizeof plain / sizeof *plain;
    buf b = {0};
    g_head(&b, 2, 0, n + 1);
    for (size_t i = 0; i < n; i++) {
        char key[16];
        snprintf(key, sizeof key, "key%zu", i);
        g_str(&b, key);
        g_u32(&b, plain[i].type);
        g_zeros(&b, plain[i].bytes);
    }
    g_str(&b, "nested"); /* [[u8 u8], [u8]] */
    g_u32(&b, 9);
    g_u32(&b, 9);
    g_u64(&b, 2);
    g_u32(&b, 0);
    g_u64(&b, 2);
    g_zeros(&b, 2);
    g_u32(&b, 0);
    g_u64(&b, 1);
    g_zeros(&b, 1);
    expect(&b, 0, NULL);
}

static void gguf_refuses_truncation_at_every_byte(void **state)
{
    (void)state;
    buf whole = {0};
    small_file(&whole);
    for (size_t n = 0; n < whole.len; n++) {
        shoal_err err = {0};
        buf cut = {.data = whole.data, .len = n};
        int rc = parse(&cut, &err);
        if (rc != SHOAL_EFORMAT || !err.message[0]) fail_msg("%zu of %zu bytes gave %d", n, whole.len, rc);
    }
    buf_done(&whole);
}

static void gguf_says_how_far_a_tensor_ends_past_the_file(void **state)
{
    (void)state;
    buf b = {0};
    small_file(&b);
    b.len -= 100;
    expect(&b, SHOAL_EFORMAT, "t.gguf: tensor b.weight ends 100 bytes past the file");
}

static void gguf_refuses_what_is_not_its_format(void **state)
{
    (void)state;
    buf b = {0};
    buf_puts(&b, "GGML\3\0\0\0 not it");
    expect(&b, SHOAL_EFORMAT, "not a GGUF file");
    g_head(&b, 1, 0, 0);
    expect(&b, SHOAL_EUNSUPPORTED, "version 1");
    g_head(&b, 4, 0, 0);
    expect(&b, SHOAL_EUNSUPPORTED, "version 4");
    g_head(&b, 0x03000000, 0, 0);
    expect(&b, SHOAL_EUNSUPPORTED, "big-endian");
}

static void gguf_refuses_counts_beyond_the_file(void **state)
{
    (void)state;
    buf b = {0};
    g_head(&b, 3, 0, UINT64_MAX);
    expect(&b, SHOAL_EFORMAT, "metadata pairs");
    g_head(&b, 3, UINT64_MAX / 2, 0);
    expect(&b, SHOAL_EFORMAT, "tensors, more than fit");
    g_head(&b, 3, 0, 1);
    g_str(&b, "k");
    g_u32(&b, 9);
    g_u32(&b, 4);
    g_u64(&b, UINT64_MAX / 4 + 1);
    g_zeros(&b, 64);
    expect(&b, SHOAL_EFORMAT, "more than the file has room for");
    g_head(&b, 3, 0, 1);
    g_u64(&b, UINT64_MAX);
    g_zeros(&b, 64);
    expect(&b, SHOAL_EFORMAT, "metadata key");
}

static void gguf_refuses_deep_arrays_and_unknown_values(void **state)
{
    (void)state;
    buf b = {0};
    g_head(&b, 3, 0, 1);
    g_str(&b, "deep");
    g_u32(&b, 9);
    for (int i = 0; i < 8; i++) {
        g_u32(&b, 9);
        g_u64(&b, 1);
    }
    g_u32(&b, 0);
    g_u64(&b, 1);
    g_zeros(&b, 64);
    expect(&b, SHOAL_ELIMIT, "nests arrays");
    g_head(&b, 3, 0, 1);
    g_str(&b, "odd");
    g_u32(&b, 99);
    g_zeros(&b, 64);
    expect(&b, SHOAL_EUNSUPPORTED, "unknown value type 99");
}

static void gguf_refuses_duplicates(void **state)
{
    (void)state;
    buf b = {0};
    g_head(&b, 3, 0, 2);
    g_kv_u32(&b, "twice", 1);
    g_kv_u32(&b, "twice", 1);
    expect(&b, SHOAL_EFORMAT, "\"twice\" appears twice");
    g_head(&b, 3, 2, 0);
    g_tensor(&b, "a", 8, 1, 0, 0);
    g_tensor(&b, "a", 8, 1, 0, 32);
    g_pad(&b, 32);
    g_zeros(&b, 64);
    expect(&b, SHOAL_EFORMAT, "tensor a appears twice");
}

/* One file with two tensors, the second as given, and the sentence it must earn. */
static void second_tensor(uint64_t cols, uint64_t rows, uint32_t type, uint64_t offset, int code,
                          const char *sentence)
{
    buf b = {0};
    g_head(&b, 3, 2, 0);
    g_tensor(&b, "first", 8, 4, 0, 0);
    g_tensor(&b, "second", cols, rows, type, offset);
    g_pad(&b, 32);
    g_zeros(&b, 256);
    expect(&b, code, sentence);
}

static void gguf_refuses_wrong_tensors(void **state)
{
    (void)state;
    second_tensor(8, 4, 0, 96, SHOAL_EFORMAT, "tensors first and second overlap by 32 bytes");
    second_tensor(8, 4, 0, 0, SHOAL_EFORMAT, "overlap by 128 bytes");
    second_tensor(8, 4, 0, 129, SHOAL_EFORMAT, "not aligned to 32");
    second_tensor(8, 4, 0, 160, SHOAL_EFORMAT, "ends 32 bytes past");
    second_tensor(8, 4, 0, UINT64_MAX - 31, SHOAL_EFORMAT, "past the file");
    second_tensor(8, 0, 0, 128, 0, NULL);
    second_tensor(0, 8, 0, 0, 0, NULL); /* where the first begins */
    second_tensor(0, UINT64_MAX, 0, 256, 0, NULL);
    second_tensor(8, 0, 0, 64, SHOAL_EFORMAT, "tensors first and second overlap by 64 bytes");
    second_tensor(8, 0, 0, 288, SHOAL_EFORMAT, "starts 32 bytes past the file");
    second_tensor(UINT64_MAX / 2, 3, 0, 128, SHOAL_EFORMAT, "larger than memory");
    second_tensor(UINT64_MAX / 2, 1, 0, 128, SHOAL_EFORMAT, "larger than memory");
    second_tensor(8, 4, 16, 128, SHOAL_EUNSUPPORTED,
                  "tensor second has type IQ2_XXS (number 16), which Shoal");
    second_tensor(8, 4, 4000, 128, SHOAL_EUNSUPPORTED, "type unknown (number 4000)");
    second_tensor(48, 1, 8, 128, SHOAL_EFORMAT, "no multiple of Q8_0's blocks of 32");
    second_tensor(192, 1, 8128, 128, SHOAL_EFORMAT, "no multiple of S8_128's blocks of 128");
    second_tensor(256, 1, 8256, 128, SHOAL_EFORMAT, "past the file");
    second_tensor(256, 1, 4256, 128, SHOAL_EUNSUPPORTED, "type unknown (number 4256)");
    second_tensor(8, 4, 0, 128, 0, NULL);
}

static void gguf_refuses_wrong_dimension_counts(void **state)
{
    (void)state;
    for (uint32_t n_dims = 0; n_dims < 10; n_dims += 5) {
        buf b = {0};
        g_head(&b, 3, 1, 0);
        g_str(&b, "t");
        g_u32(&b, n_dims);
        g_zeros(&b, 200);
        expect(&b, SHOAL_EFORMAT, "dimensions; 1 to 4 are allowed");
    }
}

static void gguf_refuses_wrong_alignment(void **state)
{
    (void)state;
    static const uint32_t wrong[] = {0, 4, 48, 1u << 30};
    for (size_t i = 0; i < 4; i++) {
        buf b = {0};
        g_head(&b, 3, 0, 1);
        g_kv_u32(&b, "general.alignment", wrong[i]);
        g_zeros(&b, 64);
        expect(&b, SHOAL_EFORMAT, "general.alignment");
    }
}

/* Flip every byte of a real header in turn: any answer is fine, reading outside is not. */
static void gguf_survives_every_flipped_byte(void **state)
{
    (void)state;
    buf b = {0};
    size_t n_refused = 0;
    small_file(&b);
    for (size_t i = 0; i < b.len; i++) {
        b.data[i] = (char)~b.data[i];
        shoal_err err = {0};
        int rc = parse(&b, &err);
        b.data[i] = (char)~b.data[i];
        if (rc == 0) continue; /* names, weights and padding may be anything */
        n_refused++;
        assert_true(rc == SHOAL_EFORMAT || rc == SHOAL_EUNSUPPORTED || rc == SHOAL_ELIMIT);
        assert_true(*err.message);
        if (i >= b.len - 256) fail_msg("byte %zu is a weight's", i);
    }
    assert_true(n_refused >= 24); /* at least magic, version and both counts */
    buf_done(&b);
}

static void gguf_reads_real_files(void **state)
{
    (void)state;
    static const char *const files[] = {SHOAL_GGUF_DIR "/bert-intent.gguf", SHOAL_GGUF_DIR "/llama-gqa.gguf",
                                        DATA "quant/q-Q4_1.gguf"};
    for (size_t i = 0; i < 3; i++) {
        file_map m;
        gguf *g = NULL;
        shoal_err err;
        assert_int_equal(file_map_open(&m, files[i], &err), 0);
        if (gguf_parse(&g, m.data, m.len, files[i], &err) != 0) fail_msg("%s", err.message);
        const char *const *tokens;
        const size_t *lens;
        size_t n = 0;
        assert_int_equal(gguf_get_strings(g, "tokenizer.ggml.tokens", &n, &tokens, &lens, &err), 0);
        assert_true(n >= 576);
        gguf_free(g);
        file_map_close(&m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gguf_reads_keys_and_tensors),
        cmocka_unit_test(gguf_reads_every_value_type),
        cmocka_unit_test(gguf_refuses_truncation_at_every_byte),
        cmocka_unit_test(gguf_says_how_far_a_tensor_ends_past_the_file),
        cmocka_unit_test(gguf_refuses_what_is_not_its_format),
        cmocka_unit_test(gguf_refuses_counts_beyond_the_file),
        cmocka_unit_test(gguf_refuses_deep_arrays_and_unknown_values),
        cmocka_unit_test(gguf_refuses_duplicates),
        cmocka_unit_test(gguf_refuses_wrong_tensors),
        cmocka_unit_test(gguf_refuses_wrong_dimension_counts),
        cmocka_unit_test(gguf_refuses_wrong_alignment),
        cmocka_unit_test(gguf_survives_every_flipped_byte),
        cmocka_unit_test(gguf_reads_real_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
