/* calibration.c: see calibration.h. */
#include "ensemble/calibration.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "json/json.h"

static int wrong(shoal_err *err, const char *what, const char *sentence)
{
    return err_set(err, SHOAL_EINVALID, "%s: %s; write it anew with shoal calibrate", what, sentence);
}

static bool take_point(const json_t *v, confidence_point *ret)
{
    const json_t *said = json_array_get(v, 0), *is = json_array_get(v, 1);
    if (json_array_size(v) != 2 || !json_is_number(said) || !json_is_number(is)) return false;
    *ret = (confidence_point){json_number_value(said), json_number_value(is)};
    return ret->said >= 0 && ret->said <= 1 && ret->is >= 0 && ret->is <= 1;
}

static int take_points(calibration *c, const json_t *list, const char *what, shoal_err *err)
{
    size_t n = json_array_size(list);
    if (!json_is_array(list) || n == 0 || n > CONFIDENCE_POINTS_MAX)
        return wrong(err, what, "points must be a list of 1 to 32 pairs");
    for (size_t i = 0; i < n; i++) {
        confidence_point *p = &c->map.points[i];
        if (!take_point(json_array_get(list, i), p))
            return wrong(err, what, "a point is no pair of numbers from 0 to 1");
        if (i > 0 && (p->said <= p[-1].said || p->is < p[-1].is))
            return wrong(err, what, "its points must rise");
    }
    c->map.n_points = n;
    return 0;
}

static int calibration_take_text(const json_t *o, const char *key, char ret[65], const char *what,
                                 shoal_err *err)
{
    const char *s = "";
    int rc = json_get_str(o, key, &s, err);
    if (rc == 0 && strlen(s) > 64) return wrong(err, what, "a name in it is too long");
    if (rc == 0) snprintf(ret, 65, "%s", s);
    return rc;
}

int calibration_parse(calibration *ret, const char *text, size_t len, const char *what, shoal_err *err)
{
    json_t *o = NULL;
    int64_t n = 0;
    *ret = (calibration){0};
    int rc = json_parse(&o, text, len, what, err);
    if (rc == 0 && !json_is_object(o)) rc = wrong(err, what, "it is no object");
    if (rc == 0) rc = calibration_take_text(o, "model", ret->model, what, err);
    if (rc == 0) rc = calibration_take_text(o, "digest", ret->digest, what, err);
    if (rc == 0) rc = json_get_num(o, "min_confidence", 0, 1, &ret->min_confidence, err);
    if (rc == 0) rc = json_get_int(o, "n", 0, INT32_MAX, &n, err);
    if (rc == 0) rc = json_get_num(o, "mean", 0, 1, &ret->mean, err);
    if (rc == 0) rc = json_get_num(o, "spread", 0, 1, &ret->spread, err);
    if (rc == 0) rc = take_points(ret, json_object_get(o, "points"), what, err);
    ret->n = (size_t)n;
    json_decref(o);
    return rc;
}

void calibration_fit(calibration *ret, confidence_sample *samples, size_t n)
{
    double sum = 0, squares = 0;
    confidence_fit(&ret->map, samples, n);
    for (size_t i = 0; i < n; i++) {
        double is = confidence_of(&ret->map, samples[i].said);
        if (is < ret->min_confidence) continue;
        sum += is;
        squares += is * is;
    }
    ret->n = n;
    ret->mean = n ? sum / (double)n : 0;
    double variance = n ? squares / (double)n - ret->mean * ret->mean : 0;
    ret->spread = variance > 0 ? sqrt(variance) : 0;
}

int calibration_load(calibration *ret, const char *path, shoal_err *err)
{
    json_t *o;
    buf text = {0};
    int rc = json_parse_file(&o, path, CALIBRATION_BYTES_MAX, err);
    if (rc != 0) return rc;
    rc = json_put(&text, o) || text.failed ? err_nomem(err)
                                           : calibration_parse(ret, text.data, text.len, path, err);
    json_decref(o);
    buf_done(&text);
    return rc;
}

void calibration_put(buf *out, const calibration *c)
{
    buf_puts(out, "{\"model\": ");
    json_put_string(out, c->model, strlen(c->model));
    buf_puts(out, ", \"digest\": ");
    json_put_string(out, c->digest, strlen(c->digest));
    buf_printf(out, ", \"min_confidence\": %.6g, \"n\": %zu, \"mean\": %.6g, \"spread\": %.6g, \"points\": [",
               c->min_confidence, c->n, c->mean, c->spread);
    for (size_t i = 0; i < c->map.n_points; i++)
        buf_printf(out, "%s[%.6g, %.6g]", i ? ", " : "", c->map.points[i].said, c->map.points[i].is);
    buf_puts(out, "]}\n");
}
