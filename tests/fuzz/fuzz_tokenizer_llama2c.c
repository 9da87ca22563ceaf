/* llama2.c's tokenizer.bin of any bytes, after two that say how many pieces it has. */
#include <stddef.h>
#include <stdint.h>

#include "tokenizer/tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char text[] = "Once upon a time\n \xE6\x97\xA5";
    tokenizer *t = NULL;
    encoding e = {0};
    buf out = {0};
    if (size < 2) return 0;
    if (tokenizer_from_llama2c(&t, data + 2, size - 2, (size_t)data[0] | (size_t)data[1] << 8, "fuzz", NULL))
        return 0;
    if (tokenizer_encode(t, text, sizeof text - 1, NULL, 0, TOK_ADD_SPECIAL, 0, &e, NULL) == 0)
        tokenizer_decode(t, e.ids, e.n, true, &out);
    buf_done(&out);
    encoding_done(&e);
    tokenizer_free(t);
    return 0;
}
