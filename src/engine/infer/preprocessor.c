/* preprocessor.c: see preprocessor.h. */
#define _GNU_SOURCE
#include "infer/preprocessor.h"

#include <stdlib.h>
#include <string.h>

#include "json/json.h"
#include "infer/async_batch.h"

/* ---- opening ------------------------------------------------------------------------------------------- */

int preprocessor_refuse_of_trees(const char *path, shoal_err *err)
{
    return err_set(err, SHOAL_EUNSUPPORTED,
                   "%s: trees have no matrices: adapters, regroup and kv_type are for networks", path);
}

int preprocessor_open_trees(preprocessor *ret, const char *path, shoal_err *err)
{
    preprocessor in = {0};
    int rc = scorer_open(&in.trees, path, err);
    if (rc != 0) return rc;
    const forest_info *info = forest_about(scorer_forest(in.trees));
    in.n_labels = info->n_classes;
    in.n_raw = info->n_outputs;
    in.labels = calloc(in.n_labels + 1, sizeof *in.labels);
    if (!in.labels) {
        preprocessor_done(&in);
        return err_nomem(err);
    }
    for (size_t i = 0; i < in.n_labels; i++) in.labels[i] = scorer_label(in.trees, i);
    *ret = in;
    return 0;
}

/* How its windows are made, by config.json; not knowing is no failure yet. */
static int open_series(preprocessor *in, const model *m, const char *path, shoal_err *err)
{
    const char *text = model_series_json(m);
    const series_conf *want = &in->config->series;
    shoal_err why = {0};
    int rc = text ? series_spec_parse(&in->spec, text, strlen(text), path, &why) : SHOAL_EUNSUPPORTED;
    if (rc == SHOAL_ENOMEM) return err_nomem(err);
    if (rc == 0 && in->spec->n_channels == want->n_input) return 0;
    if (rc == 0 && in->spec->n_channels > 0)
        return err_set(err, SHOAL_EFORMAT, "config.json names %zu channels, the network reads %zu",
                       in->spec->n_channels, want->n_input);
    series_spec_free(in->spec);
    in->spec = NULL;
    err_set(&in->why, SHOAL_EUNSUPPORTED,
            "nothing says how its windows are made: that takes a config.json (or a GGUF file's "
            "shoal.series_config) with \"channels\" and "
            "\"normalization\"%s%.300s",
            *why.message ? "; " : "", why.message);
    return 0;
}

static int read_steps(image_prep *ret, const char *text, const char *path, shoal_err *err)
{
    json_t *root = NULL;
    int rc = json_parse(&root, text, strlen(text), path, err);
    if (rc != 0) return rc;
    rc = image_prep_read(ret, root, err);
    json_decref(root);
    return rc == 0 ? 0 : err_prefix(err, rc, "%s: preprocessor_config.json", path);
}

/* Whatever a picture's size, what comes out has to be what the network reads. */
static int check_steps(const preprocessor *in, shoal_err *err)
{
    uint32_t w, h;
    size_t side = in->config->image.size;
    int rc = image_prep_shape(&in->prep, (uint32_t)side, (uint32_t)side, &w, &h, err);
    if (rc == 0 && (w != side || h != side || in->config->image.channels != 3))
        rc = err_set(err, SHOAL_EUNSUPPORTED,
                     "pictures are made %u x %u x 3, and the network reads %zu x %zu x %zu", (unsigned)w,
                     (unsigned)h, side, side, in->config->image.channels);
    return rc;
}

static int open_image(preprocessor *in, const model *m, const char *path, shoal_err *err)
{
    const char *text = model_preprocessor_json(m);
    image_prep_default(&in->prep, (uint32_t)in->config->image.size);
    int rc = text ? read_steps(&in->prep, text, path, err) : 0;
    if (!text)
        in->notice =
            "no preprocessor_config.json: using ViT's default preprocessing, with mean and deviation 0.5";
    return rc == 0 ? check_steps(in, err) : rc;
}

int preprocessor_open(preprocessor *ret, const char *path, const model *m, engine *e, shoal_err *err)
{
    const model_config *config = model_get_config(m);
    size_t n = config->head.n_labels;
    preprocessor in = {.engine = e, .config = config, .n_labels = n, .n_raw = n};
    in.labels = calloc(n + 1, sizeof *in.labels);
    if (!in.labels) return err_nomem(err);
    for (size_t i = 0; i < n; i++) in.labels[i] = config->head.labels[i];
    int rc = config->task == TASK_SCORE   ? open_series(&in, m, path, err)
             : config->task == TASK_IMAGE ? open_image(&in, m, path, err)
                                          : 0;
    if (rc == 0)
        *ret = in;
    else
        preprocessor_done(&in);
    return rc;
}

