#include <png.h>

#include "helper.h"
#include "signal/image.h"
#include "signal/image_prep.h"

/* ---- files against Pillow --------------------------------------------------------------------------- */

static image load_image(const char *name)
{
    char path[512];
    snprintf(path, sizeof path, DATA("%s"), name);
    buf b = read_whole(path);
    image im = {0};
    shoal_err err = {0};
    if (image_decode(&im, b.data, b.len, NULL, &err) != 0) fail_msg("%s: %s", name, err.message);
    buf_done(&b);
    return im;
}

static void check_pixels(const image *im, const char *name)
{
    size_t n, differ = 0;
    float *want = load_tensor(DATA("images.safetensors"), name, &n);
    assert_int_equal(n, (size_t)im->width * im->height * 3);
    for (size_t i = 0; i < n; i++) differ += im->rgb[i] != (uint8_t)want[i];
    if (differ) fail_msg("%s: %zu of %zu values differ", name, differ, n);
    free(want);
}

static void files_have_the_references_pixels(void **state)
{
    static const char *const names[] = {"rgb.png",    "grey.png",        "bilevel.png",  "palette.png",
                                        "alpha.png",  "grey-alpha.png",  "baseline.jpg", "grey.jpg",
                                        "cmyk.jpg",   "exif-1.jpg",      "exif-2.jpg",   "exif-3.jpg",
                                        "exif-4.jpg", "exif-5.jpg",      "exif-6.jpg",   "exif-7.jpg",
                                        "exif-8.jpg", "progressive.jpg", "exif-6.png"};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        image im = load_image(names[i]);
        check_pixels(&im, names[i]);
        image_done(&im);
    }
}

static void resizing_has_the_references_pixels(void **state)
{
    image im = load_image("rgb.png");
    static const struct {
        uint32_t w, h;
    } sizes[] = {{32, 32}, {20, 47}, {61, 13}, {7, 5}, {1, 1}, {100, 90}};
    for (int filter = 0; filter <= IMAGE_HAMMING; filter++)
        for (size_t i = 0; i < COUNT_OF(sizes); i++) {
            if (sizes[i].w == 100 && filter != IMAGE_BILINEAR && filter != IMAGE_BICUBIC) continue;
            char name[64];
            snprintf(name, sizeof name, "resize.%d.%ux%u", filter, sizes[i].w, sizes[i].h);
            image out = {0};
            assert_int_equal(image_resize(&out, &im, sizes[i].w, sizes[i].h, (image_filter)filter, NULL), 0);
            check_pixels(&out, name);
            image_done(&out);
        }
    image_done(&im);
}

/* ---- PNG kinds that Pillow does not write ----------------------------------------------------------- */

static void on_write(png_structp png, png_bytep bytes, png_size_t n)
{
    buf_append(png_get_io_ptr(png), bytes, n);
}

/* w x h of rows[h][row_bytes]; buf_done it. */
static buf make_png(uint32_t w, uint32_t h, int depth, int type, int interlace, uint8_t *rows,
                    size_t row_bytes)
{
    buf b = {0};
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(png);
    png_bytep pointers[64];
    for (uint32_t y = 0; y < h; y++) pointers[y] = rows + y * row_bytes;
    png_set_write_fn(png, &b, on_write, NULL);
    png_set_IHDR(png, info, w, h, depth, type, interlace, PNG_COMPRESSION_TYPE_BASE, PNG_FILTER_TYPE_BASE);
    png_set_rows(png, info, pointers);
    png_write_png(png, info, PNG_TRANSFORM_IDENTITY, NULL);
    png_destroy_write_struct(&png, &info);
    return b;
}

