/* Bytes as a key file, and as a sealed turn: nothing but what was sealed here opens, whatever was changed in
 * it. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sessions/seal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char KEY[] = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    keyring read, k;
    shoal_err err;
    buf text = {0}, sealed = {0};
    bool old;
    if (keyring_parse(&read, (const char *)data, size, "keys", &err) == 0 &&
        (read.n == 0 || read.n > KEYRING_MAX))
        abort();
    if (keyring_parse(&k, KEY, sizeof KEY - 1, "keys", &err) != 0) return 0;
    if (seal_open(&text, &k, "place", 5, data, size, &old, &err) == 0) abort();
    if (seal_put(&sealed, &k, "place", 5, data, size, &err) == 0) {
        int rc = seal_open(&text, &k, "place", 5, sealed.data, sealed.len, &old, &err);
        if (rc == 0 ? text.len != size || (size && memcmp(text.data, data, size) != 0) : rc != SHOAL_ENOMEM)
            abort();
        for (size_t i = 0; i < size && i < sealed.len; i++) sealed.data[i] = (char)(sealed.data[i] ^ data[i]);
        bool same = true;
        for (size_t i = 0; i < size && i < sealed.len; i++) same = same && data[i] == 0;
        text.len = 0;
        if (!same && seal_open(&text, &k, "place", 5, sealed.data, sealed.len, &old, &err) == 0) abort();
    }
    buf_done(&text);
    buf_done(&sealed);
    return 0;
}
