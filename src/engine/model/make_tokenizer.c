/* make_tokenizer.c: a vocabulary of made-up pieces. Every piece of several letters is another piece and one
 * letter more, so that joining pairs reaches all of them, and any text has tokens: bytes, or [UNK]. */
#include <stdio.h>
#include <string.h>

#include "model/files/gguf_writer.h"
#include "model/make_model.h"

#define META "\xE2\x96\x81" /* begins a word */

enum { KIND_NORMAL = 1, KIND_UNKNOWN = 2, KIND_CONTROL = 3, KIND_UNUSED = 5, KIND_BYTE = 6 };
enum { VOCAB_LEAST = 400, LETTERS = 26 };

typedef struct words {
    arena *mem;
    size_t n, n_vocab;
    const char **texts;
    float *scores;
    int32_t *kinds;
} words;

/* Whatever comes behind the last place is left out. */
static int make_tokenizer_add(words *w, int32_t kind, const char *text)
{
    if (w->n == w->n_vocab) return 0;
    w->scores[w->n] = kind == KIND_NORMAL ? -(float)w->n : 0;
    w->kinds[w->n] = kind;
    w->texts[w->n] = arena_strdup(w->mem, text);
    return w->texts[w->n++] ? 0 : SHOAL_ENOMEM;
}

/* The v-th word of n letters. */
static void spell(char *out, size_t v, size_t n)
{
    out[n] = '\0';
    while (n-- > 0) {
        out[n] = (char)('a' + v % LETTERS);
        v /= LETTERS;
    }
}

/* Words of one letter, of two, of three, ..., each as a beginning and as what goes on, until the vocabulary
 * is full. Six letters are 300 million, more than any vocabulary. */
static int add_words(words *w)
{
    int rc = 0;
    for (size_t n = 1, count = LETTERS; n <= 6 && w->n < w->n_vocab; n++, count *= LETTERS) {
        for (size_t v = 0; rc == 0 && v < count && w->n < w->n_vocab; v++) {
            char text[16], *plain = text + sizeof META - 1;
            memcpy(text, META, sizeof META - 1);
            spell(plain, v, n);
            rc = make_tokenizer_add(w, KIND_NORMAL, text);
            if (rc == 0 && n > 1)
                rc = make_tokenizer_add(w, KIND_NORMAL, plain); /* single ones are there already */
        }
    }
    return rc;
}

static int add_singles(words *w)
{
    char text[2] = "";
    int rc = 0;
    for (int c = '!'; rc == 0 && c <= '~'; c++) {
        text[0] = (char)c;
        rc = make_tokenizer_add(w, KIND_NORMAL, text);
    }
    return rc;
}

static int fill_pieces(words *w)
{
    char text[8];
    int rc = make_tokenizer_add(w, KIND_UNKNOWN, "<unk>");
    if (rc == 0) rc = make_tokenizer_add(w, KIND_CONTROL, "<s>");
    if (rc == 0) rc = make_tokenizer_add(w, KIND_CONTROL, "</s>");
    for (int i = 0; rc == 0 && i < 256; i++) {
        snprintf(text, sizeof text, "<0x%02X>", (unsigned)i);
        rc = make_tokenizer_add(w, KIND_BYTE, text);
    }
    if (rc == 0) rc = make_tokenizer_add(w, KIND_NORMAL, META);
    if (rc == 0) rc = add_singles(w);
    return rc == 0 ? add_words(w) : rc;
}

static int fill_wordpieces(words *w)
{
    static const char *const control[] = {"[UNK]", "[CLS]", "[SEP]", "[MASK]"};
    char text[32];
    int rc = make_tokenizer_add(w, KIND_CONTROL, "[PAD]");
    for (int i = 0; rc == 0 && i < 99; i++) {
        snprintf(text, sizeof text, "[unused%d]", i);
        rc = make_tokenizer_add(w, KIND_UNUSED, text);
    }
    for (int i = 0; rc == 0 && i < 4; i++) rc = make_tokenizer_add(w, KIND_CONTROL, control[i]);
    for (int c = '!'; rc == 0 && c <= '~'; c++) { /* small letters come with the words */
        snprintf(text, sizeof text, META "%c", c);
        if (c < 'a' || c > 'z') rc = make_tokenizer_add(w, KIND_NORMAL, text);
    }
    if (rc == 0) rc = add_singles(w);
    return rc == 0 ? add_words(w) : rc;
}

static void put_pieces(gguf_out *o)
{
    gguf_out_u32(o, "tokenizer.ggml.unknown_token_id", 0);
    gguf_out_u32(o, "tokenizer.ggml.bos_token_id", 1);
    gguf_out_u32(o, "tokenizer.ggml.eos_token_id", 2);
    gguf_out_bool(o, "tokenizer.ggml.add_bos_token", true);
    gguf_out_bool(o, "tokenizer.ggml.add_eos_token", false);
    gguf_out_bool(o, "tokenizer.ggml.add_space_prefix", true);
}

static void put_wordpieces(gguf_out *o)
{
    gguf_out_u32(o, "tokenizer.ggml.padding_token_id", 0);
    gguf_out_u32(o, "tokenizer.ggml.unknown_token_id", 100);
    gguf_out_u32(o, "tokenizer.ggml.bos_token_id", 101);
    gguf_out_u32(o, "tokenizer.ggml.cls_token_id", 101);
    gguf_out_u32(o, "tokenizer.ggml.eos_token_id", 102);
    gguf_out_u32(o, "tokenizer.ggml.seperator_token_id", 102);
    gguf_out_u32(o, "tokenizer.ggml.mask_token_id", 103);
    gguf_out_bool(o, "tokenizer.ggml.add_bos_token", true);
    gguf_out_bool(o, "tokenizer.ggml.add_eos_token", true);
    gguf_out_bool(o, "tokenizer.ggml.add_sep_token", true);
}

int make_tokenizer(gguf_out *o, size_t n_vocab, bool wordpiece, shoal_err *err)
{
    if (n_vocab < VOCAB_LEAST)
        return err_set(err, SHOAL_EINVALID, "a vocabulary of %zu pieces is too small: %d are needed", n_vocab,
                       VOCAB_LEAST);
    words w = {.mem = arena_new(1 << 20), .n_vocab = n_vocab};
    if (!w.mem) return err_nomem(err);
    w.texts = arena_alloc(w.mem, n_vocab * sizeof *w.texts);
    w.scores = arena_alloc(w.mem, n_vocab * sizeof *w.scores);
    w.kinds = arena_alloc(w.mem, n_vocab * sizeof *w.kinds);
    int rc = w.texts && w.scores && w.kinds ? 0 : SHOAL_ENOMEM;
    if (rc == 0) rc = wordpiece ? fill_wordpieces(&w) : fill_pieces(&w);
    if (rc == 0) {
        gguf_out_str(o, "tokenizer.ggml.model", wordpiece ? "bert" : "llama");
        gguf_out_str(o, "tokenizer.ggml.pre", "default");
        gguf_out_strings(o, "tokenizer.ggml.tokens", w.texts, NULL, w.n);
        gguf_out_array(o, "tokenizer.ggml.scores", GGUF_F32, w.scores, w.n);
        gguf_out_array(o, "tokenizer.ggml.token_type", GGUF_I32, w.kinds, w.n);
        wordpiece ? put_wordpieces(o) : put_pieces(o);
    }
    arena_free(w.mem);
    return rc == 0 ? 0 : err_nomem(err);
}
