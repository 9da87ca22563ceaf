/* scorer.h: a tree model with what belongs to it, from a folder or a file to labelled scores of a CSV's rows.
 *
 *     scorer *s = NULL;
 *     if (scorer_open(&s, "models/sensor-trees", &err) != 0) ...
 *     rc = scorer_run(s, csv, print_row, NULL, &err);
 *     scorer_close(s); */
#ifndef FOREST_SCORER_H
#define FOREST_SCORER_H

#include "base/sha256.h"
#include "forest/feed.h"
#include "forest/forest.h"

typedef struct scorer scorer;

typedef struct scorer_row {
    feed_item item;        /* which sensor, time, line */
    const double *raw;     /* [n_outputs] before the objective's link */
    const double *score;   /* [n_outputs] after it */
    const double *classes; /* [n_classes] probabilities; NULL when scores are numbers */
    size_t best;           /* the likeliest class, the first of equals; 0 without classes */
} scorer_row;

/* `path`: a model file, or a folder with a config.json that names it (or it with ".gz" behind). A config.json
 * beside a file is used when it names that file. Checks that its features and labels fit the model's. */
int scorer_open(scorer **ret, const char *path, shoal_err *err);
void scorer_close(scorer *s); /* NULL is fine */

/* SHA-256 of the model file as it lies there (packed or not), or of a folder's config.json and that. */
int scorer_digest(const scorer *s, sha256_digest *ret, shoal_err *err);
const forest *scorer_forest(const scorer *s);            /* borrowed */
const series_spec *scorer_spec(const scorer *s);         /* borrowed */
const char *scorer_label(const scorer *s, size_t class); /* "1" when the class has no name; never NULL */

/* Score every item of the CSV and hand it to `row`, whose non-zero result ends the run and is returned. The
 * scorer is read-only: several runs may go on at once. */
typedef int (*scorer_row_fn)(const scorer_row *row, void *user, shoal_err *err);
int scorer_run(const scorer *s, csv *c, scorer_row_fn row, void *user, shoal_err *err);
/* The same of a feed that was opened with the scorer's spec. */
int scorer_feed(const scorer *s, feed *d, scorer_row_fn row, void *user, shoal_err *err);

#endif
