/* patches.h: from a square picture to rows: one for the whole ("cls_embd"), then one a patch, row by row of
 * the picture, each its patch's numbers times a matrix, and a learned position (ViT: Dosovitskiy et al. 2020,
 * arXiv:2010.11929). */
#ifndef NET_PATCHES_H
#define NET_PATCHES_H

#include "net/block.h"
#include "net/net.h"

typedef struct patches {
    image_conf image;
    size_t n_rows, n_in; /* of a picture; numbers of a patch: channels * patch * patch */
    proj project;        /* [n_embd][channels][patch][patch] */
    float *whole;        /* [n_embd] */
    float *positions;    /* [n_rows][n_embd] */
    float *cut;          /* [max_positions][n_in], work space */
} patches;

int patches_load(patches *p, const model *m, const model_config *c, size_t max_positions, isa set,
                 shoal_err *err);
void patches_done(patches *p); /* a zeroed one is fine */
/* Rows that every picture makes; the same as *ret, SHOAL_EINVALID where in->features are not its
 * [channels][size][size]. */
size_t patches_count(const image_conf *i);
int patches_rows(const model_config *c, const net_input *in, size_t *ret, shoal_err *err);

/* x[n][n_embd]: item[t] is whose each row is, first[i] item i's first row. All members. */
void blk_patches(lane *l, const patches *p, const net_input *items, const uint32_t *item,
                 const uint32_t *first, rows *x);

#endif
