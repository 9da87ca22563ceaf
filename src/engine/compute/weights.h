/* weights.h: where the packed matrices of one network live.
 *
 * All of them lie one behind the other in one mapping in huge pages (base/pages.h), in the order in which
 * the network loads them: codes, then scales, each on a border of 64 bytes. A matrix of half a megabyte
 * would never get a huge page of its own; together they are read as one stream. Members of the team pack
 * side by side, each its own panels, so that the pages are touched by several cores, too.
 *
 *     weights *home;
 *     weights_new(&home, team, estimate, &err);
 *     wmat_join(&w, home, name, DT_Q8_0, parts, n_parts, cols, bias, set, &err);      ... for each matrix
 *     wmat_free(w);                    its description; the weights stay
 *     weights_free(home);              after the last of them
 *
 * What an image (model/packed/packed.h) has of them is not packed again: weights_give names it before the network
 * loads, and each matrix then finds itself there, if its last row is the one that the model has.
 *
 * One thread loads; afterwards nothing is written and any thread may read. */
#ifndef COMPUTE_WEIGHTS_H
#define COMPUTE_WEIGHTS_H

#include "base/sha256.h"
#include "compute/compute.h"

/* A packed matrix in its place. */
typedef struct weights_item {
    uint64_t name; /* digest of the names of what its rows are made of */
    dtype type;
    size_t rows, cols;
    size_t codes_bytes, scales_bytes;
    uint8_t *codes, *scales; /* 64-byte aligned; scales NULL when there are none */
} weights_item;

/* `t` packs, and must live until the last matrix is in; NULL: the caller's thread alone. `bytes` is what the
 * matrices will take together, as wmat_packed_bytes says; what does not fit gets a mapping of its own. */
int weights_new(weights **ret, team *t, size_t bytes, shoal_err *err);
void weights_free(weights *s); /* NULL is fine */

/* Packed before, in the order of placing, from an image whose bytes live as long as `s`; items [n] as well.
 * Before the first is placed. */
void weights_give(weights *s, const weights_item *items, size_t n);

/* Give a matrix its place, it->codes and it->scales: where it was packed before (*ret_packed), if what was
 * given stands in the same order with the same names, types and sides up to this one; else zeroed memory.
 * SHOAL_ENOMEM. */
int weights_place(weights *s, weights_item *it, bool *ret_packed, shoal_err *err);
/* What was given is not the last one that was placed, nor are those behind it: zeroed memory for it. */
int weights_refuse(weights *s, weights_item *it, shoal_err *err);
/* Matrices that were packed here, and not before. */
size_t weights_fresh(const weights *s);
/* Bytes of all of them as an image has them: one behind the other, each on a border of 64. */
size_t weights_bytes(const weights *s);
size_t weights_item_bytes(const weights_item *it);
team *weights_team(const weights *s);

/* What is in it, in order of placing. */
/* What tells layouts apart: a digest of how matrices of every type lie when packed for `set`, made by packing
 * some. Nobody has to remember to raise a number. SHOAL_ENOMEM. */
int weights_layout(isa set, sha256_digest *ret, shoal_err *err);

size_t weights_count(const weights *s);
const weights_item *weights_at(const weights *s, size_t i);

#endif
