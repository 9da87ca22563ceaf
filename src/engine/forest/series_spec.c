/* series_spec.c: config.json of models of windows and tables; see series.h. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "json/hub_file.h"
#include "json/json.h"
#include "forest/forest.h"
#include "forest/series.h"

enum { CONFIG_MAX = 16 << 20 };

/* What series_spec_free needs to find. */
typedef struct owner {
    series_spec spec; /* first */
    arena *mem;
} owner;

static const char *const STAT_NAMES[] = {
#define SERIES_STAT_NAME(e, name) name,
    SERIES_STATS(SERIES_STAT_NAME)
#undef SERIES_STAT_NAME
};

/* What the normalisation must say word for word, since it is what series.c does. */
static const struct {
    const char *key, *value;
} FIXED[] = {
    {"method", "running median and MAD"},
    {"scale", "max(1.4826*MAD, (p95-p5)/3.29, floor)"},
    {"median_index", "n/2"},
    {"p5_index", "floor(0.05*(n-1))"},
    {"p95_index", "ceil(0.95*(n-1))"},
    {"missing", "previous z in the window, 0 at its start"},
};

/* A list of names, copied; absent leaves *ret_n 0. */
static int read_names(arena *mem, const json_t *o, const char *key, size_t max, const char *const **ret,
                      size_t *ret_n, shoal_err *err)
{
    const json_t *a = json_object_get(o, key);
    size_t n = json_array_size(a);
    if (!a) return 0;
    if (!json_is_array(a) || n == 0 || n > max)
        return err_set(err, SHOAL_EINVALID, "\"%s\" must be a list of 1 to %zu names", key, max);
    const char **names = arena_alloc(mem, n * sizeof *names);
    for (size_t i = 0; names && i < n; i++) {
        const char *s = json_string_value(json_array_get(a, i));
        if (!s || !*s) return err_set(err, SHOAL_EINVALID, "\"%s\" entry %zu is no name", key, i);
        if (!(names[i] = arena_strdup(mem, s))) return err_nomem(err);
    }
    *ret = names;
    *ret_n = n;
    return names ? 0 : err_nomem(err);
}

/* {"0": "normal", "1": "drift"} */
static int read_labels(arena *mem, const json_t *root, series_spec *spec, shoal_err *err)
{
    const json_t *o = json_object_get(root, "id2label");
    size_t n = json_object_size(o);
    if (n == 0 || n > FOREST_OUTPUTS_MAX) return 0;
    const char **labels = arena_alloc(mem, n * sizeof *labels);
    for (size_t i = 0; labels && i < n; i++) {
        char key[24];
        snprintf(key, sizeof key, "%zu", i);
        const char *s = json_string_value(json_object_get(o, key));
        if (!s) return err_set(err, SHOAL_EINVALID, "\"id2label\" has no name for %zu", i);
        if (!(labels[i] = arena_strdup(mem, s))) return err_nomem(err);
    }
    spec->labels = labels;
    spec->n_labels = n;
    return labels ? 0 : err_nomem(err);
}

/* Without "channels", they are what the features' names begin with, in the order of their first appearance.
 */
static int channels_of_features(arena *mem, series_spec *spec, shoal_err *err)
{
    const char **channels = arena_alloc(mem, SERIES_CHANNELS_MAX * sizeof *channels);
    size_t n = 0;
    if (!channels) return err_nomem(err);
    for (size_t i = 0; i < spec->n_features; i++) {
        const char *bar = strrchr(spec->names[i], '_');
        size_t len = bar ? (size_t)(bar - spec->names[i]) : 0, c = 0;
        while (c < n && !(strlen(channels[c]) == len && memcmp(channels[c], spec->names[i], len) == 0)) c++;
        if (c < n) continue;
        if (len == 0 || n == SERIES_CHANNELS_MAX)
            return err_set(err, SHOAL_EINVALID, "the feature \"%.80s\" is not CHANNEL_STATISTIC",
                           spec->names[i]);
        if (!(channels[n++] = arena_strndup(mem, spec->names[i], len))) return err_nomem(err);
    }
    spec->channels = channels;
    spec->n_channels = n;
    return 0;
}

