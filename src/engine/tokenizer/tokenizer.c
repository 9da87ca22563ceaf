/* tokenizer.c: making, sealing and freeing a tokenizer. Loaders fill in what tok_new made;
 * after tok_seal it is immutable, and any thread may use it. */
#include "tokenizer/tokenizer.h"

#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "tokenizer/tok_internal.h"

tokenizer *tok_new(void)
{
    tokenizer *t = calloc(1, sizeof *t);
    if (!t) return NULL;
    t->mem = arena_new(0);
    t->bos = t->eos = t->seg.unk = -1;
    t->seg.voc = &t->voc;
    if (t->mem) return t;
    free(t);
    return NULL;
}

void tokenizer_free(tokenizer *t)
{
    if (!t) return;
    for (size_t i = 0; i < t->n_norm; i++) tok_regex_free(t->norm[i].re);
    for (size_t i = 0; i < t->n_pre; i++) tok_regex_free(t->pre[i].re);
    for (size_t i = 0; i < t->dec.n_steps; i++) tok_regex_free(t->dec.steps[i].re);
    tok_vocab_done(&t->voc);
    buf_done(&t->bytes_pool);
    free(t->norm);
    free(t->pre);
    free(t->seg.merges);
    free(t->seg.ranks);
    free(t->seg.scores);
    free(t->seg.foreign);
    tok_trie_done(&t->seg.trie);
    free(t->bytes);
    free(t->special);
    free(t->raw.sorted);
    free(t->normalized.sorted);
    arena_free(t->mem);
    free(t);
}

norm_step *tok_add_norm(tokenizer *t)
{
    norm_step *p = realloc(t->norm, (t->n_norm + 1) * sizeof *p);
    if (!p) return NULL;
    t->norm = p;
    p[t->n_norm] = (norm_step){0};
    return &p[t->n_norm++];
}

pre_step *tok_add_pre(tokenizer *t)
{
    pre_step *p = realloc(t->pre, (t->n_pre + 1) * sizeof *p);
    if (!p) return NULL;
    t->pre = p;
    p[t->n_pre] = (pre_step){0};
    return &p[t->n_pre++];
}

static void put_item(tpl_item *items, size_t *n, tpl_kind kind, int32_t id, uint8_t type)
{
    if (kind == TPL_TOKEN && id < 0) return;
    items[(*n)++] = (tpl_item){kind, id, type};
}

int tok_wrap_templates(tokenizer *t, int32_t head, int32_t tail, int32_t mid, uint8_t type_b, shoal_err *err)
{
    t->single = arena_alloc(t->mem, 3 * sizeof *t->single);
    t->pair = arena_alloc(t->mem, 6 * sizeof *t->pair);
    if (!t->single || !t->pair) return err_nomem(err);
    t->n_single = t->n_pair = 0;
    put_item(t->single, &t->n_single, TPL_TOKEN, head, 0);
    put_item(t->single, &t->n_single, TPL_A, -1, 0);
    put_item(t->single, &t->n_single, TPL_TOKEN, tail, 0);
    put_item(t->pair, &t->n_pair, TPL_TOKEN, head, 0);
    put_item(t->pair, &t->n_pair, TPL_A, -1, 0);
    put_item(t->pair, &t->n_pair, TPL_TOKEN, tail, 0);
    put_item(t->pair, &t->n_pair, TPL_TOKEN, mid, type_b);
    put_item(t->pair, &t->n_pair, TPL_B, -1, type_b);
    put_item(t->pair, &t->n_pair, TPL_TOKEN, tail, type_b);
    return 0;
}

/* The templates with nothing but the texts: the second has type 1. */
static int plain_templates(tokenizer *t, shoal_err *err)
{
    return tok_wrap_templates(t, -1, -1, -1, 1, err);
}

