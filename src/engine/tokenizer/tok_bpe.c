/* tok_bpe.c: BPE (Sennrich et al. 2016, arXiv:1508.07909) by ranks of merges or SentencePiece's scores; see
 * tok_bpe.h. Symbols are a linked list in one array; joining keeps the left one, so symbol 0 always begins
 * it. */
#include "tokenizer/tok_bpe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/progress.h"
#include "base/utf8.h"
#include "shoal.h"
#include "tokenizer/tok_letter.h"

enum { SHORT_WORD = 24, NONE = -1 };

int32_t tok_seg_own(const segmenter *s, int32_t id)
{
    return id >= 0 && s->foreign && s->foreign[id] ? -1 : id;
}

/* The token of a character at its place in a word, -1 for none: inside a word the prefix goes before it, at
 * the end the suffix behind. */
static int32_t find_char(const segmenter *s, const char *c, size_t n, bool inner, bool last)
{
    char text[sizeof s->prefix + sizeof s->suffix + 4];
    size_t len = inner ? s->prefix_len : 0;
    memcpy(text, s->prefix, len);
    memcpy(text + len, c, n);
    len += n;
    if (last) memcpy(text + len, s->suffix, s->suffix_len);
    return tok_seg_own(s, tok_vocab_find(s->voc, text, len + (last ? s->suffix_len : 0)));
}

void tok_seg_find_bytes(segmenter *s)
{
    for (unsigned b = 0; b < 256; b++) {
        char text[8];
        size_t n = utf8_encode(tok_byte_letter((uint8_t)b), text);
        for (unsigned place = 0; place < 4; place++)
            s->letter_ids[place][b] = s->byte_level ? find_char(s, text, n, place & 1, place & 2) : -1;
        n = (size_t)snprintf(text, sizeof text, "<0x%02X>", b);
        s->byte_ids[b] = s->byte_fallback ? tok_vocab_find(s->voc, text, n) : -1;
    }
}

/* ---- merges ---- */

int tok_seg_merges_init(segmenter *s, size_t n)
{
    size_t slots = 64;
    while (slots < n * 2) slots *= 2;
    s->merges = malloc(slots * sizeof *s->merges);
    if (!s->merges) return SHOAL_ENOMEM;
    for (size_t i = 0; i < slots; i++) s->merges[i].pair = UINT64_MAX;
    s->n_slots = slots;
    return 0;
}

