/* preprocessor.h: what a model reads besides text, from foreign bytes to its answer: the rows of a CSV, a picture.
 *
 * Trees need no engine and answer at once. A recurrent network gets its windows through its engine, many at
 * a time; a vision model its pixels. What stands in front of the network (which columns, which medians, which
 * size and colours) is read from the model's folder when it is opened.
 *
 *     preprocessor in = {0};
 *     preprocessor_open_trees(&in, path, &err);                       // of the kind trees (kinds/model_kind.h), or:
 *     preprocessor_open(&in, path, m, engine, &err);
 *     csv_open(&c, "rows.csv", &err);
 *     preprocessor_score(&in, c, 0, on_row, user, &totals, &err);
 *     preprocessor_look(&in, bytes, n, 0, logits, &err);
 *     preprocessor_done(&in);
 *
 * A preprocessor is read-only: any thread may use it, several at once. The calls block until the answer is there;
 * the engine's thread must not make them. */
#ifndef INFER_PREPROCESSOR_H
#define INFER_PREPROCESSOR_H

#include "forest/scorer.h"
#include "infer/engine.h"
#include "signal/image_prep.h"

#define PREPROCESSOR_PIXELS_MAX ((size_t)32 << 20) /* of a picture as it comes */

typedef struct preprocessor {
    scorer *trees; /* NULL: a network */
    engine *engine;
    const model_config *config;
    series_spec *spec; /* of a recurrent network; NULL: `why` not */
    image_prep prep;   /* of a vision model */
    /* [n_labels]: of classes, in the order of the scores; trees that give numbers have none. */
    const char **labels;
    size_t n_labels, n_raw; /* n_raw: scores before the link function */
    shoal_err why;
    const char *notice; /* what its user should know, a sentence; NULL: nothing */
} preprocessor;

int preprocessor_open_trees(preprocessor *ret, const char *path, shoal_err *err);
/* SHOAL_EUNSUPPORTED, for whoever was asked for an adapter, a regrouping or a type of keys and values there.
 */
int preprocessor_refuse_of_trees(const char *path, shoal_err *err);
/* Of a network, opened from `path`; model and engine are borrowed. Models that read text alone get an empty
 * one. One without a word on the windows of its series opens, and is SHOAL_EUNSUPPORTED when it is asked for
 * scores. A vision model without preprocessor_config.json gets ViT's own steps. */
int preprocessor_open(preprocessor *ret, const char *path, const model *m, engine *e, shoal_err *err);
void preprocessor_done(preprocessor *in); /* a zeroed one is fine */

typedef struct preprocessor_totals {
    size_t n_rows, n_items, n_sensors; /* rows read, items scored, sensors met (0 in a table) */
} preprocessor_totals;

/* Score every item of the CSV and hand it to `row` in the file's order, on the calling thread; a result that
 * is not 0 ends the run and is returned. Of a network `raw` are its logits, `score` and `classes` the
 * probabilities, and the item's z and features are NULL. deadline_ns 0: none. *ret_totals is filled on
 * failure, too. SHOAL_EUNSUPPORTED when the model scores no rows. */
int preprocessor_score(const preprocessor *in, csv *c, uint64_t deadline_ns, scorer_row_fn row, void *user,
                       preprocessor_totals *ret_totals, shoal_err *err);

/* What a PNG or JPEG file shows: ret_logits[n_labels]. SHOAL_EFORMAT, SHOAL_ELIMIT and SHOAL_EUNSUPPORTED as
 * image_decode says. */
int preprocessor_look(const preprocessor *in, const void *bytes, size_t n, uint64_t deadline_ns,
                      float *ret_logits, shoal_err *err);
/* In two steps, for those who bound what decoding needs (up to 12 bytes a pixel) or may cancel it: the
 * picture as (*ret)[3][size][size], malloc'd, and the answer. limits NULL: PREPROCESSOR_PIXELS_MAX. */
int preprocessor_pixels(const preprocessor *in, const void *bytes, size_t n, const image_limits *limits,
                        float **ret, shoal_err *err);
int preprocessor_look_at(const preprocessor *in, const float *pixels, uint64_t deadline_ns,
                         const cancel_check *cancel, float *ret_logits, shoal_err *err);

#endif
