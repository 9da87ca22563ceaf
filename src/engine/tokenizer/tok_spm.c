/* tok_spm.c: a tokenizer from a SentencePiece vocabulary; see tok_spm.h. */
#include "tokenizer/tok_spm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define META "\xE2\x96\x81"

static bool is_added(const spm_piece *p)
{
    return p->type == SPM_CONTROL || p->type == SPM_USER || p->type == SPM_UNKNOWN;
}

static int put_pieces(tokenizer *t, const spm_vocab *v, const char *what, shoal_err *err)
{
    if (v->n == 0 || v->n > TOK_MAX_TOKENS)
        return err_set(err, SHOAL_EFORMAT, "%s: 1 to %d pieces are expected", what, TOK_MAX_TOKENS);
    t->added = arena_alloc(t->mem, (v->n + 1) * sizeof *t->added);
    if (!t->added) return err_nomem(err);
    for (size_t id = 0; id < v->n; id++) {
        const spm_piece *p = &v->pieces[id];
        int rc = tok_vocab_put(&t->voc, (int32_t)id, p->text, p->len);
        if (rc == SHOAL_ENOMEM) return err_nomem(err);
        if (rc) return err_set(err, SHOAL_EFORMAT, "%s: piece %zu is too long", what, id);
        if (!is_added(p) || p->len == 0) continue;
        t->added[t->n_added++] = (added_token){.text = arena_strndup(t->mem, p->text, p->len),
                                               .len = p->len,
                                               .id = (int32_t)id,
                                               .special = p->type != SPM_USER};
        if (!t->added[t->n_added - 1].text) return err_nomem(err);
    }
    return 0;
}

typedef struct scored {
    float score;
    uint32_t id;
} scored;

static int by_score(const void *a, const void *b)
{
    const scored *x = a, *y = b;
    return x->score != y->score ? (x->score > y->score ? -1 : 1) : (x->id > y->id) - (x->id < y->id);
}

/* BPE joins the pair whose piece scores best; equal scores share a rank. What stands for no text is joined
 * never. */
static int rank_scores(segmenter *g, const spm_vocab *v, shoal_err *err)
{
    scored *all = calloc(v->n, sizeof *all);
    g->ranks = calloc(v->n, sizeof *g->ranks);
    if (!all || !g->ranks) {
        free(all);
        return err_nomem(err);
    }
    for (size_t i = 0; i < v->n; i++) {
        float s = v->pieces[i].score;
        all[i] = (scored){s == s ? s : 0, (uint32_t)i};
    }
    qsort(all, v->n, sizeof *all, by_score);
    uint32_t rank = 0;
    for (size_t i = 0; i < v->n; i++) {
        if (i && all[i].score != all[i - 1].score) rank++;
        spm_type type = v->pieces[all[i].id].type;
        bool joins = type != SPM_CONTROL && type != SPM_BYTE;
        g->ranks[all[i].id] = joins ? rank : UINT32_MAX;
    }
    free(all);
    return 0;
}

/* Log likelihoods; a character that is no piece costs ten more than the worst (kUnkPenalty). */
static int keep_scores(tokenizer *t, const spm_vocab *v, const char *what, shoal_err *err)
{
    segmenter *g = &t->seg;
    uint8_t *left_out = calloc(v->n, 1);
    g->scores = calloc(v->n, sizeof *g->scores);
    double worst = INFINITY;
    int rc = left_out && g->scores ? 0 : err_nomem(err);
    for (size_t i = 0; rc == 0 && i < v->n; i++) {
        const spm_piece *p = &v->pieces[i];
        left_out[i] = p->type != SPM_NORMAL && p->type != SPM_USER;
        g->scores[i] = p->type == SPM_NORMAL ? (double)p->score : 0;
        if (!isfinite(g->scores[i]))
            rc = err_set(err, SHOAL_EFORMAT, "%s: the score of piece %zu is no number", what, i);
        if (p->type == SPM_NORMAL && g->scores[i] < worst) worst = g->scores[i];
    }
    g->unk_score = (isfinite(worst) ? worst : 0) - 10;
    if (rc == 0) rc = tok_build_trie(t, v->n, left_out, err);
    free(left_out);
    return rc;
}

static int add_spaces(tokenizer *t, const spm_vocab *v, const char *what, shoal_err *err)
{
    norm_step *s = tok_add_norm(t);
    if (!s) return err_nomem(err);
    s->kind = NORM_SPM;
    s->spm = v->spaces;
    return charsmap_parse(&s->map, t->mem, v->charsmap, v->charsmap ? v->charsmap_len : 0, what, err);
}

int tok_spm_build(tokenizer *t, const spm_vocab *v, const char *what, shoal_err *err)
{
    segmenter *g = &t->seg;
    g->kind = v->bpe ? SEG_SPM : SEG_UNIGRAM;
    g->unk = v->unk;
    g->fuse_unk = true;
    for (size_t i = 0; i < v->n && !g->byte_fallback; i++) g->byte_fallback = v->pieces[i].type == SPM_BYTE;
    t->bos = v->bos;
    t->eos = v->eos;
    t->dec = (decoder){.kind = DEC_BYTES, .strip_first = v->spaces.dummy, .strip_char = ' '};
    dec_step *meta = tok_add_dec(t, DSTEP_REPLACE);
    *meta = (dec_step){.kind = DSTEP_REPLACE, .from = META, .to = " ", .from_len = 3, .to_len = 1};
    tok_add_dec(t, DSTEP_BYTE_FALLBACK);
    int rc = put_pieces(t, v, what, err);
    if (rc == 0) rc = v->bpe ? rank_scores(g, v, err) : keep_scores(t, v, what, err);
    return rc ? rc : add_spaces(t, v, what, err);
}
