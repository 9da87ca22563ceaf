/* scorer.c: see scorer.h. */
#define _GNU_SOURCE
#include "forest/scorer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

struct scorer {
    forest *f;
    series_spec *spec;
    char **numbers;      /* [n_classes] labels of classes without a name */
    char *config, *path; /* files; config NULL when no folder was opened */
};

/* Read FOLDER/config.json; an absent one leaves *ret NULL. */
static int read_config(series_spec **ret, const char *folder, shoal_err *err)
{
    shoal_err why = {0};
    int rc = series_spec_read(ret, folder, &why);
    if (rc == SHOAL_ENOTFOUND) return 0;
    return rc == 0 ? 0 : err_set(err, rc, "%s", why.message);
}

static int open_folder(scorer *s, const char *folder, shoal_err *err)
{
    int rc = read_config(&s->spec, folder, err);
    if (rc != 0) return rc;
    if (!s->spec || !s->spec->file)
        return err_set(err, SHOAL_ENOTFOUND,
                       "%s: no config.json that names a model in \"file\"; name the model file itself",
                       folder);
    if (asprintf(&s->config, "%s/config.json", folder) < 0) s->config = NULL;
    if (asprintf(&s->path, "%s/%s.gz", folder, s->spec->file) < 0) s->path = NULL;
    if (!s->config || !s->path) return err_nomem(err);
    if (!file_exists(s->path)) s->path[strlen(s->path) - 3] = '\0';
    return forest_open(&s->f, s->path, err);
}

/* Is `name` the file that a config.json names, packed or not? */
static bool scorer_is_named(const char *name, const char *file)
{
    size_t n = file ? strlen(file) : 0;
    return n > 0 && strncmp(name, file, n) == 0 && (!name[n] || strcmp(name + n, ".gz") == 0);
}

/* The config.json beside a model file, when it is that file's. */
static int open_file(scorer *s, const char *path, shoal_err *err)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    s->path = strdup(path);
    int rc = s->path ? forest_open(&s->f, path, err) : err_nomem(err);
    if (rc != 0) return rc;
    char *folder = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
    if (!folder) return err_nomem(err);
    series_spec *spec = NULL;
    shoal_err ignored;
    rc = read_config(&spec, folder, &ignored); /* it may be another program's: then the model stands alone */
    free(folder);
    if (rc == SHOAL_ENOMEM) return err_nomem(err);
    bool ours = rc == 0 && spec && (scorer_is_named(name, spec->file) || scorer_is_named(name, spec->also));
    if (ours)
        s->spec = spec;
    else if (rc == 0)
        series_spec_free(spec);
    return 0;
}

/* "f0", "f1", ...: what XGBoost calls features without a name. */
static int numbered_spec(scorer *s, size_t n, shoal_err *err)
{
    arena *mem = arena_new(0);
    const char **names = mem ? arena_alloc(mem, n * sizeof *names) : NULL;
    bool ok = names != NULL;
    for (size_t i = 0; ok && i < n; i++) ok = (names[i] = arena_printf(mem, "f%zu", i)) != NULL;
    int rc = ok ? series_spec_of_names(&s->spec, names, n, err) : err_nomem(err);
    arena_free(mem);
    return rc;
}

static int check_features(const series_spec *spec, const forest_info *info, shoal_err *err)
{
    if (spec->n_features != info->n_features)
        return err_set(err, SHOAL_EINVALID, "config.json names %zu features, the model has %zu",
                       spec->n_features, info->n_features);
    for (size_t i = 0; info->features && i < info->n_features; i++)
        if (strcmp(spec->names[i], info->features[i]) != 0)
            return err_set(err, SHOAL_EINVALID,
                           "feature %zu is \"%.80s\" in config.json and \"%.80s\" in the model", i,
                           spec->names[i], info->features[i]);
    if (spec->n_labels && info->n_classes && spec->n_labels != info->n_classes)
        return err_set(err, SHOAL_EINVALID, "config.json names %zu labels, the model has %zu classes",
                       spec->n_labels, info->n_classes);
    return 0;
}

