/* A SentencePiece .model of any bytes; what loads must encode and decode a fixed text, with spans within it.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "tokenizer/tok_spm.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char text[] =
    "Hello na\xC3\xAFve  world \xE2\x96\x81 <s> \xE6\x97\xA5\xF0\x9F\x98\x80 12\n\x65\xCC\x81\xEF\xAC\x81";

static void use(const tokenizer *t)
{
    encoding e = {0};
    buf out = {0};
    if (tokenizer_encode(t, text, sizeof text - 1, "two", 3, TOK_ADD_SPECIAL | TOK_PARSE_SPECIAL, 0, &e,
                         NULL) == 0) {
        for (size_t i = 0; i < e.n; i++)
            if (e.spans[i].begin > e.spans[i].end || e.spans[i].end >= sizeof text) abort();
        tokenizer_decode(t, e.ids, e.n, true, &out);
    }
    buf_done(&out);
    encoding_done(&e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    arena *mem = arena_new(0);
    tokenizer *t = mem ? tok_new() : NULL;
    spm_vocab v;
    if (t && tok_spm_parse(&v, mem, data, size, 0, "fuzz", NULL) == 0 &&
        tok_spm_build(t, &v, "fuzz", NULL) == 0) {
        tok_seg_find_bytes(&t->seg);
        if (tok_wrap_templates(t, v.bos, v.eos, -1, 0, NULL) == 0 && tok_seal(t, NULL) == 0) use(t);
    }
    tokenizer_free(t);
    arena_free(mem);
    return 0;
}
