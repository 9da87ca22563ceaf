/* Bytes as a LightGBM or XGBoost model; what is read must score any row. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "forest/forest.h"
#include "memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void score_rows(const forest *f)
{
    static const double values[] = {0, 1, -1.5, NAN, INFINITY, -INFINITY, 33, 1e300};
    const forest_info *info = forest_about(f);
    double *row = calloc(info->n_features, sizeof *row), *out = calloc(2 * info->n_outputs + 2, sizeof *out);
    for (size_t v = 0; row && out && v < sizeof values / sizeof *values; v++) {
        for (size_t i = 0; i < info->n_features; i++)
            row[i] = values[(v + i) % (sizeof values / sizeof *values)];
        forest_score(f, row, 1, out, out + info->n_outputs);
        if (info->n_classes) forest_classes(f, out + info->n_outputs, out);
    }
    free(row);
    free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    forest *f = NULL;
    shoal_err err;
    if (forest_parse(&f, (const char *)data, size, "fuzz", &err) == 0) score_rows(f);
    forest_free(f);
    return 0;
}
