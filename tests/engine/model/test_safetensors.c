#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/files/safetensors.h"

static void make(buf *b, const char *header, size_t data_bytes)
{
    uint64_t n = strlen(header);
    buf_append(b, &n, sizeof n);
    buf_puts(b, header);
    while (data_bytes--) buf_putc(b, 0);
}

static int parse(const void *bytes, size_t n, st_list *list, arena *mem, shoal_err *err)
{
    void *exact = malloc(n ? n : 1);
    if (n) memcpy(exact, bytes, n);
    int rc = safetensors_parse(list, mem, exact, n, "t.safetensors", err);
    free(exact);
    return rc;
}

static void expect_bytes(const void *bytes, size_t n, int code, const char *sentence)
{
    shoal_err err = {0};
    st_list list = {0};
    arena *mem = arena_new(0);
    int rc = parse(bytes, n, &list, mem, &err);
    if (rc != code || (sentence && !strstr(err.message, sentence)))
        fail_msg("got %d \"%s\", expected %d \"%s\"", rc, err.message, code, sentence ? sentence : "");
    safetensors_list_done(&list);
    arena_free(mem);
}

static void expect(const char *header, size_t data_bytes, int code, const char *sentence)
{
    buf b = {0};
    make(&b, header, data_bytes);
    expect_bytes(b.data, b.len, code, sentence);
    buf_done(&b);
}

#define A "\"a\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]}"

static void safetensors_reads_tensors_in_gguf_order(void **state)
{
    (void)state;
    buf b = {0};
    make(&b,
         "{\"__metadata__\":{\"format\":\"pt\"}," A
         ",\"b\":{\"dtype\":\"BF16\",\"shape\":[4],\"data_offsets\":[24,32]}}",
         32);
    st_list list = {0};
    arena *mem = arena_new(0);
    shoal_err err;
    assert_int_equal(safetensors_parse(&list, mem, b.data, b.len, "t", &err), 0);
    assert_int_equal(list.n, 2);
    assert_string_equal(list.items[0].t.name, "a");
    assert_int_equal(list.items[0].t.dims[0], 3);
    assert_int_equal(list.items[0].t.dims[1], 2);
    assert_int_equal(list.items[0].t.type, DT_F32);
    assert_int_equal(list.items[1].t.type, DT_BF16);
    assert_ptr_equal((const char *)list.items[1].t.data, b.data + b.len - 8);
    safetensors_list_done(&list);
    arena_free(mem);
    buf_done(&b);
}

static void safetensors_lists_integers_as_unusable(void **state)
{
    (void)state;
    buf b = {0};
    make(&b, "{\"ids\":{\"dtype\":\"I64\",\"shape\":[1,2],\"data_offsets\":[0,16]}}", 16);
    st_list list = {0};
    arena *mem = arena_new(0);
    shoal_err err;
    assert_int_equal(safetensors_parse(&list, mem, b.data, b.len, "t", &err), 0);
    assert_int_equal(list.items[0].t.type, DT_COUNT);
    assert_string_equal(list.items[0].dtype_name, "I64");
    safetensors_list_done(&list);
    arena_free(mem);
    buf_done(&b);
}

static void safetensors_refuses_wrong_places(void **state)
{
    (void)state;
    expect("{" A "}", 24, 0, NULL);
    expect("{" A "}", 20, SHOAL_EFORMAT, "tensor a ends 4 bytes past the file");
    expect("{" A "}", 30, SHOAL_EFORMAT, "6 bytes behind the last tensor");
    expect("{" A ",\"b\":{\"dtype\":\"F16\",\"shape\":[2],\"data_offsets\":[20,24]}}", 24, SHOAL_EFORMAT,
           "overlap by 4 bytes");
    expect("{" A ",\"b\":{\"dtype\":\"F16\",\"shape\":[2],\"data_offsets\":[28,32]}}", 32, SHOAL_EFORMAT,
           "4 bytes before tensor b");
    expect("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,0]}}", 8, SHOAL_EFORMAT,
           "runs from 8 to 0");
    expect("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[-8,0]}}", 8, SHOAL_EFORMAT,
           "runs from -8");
    expect("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0]}}", 8, SHOAL_EFORMAT,
           "[begin, end]");
    expect("{" A "," A "}", 24, SHOAL_EFORMAT, "duplicate");
}

