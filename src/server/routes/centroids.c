/* centroids.c: the file, and the nearest; see centroids.h. */
#include "routes/centroids.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/file.h"
#include "json/json.h"
#include "json/json_put.h"

static int damaged(shoal_err *err, const char *what, const char *why)
{
    return err_set(err, SHOAL_EFORMAT, "%s: %s; make it again with \"shoal route train\"", what, why);
}

static double length_of(const float *v, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += (double)v[i] * (double)v[i];
    return sqrt(sum);
}

/* ---- the file ------------------------------------------------------------------------------------ */

static int read_vector(float *to, size_t n, const json_t *from, const char *what, shoal_err *err)
{
    if (json_array_size(from) != n)
        return damaged(err, what, "a vector has not as many numbers as 'dimensions' says");
    for (size_t i = 0; i < n; i++) {
        const json_t *v = json_array_get(from, i);
        if (!json_is_number(v)) return damaged(err, what, "a vector holds something else than numbers");
        to[i] = (float)json_number_value(v);
    }
    double length = length_of(to, n);
    if (!isfinite(length) || length <= 0) return damaged(err, what, "a vector has no length");
    for (size_t i = 0; i < n; i++) to[i] = (float)((double)to[i] / length);
    return 0;
}

static int read_centroid(centroids *c, size_t i, const json_t *from, const char *what, shoal_err *err)
{
    arena *mem = c->memory;
    const char *name = NULL;
    int64_t n_examples = 0;
    int rc = json_get_str(from, "name", &name, err);
    if (rc == 0) rc = json_get_int(from, "examples", 0, INT64_MAX, &n_examples, err);
    if (rc != 0) return rc;
    if (!name || !*name) return damaged(err, what, "a domain has no name");
    centroid *to = &c->at[i];
    *to = (centroid){.name = arena_strdup(mem, name),
                     .n_examples = (size_t)n_examples,
                     .vector = arena_alloc(mem, c->n_dimensions * sizeof(float))};
    if (!to->name || !to->vector) return err_nomem(err);
    return read_vector(to->vector, c->n_dimensions, json_object_get(from, "vector"), what, err);
}

static int centroids_read_all(centroids *c, const json_t *root, const char *what, shoal_err *err)
{
    const char *object = "", *model = "", *digest = "";
    int64_t n_dimensions = 0;
    const json_t *list = json_object_get(root, "domains");
    int rc = json_get_str(root, "object", &object, err);
    if (rc == 0) rc = json_get_str(root, "model", &model, err);
    if (rc == 0) rc = json_get_str(root, "digest", &digest, err);
    if (rc == 0) rc = json_get_int(root, "dimensions", 1, CENTROIDS_DIMENSIONS_MAX, &n_dimensions, err);
    if (rc != 0) return rc;
    if (strcmp(object, "shoal.centroids") != 0 || n_dimensions == 0)
        return damaged(err, what, "is no file of centroids");
    size_t n = json_array_size(list);
    if (n == 0 || n > CENTROIDS_MAX) return damaged(err, what, "'domains' must have 1 to 256 entries");
    c->model = arena_strdup(c->memory, model);
    c->digest = arena_strdup(c->memory, digest);
    c->n_dimensions = (size_t)n_dimensions;
    c->n = n;
    c->at = arena_alloc(c->memory, n * sizeof *c->at);
    if (!c->model || !c->digest || !c->at) return err_nomem(err);
    for (size_t i = 0; rc == 0 && i < n; i++) rc = read_centroid(c, i, json_array_get(list, i), what, err);
    return rc;
}

static centroids *centroids_make(void)
{
    arena *mem = arena_new(0);
    centroids *c = mem ? arena_alloc(mem, sizeof *c) : NULL;
    if (!c) {
        arena_free(mem);
        return NULL;
    }
    *c = (centroids){.memory = mem};
    return c;
}

int centroids_parse(centroids **ret, const char *json, size_t len, const char *what, shoal_err *err)
{
    json_t *root = NULL;
    int rc = json_parse(&root, json, len, what, err);
    if (rc != 0) return rc;
    centroids *c = centroids_make();
    rc = c ? centroids_read_all(c, root, what, err) : err_nomem(err);
    json_decref(root);
    if (rc == 0)
        *ret = c;
    else
        centroids_free(c);
    return rc;
}

int centroids_load(centroids **ret, const char *path, shoal_err *err)
{
    buf text = {0};
    int rc = file_read(&text, path, CENTROIDS_MAX_BYTES, err);
    if (rc == 0) rc = centroids_parse(ret, text.data ? text.data : "", text.len, path, err);
    buf_done(&text);
    return rc;
}

void centroids_free(centroids *c)
{
    if (c) arena_free(c->memory);
}

/* ---- the nearest --------------------------------------------------------------------------------- */

int centroids_nearest(const centroids *c, const float *vector, double *ret_cosine)
{
    double length = length_of(vector, c->n_dimensions), best = -2;
    int found = -1;
    if (!isfinite(length) || length <= 0) return -1;
    for (size_t i = 0; i < c->n; i++) {
        double dot = 0;
        for (size_t k = 0; k < c->n_dimensions; k++) dot += (double)c->at[i].vector[k] * (double)vector[k];
        if (dot <= best) continue;
        best = dot;
        found = (int)i;
    }
    *ret_cosine = best / length;
    return found;
}

/* ---- making them --------------------------------------------------------------------------------- */

centroids *centroids_new(const char *model, const char *digest, size_t n_dimensions, const char *const *names,
                         size_t n)
{
    centroids *c = centroids_make();
    if (!c) return NULL;
    c->model = model;
    c->digest = digest;
    c->n_dimensions = n_dimensions;
    c->n = n;
    c->at = arena_alloc(c->memory, (n + 1) * sizeof *c->at);
    bool whole = c->at != NULL;
    for (size_t i = 0; whole && i < n; i++) {
        c->at[i] =
            (centroid){.name = names[i], .vector = arena_alloc(c->memory, n_dimensions * sizeof(float))};
        whole = c->at[i].vector != NULL;
    }
    if (whole) return c;
    centroids_free(c);
    return NULL;
}

void centroids_add(centroids *c, size_t domain, const float *vector, double times)
{
    centroid *to = &c->at[domain];
    double length = length_of(vector, c->n_dimensions);
    if (!isfinite(length) || length <= 0) return;
    for (size_t k = 0; k < c->n_dimensions; k++)
        to->vector[k] = (float)((double)to->vector[k] + times * (double)vector[k] / length);
    if (times > 0) to->n_examples++;
}

void centroids_put(buf *out, const centroids *c)
{
    buf_puts(out, "{\"object\":\"shoal.centroids\",\"model\":");
    json_put_string(out, c->model, strlen(c->model));
    json_put_text(out, "digest", c->digest);
    buf_printf(out, ",\"dimensions\":%zu,\"domains\":[", c->n_dimensions);
    for (size_t i = 0; i < c->n; i++) {
        const centroid *from = &c->at[i];
        double length = length_of(from->vector, c->n_dimensions);
        buf_puts(out, i ? ",\n{\"name\":" : "\n{\"name\":");
        json_put_string(out, from->name, strlen(from->name));
        buf_printf(out, ",\"examples\":%zu,\"vector\":[", from->n_examples);
        for (size_t k = 0; k < c->n_dimensions; k++)
            buf_printf(out, k ? ",%.5g" : "%.5g", length > 0 ? (double)from->vector[k] / length : 0.0);
        buf_puts(out, "]}");
    }
    buf_puts(out, "\n]}\n");
}
