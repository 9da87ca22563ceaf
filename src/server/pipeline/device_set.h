/* device_set.h: some of a home's devices, by their number in its list. */
#ifndef PIPELINE_DEVICE_SET_H
#define PIPELINE_DEVICE_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pipeline/device.h"

typedef struct device_set {
    uint64_t bits[DEVICES_MAX / 64];
} device_set;

static inline void device_set_add(device_set *s, size_t i)
{
    s->bits[i / 64] |= (uint64_t)1 << (i % 64);
}
static inline bool device_set_has(const device_set *s, size_t i)
{
    return s->bits[i / 64] >> (i % 64) & 1;
}
static inline void device_set_join(device_set *s, const device_set *more)
{
    for (size_t i = 0; i < DEVICES_MAX / 64; i++) s->bits[i] |= more->bits[i];
}
/* How many devices are in it. */
static inline size_t device_set_count(const device_set *s)
{
    size_t n = 0;
    for (size_t i = 0; i < DEVICES_MAX / 64; i++) n += (size_t)__builtin_popcountll(s->bits[i]);
    return n;
}

/* The first device of the set; SIZE_MAX when it is empty. */
static inline size_t device_set_first(const device_set *s)
{
    for (size_t i = 0; i < DEVICES_MAX; i++)
        if (device_set_has(s, i)) return i;
    return SIZE_MAX;
}

/* Take all of `gone` out of the set. */
static inline void device_set_drop_all(device_set *s, const device_set *gone)
{
    for (size_t i = 0; i < DEVICES_MAX / 64; i++) s->bits[i] &= ~gone->bits[i];
}

#endif