static void deep_and_interlaced_files_are_read(void **state)
{
    uint8_t rows[9 * 11 * 6];
    for (size_t i = 0; i < sizeof rows; i++) rows[i] = (uint8_t)(i * 37 + i / 11);
    for (int interlace = 0; interlace < 2; interlace++)
        for (int deep = 0; deep < 2; deep++) {
            size_t row = deep ? 66 : 33;
            buf b = make_png(11, 9, deep ? 16 : 8, PNG_COLOR_TYPE_RGB, interlace, rows, row);
            image im = {0};
            assert_int_equal(image_decode(&im, b.data, b.len, NULL, NULL), 0);
            for (size_t y = 0; y < 9; y++)
                for (size_t i = 0; i < 33; i++)
                    assert_int_equal(im.rgb[y * 33 + i], rows[y * row + (deep ? 2 * i : i)]);
            image_done(&im);
            buf_done(&b);
        }
    buf grey = make_png(11, 9, 16, PNG_COLOR_TYPE_GRAY, 0, rows, 22);
    image im = {0};
    assert_int_equal(image_decode(&im, grey.data, grey.len, NULL, NULL), 0);
    for (size_t i = 0; i < 99; i++)
        for (size_t c = 0; c < 3; c++) assert_int_equal(im.rgb[3 * i + c], rows[2 * i]);
    image_done(&im);
    buf_done(&grey);
}

/* ---- refusals --------------------------------------------------------------------------------------- */

static void check_refused(const void *bytes, size_t n, size_t max_pixels, int code, const char *says)
{
    image im = {0};
    shoal_err err = {0};
    image_limits limits = {.max_pixels = max_pixels};
    int rc = image_decode(&im, bytes, n, &limits, &err);
    if (rc != code || !strstr(err.message, says))
        fail_msg("%d \"%s\", not %d \"%s\"", rc, err.message, code, says);
    assert_null(im.rgb);
}

static void what_is_no_image_is_refused_with_a_way_out(void **state)
{
    check_refused("", 0, 0, SHOAL_EFORMAT, "empty");
    check_refused("GIF89a", 6, 0, SHOAL_EUNSUPPORTED, "GIF");
    check_refused("RIFF\0\0\0\0WEBPVP8 ", 16, 0, SHOAL_EUNSUPPORTED, "WebP");
    check_refused("\0\0\0\x18"
                  "ftypavif",
                  12, 0, SHOAL_EUNSUPPORTED, "AVIF");
    check_refused("hello", 5, 0, SHOAL_EUNSUPPORTED, "PNG and JPEG");
    check_refused("\x89PNG\r\n\x1a\n", 8, 0, SHOAL_EFORMAT, "too early");
    check_refused("\xff\xd8\xff\xd9", 4, 0, SHOAL_EFORMAT, "JPEG");
}

static void every_cut_file_is_refused(void **state)
{
    static const char *const names[] = {DATA("rgb.png"), DATA("palette.png"), DATA("baseline.jpg"),
                                        DATA("progressive.jpg"), DATA("cmyk.jpg")};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        buf b = read_whole(names[i]);
        for (size_t keep = 0; keep + 3 < b.len; keep += 1 + keep / 20) {
            image im = {0};
            shoal_err err = {0};
            int rc = image_decode(&im, b.data, keep, NULL, &err);
            if (rc != SHOAL_EFORMAT && rc != SHOAL_EUNSUPPORTED)
                fail_msg("%s of %zu: %d", names[i], keep, rc);
            assert_null(im.rgb);
        }
        buf_done(&b);
    }
}

static void too_large_an_image_is_refused_before_it_costs(void **state)
{
    buf b = read_whole(DATA("rgb.png")), j = read_whole(DATA("baseline.jpg"));
    check_refused(b.data, b.len, 61 * 47 - 1, SHOAL_ELIMIT, "61 x 47");
    check_refused(j.data, j.len, 61 * 47 - 1, SHOAL_ELIMIT, "61 x 47");
    for (size_t i = 0; i + 9 < j.len; i++) /* SOF0: length, precision, height, width */
        if ((uint8_t)j.data[i] == 0xFF && (uint8_t)j.data[i + 1] == 0xC0) memset(j.data + i + 5, 0xFF, 4);
    check_refused(j.data, j.len, 0, SHOAL_EFORMAT, "JPEG");
    buf_done(&b);
    buf_done(&j);
    uint8_t row[8192] = {0};
    uint8_t *rows = calloc(64, 8192);
    buf wide = make_png(65501, 1, 1, PNG_COLOR_TYPE_GRAY, 0, row, sizeof row);
    check_refused(wide.data, wide.len, 0, SHOAL_EFORMAT, "PNG");
    buf strip = make_png(65500, 64, 1, PNG_COLOR_TYPE_GRAY, 0, rows, 8192);
    check_refused(strip.data, strip.len, 4000000, SHOAL_ELIMIT, "65500 x 64");
    buf_done(&strip);
    buf_done(&wide);
    free(rows);
}

