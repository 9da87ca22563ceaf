/* series.h: windows of a machine's sensors, made comparable by a running median, and their features.
 *
 * A sensor sends one row of channels at a time (NaN: no reading). Behind the last `window` rows lie up to
 * `baseline` older ones; of a channel's baseline values, sorted as s[n], come m     = s[n / 2] scale =
 * max(1.4826 * median |s - m|, (s[ceil(.95 (n - 1))] - s[floor(.05 (n - 1))]) / 3.29, floor) and the window's
 * z = clip((x - m) / scale), as floats; a missing one repeats the z before it, 0 at the start. With fewer
 * than least_baseline values in any channel the sensor is still warming up. The first window ends at row
 * window + least_baseline (from 0), a further one every `stride` rows.
 *
 *     series_spec *spec;                      // config.json of the model
 *     series *s;                              // one a sensor
 *     float z[spec->window * spec->n_channels];
 *     while (...) if (series_push(s, row, z, &err) == 1) series_features(spec, z, features);
 *
 * The medians are kept sorted as rows come and go, so that a row costs two short memmoves a channel and a
 * window a few binary searches. A series belongs to one thread; a spec is read-only.
 *
 * Features, of a channel's z over the window, in double and rounded to float: mean; std (divided by the
 * window); slope, the least-squares line's rise over the window; max; kurtosis m4 / m2^2 - 3 (0 when m2 <
 * 1e-9). */
#ifndef FOREST_SERIES_H
#define FOREST_SERIES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

enum { SERIES_WINDOW_MAX = 1 << 16, SERIES_BASELINE_MAX = 1 << 20, SERIES_CHANNELS_MAX = 1024 };

/* X(enum, name behind the channel's) */
#define SERIES_STATS(X)    \
    X(STAT_MEAN, "mean")   \
    X(STAT_STD, "std")     \
    X(STAT_SLOPE, "slope") \
    X(STAT_MAX, "max")     \
    X(STAT_KURTOSIS, "kurtosis")
typedef enum series_stat {
#define SERIES_STAT_ENUM(e, name) e,
    SERIES_STATS(SERIES_STAT_ENUM)
#undef SERIES_STAT_ENUM
        STAT_COUNT
} series_stat;

typedef struct series_feature {
    size_t channel;
    series_stat stat;
} series_feature;

/* What a model's config.json says about its input. */
typedef struct series_spec {
    size_t n_channels;
    const char *const *channels; /* [n_channels] columns of a series; 0 for a model of tables alone */
    size_t window, baseline, least_baseline, stride; /* rows; window 0 without channels */
    double rate_hz, clip;
    const double *floor; /* [n_channels] */
    size_t n_features;
    const char *const *names;       /* [n_features] columns of a table; 0 for a model of windows */
    const series_feature *features; /* [n_features]; NULL without channels */
    size_t n_labels;
    const char *const *labels; /* [n_labels] classes, in the order of the outputs */
    const char *file, *also;   /* model files in the folder; NULL */
} series_spec;

/* Read a config.json: "channels" or "features", "normalization", "id2label", "file". A normalisation that is
 * not the one above is SHOAL_EUNSUPPORTED, by name. `what` names the text in errors. Free *ret with
 * series_spec_free. */
int series_spec_parse(series_spec **ret, const char *json, size_t n, const char *what, shoal_err *err);
/* The same from FOLDER/config.json; SHOAL_ENOTFOUND when there is none. */
int series_spec_read(series_spec **ret, const char *folder, shoal_err *err);
/* The same of a table model without config.json: its features' names, copied. */
int series_spec_of_names(series_spec **ret, const char *const *names, size_t n, shoal_err *err);
void series_spec_free(series_spec *spec); /* NULL is fine */

typedef struct series series;
/* One sensor; memory grows with its rows up to (window + 2 baseline) doubles a channel. spec must outlive it.
 */
int series_new(series **ret, const series_spec *spec, shoal_err *err);
void series_free(series *s); /* NULL is fine */

/* Take the next row[n_channels]. 1: a window is due and z[window][n_channels] holds it; 0: none now;
 * SHOAL_ENOMEM: the row was not taken. */
int series_push(series *s, const double *row, float *z, shoal_err *err);
size_t series_count(const series *s); /* rows taken */

/* ret[n_features] = the features of z[window][n_channels]. */
void series_features(const series_spec *spec, const float *z, double *ret);

#endif
