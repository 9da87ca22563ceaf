/* What a build packs of assets/: each file as it stands there, and its gzip form the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include <zlib.h>

#include "asset/asset.h"

static unsigned char file[1 << 20], unpacked[1 << 20];

static size_t read_source(const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/assets/%s", SHOAL_SOURCE_DIR, name);
    FILE *f = fopen(path, "rb");
    if (!f) fail_msg("%s cannot be read", path);
    size_t n = fread(file, 1, sizeof file, f);
    fclose(f);
    return n;
}

static size_t unpack(const asset *a)
{
    z_stream z = {.next_in = (Bytef *)a->gzip,
                  .avail_in = (uInt)a->n_gzip,
                  .next_out = unpacked,
                  .avail_out = sizeof unpacked};
    assert_int_equal(inflateInit2(&z, 15 + 16), Z_OK);
    assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
    assert_int_equal(z.avail_in, 0);
    inflateEnd(&z);
    return sizeof unpacked - z.avail_out;
}

static void assets_are_the_files_of_the_source(void **state)
{
    assert_true(N_ASSETS > 0);
    for (size_t i = 0; i < N_ASSETS; i++) {
        const asset *a = &ASSETS[i];
        size_t n = read_source(a->name);
        assert_int_equal(a->n, n);
        assert_memory_equal(a->bytes, file, n);
        assert_int_equal(a->bytes[n], 0);
        if (!a->gzip) continue;
        assert_true(a->n_gzip < n);
        assert_int_equal(unpack(a), n);
        assert_memory_equal(unpacked, file, n);
    }
}

/* The same source gives the same program: gzip's header would say when it was packed. */
static void assets_do_not_say_when_they_were_packed(void **state)
{
    for (size_t i = 0; i < N_ASSETS; i++)
        if (ASSETS[i].gzip) assert_memory_equal(ASSETS[i].gzip + 4, "\0\0\0\0", 4);
}

static void assets_are_found_by_their_path(void **state)
{
    for (size_t i = 0; i < N_ASSETS; i++) assert_ptr_equal(asset_find(ASSETS[i].name), &ASSETS[i]);
    assert_string_equal(asset_find("icon.svg")->content_type, "image/svg+xml");
    assert_null(asset_find("nothing.svg"));
    assert_null(asset_find(""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(assets_are_the_files_of_the_source),
                                       cmocka_unit_test(assets_do_not_say_when_they_were_packed),
                                       cmocka_unit_test(assets_are_found_by_their_path)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