void preprocessor_done(preprocessor *in)
{
    scorer_close(in->trees);
    series_spec_free(in->spec);
    free(in->labels);
    *in = (preprocessor){0};
}

/* ---- rows ---------------------------------------------------------------------------------------------- */

typedef struct run {
    const preprocessor *in;
    async_batch batch;
    double *raw, *score;  /* [n_labels] */
    float *probabilities; /* [n_labels] */
    scorer_row_fn row;
    void *user;
    uint64_t deadline_ns;
    preprocessor_totals *totals;
} run;

/* Sensor and time lie behind each other in the tag. */
static int note_item(async_batch_slot *s, const feed_item *it, shoal_err *err)
{
    s->at[0] = it->line;
    s->at[1] = it->row;
    buf_append(&s->tag, it->sensor, strlen(it->sensor) + 1);
    return buf_append(&s->tag, it->time, strlen(it->time) + 1) == 0 ? 0 : err_nomem(err);
}

/* The window that began first is scored: hand it on. */
static int land(run *r, shoal_err *err)
{
    async_batch_slot *s;
    size_t n = r->batch.n_values;
    int rc = async_batch_wait(&r->batch, &s, err);
    if (rc != 0) return rc;
    engine_scores(r->in->engine, s->values, r->probabilities);
    scorer_row out = {.raw = r->raw, .score = r->score, .classes = r->score};
    for (size_t i = 0; i < n; i++) {
        r->raw[i] = (double)s->values[i];
        r->score[i] = (double)r->probabilities[i];
        if (r->score[i] > r->score[out.best]) out.best = i;
    }
    const char *sensor = s->tag.data;
    out.item =
        (feed_item){.sensor = sensor, .time = sensor + strlen(sensor) + 1, .line = s->at[0], .row = s->at[1]};
    r->totals->n_items++;
    return r->row(&out, r->user, err);
}

/* A full batch gives half its slots back at once, so that the engine's batches stay large. A queue that
 * others have filled is waited for only with seats of our own. */
static int start_window(run *r, const feed_item *it, shoal_err *err)
{
    const series_spec *spec = r->in->spec;
    enc_request q = {.features = it->z,
                     .n_features = spec->window,
                     .width = spec->n_channels,
                     .deadline_ns = r->deadline_ns};
    async_batch_slot *s = NULL;
    int rc = 0;
    if (async_batch_full(&r->batch))
        for (int i = 0; rc == 0 && i < ASYNC_BATCH_SLOTS / 2; i++) rc = land(r, err);
    if (rc != 0) return rc;
    while ((rc = async_batch_add(&r->batch, &q, &s, err)) == SHOAL_EFULL && !async_batch_empty(&r->batch)) {
        rc = land(r, err);
        if (rc != 0) return rc;
    }
    return rc == 0 ? note_item(s, it, err) : rc;
}

static int run_windows(run *r, feed *d, shoal_err *err)
{
    feed_item it;
    int rc;
    while ((rc = feed_next(d, &it, err)) == 1)
        if ((rc = start_window(r, &it, err)) != 0) break;
    while (rc == 0 && !async_batch_empty(&r->batch)) rc = land(r, err);
    return rc;
}

static int score_windows(const preprocessor *in, feed *d, uint64_t deadline_ns, const cancel_check *cancel,
                         scorer_row_fn row, void *user, preprocessor_totals *totals, shoal_err *err)
{
    size_t n = in->config->head.n_labels;
    run *r = calloc(1, sizeof *r); /* a batch is too large for a thread's stack */
    if (!r) return err_nomem(err);
    *r = (run){.in = in, .row = row, .user = user, .deadline_ns = deadline_ns, .totals = totals};
    r->raw = calloc(2 * n + 1, sizeof *r->raw);
    r->probabilities = calloc(n + 1, sizeof *r->probabilities);
    r->score = r->raw ? r->raw + n : NULL;
    int rc =
        r->raw && r->probabilities ? async_batch_open(&r->batch, in->engine, n, cancel, err) : err_nomem(err);
    if (rc == 0) {
        rc = run_windows(r, d, err);
        async_batch_close(&r->batch);
    }
    free(r->raw);
    free(r->probabilities);
    free(r);
    return rc;
}

