/* tok_llama2c.c: llama2.c's tokenizer.bin: SentencePiece's pieces and scores, without their types. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cur.h"
#include "tokenizer/tok_spm.h"

/* Piece 0 is unknown, 1 and 2 begin and end a text ("\n<s>\n" in its writer's spelling), "<0x..>" are bytes.
 */
static spm_type type_of(size_t id, const char *s, size_t n)
{
    if (id == 0) return SPM_UNKNOWN;
    if (id < 3) return SPM_CONTROL;
    return n == 6 && !memcmp(s, "<0x", 3) && s[5] == '>' ? SPM_BYTE : SPM_NORMAL;
}

/* The writer turned "▁" into ' '; the vocabulary has it back. */
static char *spelt(arena *mem, const char *s, size_t n, size_t *ret_len)
{
    char *out = arena_alloc(mem, 3 * n + 1);
    size_t len = 0;
    for (size_t i = 0; out && i < n; i++) {
        if (s[i] == ' ') {
            memcpy(out + len, "\xE2\x96\x81", 3);
            len += 3;
        } else {
            out[len++] = s[i];
        }
    }
    *ret_len = len;
    return out;
}

static int read_pieces(spm_vocab *v, arena *mem, cur *c, const char *what, shoal_err *err)
{
    static const char *const names[] = {"<unk>", "<s>", "</s>"};
    cur_u32(c); /* the longest length, which the pieces tell */
    for (size_t id = 0; id < v->n; id++) {
        spm_piece *p = &v->pieces[id];
        float score = cur_f32(c);
        uint32_t n = cur_u32(c);
        const char *s = n <= TOK_MAX_PIECE / 3 ? (const char *)cur_take(c, n) : NULL;
        if (!s)
            return err_set(err, SHOAL_EFORMAT, "%s: piece %zu of %zu is beyond the file's end", what, id,
                           v->n);
        p->type = type_of(id, s, n);
        p->score = isfinite(score) ? score : 0;
        p->text = id < 3 ? names[id] : spelt(mem, s, n, &p->len);
        if (id < 3) p->len = strlen(names[id]);
        if (!p->text) return err_nomem(err);
    }
    if (cur_left(c))
        return err_set(err, SHOAL_EFORMAT, "%s: %zu bytes follow the last of %zu pieces", what, cur_left(c),
                       v->n);
    return 0;
}

static int build(tokenizer *t, cur *c, size_t n_vocab, const char *what, shoal_err *err)
{
    spm_vocab v = {.n = n_vocab, .bpe = true, .spaces = {.dummy = true}, .unk = 0, .bos = 1, .eos = 2};
    if (n_vocab < 3 || n_vocab > TOK_MAX_TOKENS || n_vocab > cur_left(c) / 8)
        return err_set(err, SHOAL_EFORMAT, "%s: %zu pieces cannot be in %zu bytes", what, n_vocab,
                       cur_left(c));
    v.pieces = arena_alloc(t->mem, n_vocab * sizeof *v.pieces);
    int rc = v.pieces ? read_pieces(&v, t->mem, c, what, err) : err_nomem(err);
    if (rc == 0) rc = tok_spm_build(t, &v, what, err);
    if (rc == 0) rc = tok_wrap_templates(t, 1, -1, -1, 1, err);
    if (rc) return rc;
    tok_seg_find_bytes(&t->seg);
    return tok_seal(t, err);
}

int tokenizer_from_llama2c(tokenizer **ret, const void *data, size_t len, size_t n_vocab, const char *what,
                           shoal_err *err)
{
    tokenizer *t = tok_new();
    cur c = cur_over(data, len);
    if (!t) return err_nomem(err);
    int rc = build(t, &c, n_vocab, what, err);
    if (rc == 0)
        *ret = t;
    else
        tokenizer_free(t);
    return rc;
}
