/* Bytes as the beginning of an image of packed weights. Digests would stop every change of a seed at once, so
 * they are put right in a copy: what is accepted then still names no byte outside the payload. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "model/packed/packed.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { INDEX_DIGEST_AT = 152, HEAD_DIGEST_AT = 344 };

static void put_right(uint8_t *p, size_t size)
{
    uint32_t n;
    sha256_digest d;
    if (size < PACKED_HEAD_BYTES) return;
    memcpy(p, "SHOALPK\n\2\0\0\0", 12);
    memcpy(&n, p + 12, sizeof n);
    if ((size - PACKED_HEAD_BYTES) / PACKED_ITEM_BYTES >= n) {
        sha256_of(p + PACKED_HEAD_BYTES, (size_t)n * PACKED_ITEM_BYTES, &d);
        memcpy(p + INDEX_DIGEST_AT, d.bytes, sizeof d.bytes);
    }
    sha256_of(p, HEAD_DIGEST_AT, &d);
    memcpy(p + HEAD_DIGEST_AT, d.bytes, sizeof d.bytes);
}

static void check_item(const weights_item *it, const uint8_t *payload, uint64_t bytes)
{
    const uint8_t *end = payload + bytes;
    if (it->rows == 0 || it->cols == 0 || it->codes_bytes == 0) abort();
    if (it->codes < payload || it->codes > end || it->codes_bytes > (size_t)(end - it->codes)) abort();
    if (!it->scales_bytes) return;
    if (it->scales < it->codes + it->codes_bytes || it->scales_bytes > (size_t)(end - it->scales)) abort();
}

static void read_it(const uint8_t *data, size_t size)
{
    packed_head h;
    weights_item *items;
    shoal_err err;
    uint8_t *payload = (uint8_t *)64; /* nothing reads there */
    if (packed_read_head(&h, data, size, &err) != 0) return;
    if (h.payload_at < PACKED_HEAD_BYTES + h.n_items * PACKED_ITEM_BYTES) abort();
    if (packed_read_index(&items, &h, data, size, payload, &err) != 0) return;
    for (size_t i = 0; i < h.n_items; i++) check_item(&items[i], payload, h.payload_bytes);
    free(items);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    read_it(data, size);
    uint8_t *copy = malloc(size ? size : 1);
    if (!copy) return 0;
    if (size) memcpy(copy, data, size);
    put_right(copy, size);
    read_it(copy, size);
    free(copy);
    return 0;
}
