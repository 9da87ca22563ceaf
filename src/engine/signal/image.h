/* image.h: PNG and JPEG files in memory as RGB pixels, and resizing.
 *
 *     image im = {0};
 *     image_decode(&im, bytes, n, NULL, &err);
 *     image_resize(&small, &im, 224, 224, IMAGE_BILINEAR, &err);
 *
 * Values are those that Pillow gives for Image.open, ImageOps.exif_transpose, convert("RGB") and resize,
 * since the models' reference processors stand on it: grey and palette become RGB, alpha is dropped (not laid
 * over white, which would show models pixels that they were not trained on), gamma and colour profiles are
 * ignored, CMYK is converted plainly, and the EXIF orientation is applied. Of 16-bit samples the high byte is
 * taken, for grey too, where Pillow cuts everything over 255 to white.
 *
 * Decoding and resizing are whole-number arithmetic: the same pixels on every machine. (libjpeg-turbo's
 * vector code equals its C code for the slow integer transform and smooth upsampling, which are used here.)
 */
#ifndef SIGNAL_IMAGE_H
#define SIGNAL_IMAGE_H

#include <stddef.h>
#include <stdint.h>

#include "base/cancel.h"

#define IMAGE_SIDE_MAX   65500 /* as in JPEG */
#define IMAGE_PIXELS_MAX ((size_t)64 << 20)

typedef struct image {
    uint8_t *rgb; /* [height][width][3], owned */
    uint32_t width, height;
} image;

void image_done(image *im); /* accepts a zeroed one */

/* Decoding work is pixels times scans: a progressive JPEG goes over all of its pixels again and again (a scan
 * of some components counts as their share of the samples), another file once. */
#define IMAGE_WORK_MAX ((size_t)64 << 20)

/* Zero means the default in brackets. Of a pixel the decoders need 3 to 12 bytes of memory, all of it after
 * the limit has been checked against the file's header. */
typedef struct image_limits {
    size_t max_pixels;   /* [IMAGE_PIXELS_MAX, and at most that] */
    size_t max_work;     /* [IMAGE_WORK_MAX]; no image has more pixels either */
    cancel_check cancel; /* asked before each row of pixels, and each row of blocks of a scan [never] */
} image_limits;

/* SHOAL_EUNSUPPORTED for another format, SHOAL_EFORMAT for a damaged or cut file, SHOAL_ELIMIT for too large
 * an image. Pixel data behind the last row is not unpacked. */
int image_decode(image *ret, const void *bytes, size_t n, const image_limits *limits, shoal_err *err);
/* About how much work that will be, by the header alone; 0: no header that is known. */
size_t image_cost(const void *bytes, size_t n);

/* X(enum, Pillow's number and the "resample" of preprocessor_config.json, name, support in pixels) */
#define IMAGE_FILTER_TABLE(X)             \
    X(IMAGE_NEAREST, 0, "nearest", 0.0)   \
    X(IMAGE_LANCZOS, 1, "lanczos", 3.0)   \
    X(IMAGE_BILINEAR, 2, "bilinear", 1.0) \
    X(IMAGE_BICUBIC, 3, "bicubic", 2.0)   \
    X(IMAGE_BOX, 4, "box", 0.5)           \
    X(IMAGE_HAMMING, 5, "hamming", 1.0)
typedef enum image_filter {
#define IMAGE_FILTER_ENUM(e, number, name, support) e = number,
    IMAGE_FILTER_TABLE(IMAGE_FILTER_ENUM)
#undef IMAGE_FILTER_ENUM
} image_filter;

/* Pillow's resize, weights in 22 bits after the point, first along rows, then along columns: when it shrinks,
 * a filter grows with the step between pixels. Sides are 1..IMAGE_SIDE_MAX, else SHOAL_EINVALID. */
int image_resize(image *ret, const image *src, uint32_t width, uint32_t height, image_filter filter,
                 shoal_err *err);

#endif
