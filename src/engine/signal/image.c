#include "signal/image.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cur.h"
#include "base/progress.h"
#include "signal/image_internal.h"

void image_done(image *im)
{
    free(im->rgb);
    *im = (image){0};
}

int image_alloc(image *ret, uint32_t width, uint32_t height, size_t max_pixels, shoal_err *err)
{
    if (width == 0 || height == 0) return err_set(err, SHOAL_EFORMAT, "the image has no pixels");
    if (width > IMAGE_SIDE_MAX || height > IMAGE_SIDE_MAX)
        return err_set(err, SHOAL_ELIMIT, "the image is %u x %u pixels: a side may have at most %d", width,
                       height, IMAGE_SIDE_MAX);
    if ((size_t)width * height > max_pixels)
        return err_set(err, SHOAL_ELIMIT,
                       "the image is %u x %u pixels, more than the %zu that are taken: send it smaller",
                       width, height, max_pixels);
    uint8_t *rgb = malloc((size_t)width * height * 3);
    if (!rgb) return err_nomem(err);
    *ret = (image){rgb, width, height};
    return 0;
}

/* ---- orientation ------------------------------------------------------------------------------------ */

static uint32_t image_number(cur *c, size_t bytes, bool big)
{
    uint32_t v = 0;
    const uint8_t *p = cur_take(c, bytes);
    for (size_t i = 0; p && i < bytes; i++) v |= (uint32_t)p[i] << 8 * (big ? bytes - 1 - i : i);
    return v;
}

/* "II" or "MM", 42, offset of a directory: count u16, then entries of tag u16, type u16, count u32, value[4]
 * (TIFF 6.0). Orientation is tag 0x112, one SHORT. */
int image_exif_orientation(const uint8_t *tiff, size_t n)
{
    cur c = cur_over(tiff, n);
    const uint8_t *order = cur_take(&c, 2);
    if (!order || (memcmp(order, "II", 2) != 0 && memcmp(order, "MM", 2) != 0)) return 1;
    bool big = order[0] == 'M';
    if (image_number(&c, 2, big) != 42) return 1;
    uint32_t at = image_number(&c, 4, big);
    c = cur_over(tiff, n);
    cur_take(&c, at);
    for (uint32_t left = image_number(&c, 2, big); left > 0 && !c.failed; left--) {
        uint32_t tag = image_number(&c, 2, big), type = image_number(&c, 2, big),
                 count = image_number(&c, 4, big);
        uint32_t value = image_number(&c, 2, big);
        cur_take(&c, 2);
        if (tag != 0x112 || type != 3 || count != 1 || c.failed) continue;
        return value >= 1 && value <= 8 ? (int)value : 1;
    }
    return 1;
}

int image_orient(image *im, int orientation, shoal_err *err)
{
    static const bool flip_x[] = {0, 0, 1, 1, 0, 0, 0, 1, 1}, flip_y[] = {0, 0, 0, 1, 1, 0, 1, 1, 0};
    if (orientation == 1) return 0;
    bool turned = orientation >= 5;
    uint32_t w = turned ? im->height : im->width, h = turned ? im->width : im->height;
    image out = {0};
    int rc = image_alloc(&out, w, h, IMAGE_PIXELS_MAX, err);
    if (rc != 0) return rc;
    for (uint32_t y = 0; y < h; y++, progress_add(8 * (size_t)w))
        for (uint32_t x = 0; x < w; x++) {
            uint32_t sx = turned ? y : x, sy = turned ? x : y;
            if (flip_x[orientation]) sx = im->width - 1 - sx;
            if (flip_y[orientation]) sy = im->height - 1 - sy;
            memcpy(out.rgb + ((size_t)y * w + x) * 3, im->rgb + ((size_t)sy * im->width + sx) * 3, 3);
        }
    image_done(im);
    *im = out;
    return 0;
}

/* ---- which format ----------------------------------------------------------------------------------- */

