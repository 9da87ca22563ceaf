#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/progress.h"
#include "compute/compute.h"
#include "signal/image_internal.h"

#define WEIGHT_BITS 22 /* after the point: 8 bits of pixel and two of sum fit in front of them */
#define PI          3.14159265358979323846

/* ---- filters: x in source pixels, or in output pixels where the image shrinks ----------------------- */

static double sinc(double x)
{
    double s, c;
    if (x == 0) return 1;
    math_sincos(x * PI, &s, &c);
    return s / (x * PI);
}

static double bilinear(double x)
{
    x = fabs(x);
    return x < 1 ? 1 - x : 0;
}

/* R. Keys, Cubic Convolution (1981), a = -1/2. */
static double bicubic(double x)
{
    const double a = -0.5;
    x = fabs(x);
    if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}

static double lanczos(double x)
{
    return x >= -3 && x < 3 ? sinc(x) * sinc(x / 3) : 0;
}

static double hamming(double x)
{
    double s, c;
    x = fabs(x);
    if (x >= 1) return 0;
    math_sincos(x * PI, &s, &c);
    return sinc(x) * (0.54 + 0.46 * c);
}

static double filter_at(image_filter f, double x)
{
    switch (f) {
    case IMAGE_LANCZOS: return lanczos(x);
    case IMAGE_BICUBIC: return bicubic(x);
    case IMAGE_BOX: return x > -0.5 && x <= 0.5 ? 1 : 0;
    case IMAGE_HAMMING: return hamming(x);
    default: return bilinear(x);
    }
}

static double filter_support(image_filter f)
{
    static const double supports[] = {
#define FILTER_SUPPORT(e, number, name, support) [e] = support,
        IMAGE_FILTER_TABLE(FILTER_SUPPORT)
#undef FILTER_SUPPORT
    };
    return supports[f];
}

/* ---- weights of one direction ----------------------------------------------------------------------- */

typedef struct weights {
    size_t n, width; /* outputs; room for the weights of one */
    struct span {
        uint32_t first, n;
    } * spans;     /* [n] */
    int32_t *bits; /* [n][width] */
} weights;

static void weights_done(weights *w)
{
    free(w->spans);
    free(w->bits);
}

static void weigh_output(weights *w, size_t i, size_t n_in, image_filter f, double *work)
{
    double scale = (double)n_in / (double)w->n, grown = scale < 1 ? 1 : scale,
           support = filter_support(f) * grown;
    double centre = ((double)i + 0.5) * scale, sum = 0, step = 1 / grown;
    double from = centre - support + 0.5, to = centre + support + 0.5;
    size_t first = from > 0 ? (size_t)from : 0, end = to < (double)n_in ? (size_t)to : n_in;
    for (size_t k = first; k < end; k++) {
        work[k - first] = filter_at(f, ((double)k - centre + 0.5) * step);
        sum += work[k - first];
    }
    for (size_t k = 0; k < end - first; k++) {
        double v = (sum != 0 ? work[k] / sum : work[k]) * (1 << WEIGHT_BITS);
        w->bits[i * w->width + k] = (int32_t)(v < 0 ? v - 0.5 : v + 0.5);
    }
    w->spans[i] = (struct span){(uint32_t)first, (uint32_t)(end - first)};
}

static int weights_make(weights *w, size_t n_in, size_t n_out, image_filter f, shoal_err *err)
{
    double scale = (double)n_in / (double)n_out, support = filter_support(f) * (scale < 1 ? 1 : scale);
    w->n = n_out;
    w->width = (size_t)ceil(support) * 2 + 1;
    if (w->width > n_in) w->width = n_in;
    size_t all;
    if (size_mul(n_out, w->width, &all)) return err_nomem(err);
    double *work = calloc(w->width, sizeof *work);
    w->spans = calloc(n_out, sizeof *w->spans);
    w->bits = calloc(all, sizeof *w->bits);
    int rc = work && w->spans && w->bits ? 0 : err_nomem(err);
    for (size_t i = 0; rc == 0 && i < n_out; i++) weigh_output(w, i, n_in, f, work);
    free(work);
    return rc;
}