static uint64_t pair_key(int32_t left, int32_t right)
{
    return (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
}

void tok_seg_merges_add(segmenter *s, int32_t left, int32_t right, uint32_t rank, int32_t id)
{
    uint64_t key = pair_key(left, right);
    size_t at = (size_t)rng_mix(key) & (s->n_slots - 1);
    for (; s->merges[at].pair != UINT64_MAX; at = (at + 1) & (s->n_slots - 1))
        if (s->merges[at].pair == key) return;
    s->merges[at] = (bpe_merge){key, rank, (uint32_t)id};
    s->n_merges++;
}

static const bpe_merge *find_merge(const segmenter *s, int32_t left, int32_t right)
{
    if (!s->n_slots) return NULL;
    uint64_t key = pair_key(left, right);
    size_t at = (size_t)rng_mix(key) & (s->n_slots - 1);
    for (; s->merges[at].pair != UINT64_MAX; at = (at + 1) & (s->n_slots - 1))
        if (s->merges[at].pair == key) return &s->merges[at];
    return NULL;
}

/* Rank and result of joining symbol i with its right neighbour, kept in the symbol. */
static void rank_pair(const segmenter *s, const char *word, seg_work *w, int32_t i)
{
    seg_symbol *a = &w->sym[i];
    a->rank = UINT32_MAX;
    if (a->next == NONE) return;
    const seg_symbol *b = &w->sym[a->next];
    if (s->kind == SEG_SPM) {
        size_t len = b->end - a->begin;
        int32_t id =
            len <= s->voc->max_len ? tok_seg_own(s, tok_vocab_find(s->voc, word + a->begin, len)) : -1;
        if (id < 0) return;
        a->rank = s->ranks[id];
        a->joined = (uint32_t)id;
        return;
    }
    const bpe_merge *m = find_merge(s, a->id, b->id);
    if (!m) return;
    a->rank = m->rank;
    a->joined = m->id;
}

/* ---- symbols ---- */

static int add_symbol(seg_work *w, int32_t id, size_t begin, size_t end)
{
    if (w->n_sym == w->cap_sym) {
        size_t cap = w->cap_sym ? w->cap_sym * 2 : 128;
        seg_symbol *sym = realloc(w->sym, cap * sizeof *sym);
        if (!sym) return SHOAL_ENOMEM;
        w->sym = sym;
        w->cap_sym = cap;
    }
    int32_t at = (int32_t)w->n_sym++;
    w->sym[at] = (seg_symbol){
        .id = id, .begin = (uint32_t)begin, .end = (uint32_t)end, .prev = at - 1, .next = at + 1};
    return 0;
}

static int add_unknown(const segmenter *s, seg_work *w, size_t begin, size_t end)
{
    if (s->unk < 0) return 0;
    seg_symbol *last = w->n_sym ? &w->sym[w->n_sym - 1] : NULL;
    if (s->fuse_unk && last && last->id == s->unk && last->end == begin) {
        last->end = (uint32_t)end;
        return 0;
    }
    return add_symbol(w, s->unk, begin, end);
}

static bool all_bytes_known(const segmenter *s, const char *c, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (s->byte_ids[(uint8_t)c[i]] < 0) return false;
    return true;
}

/* One character of a vocabulary that spells characters. */
static int add_char(const segmenter *s, const char *word, size_t begin, size_t end, bool last, seg_work *w)
{
    const char *c = word + begin;
    size_t n = end - begin;
    int32_t id = find_char(s, c, n, begin > 0, last);
    if (id >= 0) return add_symbol(w, id, begin, end);
    if (!s->byte_fallback || !all_bytes_known(s, c, n)) return add_unknown(s, w, begin, end);
    int rc = 0;
    /* Each byte token stands for the whole character it is part of. */
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = add_symbol(w, s->byte_ids[(uint8_t)c[i]], begin + i, begin + i + 1);
    return rc;
}

static int make_symbols(const segmenter *s, const char *word, size_t len, seg_work *w)
{
    int rc = 0;
    w->n_sym = 0;
    for (size_t at = 0, end; rc == 0 && at < len; at = end) {
        if (s->byte_level) {
            end = at + 1;
            int32_t id = s->letter_ids[(at > 0) | (end == len) << 1][(uint8_t)word[at]];
            rc = id >= 0 ? add_symbol(w, id, at, end) : add_unknown(s, w, at, end);
        } else {
            uint32_t cp;
            size_t n = utf8_decode(word + at, len - at, &cp);
            end = at + (n ? n : 1);
            rc = add_char(s, word, at, end, end == len, w);
        }
    }
    if (w->n_sym) w->sym[w->n_sym - 1].next = NONE;
    return rc;
}

static void tok_bpe_join(const segmenter *s, const char *word, seg_work *w, int32_t i)
{
    seg_symbol *a = &w->sym[i], *b = &w->sym[a->next];
    a->id = (int32_t)a->joined;
    a->end = b->end;
    a->next = b->next;
    b->id = NONE;
    if (a->next != NONE) w->sym[a->next].prev = i;
    rank_pair(s, word, w, i);
    if (a->prev != NONE) rank_pair(s, word, w, a->prev);
}

static void merge_scanning(const segmenter *s, const char *word, seg_work *w)
{
    for (;;) {
        int32_t best = NONE;
        uint32_t rank = UINT32_MAX;
        for (int32_t i = 0; i != NONE; i = w->sym[i].next)
            if (w->sym[i].rank < rank) {
                rank = w->sym[i].rank;
                best = i;
            }
        progress_add(w->n_sym);
        if (best == NONE) return;
        tok_bpe_join(s, word, w, best);
    }
}

/* ---- the heap of long words ---- */

static int heap_push(seg_work *w, int32_t i)
{
    uint32_t rank = w->sym[i].rank;
    if (rank == UINT32_MAX) return 0;
    if (w->n_heap == w->cap_heap) {
        size_t cap = w->cap_heap ? w->cap_heap * 2 : 256;
        uint64_t *heap = realloc(w->heap, cap * sizeof *heap);
        if (!heap) return SHOAL_ENOMEM;
        w->heap = heap;
        w->cap_heap = cap;
    }
    uint64_t key = (uint64_t)rank << 32 | (uint32_t)i;
    size_t at = w->n_heap++;
    for (; at > 0 && w->heap[(at - 1) / 2] > key; at = (at - 1) / 2) w->heap[at] = w->heap[(at - 1) / 2];
    w->heap[at] = key;
    return 0;
}

static uint64_t heap_pop(seg_work *w)
{
    uint64_t top = w->heap[0], key = w->heap[--w->n_heap];
    size_t at = 0;
    for (size_t kid; (kid = 2 * at + 1) < w->n_heap; at = kid) {
        if (kid + 1 < w->n_heap && w->heap[kid + 1] < w->heap[kid]) kid++;
        if (w->heap[kid] >= key) break;
        w->heap[at] = w->heap[kid];
    }
    w->heap[at] = key;
    return top;
}

static int merge_by_heap(const segmenter *s, const char *word, seg_work *w)
{
    w->n_heap = 0;
    for (size_t i = 0; i < w->n_sym; i++)
        if (heap_push(w, (int32_t)i)) return SHOAL_ENOMEM;
    while (w->n_heap) {
        uint64_t top = heap_pop(w);
        progress_add(256);
        int32_t i = (int32_t)(uint32_t)top;
        /* An entry is stale when its symbol is gone or its pair has changed since. */
        if (w->sym[i].id == NONE || w->sym[i].rank != (uint32_t)(top >> 32)) continue;
        tok_bpe_join(s, word, w, i);
        if (heap_push(w, i)) return SHOAL_ENOMEM;
        if (w->sym[i].prev != NONE && heap_push(w, w->sym[i].prev)) return SHOAL_ENOMEM;
    }
    return 0;
}

/* ---- one word ---- */

int tok_seg_add(seg_work *w, int32_t id, size_t begin, size_t end)
{
    if (w->n_out == w->cap_out) {
        size_t cap = w->cap_out ? w->cap_out * 2 : 64;
        seg_token *out = realloc(w->out, cap * sizeof *out);
        if (!out) return SHOAL_ENOMEM;
        w->out = out;
        w->cap_out = cap;
    }
    w->out[w->n_out++] = (seg_token){id, (uint32_t)begin, (uint32_t)end};
    return 0;
}

/* The whole word as the vocabulary spells it, -1 when it is no token. */
static int32_t find_whole(const segmenter *s, const char *word, size_t len, seg_work *w)
{
    if (!s->byte_level) return tok_seg_own(s, tok_vocab_find(s->voc, word, len));
    if (len > s->voc->max_len) return -1;
    buf_clear(&w->tmp);
    for (size_t i = 0; i < len; i++) {
        char c[4];
        buf_append(&w->tmp, c, utf8_encode(tok_byte_letter((uint8_t)word[i]), c));
    }
    return w->tmp.failed ? -1 : tok_seg_own(s, tok_vocab_find(s->voc, w->tmp.data, w->tmp.len));
}

static int bpe(const segmenter *s, const char *word, size_t len, seg_work *w)
{
    int32_t whole = s->ignore_merges ? find_whole(s, word, len, w) : -1;
    if (whole >= 0) return tok_seg_add(w, whole, 0, len);
    int rc = make_symbols(s, word, len, w);
    for (size_t i = 0; rc == 0 && i < w->n_sym; i++) rank_pair(s, word, w, (int32_t)i);
    if (rc || !w->n_sym) return rc;
    if (w->n_sym <= SHORT_WORD)
        merge_scanning(s, word, w);
    else
        rc = merge_by_heap(s, word, w);
    for (int32_t i = 0; rc == 0 && i != NONE; i = w->sym[i].next)
        rc = tok_seg_add(w, w->sym[i].id, w->sym[i].begin, w->sym[i].end);
    return rc;
}

int tok_seg_word(const segmenter *s, const char *word, size_t len, seg_work *w)
{
    w->n_out = 0;
    switch (s->kind) {
    case SEG_WORDPIECE: return tok_seg_wordpiece(s, word, len, w);
    case SEG_UNIGRAM: return tok_seg_unigram(s, word, len, w);
    case SEG_WORDLEVEL: return tok_seg_wordlevel(s, word, len, w);
    case SEG_GREEDY: return tok_seg_greedy(s, word, len, w);
    default: return bpe(s, word, len, w);
    }
}

void tok_seg_work_done(seg_work *w)
{
    free(w->out);
    free(w->sym);
    free(w->heap);
    free(w->best);
    free(w->back);
    buf_done(&w->tmp);
    memset(w, 0, sizeof *w);
}