static int image_refuse(const uint8_t *p, size_t n, shoal_err *err)
{
    static const struct {
        size_t at;
        const char *bytes, *name;
    } others[] = {{0, "GIF8", "GIF"}, {8, "WEBP", "WebP"},     {0, "BM", "BMP"},
                  {0, "II*", "TIFF"}, {4, "ftypheic", "HEIC"}, {4, "ftyp", "AVIF, HEIC or a video"},
                  {0, "<svg", "SVG"}, {0, "<?xml", "SVG"},     {0, "%PDF", "PDF"}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        size_t len = strlen(others[i].bytes);
        if (others[i].at + len <= n && memcmp(p + others[i].at, others[i].bytes, len) == 0)
            return err_set(err, SHOAL_EUNSUPPORTED,
                           "images in %s are not supported: convert it to PNG or JPEG", others[i].name);
    }
    return err_set(err, SHOAL_EUNSUPPORTED, "this is no image that is known: PNG and JPEG are");
}

bool image_is_png(const uint8_t *p, size_t n)
{
    return n >= 8 && memcmp(p, "\x89PNG\r\n\x1a\n", 8) == 0;
}

bool image_is_jpeg(const uint8_t *p, size_t n)
{
    return n >= 3 && memcmp(p, "\xff\xd8\xff", 3) == 0;
}

static image_limits settled(const image_limits *limits)
{
    image_limits l = limits ? *limits : (image_limits){0};
    if (l.max_pixels == 0 || l.max_pixels > IMAGE_PIXELS_MAX) l.max_pixels = IMAGE_PIXELS_MAX;
    if (l.max_work == 0) l.max_work = IMAGE_WORK_MAX;
    if (l.max_pixels > l.max_work) l.max_pixels = l.max_work;
    return l;
}

int image_decode(image *ret, const void *bytes, size_t n, const image_limits *limits, shoal_err *err)
{
    const uint8_t *p = bytes;
    image_limits l = settled(limits);
    image im = {0};
    int rc, orientation = 1;
    if (n == 0) return err_set(err, SHOAL_EFORMAT, "the image file is empty");
    if (image_is_png(p, n))
        rc = image_png(&im, &orientation, p, n, &l, err);
    else if (image_is_jpeg(p, n))
        rc = image_jpeg(&im, &orientation, p, n, &l, err);
    else
        return image_refuse(p, n, err);
    if (rc == 0) rc = image_orient(&im, orientation, err);
    if (rc != 0) {
        image_done(&im);
        return rc;
    }
    *ret = im;
    return 0;
}

/* ---- what it will cost -------------------------------------------------------------------------------- */

#define PROGRESSIVE_SCANS 8 /* of usual files: 10, most of them of one component */

static size_t cost_of(uint32_t width, uint32_t height, size_t scans)
{
    return (size_t)width * height * scans;
}

/* Segments of marker, length u16 and body up to the frame header: SOF0 to SOF15 but DHT, JPG and DAC, whose
 * body is precision u8, height u16, width u16 (T.81, B.2.2). */
static size_t jpeg_cost(const uint8_t *bytes, size_t n)
{
    cur c = cur_over(bytes, n);
    cur_take(&c, 2);
    while (!c.failed) {
        const uint8_t *m = cur_take(&c, 2);
        if (!m || m[0] != 0xFF) return 0;
        uint32_t length = image_number(&c, 2, true);
        if (m[1] >= 0xC0 && m[1] <= 0xCF && m[1] != 0xC4 && m[1] != 0xC8 && m[1] != 0xCC) {
            cur_take(&c, 1);
            uint32_t height = image_number(&c, 2, true), width = image_number(&c, 2, true);
            return cost_of(width, height, (m[1] & 3) == 2 ? PROGRESSIVE_SCANS : 1);
        }
        if (length < 2) return 0;
        cur_take(&c, length - 2);
    }
    return 0;
}

/* IHDR is the first chunk: length u32, "IHDR", width u32, height u32 (PNG, 11.2.2). */
static size_t png_cost(const uint8_t *bytes, size_t n)
{
    cur c = cur_over(bytes, n);
    cur_take(&c, 16);
    uint32_t width = image_number(&c, 4, true), height = image_number(&c, 4, true);
    return c.failed ? 0 : cost_of(width, height, 1);
}

size_t image_cost(const void *bytes, size_t n)
{
    if (image_is_png(bytes, n)) return png_cost(bytes, n);
    return image_is_jpeg(bytes, n) ? jpeg_cost(bytes, n) : 0;
}
