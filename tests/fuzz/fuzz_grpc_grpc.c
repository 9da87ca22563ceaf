/* gRPC frames give the same messages whatever the pieces; timeouts and messages parse within bounds. */
#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "grpc/grpc.h"
#include "grpc/grpc_frame.h"

typedef struct digest {
    size_t n_messages, n_bytes;
    int rc;
} digest;

static digest read_frames(const uint8_t *data, size_t size, size_t piece)
{
    grpc_reader r = {.max_message = 1000, .takes_gzip = true};
    digest d = {0};
    for (size_t at = 0; at < size && d.rc >= 0; at += piece) {
        const uint8_t *msg;
        size_t n;
        grpc_reader_feed(&r, data + at, size - at < piece ? size - at : piece);
        while ((d.rc = grpc_reader_next(&r, &msg, &n)) == 1) {
            d.n_messages++;
            d.n_bytes += n;
            if (n > 1000 || (n && msg[n - 1] == msg[0] + 256)) abort();
        }
    }
    grpc_reader_done(&r);
    return d;
}

static void read_text(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1), format[16];
    uint64_t ns;
    buf decoded = {0}, encoded = {0}, again = {0};
    if (!holds(text)) return;
    memcpy(text, data, size);
    text[size] = '\0';
    if (grpc_timeout_parse(text, &ns)) grpc_timeout_format(ns, format);
    grpc_message_decode(&decoded, text);
    if (decoded.len > strlen(text)) abort();
    grpc_message_encode(&encoded, decoded.data ? decoded.data : "");
    grpc_message_decode(&again, encoded.data ? encoded.data : "");
    holds(again.len == decoded.len && (!again.len || memcmp(again.data, decoded.data, again.len) == 0));
    grpc_is_content_type(text);
    buf_done(&decoded);
    buf_done(&encoded);
    buf_done(&again);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2) return 0;
    digest whole = read_frames(data + 1, size - 1, size),
           pieces = read_frames(data + 1, size - 1, data[0] ? data[0] : 1);
    holds(whole.n_messages == pieces.n_messages && whole.n_bytes == pieces.n_bytes && whole.rc == pieces.rc);
    read_text(data + 1, size - 1);
    return 0;
}
