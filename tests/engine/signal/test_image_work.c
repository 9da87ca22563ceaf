/* What decoding a picture may cost: scans are counted, pixel data behind the last row is not unpacked, and
 * whoever has left is noticed between rows. What is counted is rows asked for and bytes unpacked. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <png.h>
#include <zlib.h>

#include "helper.h"
#include "scans.h"
#include "signal/image.h"

/* ---- zlib as libpng sees it ---------------------------------------------------------------------------- */

static size_t n_unpacked;

/* In front of zlib's own, for all libraries of this program. */
__attribute__((visibility("default"))) int inflate(z_streamp s, int flush)
{
    int (*real)(z_streamp, int);
    void *symbol = dlsym(RTLD_NEXT, "inflate");
    memcpy(&real, &symbol, sizeof real);
    uInt room = s->avail_out;
    int rc = real(s, flush);
    n_unpacked += room - s->avail_out;
    return rc;
}

/* ---- pictures ------------------------------------------------------------------------------------------ */

static void put_be32(buf *b, uint32_t v)
{
    uint8_t p[] = {(uint8_t)(v >> 24), (uint8_t)(v >> 16), (uint8_t)(v >> 8), (uint8_t)v};
    assert_int_equal(buf_append(b, p, 4), 0);
}

static void put_chunk(buf *b, const char *name, const void *data, size_t n)
{
    put_be32(b, (uint32_t)n);
    size_t from = b->len;
    buf_puts(b, name);
    assert_int_equal(buf_append(b, data, n), 0);
    put_be32(b, (uint32_t)crc32(0, (const Bytef *)b->data + from, (uInt)(n + 4)));
}

/* Grey, 8 x 8, with `more` bytes of pixel data behind its last row, in chunks of `piece` bytes. */
static buf make_overfull_png(size_t more, size_t piece)
{
    static const uint8_t head[] = {0, 0, 0, 8, 0, 0, 0, 8, 8, 0, 0, 0, 0};
    uLongf n = compressBound(8 * 9 + more);
    uint8_t *rows = calloc(8 * 9 + more, 1), *packed = malloc(n);
    for (size_t i = 0; i < 8 * 9; i++) rows[i] = i % 9 ? (uint8_t)i : 0;
    assert_int_equal(compress2(packed, &n, rows, 8 * 9 + more, 9), Z_OK);
    buf b = {0};
    assert_int_equal(buf_append(&b, "\x89PNG\r\n\x1a\n", 8), 0);
    put_chunk(&b, "IHDR", head, sizeof head);
    for (size_t at = 0; at < n; at += piece)
        put_chunk(&b, "IDAT", packed + at, n - at < piece ? n - at : piece);
    put_chunk(&b, "IEND", "", 0);
    free(rows);
    free(packed);
    return b;
}

typedef struct writer {
    png_bytep rows[16];
    uint8_t pixels[16 * 16 * 3];
} writer;

static void png_out(png_structp png, png_bytep data, png_size_t n)
{
    assert_int_equal(buf_append(png_get_io_ptr(png), data, n), 0);
}

static buf make_png(writer *w, uint32_t width, uint32_t height, int interlace)
{
    buf b = {0};
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(png);
    assert_non_null(info);
    png_set_write_fn(png, &b, png_out, NULL);
    png_set_IHDR(png, info, width, height, 8, PNG_COLOR_TYPE_RGB, interlace, 0, 0);
    for (uint32_t y = 0; y < height; y++) w->rows[y] = w->pixels + (size_t)y * width * 3;
    png_set_rows(png, info, w->rows);
    png_write_png(png, info, 0, NULL);
    png_destroy_write_struct(&png, &info);
    return b;
}

typedef struct counter {
    size_t n, stop_at; /* 0: never */
} counter;

static int count(void *user, shoal_err *err)
{
    counter *c = user;
    c->n++;
    return c->n == c->stop_at ? err_set(err, SHOAL_ECANCELLED, "enough") : 0;
}

/* The result, and how often it was asked whether to go on. */
static int decode(const buf *b, size_t max_work, size_t stop_at, size_t *ret_n, shoal_err *err)
{
    counter c = {.stop_at = stop_at};
    image im = {0};
    image_limits l = {.max_work = max_work, .cancel = {count, &c}};
    int rc = image_decode(&im, b->data, b->len, &l, err);
    assert_true((rc == 0) == (im.rgb != NULL));
    image_done(&im);
    *ret_n = c.n;
    return rc;
}

/* ---- tests --------------------------------------------------------------------------------------------- */

static void pixel_data_behind_the_last_row_stays_packed(void **state)
{
    static const size_t pieces[] = {SIZE_MAX / 2, 100, 7};
    for (size_t i = 0; i < COUNT_OF(pieces); i++) {
        buf b = make_overfull_png((size_t)8 << 20, pieces[i]);
        image im = {0};
        shoal_err err = {0};
        n_unpacked = 0;
        if (image_decode(&im, b.data, b.len, NULL, &err) != 0) fail_msg("%s", err.message);
        assert_int_equal(im.width, 8);
        assert_int_equal(im.rgb[0], 1);
        assert_int_equal(im.rgb[3 * 63], 8 * 9 - 1);
        if (n_unpacked > 4 * 8 * 9) fail_msg("%zu bytes unpacked for 72", n_unpacked);
        image_done(&im);
        buf_done(&b);
    }
    buf rows_only = make_overfull_png(0, 1000);
    size_t n;
    n_unpacked = 0;
    assert_int_equal(decode(&rows_only, 0, 0, &n, NULL), 0);
    assert_true(n_unpacked >= 8 * 9); /* else nothing is counted */
    buf_done(&rows_only);
}