static int fit_spec(scorer *s, shoal_err *err)
{
    const forest_info *info = forest_about(s->f);
    if (s->spec) return check_features(s->spec, info, err);
    if (info->features) return series_spec_of_names(&s->spec, info->features, info->n_features, err);
    return numbered_spec(s, info->n_features, err);
}

static int number_classes(scorer *s, shoal_err *err)
{
    size_t n = forest_about(s->f)->n_classes;
    s->numbers = calloc(n + 1, sizeof *s->numbers);
    if (!s->numbers) return err_nomem(err);
    for (size_t i = 0; i < n; i++) {
        if (asprintf(&s->numbers[i], "%zu", i) >= 0) continue;
        s->numbers[i] = NULL;
        return err_nomem(err);
    }
    return 0;
}

int scorer_open(scorer **ret, const char *path, shoal_err *err)
{
    scorer *s = calloc(1, sizeof *s);
    if (!s) return err_nomem(err);
    int rc = file_is_dir(path) ? open_folder(s, path, err) : open_file(s, path, err);
    if (rc == 0) rc = fit_spec(s, err);
    if (rc == 0) rc = number_classes(s, err);
    if (rc != 0)
        scorer_close(s);
    else
        *ret = s;
    return rc;
}

void scorer_close(scorer *s)
{
    if (!s) return;
    for (size_t i = 0; s->numbers && s->numbers[i]; i++) free(s->numbers[i]);
    free(s->numbers);
    forest_free(s->f);
    series_spec_free(s->spec);
    free(s->config);
    free(s->path);
    free(s);
}

static int add_file(sha256 *h, const char *path, shoal_err *err)
{
    file_map map = {0};
    int rc = file_map_open(&map, path, err);
    if (rc == 0) sha256_add(h, map.data, map.len);
    file_map_close(&map);
    return rc;
}

int scorer_digest(const scorer *s, sha256_digest *ret, shoal_err *err)
{
    sha256 *h = sha256_new();
    sha256_digest d;
    if (!h) return err_nomem(err);
    int rc = s->config ? add_file(h, s->config, err) : 0;
    if (rc == 0) rc = add_file(h, s->path, err);
    sha256_end(h, &d);
    if (rc == 0) *ret = d;
    return rc;
}

const forest *scorer_forest(const scorer *s)
{
    return s->f;
}

const series_spec *scorer_spec(const scorer *s)
{
    return s->spec;
}

const char *scorer_label(const scorer *s, size_t class)
{
    if (class < s->spec->n_labels) return s->spec->labels[class];
    return class < forest_about(s->f)->n_classes ? s->numbers[class] : "";
}

static size_t likeliest(const double *p, size_t n)
{
    size_t best = 0;
    for (size_t i = 1; i < n; i++) best = p[i] > p[best] ? i : best;
    return best;
}

/* raw, score and classes lie behind each other in `out`. */
static int run_items(const scorer *s, feed *d, double *out, scorer_row_fn row, void *user, shoal_err *err)
{
    const forest_info *info = forest_about(s->f);
    double *score = out + info->n_outputs, *classes = score + info->n_outputs;
    scorer_row r = {.raw = out, .score = score, .classes = info->n_classes ? classes : NULL};
    int rc;
    while ((rc = feed_next(d, &r.item, err)) == 1) {
        forest_score(s->f, r.item.features, 1, out, score);
        if (r.classes) {
            forest_classes(s->f, score, classes);
            r.best = likeliest(classes, info->n_classes);
        }
        rc = row(&r, user, err);
        if (rc != 0) break;
    }
    return rc;
}

int scorer_feed(const scorer *s, feed *d, scorer_row_fn row, void *user, shoal_err *err)
{
    const forest_info *info = forest_about(s->f);
    double *out = calloc(2 * info->n_outputs + info->n_classes, sizeof *out);
    int rc = out ? run_items(s, d, out, row, user, err) : err_nomem(err);
    free(out);
    return rc;
}

int scorer_run(const scorer *s, csv *c, scorer_row_fn row, void *user, shoal_err *err)
{
    feed *d = NULL;
    int rc = feed_open(&d, s->spec, c, err);
    if (rc == 0) rc = scorer_feed(s, d, row, user, err);
    feed_close(d);
    return rc;
}
