/* layer.h: one layer of a transformer: a mixer (mixer.h: attention, ...) and a feed-forward network
 * around the residual stream, with norms wherever the configuration puts them (config.h: norm_place,
 * branch_kind). Decoders and encoders run the same layers and differ in how they attend.
 *
 *     layer_load(&ly, m, config, "blk.3.", flags, set, &err);       // once
 *     space_init(&s, config, n_members, max_rows, acts_rows, acts_cols, &err);
 *     pass p = {.c = config, .attend = my_attention, .step = my_step};
 *     pass_open(&p, &s, member, n_rows);                            // each member, each step
 *     ... fill p.x ...
 *     for (i = 0; i < n_layer; i++) layer_run(&p, &ly[i]); */
#ifndef NET_LAYER_H
#define NET_LAYER_H

#include "net/attention/attend.h"
#include "net/block.h"
#include "net/attention/cross.h"
#include "net/moe.h"
#include "net/shortconv.h"

typedef struct mixer mixer;

typedef struct layer {
    unsigned flags; /* LAYER_ */
    const mixer *mixer;
    norm attn_pre, attn_post, ffn_pre, ffn_post; /* w NULL where there is none */
    proj in, out;  /* what the mixer reads (q, k and v; a convolution's input); and back into the stream */
    attend attend; /* the mixer's: one of these */
    shortconv conv;
    proj up, down; /* dense; up may be gate and up */
    moe moe;       /* moe.c NULL when dense */
    cross cross;   /* of a decoder that reads a source; the caller loads it */
} layer;

int layer_load(layer *ly, const model *m, const model_config *c, const char *prefix, unsigned flags, isa set,
               shoal_err *err);
void layer_done(layer *ly); /* a zeroed one is fine */

/* What one member computes for itself when rows are few (rows.h): [FEW_ROWS][...], and these as activations.
 */
typedef struct own_space {
    acts *acts, *window; /* rows.h: lane */
    float *h, *h2, *act;
} own_space;

/* The work space of a step, for up to max_rows rows. */
typedef struct space {
    acts *acts;
    float *x, *h, *h2;     /* [max_rows][n_embd]: the residual stream, and normalised */
    float *y;              /* [max_rows][n_embd]: a branch's output, where it is not added at once */
    float *qkv, *att;      /* [max_rows][q + 2 kv], [q] */
    float *cross_q;        /* [max_rows][q], with a source */
    float *conv_in, *conv; /* [max_rows][3 n_embd], [n_embd] */
    float *ff, *act;       /* [max_rows][2 or 1 n_ff], [n_ff] */
    float *thin;           /* rows.h: lane */
    moe_space moe;
    own_space *own; /* [n_members]; NULL for one member */
    size_t n_members, own_cols;
    size_t apart_rows; /* rows.h: lane */
} space;

/* For a team of n_members. acts_rows, acts_cols: what the caller's own products need beyond the layers'. */
int space_init(space *s, const model_config *c, int n_members, size_t max_rows, size_t acts_rows,
               size_t acts_cols, shoal_err *err);
void space_done(space *s); /* a zeroed one is fine */

/* One member's way through one step. */
typedef struct pass {
    lane l;
    const model_config *c;
    const space *s;
    void (*attend)(struct pass *p, const layer *ly); /* p->att = attention over p->qkv */
    const attend_step *causal;                       /* decoders: blk_attend and convolutions read it */
    const cross_step *cross;                         /* with a source */
    const void *step;                                /* the caller's */
    rows x, h, h2, y, qkv, att, cross_q, conv_in, conv, ff, act;
} pass;

void pass_open(pass *p, const space *s, team_member *m, size_t n_rows);
/* n rows of [n_embd] that each member has for itself when they are few, else `at`; what pass.h held is gone.
 */
rows pass_rows(const pass *p, float *at, size_t n);
void layer_run(pass *p, const layer *ly);

#endif
