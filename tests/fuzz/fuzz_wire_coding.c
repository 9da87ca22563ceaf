/* Any bytes as a packed body, in pieces of any size, and as Accept-Encoding: no more may come out than was
 * allowed, and a text that was unpacked to its end is unpacked again from what is made of it. The first byte
 * chooses the coding, the second the size of the pieces. */
#include <stdlib.h>
#include <string.h>

#include "wire/coding.h"

enum { MOST = 1 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool keep(void *user, const uint8_t *bytes, size_t n)
{
    return buf_append(user, bytes, n) == 0;
}

static int unpack(coding c, const uint8_t *data, size_t size, size_t piece, buf *out)
{
    coding_reader *r;
    if (coding_reader_new(&r, c, MOST, NULL) != 0) return SHOAL_ENOMEM;
    int rc = 0;
    for (size_t at = 0; rc == 0 && at < size; at += piece)
        rc = coding_reader_add(r, data + at, size - at < piece ? size - at : piece, keep, out, NULL);
    if (rc == 0) rc = coding_reader_end(r, NULL);
    coding_reader_free(r);
    return rc;
}

static void check_round(coding c, const buf *plain)
{
    buf packed = {0}, again = {0};
    if (coding_pack(c, plain->data, plain->len, &packed) == 0) {
        int rc = unpack(c, (const uint8_t *)packed.data, packed.len, packed.len, &again);
        bool same = again.len == plain->len && memcmp(again.data, plain->data, plain->len) == 0;
        if (rc != SHOAL_ENOMEM && !again.failed && (rc != 0 || !same)) abort();
    }
    buf_done(&packed);
    buf_done(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 3) return 0;
    char accept[64] = {0};
    memcpy(accept, data, size < sizeof accept ? size : sizeof accept - 1);
    coding c = coding_choose(accept, CODING_ALL);
    if (coding_choose_for_stream(accept, CODING_ALL) && !c) abort();
    buf out = {0};
    c = data[0] & 1 ? CODING_ZSTD : CODING_GZIP;
    int rc = unpack(c, data + 2, size - 2, (size_t)data[1] + 1, &out);
    if (out.len > MOST) abort();
    if (rc == 0 && out.len) check_round(c, &out);
    buf_done(&out);
    return 0;
}