static void every_interlaced_size_has_its_pixels(void **state)
{
    writer w;
    for (size_t i = 0; i < sizeof w.pixels; i++) w.pixels[i] = (uint8_t)(i * 7 + i / 5);
    for (uint32_t width = 1; width <= 16; width++)
        for (uint32_t height = 1; height <= 16; height++)
            for (int interlace = 0; interlace <= PNG_INTERLACE_ADAM7; interlace++) {
                buf b = make_png(&w, width, height, interlace);
                image im = {0};
                shoal_err err = {0};
                if (image_decode(&im, b.data, b.len, NULL, &err) != 0)
                    fail_msg("%u x %u: %s", width, height, err.message);
                assert_memory_equal(im.rgb, w.pixels, (size_t)width * height * 3);
                image_done(&im);
                buf_done(&b);
            }
}

/* A stream that ends well, but before the last row. */
static void missing_rows_are_an_error(void **state)
{
    static const uint8_t head[] = {0, 0, 0, 8, 0, 0, 0, 9, 8, 0, 0, 0, 0}; /* a row more than there is */
    buf b = make_overfull_png(0, 1000), c = {0};
    shoal_err err = {0};
    size_t n;
    assert_int_equal(buf_append(&c, b.data, 8), 0);
    put_chunk(&c, "IHDR", head, sizeof head);
    assert_int_equal(buf_append(&c, b.data + 8 + 25, b.len - 8 - 25), 0);
    assert_int_equal(decode(&c, 0, 0, &n, &err), SHOAL_EFORMAT);
    buf_done(&b);
    buf_done(&c);
}

static void scans_of_a_jpeg_are_work(void **state)
{
    enum { SIDE = 512, SCANS = 64, ROWS = SIDE / 8 };
    buf b = make_scans(SIDE, SCANS);
    shoal_err err = {0};
    size_t n, pixels = SIDE * SIDE;
    assert_int_equal(decode(&b, 66 * pixels, 0, &n, &err), 0);
    assert_true(n >= SCANS * ROWS + SIDE);
    assert_int_equal(decode(&b, 10 * pixels, 0, &n, &err), SHOAL_ELIMIT);
    if (n > 10 * (ROWS + 1) + 1) fail_msg("%zu rows of blocks were read for a limit of ten scans", n);
    assert_non_null(strstr(err.message, "512 x 512 pixels"));
    assert_non_null(strstr(err.message, "not progressive"));
    assert_int_equal(decode(&b, 0, 0, &n, &err), 0); /* 16 Mpx of 64 */
    buf_done(&b);
    buf large = make_scans(2048, SCANS);
    assert_int_equal(decode(&large, 0, 0, &n, &err), SHOAL_ELIMIT); /* 256 Mpx */
    assert_true(n <= 16 * (2048 / 8 + 1) + 1);
    assert_true(image_cost(large.data, large.len) == (size_t)8 * 2048 * 2048);
    buf_done(&large);
    buf plain = make_scans(SIDE, 1);
    assert_int_equal(decode(&plain, pixels, 0, &n, &err), 0);
    assert_int_equal(n, SIDE);
    assert_int_equal(decode(&plain, pixels - 1, 0, &n, &err), SHOAL_ELIMIT);
    assert_int_equal(n, 0);
    assert_true(image_cost(plain.data, plain.len) == pixels);
    buf_done(&plain);
}

/* In the scans, between them and in the rows of pixels. */
static void decoding_ends_when_nobody_waits_for_it(void **state)
{
    static const size_t stops[] = {1, 5, 100, 64 * 64 + 70};
    buf b = make_scans(512, 64);
    size_t n;
    for (size_t i = 0; i < COUNT_OF(stops); i++) {
        shoal_err err = {0};
        assert_int_equal(decode(&b, 0, stops[i], &n, &err), SHOAL_ECANCELLED);
        assert_int_equal(n, stops[i]);
        assert_string_equal(err.message, "enough");
    }
    buf_done(&b);
    writer w = {.pixels = {0}};
    for (int interlace = 0; interlace <= PNG_INTERLACE_ADAM7; interlace++) {
        shoal_err err = {0};
        buf p = make_png(&w, 16, 16, interlace);
        assert_int_equal(decode(&p, 0, 7, &n, &err), SHOAL_ECANCELLED);
        assert_int_equal(n, 7);
        buf_done(&p);
    }
}

static void what_has_no_header_costs_nothing(void **state)
{
    writer w = {.pixels = {0}};
    buf p = make_png(&w, 16, 11, 0), j = make_scans(64, 3);
    assert_int_equal(image_cost(p.data, p.len), 16 * 11);
    assert_int_equal(image_cost(j.data, j.len), 8 * 64 * 64);
    for (size_t n = 0; n < 20; n++) {
        assert_int_equal(image_cost(p.data, n), 0);
        assert_int_equal(image_cost(j.data, n), 0);
    }
    assert_int_equal(image_cost("GIF89a", 6), 0);
    assert_int_equal(image_cost("\xff\xd8\xff\xe0\0\0\xff\xc0\0\7", 10), 0);
    buf_done(&p);
    buf_done(&j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pixel_data_behind_the_last_row_stays_packed),
        cmocka_unit_test(every_interlaced_size_has_its_pixels),
        cmocka_unit_test(missing_rows_are_an_error),
        cmocka_unit_test(scans_of_a_jpeg_are_work),
        cmocka_unit_test(decoding_ends_when_nobody_waits_for_it),
        cmocka_unit_test(what_has_no_header_costs_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
