/* stage_rows.c: numbers to bytes and back; see stage_rows.h. Bytes are little-endian, as all machines here.
 */
#include "backend/stage_rows.h"

#include <math.h>
#include <string.h>

#include "compute/compute.h"

#define BLOCK     32
#define WIDTH_MAX (1u << 24)
#define F16_MAX   65504.0f

static const char *const names[] = {"f32", "f16", "int8"};

const char *rows_wire_name(rows_wire w)
{
    return names[w];
}

bool rows_wire_parse(const char *name, rows_wire *ret)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(name, names[i]) != 0) continue;
        *ret = (rows_wire)i;
        return true;
    }
    return false;
}

size_t rows_wire_bytes(rows_wire w, size_t n_embd)
{
    if (n_embd > WIDTH_MAX) return 0;
    switch (w) {
    case ROWS_F32: return n_embd * sizeof(float);
    case ROWS_F16: return n_embd * sizeof(uint16_t);
    case ROWS_INT8: return n_embd + (n_embd + BLOCK - 1) / BLOCK * sizeof(uint16_t);
    }
    return 0;
}

static void put_f16(uint8_t *bytes, float x)
{
    uint16_t h = f32_to_f16(x);
    memcpy(bytes, &h, sizeof h);
}

static float get_f16(const uint8_t *bytes)
{
    uint16_t h;
    memcpy(&h, bytes, sizeof h);
    return f16_to_f32(h);
}

static float within_f16(float x)
{
    return !isfinite(x) ? x : x > F16_MAX ? F16_MAX : x < -F16_MAX ? -F16_MAX : x;
}

/* The scale is rounded first, so that the bytes fit the scale that is sent; where that is too small for a
 * byte, the byte is the largest. */
static uint8_t *rows_put_block(uint8_t *bytes, const float *x, size_t n)
{
    float most = 0;
    bool finite = true;
    for (size_t i = 0; i < n; i++) {
        finite = finite && isfinite(x[i]);
        most = fmaxf(most, fabsf(x[i]));
    }
    put_f16(bytes, finite ? most / 127 : NAN);
    float scale = get_f16(bytes);
    bytes += sizeof(uint16_t);
    for (size_t i = 0; i < n; i++) {
        float q = finite && scale > 0 && isfinite(scale) ? rintf(x[i] / scale) : 1;
        if (scale == 0) q = 0;
        bytes[i] = (uint8_t)(int8_t)(q > 127 ? 127 : q < -127 ? -127 : q);
    }
    return bytes + n;
}

static const uint8_t *get_block(const uint8_t *bytes, float *x, size_t n)
{
    float scale = get_f16(bytes);
    bytes += sizeof(uint16_t);
    for (size_t i = 0; i < n; i++) x[i] = scale * (float)(int8_t)bytes[i];
    return bytes + n;
}

void rows_wire_put(rows_wire w, const float *rows, size_t n, size_t n_embd, uint8_t *bytes)
{
    if (n == 0) return;
    if (w == ROWS_F32) memcpy(bytes, rows, n * n_embd * sizeof *rows);
    for (size_t i = 0; w == ROWS_F16 && i < n * n_embd; i++) put_f16(bytes + 2 * i, within_f16(rows[i]));
    for (size_t r = 0; w == ROWS_INT8 && r < n; r++, rows += n_embd)
        for (size_t i = 0; i < n_embd; i += BLOCK)
            bytes = rows_put_block(bytes, rows + i, n_embd - i < BLOCK ? n_embd - i : BLOCK);
}

void rows_wire_get(rows_wire w, const uint8_t *bytes, size_t n, size_t n_embd, float *rows)
{
    if (n == 0) return;
    if (w == ROWS_F32) memcpy(rows, bytes, n * n_embd * sizeof *rows);
    for (size_t i = 0; w == ROWS_F16 && i < n * n_embd; i++) rows[i] = get_f16(bytes + 2 * i);
    for (size_t r = 0; w == ROWS_INT8 && r < n; r++, rows += n_embd)
        for (size_t i = 0; i < n_embd; i += BLOCK)
            bytes = get_block(bytes, rows + i, n_embd - i < BLOCK ? n_embd - i : BLOCK);
}

static bool finite_f32(const uint8_t *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        float x;
        memcpy(&x, bytes + i * sizeof x, sizeof x);
        if (!isfinite(x)) return false;
    }
    return true;
}

bool rows_wire_finite(rows_wire w, const uint8_t *bytes, size_t n, size_t n_embd)
{
    if (w == ROWS_F32) return finite_f32(bytes, n * n_embd);
    for (size_t i = 0; w == ROWS_F16 && i < n * n_embd; i++)
        if (!isfinite(get_f16(bytes + 2 * i))) return false;
    for (size_t r = 0; w == ROWS_INT8 && r < n; r++)
        for (size_t i = 0; i < n_embd; i += BLOCK) {
            if (!isfinite(get_f16(bytes))) return false;
            bytes += sizeof(uint16_t) + (n_embd - i < BLOCK ? n_embd - i : BLOCK);
        }
    return true;
}
