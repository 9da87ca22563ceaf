/* sampling.c: values against the rows of the table, and defaults as text. */
#include "json/sampling.h"

#include <assert.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"

#define FIELDS \
    "there are temperature, top_k, top_p, min_p, repetition_penalty, presence_penalty, frequency_penalty"

const sampling_defaults SAMPLING_OLLAMA = {
    .temperature = 0.8F, .top_k = 40, .top_p = 0.9F, .repetition_penalty = 1, .said = SAMPLING_ALL};
const sampling_defaults SAMPLING_LLAMA = {.temperature = 0.8F,
                                          .top_k = 40,
                                          .top_p = 0.95F,
                                          .min_p = 0.05F,
                                          .repetition_penalty = 1,
                                          .said = SAMPLING_ALL};
const sampling_defaults SAMPLING_LAST = {
    .temperature = 0.8F, .top_p = 0.95F, .min_p = 0.05F, .repetition_penalty = 1, .said = SAMPLING_ALL};
const sampling_defaults SAMPLING_GREEDY = {.top_p = 1, .repetition_penalty = 1, .said = SAMPLING_ALL};

static const struct {
    const char *field;
    double min, max;
    size_t at; /* in sampling_defaults */
} rows[] = {
#define ROW(name, least, most) {#name, least, most, offsetof(sampling_defaults, name)},
    SAMPLING_TABLE(ROW)
#undef ROW
};

/* SAMPLING_N_FIELDS: none. */
static size_t sampling_find(const char *field, size_t len)
{
    size_t i = 0;
    while (i < SAMPLING_N_FIELDS && (strncmp(rows[i].field, field, len) != 0 || rows[i].field[len])) i++;
    return i;
}

static float *value_at(const sampling_defaults *d, size_t i)
{
    return (float *)((char *)d + rows[i].at);
}

int sampling_check(const char *field, double v, shoal_err *err)
{
    size_t i = sampling_find(field, strlen(field));
    assert(i < SAMPLING_N_FIELDS);
    if (i == SAMPLING_N_FIELDS) return err_set(err, SHOAL_EINTERNAL, "%s has no range", field);
    if (i == SAMPLING_AT_top_k && v != floor(v))
        return err_set(err, SHOAL_EINVALID, "top_k is %g; it must be a whole number", v);
    if (v == 0 || (v >= rows[i].min && v <= rows[i].max)) return 0; /* false for NaN */
    return err_set(err, SHOAL_EINVALID, "%s is %g; it must be from %g to %g%s", field, v, rows[i].min,
                   rows[i].max, rows[i].min > 0 ? ", or 0 for none" : "");
}

/* ---- defaults ------------------------------------------------------------------------------------ */

bool sampling_is_field(const char *name)
{
    return sampling_find(name, strlen(name)) < SAMPLING_N_FIELDS;
}

int sampling_set(sampling_defaults *d, const char *field, double v, shoal_err *err)
{
    int rc = sampling_check(field, v, err);
    if (rc != 0) return rc;
    size_t i = sampling_find(field, strlen(field));
    *value_at(d, i) = (float)v;
    d->said |= 1u << i;
    return 0;
}

bool sampling_get(const sampling_defaults *d, const char *field, double *ret)
{
    size_t i = sampling_find(field, strlen(field));
    if (i == SAMPLING_N_FIELDS || !(d->said & 1u << i)) return false;
    *ret = (double)*value_at(d, i);
    return true;
}

void sampling_override(sampling_defaults *d, const sampling_defaults *over)
{
    for (size_t i = 0; i < SAMPLING_N_FIELDS; i++)
        if (over->said & 1u << i) *value_at(d, i) = *value_at(over, i);
    d->said |= over->said;
}

int sampling_from_json(sampling_defaults *ret, const json_t *o, shoal_err *err)
{
    sampling_defaults d = {0};
    const char *field;
    json_t *v;
    if (o && !json_is_null(o) && !json_is_object(o))
        return err_set(err, SHOAL_EINVALID, "\"sampling\" must be an object");
    json_object_foreach((json_t *)o, field, v)
    {
        if (!sampling_is_field(field))
            return err_set(err, SHOAL_EINVALID, "\"sampling\" has no \"%.40s\": " FIELDS, field);
        if (!json_is_number(v))
            return err_set(err, SHOAL_EINVALID, "\"sampling\": \"%s\" must be a number", field);
        int rc = sampling_set(&d, field, json_number_value(v), err);
        if (rc != 0) return err_prefix(err, rc, "\"sampling\"");
    }
    *ret = d;
    return 0;
}

/* The fewest decimals that give the same float again; returns the length. */
static size_t sampling_put_value(char *ret, size_t size, float v)
{
    enum { DECIMALS_MAX = 9 };
    int n = 0;
    for (int decimals = 0; decimals <= DECIMALS_MAX; decimals++) {
        double back = 0;
        n = snprintf(ret, size, "%.*f", decimals, (double)v);
        if (number_double(ret, &back) && (float)back == v) break;
    }
    return (size_t)n;
}

void sampling_format(const sampling_defaults *d, char ret[SAMPLING_TEXT_BYTES])
{
    size_t n = 0;
    *ret = '\0';
    for (size_t i = 0; i < SAMPLING_N_FIELDS; i++)
        if (d->said & 1u << i) {
            n += (size_t)snprintf(ret + n, SAMPLING_TEXT_BYTES - n, "%s%s=", n ? "," : "", rows[i].field);
            n += sampling_put_value(ret + n, SAMPLING_TEXT_BYTES - n, *value_at(d, i));
        }
    assert(n < SAMPLING_TEXT_BYTES); /* seven names of at most 18 letters, and numbers of at most 17 */
}

static int parse_one(sampling_defaults *d, const char *item, size_t len, shoal_err *err)
{
    const char *equals = memchr(item, '=', len);
    size_t n = equals ? (size_t)(equals - item) : len, i = sampling_find(item, n);
    char number[32];
    double v;
    if (i == SAMPLING_N_FIELDS)
        return err_set(err, SHOAL_EINVALID, "\"%.*s\" is no sampling field: " FIELDS, (int)(n < 40 ? n : 40),
                       item);
    snprintf(number, sizeof number, "%.*s", equals ? (int)(len - n - 1) : 0, equals ? equals + 1 : "");
    if (!number_double(number, &v))
        return err_set(err, SHOAL_EINVALID, "%s wants a number: \"%s=0.5\"", rows[i].field, rows[i].field);
    return sampling_set(d, rows[i].field, v, err);
}

int sampling_parse(sampling_defaults *ret, const char *text, shoal_err *err)
{
    sampling_defaults d = {0};
    int rc = 0;
    for (const char *p = text; rc == 0 && *p;) {
        size_t len = strcspn(p, ",");
        rc = parse_one(&d, p, len, err);
        p += len + (p[len] == ',');
    }
    if (rc == 0) *ret = d;
    return rc;
}