/* One pixel: n source pixels, `step` bytes apart. */
static void mix_pixel(uint8_t *to, const uint8_t *from, size_t step, const int32_t *w, size_t n)
{
    int32_t sum[3] = {1 << (WEIGHT_BITS - 1), 1 << (WEIGHT_BITS - 1), 1 << (WEIGHT_BITS - 1)};
    for (size_t k = 0; k < n; k++, from += step)
        for (size_t c = 0; c < 3; c++) sum[c] += from[c] * w[k];
    for (size_t c = 0; c < 3; c++) {
        int32_t v = sum[c] >> WEIGHT_BITS;
        to[c] = (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
    }
}

/* Along rows when the width changes, else along columns. */
static int resize_once(image *ret, const image *src, uint32_t width, uint32_t height, image_filter f,
                       shoal_err *err)
{
    bool across = width != src->width;
    weights w = {0};
    image out = {0};
    int rc =
        across ? weights_make(&w, src->width, width, f, err) : weights_make(&w, src->height, height, f, err);
    if (rc == 0) rc = image_alloc(&out, width, height, (size_t)-1, err);
    size_t line = (size_t)src->width * 3, step = across ? 3 : line;
    for (size_t y = 0; rc == 0 && y < height; y++, progress_add(3 * width * w.width))
        for (size_t x = 0; x < width; x++) {
            size_t i = across ? x : y, first = w.spans[i].first;
            const uint8_t *from = src->rgb + (across ? y : first) * line + (across ? first : x) * 3;
            mix_pixel(out.rgb + (y * width + x) * 3, from, step, w.bits + i * w.width, w.spans[i].n);
        }
    weights_done(&w);
    if (rc == 0) *ret = out;
    return rc;
}

/* ---- nearest, and the whole ------------------------------------------------------------------------- */

/* Positions are summed step by step, as Pillow does, whose rounding shows at large sizes. */
static int resize_nearest(image *ret, const image *src, uint32_t width, uint32_t height, shoal_err *err)
{
    image out = {0};
    int rc = image_alloc(&out, width, height, (size_t)-1, err);
    if (rc != 0) return rc;
    double dx = (double)src->width / width, dy = (double)src->height / height, at_y = dy * 0.5;
    for (size_t y = 0; y < height; y++, at_y += dy) {
        progress_add(8 * (size_t)width);
        size_t sy = at_y < src->height - 1 ? (size_t)at_y : src->height - 1;
        double at_x = dx * 0.5;
        for (size_t x = 0; x < width; x++, at_x += dx) {
            size_t sx = at_x < src->width - 1 ? (size_t)at_x : src->width - 1;
            memcpy(out.rgb + (y * width + x) * 3, src->rgb + (sy * src->width + sx) * 3, 3);
        }
    }
    *ret = out;
    return 0;
}

static int copy_image(image *ret, const image *src, shoal_err *err)
{
    image out = {0};
    int rc = image_alloc(&out, src->width, src->height, (size_t)-1, err);
    if (rc != 0) return rc;
    memcpy(out.rgb, src->rgb, (size_t)src->width * src->height * 3);
    *ret = out;
    return 0;
}

int image_resize(image *ret, const image *src, uint32_t width, uint32_t height, image_filter filter,
                 shoal_err *err)
{
    if (width < 1 || height < 1 || width > IMAGE_SIDE_MAX || height > IMAGE_SIDE_MAX ||
        (size_t)width * height > IMAGE_PIXELS_MAX || (size_t)width * src->height > IMAGE_PIXELS_MAX * 4)
        return err_set(err, SHOAL_EINVALID, "an image of %u x %u pixels cannot be made %u x %u", src->width,
                       src->height, width, height);
    if (width == src->width && height == src->height) return copy_image(ret, src, err);
    if (filter == IMAGE_NEAREST) return resize_nearest(ret, src, width, height, err);
    if (height == src->height || width == src->width)
        return resize_once(ret, src, width, height, filter, err);
    image half = {0};
    int rc = resize_once(&half, src, width, src->height, filter, err);
    if (rc == 0) rc = resize_once(ret, &half, width, height, filter, err);
    image_done(&half);
    return rc;
}
