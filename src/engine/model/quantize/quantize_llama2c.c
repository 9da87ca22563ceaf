/* quantize_llama2c.c: llama2.c's tokenizer.bin in the words of GGUF: pieces with scores, joined best first.
 */
#include <string.h>

#include "base/cur.h"
#include "base/file.h"
#include "model/model_priv.h"
#include "model/quantize/quantize_meta.h"

enum { KIND_NORMAL = 1, KIND_UNKNOWN = 2, KIND_CONTROL = 3, KIND_BYTE = 6, FIRST_PIECE = 3 };

typedef struct pieces {
    const char **texts;
    float *scores;
    int32_t *kinds;
} pieces;

/* The file has blanks where SentencePiece has U+2581. */
static char *spell(arena *mem, const char *s, size_t n)
{
    buf b = {0};
    for (size_t i = 0; i < n; i++)
        if (s[i] == ' ')
            buf_puts(&b, "\xE2\x96\x81");
        else
            buf_putc(&b, s[i]);
    char *text = b.failed ? NULL : arena_strndup(mem, b.data ? b.data : "", b.len);
    buf_done(&b);
    return text;
}

static int read_piece(cur *c, arena *mem, pieces *p, size_t id, const char *path, shoal_err *err)
{
    static const char *const first[FIRST_PIECE] = {"<unk>", "<s>", "</s>"};
    p->scores[id] = cur_f32(c);
    size_t n = cur_u32(c);
    const char *s = (const char *)cur_take(c, n);
    if (!s) return err_set(err, SHOAL_EFORMAT, "%s: piece %zu is beyond the file's end", path, id);
    bool byte = n == 6 && strncmp(s, "<0x", 3) == 0 && s[5] == '>';
    p->kinds[id] = id == 0 ? KIND_UNKNOWN : id < FIRST_PIECE ? KIND_CONTROL : byte ? KIND_BYTE : KIND_NORMAL;
    p->texts[id] = id < FIRST_PIECE ? first[id] : spell(mem, s, n);
    return p->texts[id] ? 0 : err_nomem(err);
}

static void put_pieces(gguf_out *o, const pieces *p, size_t n)
{
    gguf_out_str(o, "tokenizer.ggml.model", "llama");
    gguf_out_str(o, "tokenizer.ggml.pre", "default");
    gguf_out_strings(o, "tokenizer.ggml.tokens", p->texts, NULL, n);
    gguf_out_array(o, "tokenizer.ggml.scores", GGUF_F32, p->scores, n);
    gguf_out_array(o, "tokenizer.ggml.token_type", GGUF_I32, p->kinds, n);
    gguf_out_u32(o, "tokenizer.ggml.unknown_token_id", 0);
    gguf_out_u32(o, "tokenizer.ggml.bos_token_id", 1);
    gguf_out_u32(o, "tokenizer.ggml.eos_token_id", 2);
    gguf_out_bool(o, "tokenizer.ggml.add_bos_token", true);
    gguf_out_bool(o, "tokenizer.ggml.add_eos_token", false);
}

int quantize_put_llama2c(gguf_out *o, const char *path, size_t n_vocab, shoal_err *err)
{
    buf text = {0};
    arena *mem = arena_new(0);
    if (!mem) return err_nomem(err);
    pieces p = {.texts = arena_alloc(mem, n_vocab * sizeof *p.texts + 1),
                .scores = arena_alloc(mem, n_vocab * sizeof *p.scores + 1),
                .kinds = arena_alloc(mem, n_vocab * sizeof *p.kinds + 1)};
    int rc = p.texts && p.scores && p.kinds ? file_read(&text, path, MODEL_JSON_MAX, err) : err_nomem(err);
    cur c = cur_over(text.data, text.len);
    cur_u32(&c); /* the longest piece */
    for (size_t i = 0; rc == 0 && i < n_vocab; i++) rc = read_piece(&c, mem, &p, i, path, err);
    if (rc == 0) put_pieces(o, &p, n_vocab);
    buf_done(&text);
    arena_free(mem);
    return rc;
}
