/* serve_banner.h: what `shoal serve` prints when it is ready: what is served, and commands that fit just that.
 *
 *     serve_banner b = {.program = "build/shoal", .url = url, .config = c, .models = m, .n_models = n};
 *     serve_banner_put(&out, &b);                  out.failed: out of memory */
#ifndef SERVE_SERVE_BANNER_H
#define SERVE_SERVE_BANNER_H

#include "base/buf.h"
#include "cluster/registry.h"
#include "config/config.h"

typedef struct serve_banner_model {
    const char *name;
    const Shoal__V1__ModelInfo *info;
    const char *use; /* what the manifest says that it is for; NULL: nothing */
} serve_banner_model;

typedef struct serve_banner {
    const char *program, *url;
    const gateway_config *config; /* its pipelines are served */
    const serve_banner_model *models;
    size_t n_models;
} serve_banner;

/* Pure. */
void serve_banner_put(buf *out, const serve_banner *b);
/* To standard output, of what is ready; commands name this program as it can be called from here. */
void serve_banner_print(const char *url, const gateway_config *c, const registry *g);

#endif