static void safetensors_refuses_wrong_shapes_and_types(void **state)
{
    (void)state;
    expect("{\"a\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,8]}}", 8, SHOAL_EFORMAT,
           "3 values of F32");
    expect("{\"a\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,8]}}", 8, SHOAL_EFORMAT,
           "impossible shape");
    expect("{\"a\":{\"dtype\":\"F32\",\"shape\":[4611686018427387904,8],\"data_offsets\":[0,8]}}", 8,
           SHOAL_EFORMAT, "impossible shape");
    expect("{\"a\":{\"dtype\":\"F32\",\"shape\":[4611686018427387904],\"data_offsets\":[0,8]}}", 8,
           SHOAL_EFORMAT, "values of F32");
    expect("{\"a\":{\"dtype\":\"F32\",\"shape\":2,\"data_offsets\":[0,8]}}", 8, SHOAL_EFORMAT, "\"shape\"");
    expect("{\"a\":{\"dtype\":\"Q9\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8, SHOAL_EUNSUPPORTED,
           "dtype Q9");
    expect("{\"a\":{\"shape\":[2],\"data_offsets\":[0,8]}}", 8, SHOAL_EFORMAT, "no \"dtype\"");
    expect("{\"a\":7}", 0, SHOAL_EFORMAT, "no \"dtype\"");
    expect("[]", 0, SHOAL_EFORMAT, "no JSON object");
    expect("{", 0, SHOAL_EFORMAT, "not JSON");
}

static void safetensors_refuses_wrong_headers(void **state)
{
    (void)state;
    uint64_t huge = (uint64_t)200 << 20, beyond = 1000;
    expect_bytes(NULL, 0, SHOAL_EFORMAT, "too short");
    expect_bytes("1234567", 7, SHOAL_EFORMAT, "too short");
    expect_bytes(&huge, sizeof huge, SHOAL_ELIMIT, "claims a header");
    expect_bytes(&beyond, sizeof beyond, SHOAL_EFORMAT, "header ends 1000 bytes past");
    uint64_t all = UINT64_MAX;
    expect_bytes(&all, sizeof all, SHOAL_ELIMIT, "claims a header");
}

static void safetensors_refuses_truncation_at_every_byte(void **state)
{
    (void)state;
    buf b = {0};
    make(&b, "{" A "}", 24);
    for (size_t n = 0; n < b.len; n++) {
        st_list list = {0};
        arena *mem = arena_new(0);
        shoal_err err;
        if (parse(b.data, n, &list, mem, &err) != SHOAL_EFORMAT) fail_msg("%zu bytes were accepted", n);
        safetensors_list_done(&list);
        arena_free(mem);
    }
    buf_done(&b);
}

static void index_case(const char *json, int code, const char *sentence)
{
    const char **files = NULL;
    size_t n = 0;
    arena *mem = arena_new(0);
    shoal_err err = {0};
    int rc = safetensors_index_parse(&files, &n, mem, json, strlen(json), "index.json", &err);
    if (rc != code || (sentence && !strstr(err.message, sentence)))
        fail_msg("got %d \"%s\"", rc, err.message);
    arena_free(mem);
}

static void index_names_each_shard_once(void **state)
{
    (void)state;
    const char *json = "{\"metadata\":{},\"weight_map\":{\"x\":\"2.st\",\"y\":\"1.st\",\"z\":\"2.st\"}}";
    const char **files = NULL;
    size_t n = 0;
    arena *mem = arena_new(0);
    shoal_err err;
    assert_int_equal(safetensors_index_parse(&files, &n, mem, json, strlen(json), "i", &err), 0);
    assert_int_equal(n, 2);
    assert_string_equal(files[0], "1.st");
    assert_string_equal(files[1], "2.st");
    arena_free(mem);
}

static void index_may_not_leave_the_folder(void **state)
{
    (void)state;
    index_case("{\"weight_map\":{\"x\":\"../1.st\"}}", SHOAL_EINVALID, "same folder");
    index_case("{\"weight_map\":{\"x\":\"/etc/passwd\"}}", SHOAL_EINVALID, "same folder");
    index_case("{\"weight_map\":{\"x\":\"a/b.st\"}}", SHOAL_EINVALID, "same folder");
    index_case("{\"weight_map\":{\"x\":\"..\"}}", SHOAL_EINVALID, "same folder");
    index_case("{\"weight_map\":{\"x\":\"\"}}", SHOAL_EINVALID, "same folder");
    index_case("{\"weight_map\":{\"x\":5}}", SHOAL_EFORMAT, "no file name");
    index_case("{\"weight_map\":{}}", SHOAL_EFORMAT, "empty");
    index_case("{}", SHOAL_EFORMAT, "weight_map");
    index_case("nonsense", SHOAL_EFORMAT, "not JSON");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(safetensors_reads_tensors_in_gguf_order),
        cmocka_unit_test(safetensors_lists_integers_as_unusable),
        cmocka_unit_test(safetensors_refuses_wrong_places),
        cmocka_unit_test(safetensors_refuses_wrong_shapes_and_types),
        cmocka_unit_test(safetensors_refuses_wrong_headers),
        cmocka_unit_test(safetensors_refuses_truncation_at_every_byte),
        cmocka_unit_test(index_names_each_shard_once),
        cmocka_unit_test(index_may_not_leave_the_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
