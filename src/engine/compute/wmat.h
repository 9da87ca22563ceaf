/* wmat.h: the packed matrix as acts_mul sees it (inside compute/ only; panel.h has the layout). */
#ifndef COMPUTE_WMAT_H
#define COMPUTE_WMAT_H

#include "compute/kernels.h"

struct wmat {
    dtype type;
    size_t rows, cols, n_panels;
    size_t panel_bytes;  /* weights a panel */
    size_t panel_scales; /* halves of scales a panel, 0 for float types */
    size_t bytes;        /* all that belongs to it */
    bool owned;          /* w and scales are freed with it; else they lie in a `weights` */
    uint8_t *w;          /* [n_panels][panel_bytes], 64-byte aligned; rows past the end are zero */
    uint16_t *scales;    /* [n_panels][panel_scales] */
    float *bias;         /* [rows], NULL when there is none */
    double *squares;     /* [cols], the watcher's, or NULL */
};

#endif
