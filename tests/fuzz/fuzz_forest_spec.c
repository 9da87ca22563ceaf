/* Bytes as a config.json; what is read must serve a few rows. */
#include <stdint.h>
#include <stdlib.h>

#include "forest/series.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void push_rows(const series_spec *spec)
{
    series *s = NULL;
    shoal_err err;
    double *row = calloc(spec->n_channels, sizeof *row),
           *features = calloc(spec->n_features + 1, sizeof *features);
    float *z = calloc(spec->window * spec->n_channels, sizeof *z);
    int rc = row && features && z ? series_new(&s, spec, &err) : SHOAL_ENOMEM;
    for (size_t t = 0; rc >= 0 && t < 100; t++) {
        for (size_t c = 0; c < spec->n_channels; c++) row[c] = (double)((t * 7 + c) % 13);
        rc = series_push(s, row, z, &err);
        if (rc == 1 && spec->n_features) series_features(spec, z, features);
    }
    series_free(s);
    free(row);
    free(features);
    free(z);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    series_spec *spec = NULL;
    shoal_err err;
    if (series_spec_parse(&spec, (const char *)data, size, "fuzz", &err) == 0 && spec->n_channels &&
        spec->window)
        push_rows(spec);
    series_spec_free(spec);
    return 0;
}
