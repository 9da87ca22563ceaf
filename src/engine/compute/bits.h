/* bits.h: a float as the 32 bits of its IEEE 754 form, and back. */
#ifndef COMPUTE_BITS_H
#define COMPUTE_BITS_H

#include <stdint.h>
#include <string.h>

static inline float float_of(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static inline uint32_t bits_of(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

#endif
