/* image_internal.h: the decoders behind image_decode. */
#ifndef SIGNAL_IMAGE_INTERNAL_H
#define SIGNAL_IMAGE_INTERNAL_H

#include <stdbool.h>

#include "signal/image.h"

/* Room for width x height pixels when that is within max_pixels. */
int image_alloc(image *ret, uint32_t width, uint32_t height, size_t max_pixels, shoal_err *err);

/* *ret_orientation is 1..8 as EXIF has it, 1 where the file does not say. */
int image_png(image *ret, int *ret_orientation, const uint8_t *bytes, size_t n, const image_limits *limits,
              shoal_err *err);
int image_jpeg(image *ret, int *ret_orientation, const uint8_t *bytes, size_t n, const image_limits *limits,
               shoal_err *err);

bool image_is_png(const uint8_t *p, size_t n);
bool image_is_jpeg(const uint8_t *p, size_t n);

/* The orientation in a TIFF header and its first directory; 1 when there is none or it is damaged. */
int image_exif_orientation(const uint8_t *tiff, size_t n);

/* Turn and mirror as the orientation says. */
int image_orient(image *im, int orientation, shoal_err *err);

#endif