/* libpng takes memory for an eXIf chunk as its length says, 2 GB here, before it reads it. */
static void a_chunk_that_lies_about_its_length_costs_nothing(void **state)
{
    buf b = read_whole(DATA("exif-6.png"));
    for (size_t i = 4; i + 4 < b.len; i++)
        if (memcmp(b.data + i, "eXIf", 4) == 0) memcpy(b.data + i - 4, "\x7f\xff\xff\xff", 4);
    check_refused(b.data, b.len, 0, SHOAL_EFORMAT, "PNG");
    buf_done(&b);
}

static void sizes_out_of_range_are_refused(void **state)
{
    image im = load_image("exif-1.jpg"), out = {0};
    static const uint32_t bad[][2] = {{0, 5}, {5, 0}, {65501, 1}, {1, UINT32_MAX}, {65500, 65500}};
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        shoal_err err = {0};
        assert_int_equal(image_resize(&out, &im, bad[i][0], bad[i][1], IMAGE_BILINEAR, &err), SHOAL_EINVALID);
        assert_non_null(strstr(err.message, "23 x 15"));
        assert_null(out.rgb);
    }
    assert_int_equal(image_resize(&out, &im, 23, 15, IMAGE_LANCZOS, NULL), 0); /* the same size is a copy */
    assert_memory_equal(out.rgb, im.rgb, 23 * 15 * 3);
    image_done(&out);
    image_done(&im);
}

/* ---- preparation ------------------------------------------------------------------------------------ */

static int read_prep(image_prep *p, const char *text, shoal_err *err)
{
    json_t *j = NULL;
    assert_int_equal(json_parse(&j, text, strlen(text), "test", err), 0);
    int rc = image_prep_read(p, j, err);
    json_decref(j);
    return rc;
}

static const char CLIP_STATISTICS[] = "\"image_mean\": [0.48145466, 0.4578275, 0.40821073],"
                                      "\"image_std\": [0.26862954, 0.26130258, 0.27577711]}";

static void check_prepared(const image_prep *p, const char *name)
{
    image im = load_image("rgb.png");
    size_t n;
    float *want = load_tensor(DATA("prep.safetensors"), name, &n);
    uint32_t w, h;
    assert_int_equal(image_prep_shape(p, im.width, im.height, &w, &h, NULL), 0);
    assert_int_equal(n, 3 * (size_t)w * h);
    float *out = calloc(n, sizeof *out);
    assert_int_equal(image_prep_run(p, &im, out, NULL), 0);
    for (size_t i = 0; i < n; i++)
        if (fabsf(out[i] - want[i]) > 2e-7f)
            fail_msg("%s %zu: %g, not %g", name, i, (double)out[i], (double)want[i]);
    free(out);
    free(want);
    image_done(&im);
}

static void prepared_images_are_the_references(void **state)
{
    image_prep p;
    char text[512];
    image_prep_default(&p, 32);
    check_prepared(&p, "vit");
    assert_int_equal(
        read_prep(&p, "{\"feature_extractor_type\": \"ViTFeatureExtractor\", \"size\": 32}", NULL), 0);
    check_prepared(&p, "vit");
    assert_int_equal(
        read_prep(&p,
                  "{\"image_processor_type\": \"ViTImageProcessor\", \"do_center_crop\": false,"
                  "\"crop_size\": 9, \"size\": {\"height\": 32, \"width\": 32}, \"image_mean\": 0.5}",
                  NULL),
        0);
    check_prepared(&p, "vit");
    snprintf(text, sizeof text,
             "{\"feature_extractor_type\": \"CLIPFeatureExtractor\", \"size\": 24, \"crop_size\": 24,"
             "\"resample\": 3, %s",
             CLIP_STATISTICS);
    assert_int_equal(read_prep(&p, text, NULL), 0);
    check_prepared(&p, "clip");
    snprintf(text, sizeof text,
             "{\"image_processor_type\": \"XImageProcessor\", \"size\": {\"shortest_edge\": 20},"
             "\"do_center_crop\": true, \"crop_size\": {\"height\": 25, \"width\": 30}, %s",
             CLIP_STATISTICS);
    assert_int_equal(read_prep(&p, text, NULL), 0);
    check_prepared(&p, "pad");
    assert_int_equal(read_prep(&p,
                               "{\"do_resize\": false, \"do_center_crop\": true, \"do_normalize\": false,"
                               "\"crop_size\": {\"height\": 51, \"width\": 40}}",
                               NULL),
                     0);
    check_prepared(&p, "odd");
}

