/* asset.h: the files under assets/ of the source, as the program carries them.
 *
 * Pages must show without a network and without a file beside the program, so a build packs every file under
 * assets/ into it (cmake/assets.cmake); nothing else lists them. A file is known by its path there:
 *
 *     const asset *a = asset_find("docs/index.html");     // assets/docs/index.html
 *     if (a) write(1, a->bytes, a->n);
 *
 * All of it is constant. */
#ifndef ASSET_ASSET_H
#define ASSET_ASSET_H

#include <stddef.h>

typedef struct asset {
    const char *name;           /* its path under assets/ */
    const char *content_type;   /* by its ending */
    const unsigned char *bytes; /* [n], and a 0 behind them */
    size_t n;
    const unsigned char *gzip; /* [n_gzip], the same as gzip has it; NULL where that is no shorter */
    size_t n_gzip;
    const char *etag; /* quoted, of the digest of `bytes` */
} asset;

extern const asset ASSETS[]; /* in the order of their names */
extern const size_t N_ASSETS;

/* NULL: there is none of that name. */
const asset *asset_find(const char *name);

#endif
