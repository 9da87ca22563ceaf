/* feed.c: see feed.h. Sensors are found by name in an open-addressed table that is at most half full. */
#include "forest/feed.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

typedef struct sensor {
    char *name;
    series *s;
} sensor;

struct feed {
    const series_spec *spec;
    csv *c;
    bool table;
    size_t *columns; /* of the features, resp. the channels */
    long sensor_column, time_column;
    size_t n_rows, n_sensors, cap; /* cap: a power of two */
    sensor *sensors;
    double *row, *features;
    float *z;
};

/* ---- columns ------------------------------------------------------------------------------------------- */

static long first_of(const csv *c, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (csv_column(c, names[i]) >= 0) return csv_column(c, names[i]);
    return -1;
}

/* The columns of n names; false with the first that is missing. */
static bool find_columns(const csv *c, const char *const *names, size_t n, size_t *ret,
                         const char **ret_missing)
{
    for (size_t i = 0; i < n; i++) {
        long at = csv_column(c, names[i]);
        if (at < 0) {
            *ret_missing = names[i];
            return false;
        }
        ret[i] = (size_t)at;
    }
    return n > 0;
}

/* Names that trainers give to features without one say nothing but the order. */
static bool names_say_nothing(const series_spec *spec)
{
    char a[32], b[32];
    for (size_t i = 0; i < spec->n_features; i++) {
        snprintf(a, sizeof a, "Column_%zu", i);
        snprintf(b, sizeof b, "f%zu", i);
        if (strcmp(spec->names[i], a) != 0 && strcmp(spec->names[i], b) != 0) return false;
    }
    return spec->n_channels == 0;
}

static int no_columns(const feed *d, const char *missing, const char *channel, shoal_err *err)
{
    if (channel && missing)
        return err_set(
            err, SHOAL_EINVALID,
            "the CSV has neither the model's channels (column \"%.80s\" is missing) nor its features "
            "(\"%.80s\" is missing)",
            channel, missing);
    if (!channel && !missing)
        return err_set(err, SHOAL_EINVALID, "the model has %zu unnamed features, and the CSV has %zu columns",
                       d->spec->n_features, csv_columns(d->c));
    return err_set(err, SHOAL_EINVALID, "the CSV has no column \"%.80s\"", channel ? channel : missing);
}

static int choose_columns(feed *d, shoal_err *err)
{
    static const char *const sensor[] = {"sensor", "sensor_id", "machine", "id"};
    static const char *const time[] = {"t", "time", "timestamp"};
    const series_spec *spec = d->spec;
    const char *missing = NULL, *channel = NULL;
    d->table = find_columns(d->c, spec->names, spec->n_features, d->columns, &missing);
    if (!d->table && names_say_nothing(spec)) {
        missing = NULL;
        d->table = csv_columns(d->c) == spec->n_features;
        for (size_t i = 0; d->table && i < spec->n_features; i++) d->columns[i] = i;
    }
    if (!d->table && !find_columns(d->c, spec->channels, spec->n_channels, d->columns, &channel))
        return no_columns(d, missing, channel, err);
    d->sensor_column = first_of(d->c, sensor, sizeof sensor / sizeof *sensor);
    d->time_column = first_of(d->c, time, sizeof time / sizeof *time);
    return 0;
}

int feed_open(feed **ret, const series_spec *spec, csv *c, shoal_err *err)
{
    size_t most = spec->n_features > spec->n_channels ? spec->n_features : spec->n_channels;
    feed *d = calloc(1, sizeof *d);
    if (!d) return err_nomem(err);
    d->spec = spec;
    d->c = c;
    d->columns = calloc(most + 1, sizeof *d->columns);
    d->row = calloc(most + 1, sizeof *d->row);
    d->features = calloc(spec->n_features + 1, sizeof *d->features);
    d->z = calloc(spec->window * spec->n_channels + 1, sizeof *d->z);
    int rc = d->columns && d->row && d->features && d->z ? choose_columns(d, err) : err_nomem(err);
    if (rc != 0)
        feed_close(d);
    else
        *ret = d;
    return rc;
}