static int read_feature(const series_spec *spec, const char *name, series_feature *ret, shoal_err *err)
{
    for (size_t c = 0; c < spec->n_channels; c++) {
        size_t n = strlen(spec->channels[c]);
        if (strncmp(name, spec->channels[c], n) != 0 || name[n] != '_') continue;
        for (size_t s = 0; s < STAT_COUNT; s++) {
            if (strcmp(name + n + 1, STAT_NAMES[s]) != 0) continue;
            *ret = (series_feature){.channel = c, .stat = (series_stat)s};
            return 0;
        }
    }
    return err_set(err, SHOAL_EUNSUPPORTED,
                   "the feature \"%.80s\" is not known; a channel's are mean, std, slope, max "
                   "and kurtosis",
                   name);
}

static int read_features(arena *mem, series_spec *spec, shoal_err *err)
{
    series_feature *features = arena_alloc(mem, spec->n_features * sizeof *features + 1);
    if (!features) return err_nomem(err);
    for (size_t i = 0; i < spec->n_features; i++) {
        int rc = read_feature(spec, spec->names[i], &features[i], err);
        if (rc != 0) return rc;
    }
    spec->features = features;
    return 0;
}

static int read_floors(arena *mem, const json_t *norm, series_spec *spec, shoal_err *err)
{
    const json_t *o = json_object_get(norm, "floor");
    double *floors = arena_alloc(mem, spec->n_channels * sizeof *floors + 1);
    if (!floors) return err_nomem(err);
    for (size_t c = 0; c < spec->n_channels; c++) {
        int rc = json_get_num(o, spec->channels[c], 1e-30, 1e30, &floors[c], err);
        if (rc == 0 && floors[c] == 0)
            rc = err_set(err, SHOAL_EINVALID, "\"floor\" has no number for \"%.80s\"", spec->channels[c]);
        if (rc != 0) return rc;
    }
    spec->floor = floors;
    return 0;
}

static int check_method(const json_t *norm, shoal_err *err)
{
    for (size_t i = 0; i < sizeof FIXED / sizeof *FIXED; i++) {
        const char *said = FIXED[i].value;
        int rc = json_get_str(norm, FIXED[i].key, &said, err);
        if (rc != 0) return rc;
        if (strcmp(said, FIXED[i].value) != 0)
            return err_set(err, SHOAL_EUNSUPPORTED,
                           "the normalization's \"%s\" is \"%.80s\"; \"%s\" is known", FIXED[i].key, said,
                           FIXED[i].value);
    }
    bool ends_before = true;
    int rc = json_get_bool(norm, "baseline_ends_before_window", &ends_before, err);
    if (rc == 0 && !ends_before)
        rc = err_set(err, SHOAL_EUNSUPPORTED, "a baseline that overlaps its window is not known");
    return rc;
}

static int read_sizes(const json_t *norm, series_spec *spec, shoal_err *err)
{
    struct {
        const char *key;
        int64_t max, value;
        size_t *to;
    } sizes[] = {
        {"window", SERIES_WINDOW_MAX, 0, &spec->window},
        {"baseline", SERIES_BASELINE_MAX, 0, &spec->baseline},
        {"least_baseline", SERIES_BASELINE_MAX, 1, &spec->least_baseline},
        {"stride", SERIES_BASELINE_MAX, 1, &spec->stride},
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        int rc = json_get_int(norm, sizes[i].key, 1, sizes[i].max, &sizes[i].value, err);
        if (rc != 0) return rc;
        if (sizes[i].value == 0) return err_set(err, SHOAL_EINVALID, "\"%s\" is missing", sizes[i].key);
        *sizes[i].to = (size_t)sizes[i].value;
    }
    if (spec->least_baseline > spec->baseline)
        return err_set(err, SHOAL_EINVALID, "\"least_baseline\" is over \"baseline\"");
    if ((spec->window + spec->baseline) * spec->n_channels > 1u << 24)
        return err_set(err, SHOAL_ELIMIT, "window and baseline of %zu channels are too large",
                       spec->n_channels);
    spec->clip = 1e30;
    int rc = json_get_num(norm, "clip", 1e-3, 1e30, &spec->clip, err);
    return rc != 0 ? rc : json_get_num(norm, "rate_hz", 1e-9, 1e9, &spec->rate_hz, err);
}

