/* feed.h: from a CSV to a model's input: windows of sensors, or rows of a table.
 *
 * A CSV with a column for each of the model's features is a table: each row is an item. One with a column for
 * each channel is a series, whose rows belong to the sensor that the column "sensor", "sensor_id", "machine"
 * or "id" names (without it all are one sensor's), in order of time; an item is a window that is due. Of
 * either, the column "t", "time" or "timestamp" is passed on as it stands, and further columns are ignored.
 *
 *     csv *c;       feed *d;
 *     feed_item it;
 *     if (csv_open(&c, path, &err) == 0 && feed_open(&d, spec, c, &err) == 0)
 *         while ((rc = feed_next(d, &it, &err)) == 1) forest_score(f, it.features, 1, raw, score); */
#ifndef FOREST_FEED_H
#define FOREST_FEED_H

#include "formats/csv.h"
#include "forest/series.h"

enum { FEED_SENSORS_MAX = 1 << 16 };

typedef struct feed feed;

typedef struct feed_item {
    const char *sensor, *time; /* "" when the file has no such column; until the next call */
    size_t line;               /* of the row, from 1 */
    size_t row;                /* which row of its sensor, or of the table, from 0 */
    const float *z;            /* [window][n_channels]; NULL in a table */
    const double *features;    /* [n_features]; NULL for a model that takes windows alone */
} feed_item;

/* Both are borrowed. SHOAL_EINVALID, naming what is missing, when the columns are neither the model's
 * features nor its channels. A model without names of features takes as many columns, in order. */
int feed_open(feed **ret, const series_spec *spec, csv *c, shoal_err *err);
/* 1 with *ret set, 0 at the end, or a negative code. */
int feed_next(feed *d, feed_item *ret, shoal_err *err);
void feed_close(feed *d); /* NULL is fine */

size_t feed_rows(const feed *d);    /* rows read */
size_t feed_sensors(const feed *d); /* sensors met; 0 in a table */

#endif