void feed_close(feed *d)
{
    if (!d) return;
    for (size_t i = 0; i < d->cap; i++) {
        free(d->sensors[i].name);
        series_free(d->sensors[i].s);
    }
    free(d->sensors);
    free(d->columns);
    free(d->row);
    free(d->features);
    free(d->z);
    free(d);
}

size_t feed_rows(const feed *d)
{
    return d->n_rows;
}

size_t feed_sensors(const feed *d)
{
    return d->n_sensors;
}

/* ---- sensors ------------------------------------------------------------------------------------------- */

/* Where a name is, or would be; cap > 0 and not all full. */
static sensor *slot(sensor *table, size_t cap, const char *name)
{
    uint64_t h = 0xcbf29ce484222325u; /* FNV-1a */
    for (const char *p = name; *p; p++) h = (h ^ (uint8_t)*p) * 0x100000001b3u;
    size_t i = h & (cap - 1);
    while (table[i].name && strcmp(table[i].name, name) != 0) i = (i + 1) & (cap - 1);
    return &table[i];
}

static int feed_grow(feed *d, shoal_err *err)
{
    size_t cap = d->cap ? d->cap * 2 : 64;
    sensor *table = calloc(cap, sizeof *table);
    if (!table) return err_nomem(err);
    for (size_t i = 0; i < d->cap; i++)
        if (d->sensors[i].name) *slot(table, cap, d->sensors[i].name) = d->sensors[i];
    free(d->sensors);
    d->sensors = table;
    d->cap = cap;
    return 0;
}

static int find_sensor(feed *d, const char *name, sensor **ret, shoal_err *err)
{
    int rc = 2 * d->n_sensors >= d->cap ? feed_grow(d, err) : 0;
    if (rc != 0) return rc;
    sensor *s = slot(d->sensors, d->cap, name);
    if (!s->name) {
        if (d->n_sensors == FEED_SENSORS_MAX)
            return err_set(err, SHOAL_ELIMIT, "line %zu: more than %d sensors", csv_line(d->c),
                           FEED_SENSORS_MAX);
        series *fresh = NULL;
        rc = series_new(&fresh, d->spec, err);
        if (rc != 0) return rc;
        s->name = strdup(name);
        if (!s->name) {
            series_free(fresh);
            return err_nomem(err);
        }
        s->s = fresh;
        d->n_sensors++;
    }
    *ret = s;
    return 0;
}

/* ---- items --------------------------------------------------------------------------------------------- */

static int read_row(feed *d, double *to, size_t n, shoal_err *err)
{
    for (size_t i = 0; i < n; i++) {
        int rc = csv_number(d->c, d->columns[i], &to[i], err);
        if (rc != 0) return rc;
    }
    return 0;
}

static int next_table(feed *d, feed_item *it, shoal_err *err)
{
    it->features = d->features;
    it->row = d->n_rows - 1;
    int rc = read_row(d, d->features, d->spec->n_features, err);
    return rc != 0 ? rc : 1;
}

static int next_window(feed *d, feed_item *it, shoal_err *err)
{
    sensor *s = NULL;
    int rc = read_row(d, d->row, d->spec->n_channels, err);
    if (rc == 0) rc = find_sensor(d, it->sensor, &s, err);
    if (rc == 0) rc = series_push(s->s, d->row, d->z, err);
    if (rc != 1) return rc;
    it->row = series_count(s->s) - 1;
    it->z = d->z;
    if (d->spec->n_features) {
        series_features(d->spec, d->z, d->features);
        it->features = d->features;
    }
    return 1;
}

int feed_next(feed *d, feed_item *ret, shoal_err *err)
{
    int rc;
    while ((rc = csv_next(d->c, err)) == 1) {
        d->n_rows++;
        *ret = (feed_item){.sensor = d->sensor_column < 0 ? "" : csv_field(d->c, (size_t)d->sensor_column),
                           .time = d->time_column < 0 ? "" : csv_field(d->c, (size_t)d->time_column),
                           .line = csv_line(d->c)};
        rc = d->table ? next_table(d, ret, err) : next_window(d, ret, err);
        if (rc != 0) break;
    }
    return rc;
}
