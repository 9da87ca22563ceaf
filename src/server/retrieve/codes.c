/* codes.c: see codes.h. */
#include "retrieve/codes.h"

#include <math.h>
#include <string.h>

bool codes_of(const float *x, size_t d, int8_t *codes, float *ret_scale)
{
    double squares = 0;
    float most = 0;
    for (size_t i = 0; i < d; i++) {
        squares += (double)x[i] * (double)x[i];
        most = fmaxf(most, fabsf(x[i]));
    }
    *ret_scale = 0;
    memset(codes, 0, d);
    if (!(squares > 0) || !isfinite(squares) || most < 0x1p-60f) return false;
    for (size_t i = 0; i < d; i++) codes[i] = (int8_t)lrintf(x[i] / most * 127.0f);
    *ret_scale = (float)((double)most / 127.0 / sqrt(squares));
    return true;
}