static int by_text(const void *a, const void *b)
{
    const added_token *x = *(const added_token *const *)a, *y = *(const added_token *const *)b;
    size_t n = x->len < y->len ? x->len : y->len;
    int c = memcmp(x->text, y->text, n);
    return c ? c : (x->len > y->len) - (x->len < y->len);
}

static int build_set(tokenizer *t, added_set *set, bool normalized)
{
    set->sorted = calloc(t->n_added + 1, sizeof *set->sorted);
    if (!set->sorted) return SHOAL_ENOMEM;
    for (size_t i = 0; i < t->n_added; i++) {
        const added_token *a = &t->added[i];
        if (a->normalized != normalized || a->len == 0) continue;
        set->sorted[set->n++] = a;
        set->starts[(uint8_t)a->text[0]] = true;
    }
    qsort(set->sorted, set->n, sizeof *set->sorted, by_text);
    return 0;
}

static int normalise_added(tokenizer *t, added_token *a, shoal_err *err)
{
    tok_text text = {.s = a->text, .len = a->len};
    tok_match m = {0};
    int rc = tok_norm_run(t->norm, t->n_norm, &text, &m, err);
    if (rc == 0 && text.own) {
        a->text = arena_strndup(t->mem, text.s, text.len);
        a->len = text.len;
        if (!a->text) rc = err_nomem(err);
    }
    tok_text_done(&text);
    tok_match_done(&m);
    return rc;
}

int tok_build_trie(tokenizer *t, size_t n, const uint8_t *left_out, shoal_err *err)
{
    trie_key *keys = calloc(n + 1, sizeof *keys);
    size_t n_keys = 0, len;
    if (!keys) return err_nomem(err);
    for (size_t id = 0; id < n && id < t->voc.n; id++) {
        bool greedy = t->seg.kind == SEG_GREEDY; /* looks for what tokens stand for, not how they are spelt */
        const char *s = greedy ? tokenizer_bytes(t, (int32_t)id, &len, &(bool){false})
                               : tok_vocab_text(&t->voc, (int32_t)id, &len);
        if (!s || !len || (left_out && left_out[id])) continue;
        /* Unigram steps from character to character. */
        if (t->seg.kind == SEG_UNIGRAM && (len > TOK_MAX_UNIGRAM || !utf8_valid(s, len, NULL))) continue;
        keys[n_keys++] = (trie_key){s, (uint32_t)len, (int32_t)id};
    }
    int rc = tok_trie_build(&t->seg.trie, keys, n_keys);
    free(keys);
    if (rc == SHOAL_ELIMIT) return err_set(err, rc, "the vocabulary's texts are too long together");
    return rc ? err_nomem(err) : 0;
}

int tok_seal(tokenizer *t, shoal_err *err)
{
    int rc = 0;
    t->special = calloc(t->voc.n + 1, 1);
    if (!t->special) return err_nomem(err);
    for (size_t i = 0; rc == 0 && i < t->n_added; i++) {
        t->special[t->added[i].id] = t->added[i].special;
        if (t->added[i].normalized) rc = normalise_added(t, &t->added[i], err);
    }
    if (rc == 0 && (build_set(t, &t->raw, false) || build_set(t, &t->normalized, true))) rc = err_nomem(err);
    if (rc == 0 && !t->n_single) rc = plain_templates(t, err);
    return rc ? rc : tok_build_bytes(t, err);
}

size_t tokenizer_vocab_size(const tokenizer *t)
{
    return t->voc.n;
}

const char *tokenizer_piece(const tokenizer *t, int32_t id, size_t *ret_len)
{
    return tok_vocab_text(&t->voc, id, ret_len);
}

int32_t tokenizer_find(const tokenizer *t, const char *piece, size_t len)
{
    return tok_vocab_find(&t->voc, piece, len);
}

int32_t tokenizer_bos(const tokenizer *t)
{
    return t->bos;
}

int32_t tokenizer_eos(const tokenizer *t)
{
    return t->eos;
}
