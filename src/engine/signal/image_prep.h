/* image_prep.h: an image as the pixels[3][height][width] that a vision model takes.
 *
 * The steps and their numbers come from the model's preprocessor_config.json, in its order: resize, cut out
 * the centre, scale, subtract the mean and divide by the deviation of each channel.
 *
 *     image_prep p;
 *     image_prep_default(&p, 224);                  // when there is no such file: ViT's
 *     image_prep_read(&p, config, &err);
 *     image_prep_shape(&p, im.width, im.height, &w, &h, &err);
 *     float *px = malloc(3 * w * h * sizeof *px);
 *     image_prep_run(&p, &im, px, &err);
 *
 * Equal to the reference processors that stand on Pillow, bit for bit in the pixels and within one rounding
 * in the floats; those on torchvision differ by a step of 255 here and there. */
#ifndef SIGNAL_IMAGE_PREP_H
#define SIGNAL_IMAGE_PREP_H

#include <stdbool.h>

#include <jansson.h>

#include "signal/image.h"

#define IMAGE_PREP_SIDE_MAX 4096 /* of what comes out */

typedef struct image_prep {
    bool resize, crop, rescale, normalize;
    uint32_t width, height; /* to resize to, or both 0: */
    uint32_t shortest;      /* the shorter side becomes this, the other keeps the proportion */
    image_filter filter;
    uint32_t crop_width, crop_height; /* of the centre; what the image lacks is black */
    double factor;                    /* pixels (0..255) are multiplied by it */
    double mean[3], std[3];           /* red, green, blue */
} image_prep;

/* ViT's: square of side x side, bilinear, 1/255, mean and deviation 0.5. */
void image_prep_default(image_prep *ret, uint32_t side);

/* What a preprocessor_config.json says, old spellings included; *ret is untouched on failure. A step that is
 * asked for and unknown here (padding, flipped channels, crop_pct, tiling) is SHOAL_EUNSUPPORTED with its
 * name. */
int image_prep_read(image_prep *ret, const json_t *config, shoal_err *err);

/* The shape that comes out for an image of width x height. SHOAL_ELIMIT when a side is over
 * IMAGE_PREP_SIDE_MAX: a strip of an image whose shorter side is enlarged. */
int image_prep_shape(const image_prep *p, uint32_t width, uint32_t height, uint32_t *ret_width,
                     uint32_t *ret_height, shoal_err *err);

/* out[3][height][width] of image_prep_shape. */
int image_prep_run(const image_prep *p, const image *im, float *out, shoal_err *err);

#endif