typedef struct counted {
    scorer_row_fn row;
    void *user;
    size_t n;
} counted;

static int count_row(const scorer_row *row, void *user, shoal_err *err)
{
    counted *c = user;
    c->n++;
    return c->row(row, c->user, err);
}

int preprocessor_score(const preprocessor *in, csv *c, uint64_t deadline_ns, scorer_row_fn row, void *user,
                       preprocessor_totals *ret_totals, shoal_err *err)
{
    feed *d = NULL;
    counted trees = {.row = row, .user = user};
    *ret_totals = (preprocessor_totals){0};
    if (!in->trees && !in->spec)
        return err_set(err, SHOAL_EUNSUPPORTED, "%s",
                       *in->why.message ? in->why.message : "the model does not score rows");
    int rc = feed_open(&d, in->trees ? scorer_spec(in->trees) : in->spec, c, err);
    if (rc != 0) return rc;
    if (in->trees) {
        rc = scorer_feed(in->trees, d, count_row, &trees, err);
        ret_totals->n_items = trees.n;
    } else {
        rc = score_windows(in, d, deadline_ns, csv_get_cancel(c), row, user, ret_totals, err);
    }
    ret_totals->n_rows = feed_rows(d);
    ret_totals->n_sensors = feed_sensors(d);
    feed_close(d);
    return rc;
}

/* ---- pictures ------------------------------------------------------------------------------------------ */

static int no_pictures(shoal_err *err)
{
    return err_set(err, SHOAL_EUNSUPPORTED, "the model does not look at pictures");
}

int preprocessor_look_at(const preprocessor *in, const float *pixels, uint64_t deadline_ns,
                         const cancel_check *cancel, float *ret_logits, shoal_err *err)
{
    if (in->trees || in->config->image.size == 0) return no_pictures(err);
    size_t side = in->config->image.size;
    enc_request q = {.features = pixels,
                     .n_features = in->config->image.channels * side,
                     .width = side,
                     .deadline_ns = deadline_ns};
    async_batch *f = calloc(1, sizeof *f);
    async_batch_slot *s = NULL;
    int rc = f ? async_batch_open(f, in->engine, in->n_labels, cancel, err) : err_nomem(err);
    if (rc == 0) {
        rc = async_batch_add(f, &q, NULL, err);
        if (rc == 0) rc = async_batch_wait(f, &s, err);
        if (rc == 0) memcpy(ret_logits, s->values, in->n_labels * sizeof *ret_logits);
        async_batch_close(f);
    }
    free(f);
    return rc;
}

/* *ret is malloc'd. */
static int make_pixels(const preprocessor *in, const image *im, float **ret, shoal_err *err)
{
    uint32_t w, h;
    size_t side = in->config->image.size;
    int rc = image_prep_shape(&in->prep, im->width, im->height, &w, &h, err);
    if (rc != 0) return rc;
    if (w != side || h != side)
        return err_set(
            err, SHOAL_EINVALID,
            "a picture of %u x %u becomes %u x %u by the model's steps, and the network reads %zu x %zu",
            (unsigned)im->width, (unsigned)im->height, (unsigned)w, (unsigned)h, side, side);
    float *px = malloc(3 * side * side * sizeof *px);
    if (!px) return err_nomem(err);
    rc = image_prep_run(&in->prep, im, px, err);
    if (rc == 0)
        *ret = px;
    else
        free(px);
    return rc;
}

int preprocessor_pixels(const preprocessor *in, const void *bytes, size_t n, const image_limits *limits,
                        float **ret, shoal_err *err)
{
    static const image_limits ours = {.max_pixels = PREPROCESSOR_PIXELS_MAX};
    image im = {0};
    if (in->trees || in->config->image.size == 0) return no_pictures(err);
    int rc = image_decode(&im, bytes, n, limits ? limits : &ours, err);
    if (rc == 0) rc = make_pixels(in, &im, ret, err);
    image_done(&im);
    return rc;
}

int preprocessor_look(const preprocessor *in, const void *bytes, size_t n, uint64_t deadline_ns,
                      float *ret_logits, shoal_err *err)
{
    float *px = NULL;
    int rc = preprocessor_pixels(in, bytes, n, NULL, &px, err);
    if (rc == 0) rc = preprocessor_look_at(in, px, deadline_ns, NULL, ret_logits, err);
    free(px);
    return rc;
}
