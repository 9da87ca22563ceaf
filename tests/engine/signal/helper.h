/* helper.h: files, tensors and relative errors for the tests of src/engine/signal. */
#ifndef TESTS_SIGNAL_HELPER_H
#define TESTS_SIGNAL_HELPER_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/file.h"
#include "json/json.h"
#include "compute/compute.h"

#define DATA(path)  SHOAL_SOURCE_DIR "/tests/data/signal/" path
#define COUNT_OF(a) (sizeof(a) / sizeof *(a))

static inline buf read_whole(const char *path)
{
    buf b = {0};
    shoal_err err = {0};
    if (file_read(&b, path, 1 << 26, &err) != 0) fail_msg("%s", err.message);
    return b;
}

/* Tensor `name` of a safetensors file as floats, n of them; free() it. int16 is divided by 32768. The files
 * are our own, so that little is checked. */
static inline float *load_tensor(const char *path, const char *name, size_t *ret_n)
{
    buf b = read_whole(path);
    uint64_t header = 0;
    memcpy(&header, b.data, sizeof header);
    json_t *j = NULL;
    if (json_parse(&j, b.data + 8, header, path, NULL) != 0) fail_msg("%s has no header", path);
    const json_t *t = json_object_get(j, name), *offsets = json_object_get(t, "data_offsets");
    if (!t) fail_msg("%s has no %s", path, name);
    const char *type = json_string_value(json_object_get(t, "dtype"));
    size_t from = (size_t)json_integer_value(json_array_get(offsets, 0));
    size_t bytes = (size_t)json_integer_value(json_array_get(offsets, 1)) - from;
    const char *data = b.data + 8 + header + from;
    size_t size = strcmp(type, "F32") == 0 ? 4 : strcmp(type, "U8") == 0 ? 1 : 2, n = bytes / size;
    float *out = malloc(n * sizeof *out + 1);
    assert_non_null(out);
    for (size_t i = 0; i < n; i++) {
        uint16_t u = 0;
        if (size == 2) memcpy(&u, data + 2 * i, 2);
        if (size == 4) memcpy(&out[i], data + 4 * i, 4);
        if (size == 1) out[i] = (float)(uint8_t)data[i];
        if (size == 2) out[i] = type[0] == 'I' ? (float)(int16_t)u / 32768.0f : f16_to_f32(u);
    }
    json_decref(j);
    buf_done(&b);
    *ret_n = n;
    return out;
}

/* |a - b| / |b| */
static inline double relative(const float *a, const float *b, size_t n)
{
    double d = 0, r = 0;
    for (size_t i = 0; i < n; i++) {
        d += ((double)a[i] - b[i]) * ((double)a[i] - b[i]);
        r += (double)b[i] * b[i];
    }
    return sqrt(d / r);
}

#endif
