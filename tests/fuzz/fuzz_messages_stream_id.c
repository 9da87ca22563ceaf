/* Bytes as a Last-Event-ID: what is taken is written back as it came. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "messages/stream_id.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    shoal_err err;
    stream_id s;
    buf out = {0};
    if (stream_id_parse(&s, (const char *)data, size, &err) != 0) return 0;
    if (s.n_choices == 0 || s.n_choices > STREAM_CHOICES_MAX) abort();
    stream_id_put(&out, &s);
    if (!out.failed && (out.len != size || memcmp(out.data, data, size) != 0)) abort();
    buf_done(&out);
    return 0;
}