static int read_series(arena *mem, const json_t *root, series_spec *spec, shoal_err *err)
{
    const json_t *norm = json_object_get(root, "normalization");
    if (!json_is_object(norm)) return 0;
    int rc = read_names(mem, root, "channels", SERIES_CHANNELS_MAX, &spec->channels, &spec->n_channels, err);
    if (rc == 0 && spec->n_channels == 0) rc = channels_of_features(mem, spec, err);
    if (rc == 0 && spec->n_channels == 0)
        rc = err_set(err, SHOAL_EINVALID, "\"channels\" and \"features\" are missing");
    if (rc == 0) rc = check_method(norm, err);
    if (rc == 0) rc = read_sizes(norm, spec, err);
    if (rc == 0) rc = read_floors(mem, norm, spec, err);
    return rc != 0 ? rc : read_features(mem, spec, err);
}

/* A model file's name in the same folder. */
static int read_file_name(arena *mem, const json_t *root, const char *key, const char **ret, shoal_err *err)
{
    const char *s = NULL;
    int rc = json_get_str(root, key, &s, err);
    if (rc != 0 || !s) return rc;
    if (strchr(s, '/') || s[0] == '.' || !*s)
        return err_set(err, SHOAL_EINVALID, "\"%s\" must be a plain name in the same folder", key);
    *ret = arena_strdup(mem, s);
    return *ret ? 0 : err_nomem(err);
}

static int spec_new(series_spec **ret, arena **ret_mem, shoal_err *err)
{
    arena *mem = arena_new(0);
    owner *o = mem ? arena_alloc(mem, sizeof *o) : NULL;
    if (!o) {
        arena_free(mem);
        return err_nomem(err);
    }
    o->mem = *ret_mem = mem;
    *ret = &o->spec;
    return 0;
}

int series_spec_parse(series_spec **ret, const char *json, size_t n, const char *what, shoal_err *err)
{
    json_t *root = NULL;
    series_spec *spec = NULL;
    arena *mem = NULL;
    int rc = json_parse(&root, json, n, what, err);
    if (rc != 0) return rc;
    rc = spec_new(&spec, &mem, err);
    if (rc == 0)
        rc = read_names(mem, root, "features", FOREST_FEATURES_MAX, &spec->names, &spec->n_features, err);
    if (rc == 0) rc = read_labels(mem, root, spec, err);
    if (rc == 0) rc = read_file_name(mem, root, "file", &spec->file, err);
    if (rc == 0) rc = read_file_name(mem, root, "also", &spec->also, err);
    if (rc == 0) rc = read_series(mem, root, spec, err);
    json_decref(root);
    if (rc != 0) {
        series_spec_free(spec);
        return err_prefix(err, rc, "%s", what);
    }
    *ret = spec;
    return 0;
}

int series_spec_read(series_spec **ret, const char *folder, shoal_err *err)
{
    buf text = {0};
    char *path = NULL;
    if (asprintf(&path, "%s/config.json", folder) < 0) return err_nomem(err);
    int rc = hub_file_read_json(&text, path, CONFIG_MAX, err);
    if (rc == 0) rc = series_spec_parse(ret, text.data ? text.data : "", text.len, path, err);
    buf_done(&text);
    free(path);
    return rc;
}

int series_spec_of_names(series_spec **ret, const char *const *names, size_t n, shoal_err *err)
{
    series_spec *spec = NULL;
    arena *mem = NULL;
    int rc = spec_new(&spec, &mem, err);
    if (rc != 0) return rc;
    const char **copy = arena_alloc(mem, n * sizeof *copy + 1);
    bool ok = copy != NULL;
    for (size_t i = 0; ok && i < n; i++) ok = (copy[i] = arena_strdup(mem, names[i])) != NULL;
    if (!ok) {
        series_spec_free(spec);
        return err_nomem(err);
    }
    spec->names = copy;
    spec->n_features = n;
    *ret = spec;
    return 0;
}

void series_spec_free(series_spec *spec)
{
    if (spec) arena_free(((owner *)(void *)spec)->mem);
}
