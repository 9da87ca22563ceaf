/* A tokenizer.json of any bytes; what loads must encode and decode a fixed text. */
#include <stddef.h>
#include <stdint.h>

#include "tokenizer/tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char text[] =
        "Hello na\xC3\xAFve  world's <s> [CLS] \xE6\x97\xA5\xF0\x9F\x98\x80 12,345\n\x65\xCC\x81";
    tokenizer *t = NULL;
    encoding e = {0};
    buf out = {0};
    if (tokenizer_from_json(&t, (const char *)data, size, NULL, 0, "fuzz", NULL)) return 0;
    unsigned flags = TOK_ADD_SPECIAL | TOK_PARSE_SPECIAL;
    if (tokenizer_encode(t, text, sizeof text - 1, "two", 3, flags, 0, &e, NULL) == 0) {
        tokenizer_decode(t, e.ids, e.n, true, &out);
        encoding_truncate(&e, 5);
    }
    buf_done(&out);
    encoding_done(&e);
    tokenizer_free(t);
    return 0;
}
