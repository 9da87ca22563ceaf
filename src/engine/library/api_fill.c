/* api_fill.c: shoal_fill_mask; see include/shoal.h. */
#include <stdlib.h>
#include <string.h>

#include "library/api_impl.h"
#include "infer/decoding/mask_slots.h"

/* One word for one gap. */
static int put_guess(const shoal_model *m, const mask_slots *g, size_t gap, const mask_guess *from,
                     shoal_guess *ret)
{
    const tokenizer *t = model_tokenizer(m->m);
    buf token = {0}, sequence = {0};
    /* An empty token is a text, too. */
    bool made = mask_slots_word(t, from->id, &token) == 0 &&
                mask_slots_write(g, t, gap, from->id, &sequence) == 0 && buf_reserve(&token, 0) == 0 &&
                buf_reserve(&sequence, 0) == 0;
    *ret = (shoal_guess){.id = from->id, .score = from->score};
    if (made) {
        ret->token = buf_take(&token);
        ret->sequence = buf_take(&sequence);
    }
    buf_done(&token);
    buf_done(&sequence);
    return made && ret->token && ret->sequence ? 0 : SHOAL_ENOMEM;
}

/* rows[g->n][n_vocab] of logits; they become scores. */
static int library_api_fill(shoal_model *m, const mask_slots *g, float *rows, size_t k, shoal_filling *ret,
                            shoal_err *err)
{
    size_t n_vocab = model_get_config(m->m)->n_vocab;
    mask_guess *best = calloc(k, sizeof *best);
    shoal_filling f = {.n_gaps = g->n, .n_top = k, .n_tokens = g->enc.n};
    f.guesses = calloc(g->n * k, sizeof *f.guesses);
    int rc = best && f.guesses ? 0 : SHOAL_ENOMEM;
    for (size_t i = 0; rc == 0 && i < g->n; i++) {
        engine_word_scores(m->e, rows + i * n_vocab);
        mask_slots_best(rows + i * n_vocab, n_vocab, k, best);
        for (size_t j = 0; rc == 0 && j < k; j++) rc = put_guess(m, g, i, &best[j], &f.guesses[i * k + j]);
    }
    free(best);
    if (rc == 0) {
        *ret = f;
        return 0;
    }
    shoal_filling_done(&f);
    return err_nomem(err);
}

static int do_fill(shoal_model *m, const char *text, size_t top, shoal_filling *ret, shoal_err *err)
{
    mask_slots g = {0};
    api_waiter w;
    api_waiter_init(&w);
    size_t n_vocab = model_get_config(m->m)->n_vocab, k = top == 0 ? GAPS_TOP : top;
    int rc = api_need_task(m, TASK_FILL_MASK, err);
    if (rc == 0) rc = api_need_tokenizer(m, err);
    if (rc == 0 && top > GAPS_TOP_MAX)
        rc = err_set(err, SHOAL_EINVALID, "%zu words for a gap: ask for %d at most", top, GAPS_TOP_MAX);
    if (rc == 0 && !text) rc = err_set(err, SHOAL_EINVALID, "the text is NULL");
    if (rc == 0) rc = mask_slots_encode(&g, model_tokenizer(m->m), text, err);
    if (rc == 0) {
        enc_request r = {
            .ids = g.enc.ids, .type_ids = g.enc.type_ids, .n_ids = g.enc.n, .at = g.at, .n_at = g.n};
        rc = api_encode_run(m, &r, &w, err);
    }
    if (rc == 0) rc = library_api_fill(m, &g, w.values, k < n_vocab ? k : n_vocab, ret, err);
    mask_slots_done(&g);
    api_waiter_done(&w);
    return rc;
}

int shoal_fill_mask(shoal_model *m, const char *text, size_t top, shoal_filling *ret, shoal_err *err)
{
    api_enter(m);
    return api_leave(m, do_fill(m, text, top, ret, err));
}

void shoal_filling_done(shoal_filling *f)
{
    for (size_t i = 0; f->guesses && i < f->n_gaps * f->n_top; i++) {
        free(f->guesses[i].token);
        free(f->guesses[i].sequence);
    }
    free(f->guesses);
    *f = (shoal_filling){0};
}
