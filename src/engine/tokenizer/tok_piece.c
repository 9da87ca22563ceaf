/* tok_piece.c: WordPiece (longest match first), whole words, greedy bytes, and Unigram (the likeliest path).
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/progress.h"
#include "base/utf8.h"
#include "tokenizer/tok_bpe.h"
#include "shoal.h"

static size_t char_len(const char *s, size_t n)
{
    uint32_t cp;
    size_t k = utf8_decode(s, n, &cp);
    return k ? k : 1;
}

/* The longest token at word[at..len), inside a word with the prefix in front. */
static int32_t longest(const segmenter *s, const char *word, size_t at, size_t len, size_t *ret_end)
{
    const char *prefix = at ? s->prefix : NULL;
    size_t prefix_len = at ? s->prefix_len : 0;
    uint64_t h = vocab_hash(VOCAB_HASH_START, prefix, prefix_len);
    int32_t best = -1;
    for (size_t end = at; end < len && prefix_len + (end - at) < s->voc->max_len;) {
        size_t n = char_len(word + end, len - end);
        h = vocab_hash(h, word + end, n);
        end += n;
        int32_t id =
            tok_seg_own(s, tok_vocab_find_hashed(s->voc, h, prefix, prefix_len, word + at, end - at));
        if (id < 0) continue;
        best = id;
        *ret_end = end;
    }
    return best;
}

static int unknown_word(const segmenter *s, size_t len, seg_work *w)
{
    w->n_out = 0;
    return s->unk >= 0 ? tok_seg_add(w, s->unk, 0, len) : 0;
}

int tok_seg_wordpiece(const segmenter *s, const char *word, size_t len, seg_work *w)
{
    if (utf8_count(word, len) > s->max_chars) return unknown_word(s, len, w);
    for (size_t at = 0, end = 0; at < len; at = end) {
        int32_t id = longest(s, word, at, len, &end);
        if (id < 0) return unknown_word(s, len, w);
        if (tok_seg_add(w, id, at, end)) return SHOAL_ENOMEM;
    }
    return 0;
}

int tok_seg_wordlevel(const segmenter *s, const char *word, size_t len, seg_work *w)
{
    int32_t id = tok_seg_own(s, tok_vocab_find(s->voc, word, len));
    if (id < 0) return unknown_word(s, len, w);
    return tok_seg_add(w, id, 0, len);
}

/* Bytes that begin no token are unknown, each by itself. */
int tok_seg_greedy(const segmenter *s, const char *word, size_t len, seg_work *w)
{
    for (size_t begin = 0, end = 0; begin < len; begin = end) {
        int32_t id = s->unk;
        end = begin + 1;
        size_t node = 0;
        progress_add(64);
        for (size_t at = begin; at < len && (node = tok_trie_step(&s->trie, node, (uint8_t)word[at]));) {
            at++;
            if (s->trie.id[node] < 0) continue;
            id = s->trie.id[node];
            end = at;
        }
        if (id >= 0 && tok_seg_add(w, id, begin, end)) return SHOAL_ENOMEM;
    }
    return 0;
}

/* ---- Unigram (Kudo 2018): Viterbi over the pieces that match ---- */

static int lattice(seg_work *w, size_t len)
{
    if (w->cap_best <= len) {
        double *best = realloc(w->best, (len + 1) * sizeof *best);
        if (best) w->best = best;
        seg_token *back = best ? realloc(w->back, (len + 1) * sizeof *back) : NULL;
        if (!back) return SHOAL_ENOMEM;
        w->back = back;
        w->cap_best = len + 1;
    }
    for (size_t i = 0; i <= len; i++) w->best[i] = -INFINITY;
    w->best[0] = 0;
    return 0;
}

static void reach(seg_work *w, size_t from, size_t to, int32_t id, double score)
{
    double total = w->best[from] + score;
    if (w->best[to] != -INFINITY && total <= w->best[to]) return;
    w->best[to] = total;
    w->back[to] = (seg_token){id, (uint32_t)from, (uint32_t)to};
}

static void reach_all(const segmenter *s, const char *word, size_t at, size_t len, seg_work *w)
{
    size_t first = at + char_len(word + at, len - at), node = 0;
    bool single = false;
    for (size_t end = at; end < len && (node = tok_trie_step(&s->trie, node, (uint8_t)word[end]));) {
        end++;
        int32_t id = s->trie.id[node];
        if (id < 0) continue;
        reach(w, at, end, id, s->scores[id]);
        single |= end == first;
    }
    if (!single) reach(w, at, first, s->unk, s->unk_score);
}

/* An unknown stretch: its bytes where the vocabulary has them all, each standing for the whole stretch, else
 * one unknown token. */
static int put_unknown(const segmenter *s, const char *word, size_t begin, size_t end, seg_work *w)
{
    bool bytes = s->byte_fallback;
    for (size_t i = begin; bytes && i < end; i++) bytes = s->byte_ids[(uint8_t)word[i]] >= 0;
    if (!bytes) return s->unk >= 0 ? tok_seg_add(w, s->unk, begin, end) : 0;
    int rc = 0;
    for (size_t i = begin; rc == 0 && i < end; i++)
        rc = tok_seg_add(w, s->byte_ids[(uint8_t)word[i]], begin, end);
    return rc;
}

int tok_seg_unigram(const segmenter *s, const char *word, size_t len, seg_work *w)
{
    if (lattice(w, len)) return SHOAL_ENOMEM;
    for (size_t at = 0; at < len; at += char_len(word + at, len - at)) {
        reach_all(s, word, at, len, w);
        progress_add(128);
    }
    /* Turn the chain of best steps around in place, then read it forwards. */
    size_t next = len;
    for (size_t at = len; at > 0;) {
        seg_token step = w->back[at];
        w->back[at].end = (uint32_t)next;
        next = at;
        at = step.begin;
    }
    int rc = 0;
    for (size_t at = next, open = len + 1; rc == 0 && len > 0;) {
        seg_token step = w->back[at];
        bool last = at == len;
        bool unk = step.id == s->unk;
        if (unk && open > len) open = step.begin;
        /* `end` now points at the end of the step after this one. */
        bool goes_on = unk && !last && w->back[step.end].id == s->unk;
        if (!unk)
            rc = tok_seg_add(w, step.id, step.begin, at);
        else if (!goes_on)
            rc = put_unknown(s, word, open, at, w);
        if (!goes_on) open = len + 1;
        if (last) break;
        at = step.end;
    }
    return rc;
}