static void what_would_give_other_pixels_is_refused(void **state)
{
    static const struct {
        const char *text, *says;
        int code;
    } bad[] = {
        {"[1]", "object", SHOAL_EINVALID},
        {"{\"do_pad\": true}", "do_pad", SHOAL_EUNSUPPORTED},
        {"{\"crop_pct\": 0.875}", "crop_pct", SHOAL_EUNSUPPORTED},
        {"{\"size\": {\"longest_edge\": 224}}", "longest_edge", SHOAL_EUNSUPPORTED},
        {"{\"size\": {\"height\": 224}}", "height and width", SHOAL_EINVALID},
        {"{\"size\": {\"height\": 224, \"width\": 224, \"shortest_edge\": 2}}", "shortest_edge",
         SHOAL_EINVALID},
        {"{\"size\": 0}", "size", SHOAL_EINVALID},
        {"{\"size\": \"224\"}", "size", SHOAL_EINVALID},
        {"{\"resample\": 6}", "resample", SHOAL_EINVALID},
        {"{\"do_center_crop\": true}", "crop_size", SHOAL_EINVALID},
        {"{\"image_mean\": [0.5, 0.5]}", "image_mean", SHOAL_EINVALID},
        {"{\"image_std\": [0.5, 0, 0.5]}", "image_std", SHOAL_EINVALID},
        {"{\"image_processor_type\": \"DeiTImageProcessor\"}", "image_mean", SHOAL_EINVALID},
        {"{\"rescale_factor\": 0}", "rescale_factor", SHOAL_EINVALID},
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        image_prep p = {.width = 77};
        shoal_err err = {0};
        int rc = read_prep(&p, bad[i].text, &err);
        if (rc != bad[i].code || !strstr(err.message, bad[i].says))
            fail_msg("%s: %d %s", bad[i].text, rc, err.message);
        assert_int_equal(p.width, 77);
    }
}

static void strips_are_bounded(void **state)
{
    image_prep p;
    uint32_t w = 7, h = 7;
    assert_int_equal(read_prep(&p, "{\"size\": {\"shortest_edge\": 224}}", NULL), 0);
    shoal_err err = {0};
    assert_int_equal(image_prep_shape(&p, 65500, 1, &w, &h, &err), SHOAL_ELIMIT);
    assert_int_equal(image_prep_shape(&p, 10000, 100, &w, &h, &err), SHOAL_ELIMIT);
    assert_int_equal(image_prep_shape(&p, 1, 0, &w, &h, &err), SHOAL_EINVALID);
    assert_int_equal(w, 7);
    assert_int_equal(image_prep_shape(&p, 200, 100, &w, &h, &err), 0);
    assert_int_equal(w, 448);
    assert_int_equal(h, 224);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_have_the_references_pixels),
        cmocka_unit_test(resizing_has_the_references_pixels),
        cmocka_unit_test(deep_and_interlaced_files_are_read),
        cmocka_unit_test(what_is_no_image_is_refused_with_a_way_out),
        cmocka_unit_test(every_cut_file_is_refused),
        cmocka_unit_test(too_large_an_image_is_refused_before_it_costs),
        cmocka_unit_test(a_chunk_that_lies_about_its_length_costs_nothing),
        cmocka_unit_test(sizes_out_of_range_are_refused),
        cmocka_unit_test(prepared_images_are_the_references),
        cmocka_unit_test(what_would_give_other_pixels_is_refused),
        cmocka_unit_test(strips_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
