/* Bytes as an image; what decodes is resized and prepared too. */
#include <stdint.h>

#include "memory.h"
#include "signal/image_prep.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    image im = {0}, small = {0};
    image_limits limits = {.max_pixels = 1 << 18};
    shoal_err err;
    if (image_decode(&im, data, size, &limits, &err) != 0) return 0;
    static float out[3 * 16 * 16];
    image_prep p;
    image_prep_default(&p, 16);
    p.filter = (image_filter)(im.rgb[0] % 6);
    holds(image_resize(&small, &im, im.width / 2 + 1, im.rgb[0] % 40 + 1, p.filter, NULL) == 0);
    holds(image_prep_run(&p, &im, out, NULL) == 0);
    image_done(&small);
    image_done(&im);
    return 0;
}
