/* tok_bpe.h: the models that segment one word: BPE, WordPiece, Unigram, whole words, greedy.
 *
 * BPE starts from characters (or bytes) and joins, again and again, the neighbouring pair of the
 * best rank, the leftmost of equals. Short words scan for it; long ones keep a heap, so that a
 * megabyte of one letter costs n log n. */
#ifndef TOKENIZER_TOK_BPE_H
#define TOKENIZER_TOK_BPE_H

#include "tokenizer/tok_trie.h"
#include "tokenizer/tok_vocab.h"

typedef struct bpe_merge {
    uint64_t pair; /* left << 32 | right; UINT64_MAX for free */
    uint32_t rank, id;
} bpe_merge;

typedef enum {
    SEG_BPE,
    SEG_SPM, /* BPE that joins what makes the piece of the best score */
    SEG_WORDPIECE,
    SEG_UNIGRAM,
    SEG_WORDLEVEL, /* a word is a token or unknown */
    SEG_GREEDY,    /* the longest token at each byte (RWKV) */
} seg_kind;

typedef struct segmenter {
    seg_kind kind;
    const vocab *voc;
    uint8_t *foreign; /* [voc->n], or NULL: 1 for added tokens that the model has not; no word makes them */
    int32_t unk;      /* -1: none; characters without a token are left out */
    bool fuse_unk, byte_fallback, ignore_merges;
    bool byte_level;       /* the vocabulary spells bytes by the printable alphabet of GPT-2 */
    int32_t byte_ids[256]; /* of single bytes, "<0x..>"; -1 for none */
    /* Of the letters of bytes by their place in a word: bit 0 not its first, bit 1 its last. -1 for none. */
    int32_t letter_ids[4][256];
    bpe_merge *merges; /* open addressing, [n_slots] */
    size_t n_slots, n_merges;
    uint32_t *ranks; /* SEG_SPM: [voc->n], 0 is the best score */
    double *scores;  /* SEG_UNIGRAM: [voc->n], and of an unknown character */
    double unk_score;
    tok_trie trie;               /* SEG_UNIGRAM, SEG_GREEDY: the tokens that may be found in text */
    char prefix[16], suffix[16]; /* of pieces inside a word ("##"); of BPE's at its end ("</w>") */
    size_t prefix_len, suffix_len;
    size_t max_chars; /* WordPiece: longer words are unknown */
} segmenter;

/* A token and the bytes of the word it covers. */
typedef struct seg_token {
    int32_t id;
    uint32_t begin, end;
} seg_token;

typedef struct seg_symbol {
    int32_t id; /* -1: merged into its left neighbour */
    uint32_t begin, end;
    int32_t prev, next;
    uint32_t rank, joined; /* of the pair with `next`; UINT32_MAX for none */
} seg_symbol;

/* Scratch and result of one call on one thread; zero it first. */
typedef struct seg_work {
    seg_token *out;
    size_t n_out, cap_out;
    seg_symbol *sym;
    size_t n_sym, cap_sym;
    uint64_t *heap; /* rank << 32 | left symbol */
    size_t n_heap, cap_heap;
    double *best; /* Unigram's lattice */
    seg_token *back;
    size_t cap_best;
    buf tmp;
} seg_work;

/* 0 or SHOAL_ENOMEM; tokens in w->out[0..n_out). len < 2^31. */
int tok_seg_word(const segmenter *s, const char *word, size_t len, seg_work *w);
void tok_seg_work_done(seg_work *w);

/* Add the pair (left, right) -> id with this rank; the first of equals stays. The table must have
 * been sized by tok_seg_merges_init for at least as many. */
int tok_seg_merges_init(segmenter *s, size_t n);
void tok_seg_merges_add(segmenter *s, int32_t left, int32_t right, uint32_t rank, int32_t id);

/* Fill in byte_ids and letter_ids from the vocabulary, by byte_level, byte_fallback, prefix and suffix. */
void tok_seg_find_bytes(segmenter *s);

/* For tok_seg_word: an id, or -1 when no word may make it; and the kinds of tok_piece.c. */
int32_t tok_seg_own(const segmenter *s, int32_t id);
int tok_seg_add(seg_work *w, int32_t id, size_t begin, size_t end);
int tok_seg_wordpiece(const segmenter *s, const char *word, size_t len, seg_work *w);
int tok_seg_unigram(const segmenter *s, const char *word, size_t len, seg_work *w);
int tok_seg_wordlevel(const segmenter *s, const char *word, size_t len, seg_work *w);
int tok_seg_greedy(const segmenter *s, const char *word, size_t len, seg_work *w);

#endif
