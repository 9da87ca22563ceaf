/* attend_block.h: attention of a few tokens over chunks of a paged cache (for attend.c).
 *
 * Tokens of one sequence whose positions lie in one page are a block: they see the same pages, but for the
 * edges, so that a key or a value is loaded once for all their heads that share it.
 *
 * Positions are cut into chunks of ATTEND_CHUNK, from position 0 on. A chunk gives each row (a token's query
 * head) its largest score, the sum of all exp(score - largest), and the values mixed by that softmax. Chunks
 * are joined in order of position:
 *
 *     e = exp(-|most - chunk's most|), a = sum and b = chunk's sum, the one with the smaller most times e
 *     out = fma(b / (a + b), chunk's out, a / (a + b) * out), sum = a + b, most = the larger one
 *
 * (1 / (a + b) is made once and multiplied with). Positions up to ATTEND_CHUNK have one softmax. Who computes
 * a chunk, and when, changes no bit; scores stay in the cache however long the text is, and keys are read
 * once for many rows. */
#ifndef NET_ATTENTION_ATTEND_BLOCK_H
#define NET_ATTENTION_ATTEND_BLOCK_H

#include "net/attention/attend.h"

#define CHUNK_PAGES  32
#define ATTEND_CHUNK (CHUNK_PAGES * KV_PAGE_TOKENS) /* positions */

typedef struct attend_block {
    const kv_seq *seq;
    size_t t, n;        /* tokens [t, t + n) of the step */
    size_t at;          /* the first one's position */
    size_t begin, last; /* the first page that one of them sees, and their own */
} attend_block;

/* The block that begins with token t and is over by `end`. */
attend_block attend_block_at(const attend *a, const attend_step *s, size_t t, size_t end);
/* Chunks [*ret_first, ...) that it sees; returns how many. */
size_t attend_block_chunks(const attend_block *b, size_t *ret_first);
/* Pages [begin, ret_end) of a chunk that it sees: returns begin. */
size_t attend_block_pages(const attend_block *b, size_t chunk, size_t *ret_end);

/* Floats of work space that a member needs. */
size_t attend_block_space(const attn_conf *c);
/* What one chunk gives all rows of a block, in floats. */
size_t attend_part_floats(const attend *a, const attend_block *b);
/* All chunks of key head kvh: att's rows of these tokens. `space` is this member's. */
void attend_block_whole(const attend *a, const attend_step *s, const vec_kernels *v, const attend_block *b,
                        size_t kvh, const rows *qkv, rows *att, float *space);
/* One chunk: part[attend_part_floats]. */
void attend_block_chunk(const attend *a, const attend_step *s, const vec_kernels *v, const attend_block *b,
                        size_t kvh, size_t chunk, const rows *qkv, float *part, float *space);
/* The parts of all its chunks, one behind the other, into att; the first is overwritten. */
void attend_block_join(const attend *a, const vec_kernels *v, const attend_block *b, size_t kvh, float *parts,
                       size_t n_parts, rows *att, float *space);

#endif
