/* model_about.c: a kind's reader, and what it says; see model_about.h. */
#include "infer/model_about.h"

#include <strings.h>

static int check_pin(const scorer *s, const char *path, const char *sha256, shoal_err *err)
{
    sha256_digest d;
    char hex[65];
    int rc = scorer_digest(s, &d, err);
    if (rc != 0) return rc;
    sha256_hex(&d, hex);
    if (strcasecmp(hex, sha256) == 0) return 0;
    return err_set(err, SHOAL_EDIGEST, "%s: its SHA-256 is %s, but %.64s is pinned", path, hex, sha256);
}

static int about_trees(model_about *a, const char *path, const char *sha256, shoal_err *err)
{
    int rc = preprocessor_open_trees(&a->trees, path, err);
    if (rc == 0 && sha256) rc = check_pin(a->trees.trees, path, sha256, err);
    a->task = TASK_SCORE;
    a->labels = a->trees.labels;
    a->n_labels = a->trees.n_labels;
    return rc;
}

static int about_network(model_about *a, const char *path, const model_options *o, shoal_err *err)
{
    int rc = model_open(&a->network, path, o, err);
    if (rc != 0) return rc;
    const model_config *c = model_get_config(a->network);
    a->task = c->task;
    a->labels = c->head.labels;
    a->n_labels = c->head.n_labels;
    a->talks = model_chat_template(a->network) != NULL;
    a->is_plain = model_chat_template_is_default(a->network);
    return 0;
}

int model_about_open(model_about *ret, const char *path, const model_options *options, shoal_err *err)
{
    model_about a = {.kind = model_kind_of(path)};
    int rc = a.kind == &model_kind_trees ? about_trees(&a, path, options ? options->expect_sha256 : NULL, err)
                                         : about_network(&a, path, options, err);
    if (rc == 0)
        *ret = a;
    else
        model_about_close(&a);
    return rc;
}

void model_about_close(model_about *a)
{
    model_free(a->network);
    preprocessor_done(&a->trees);
    *a = (model_about){0};
}
