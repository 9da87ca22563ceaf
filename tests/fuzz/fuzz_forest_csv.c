/* Bytes as a CSV for a small model of windows, and for one of tables. */
#include <stdint.h>
#include <string.h>

#include "forest/feed.h"
#include "memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_all(const series_spec *spec, const uint8_t *data, size_t size)
{
    csv *c = NULL;
    feed *d = NULL;
    feed_item it;
    shoal_err err;
    if (csv_over(&c, (const char *)data, size, "fuzz", &err) == 0 && feed_open(&d, spec, c, &err) == 0)
        while (feed_next(d, &it, &err) == 1) {
        }
    feed_close(d);
    csv_close(c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char windows[] =
        "{\"features\":[\"a_mean\",\"a_std\",\"b_slope\",\"b_max\",\"b_kurtosis\"],\"normalization\":{"
        "\"window\":3,"
        "\"baseline\":4,\"least_baseline\":2,\"stride\":1,\"floor\":{\"a\":0.1,\"b\":0.1},\"clip\":8}}";
    static const char *const names[] = {"f0", "f1"};
    series_spec *spec = NULL, *table = NULL;
    shoal_err err;
    if (holds(series_spec_parse(&spec, windows, strlen(windows), "spec", &err) == 0))
        read_all(spec, data, size);
    if (holds(series_spec_of_names(&table, names, 2, &err) == 0)) read_all(table, data, size);
    series_spec_free(spec);
    series_spec_free(table);
    return 0;
}
