/* bench_work.h: what a network must at least read and multiply, so that a speed can be told as a share of
 * what the machine could do (compute/measure.h).
 *
 *     bench_work w = bench_work_of(m, KV_AS_WEIGHTS);
 *     bench_cost c = bench_work_decode(&w, 1024, 64, 1);     // 64 tokens behind 1024
 *     share of the bandwidth = c.bytes / seconds / limit
 *
 * Bytes are those of the file's matrices and of keys and values as they are kept; nothing is counted twice,
 * and nothing that could stay in a register or in the first cache (activations, norms, tables). So the limit
 * is one that no engine can pass for the same file, unless it keeps less of it. Multiply-adds are the
 * matrices' and attention's; a causal prompt counts half its square. Attention counts as if it were done in
 * the matrices' own numbers, which is the stricter of the two. */
#ifndef BENCH_BENCH_WORK_H
#define BENCH_BENCH_WORK_H

#include "model/model.h"
#include "net/attention/kv_type.h"

typedef struct bench_cost {
    double bytes, multiply_adds;
} bench_cost;

typedef struct bench_work {
    bool is_float;         /* most multiply-adds are by matrices of floats */
    bool head_each;        /* an encoder's head reads every token: taggers, fill-mask */
    double layer_bytes;    /* matrices that every token passes */
    double layer_adds;     /* their multiply-adds a token */
    double head_bytes;     /* the output: of a decoder once a token it chooses, else once a text */
    double head_adds;      /* its multiply-adds each time */
    double kv_bytes;       /* keys and values of one position, in all layers that see all positions */
    double kv_adds;        /* scoring it and adding up its value, the same layers */
    double local_kv_bytes; /* the same of the layers that see a window only */
    double local_kv_adds;
    size_t window;
} bench_work;

/* kept: what keys and values are kept as */
bench_work bench_work_of(const model *m, kv_type kept);
/* A prompt of n tokens behind `depth` others whose keys and values are kept, up to its first token. */
bench_cost bench_work_prompt(const bench_work *w, size_t depth, size_t n);
/* n steps of one token a stream behind `depth` tokens; every step reads the matrices once for all streams. */
bench_cost bench_work_decode(const bench_work *w, size_t depth, size_t n, size_t n_streams);
/* n_texts of n tokens through an encoder, together; a token of one sees all others of its own text. */
bench_cost bench_work_encode(const bench_work *w, size_t n_texts, size_t n);

/* ---- of an encoder-decoder ----------------------------------------------------------------------- */

/* What reading a source and writing behind it cost. A position is a token of text, or two frames of sound. */
typedef struct bench_source {
    bench_work reply;     /* the decoder's half, but for cross-attention to the source */
    double encoder_bytes; /* matrices that a source passes, those of cross-attention's keys included */
    double encoder_adds;  /* their multiply-adds a position */
    double pair_adds;     /* the encoder's attention, each pair of positions */
    double cross_bytes, cross_adds; /* of a reply's token: each position's keys and values, in all layers */
} bench_source;

bench_source bench_source_of(const model *m);
/* A source of n positions, up to the first token behind it. */
bench_cost bench_source_read(const bench_source *w, size_t n);
/* n_new further tokens, one after the other, behind a source of n positions. */
bench_cost bench_source_reply(const bench_source *w, size_t n, size_t n_new);

#endif
