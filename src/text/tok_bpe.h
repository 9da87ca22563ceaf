/* tok_bpe.h: the models that segment one word: BPE, WordPiece, Unigram.
 *
 * BPE starts from characters (or bytes) and joins, again and again, the neighbouring pair of the
 * best rank, the leftmost of equals. Short words scan for it; long ones keep a heap, so that a
 * megabyte of one letter costs n log n. */
#ifndef TEXT_TOK_BPE_H
#define TEXT_TOK_BPE_H

#include "text/tok_vocab.h"

typedef struct bpe_merge {
    uint64_t pair; /* left << 32 | right; UINT64_MAX for free */
    uint32_t rank, id;
} bpe_merge;

typedef enum { SEG_BPE, SEG_SPM, SEG_WORDPIECE, SEG_UNIGRAM } seg_kind;

typedef struct segmenter {
    seg_kind kind;
    const vocab *voc;
    int32_t unk; /* -1: none; characters without a token are left out */
    bool fuse_unk, byte_fallback, ignore_merges;
    bool byte_level;       /* the vocabulary spells bytes by the printable alphabet of GPT-2 */
    int32_t byte_ids[256]; /* of single bytes: byte-level letters, or "<0x..>"; -1 for none */
    bpe_merge *merges;     /* open addressing, [n_slots] */
    size_t n_slots, n_merges;
    uint32_t *ranks; /* SEG_SPM: [voc->n], 0 is the best score */
    float *scores;   /* SEG_UNIGRAM: [voc->n], and of an unknown character */
    float unk_score;
    char prefix[16], suffix[16]; /* WordPiece's "##"; BPE's end of word */
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

/* GPT-2's alphabet: the byte that a code point stands for, -1 when it is no letter of it. */
int tok_letter_byte(uint32_t cp);

/* Fill in byte_ids from the vocabulary, by byte_level and byte_fallback. */
void tok_seg_find_bytes(segmenter *s);

/* wordpiece and unigram, for tok_seg_word */
int tok_seg_add(seg_work *w, int32_t id, size_t begin, size_t end);
int tok_seg_wordpiece(const segmenter *s, const char *word, size_t len, seg_work *w);
int tok_seg_unigram(const segmenter *s, const char *word, size_t len, seg_work *w);

#endif
