/* service_fill.c: gaps of a text and the words for them; see service_fill.h. */
#include "worker/service_fill.h"

#include <stdlib.h>

int service_fill_prepare(service_fill *f, const worker *w, const Shoal__V1__TextInput *in, size_t top_k,
                         shoal_err *err)
{
    size_t n_vocab = w->backend.about.config->n_vocab;
    if (in->has_pair) return err_set(err, SHOAL_EINVALID, "gaps are filled in one text, not in a pair");
    if (top_k > GAPS_TOP_MAX)
        return err_set(err, SHOAL_EINVALID, "%zu words for a gap: ask for %d at most", top_k, GAPS_TOP_MAX);
    f->k = top_k ? top_k : GAPS_TOP;
    if (f->k > n_vocab) f->k = n_vocab;
    return mask_slots_encode(&f->gaps, w->backend.about.tokenizer, in->text, err);
}

int service_fill_take(const worker *w, service_fill *f, float *logits)
{
    size_t n_vocab = w->backend.about.config->n_vocab;
    f->guesses = calloc(f->gaps.n * f->k, sizeof *f->guesses);
    if (!f->guesses) return SHOAL_ENOMEM;
    for (size_t i = 0; i < f->gaps.n; i++) {
        w->backend.ops->word_scores(w->backend.state, logits + i * n_vocab);
        mask_slots_best(logits + i * n_vocab, n_vocab, f->k, f->guesses + i * f->k);
    }
    return 0;
}

static char *fill_kept(buf *b, arena *a)
{
    char *s = b->failed ? NULL : arena_strndup(a, b->data ? b->data : "", b->len);
    buf_done(b);
    return s;
}

static int fill_put_guess(const worker *w, const service_fill *f, size_t gap, const mask_guess *from,
                          arena *a, Shoal__V1__Guess *ret)
{
    const tokenizer *t = w->backend.about.tokenizer;
    buf token = {0}, sequence = {0};
    mask_slots_word(t, from->id, &token);
    mask_slots_write(&f->gaps, t, gap, from->id, &sequence);
    *ret = (Shoal__V1__Guess)SHOAL__V1__GUESS__INIT;
    ret->id = from->id;
    ret->score = from->score;
    ret->token = fill_kept(&token, a);
    ret->sequence = fill_kept(&sequence, a);
    return ret->token && ret->sequence ? 0 : SHOAL_ENOMEM;
}

static int fill_put_gap(const worker *w, const service_fill *f, size_t gap, arena *a, Shoal__V1__Gap *ret)
{
    Shoal__V1__Guess *guesses = arena_alloc(a, f->k * sizeof *guesses);
    *ret = (Shoal__V1__Gap)SHOAL__V1__GAP__INIT;
    ret->guesses = arena_alloc(a, f->k * sizeof *ret->guesses);
    if (!guesses || !ret->guesses) return SHOAL_ENOMEM;
    for (size_t i = 0; i < f->k; i++) {
        if (fill_put_guess(w, f, gap, &f->guesses[gap * f->k + i], a, &guesses[i])) return SHOAL_ENOMEM;
        ret->guesses[ret->n_guesses++] = &guesses[i];
    }
    return 0;
}

int service_fill_put(const worker *w, const service_fill *f, arena *a, Shoal__V1__Filling *ret)
{
    Shoal__V1__Gap *list = arena_alloc(a, f->gaps.n * sizeof *list);
    *ret = (Shoal__V1__Filling)SHOAL__V1__FILLING__INIT;
    ret->n_tokens = (uint32_t)f->gaps.enc.n;
    ret->gaps = arena_alloc(a, f->gaps.n * sizeof *ret->gaps);
    if (!list || !ret->gaps) return SHOAL_ENOMEM;
    for (size_t i = 0; i < f->gaps.n; i++) {
        if (fill_put_gap(w, f, i, a, &list[i])) return SHOAL_ENOMEM;
        ret->gaps[ret->n_gaps++] = &list[i];
    }
    return 0;
}

void service_fill_done(service_fill *f)
{
    mask_slots_done(&f->gaps);
    free(f->guesses);
    *f = (service_fill){0};
}
