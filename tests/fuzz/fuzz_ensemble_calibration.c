/* Bytes as a calibration: what is taken rises, stays within 0 and 1, and is read back as it was written. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "ensemble/calibration.h"
#include "memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_map(const confidence_map *map)
{
    double before = 0;
    if (map->n_points == 0 || map->n_points > CONFIDENCE_POINTS_MAX) abort();
    for (int i = -1; i <= 101; i++) {
        double is = confidence_of(map, i / 100.0);
        if (!(is >= before - 1e-9 && is <= 1)) abort();
        before = is;
    }
}

/* Numbers are written with six digits: points that lie closer than that are one after it, and are refused. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    calibration c, back;
    shoal_err err;
    buf text = {0};
    if (calibration_parse(&c, (const char *)data, size, "fuzz", &err) != 0) return 0;
    check_map(&c.map);
    calibration_put(&text, &c);
    if (holds(!text.failed) && calibration_parse(&back, text.data, text.len, "again", &err) == 0) {
        if (back.n != c.n || fabs(back.mean - c.mean) > 1e-5 || back.map.n_points != c.map.n_points) abort();
        check_map(&back.map);
    }
    buf_done(&text);
    return 0;
}
