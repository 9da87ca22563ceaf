/* stage_rows.h: rows of the stream as bytes between stages. Pure.
 *
 *     f32    exact, so that a network in stages makes the bytes of the whole one
 *     f16    half the bytes
 *     int8   about a quarter: blocks of 32 numbers, their scale as F16 and a signed byte each
 *
 * What is not finite stays so in f32 and f16; in int8 its whole block becomes NaN. Finite numbers stay finite
 * in f16: those beyond its range become its largest. */
#ifndef BACKEND_STAGE_ROWS_H
#define BACKEND_STAGE_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum { ROWS_F32, ROWS_F16, ROWS_INT8 } rows_wire; /* as StageWire in stage.proto */

/* "f32", "f16" or "int8". */
bool rows_wire_parse(const char *name, rows_wire *ret);
const char *rows_wire_name(rows_wire w);
/* Bytes of one row; 0 when there is no such wire or the width is absurd. */
size_t rows_wire_bytes(rows_wire w, size_t n_embd);
/* rows[n][n_embd] to bytes[n * rows_wire_bytes] and back. */
void rows_wire_put(rows_wire w, const float *rows, size_t n, size_t n_embd, uint8_t *bytes);
void rows_wire_get(rows_wire w, const uint8_t *bytes, size_t n, size_t n_embd, float *rows);
/* Are they all finite numbers? bytes[n * rows_wire_bytes]. */
bool rows_wire_finite(rows_wire w, const uint8_t *bytes, size_t n, size_t n_embd);

#endif
