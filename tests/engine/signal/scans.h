/* scans.h: JPEG files of many scans, by libjpeg. */
#ifndef TESTS_SIGNAL_SCANS_H
#define TESTS_SIGNAL_SCANS_H

#include <stdio.h>
#include <stdlib.h>

#include <jpeglib.h>

#include "base/buf.h"

/* Grey; the DC coefficients, and then each AC coefficient in a scan of its own. */
static inline buf make_scans(uint32_t side, int n_scans)
{
    static jpeg_scan_info scans[64];
    struct jpeg_compress_struct c;
    struct jpeg_error_mgr errors;
    uint8_t *bytes = NULL, *row = malloc(side);
    unsigned long n = 0;
    c.err = jpeg_std_error(&errors);
    jpeg_create_compress(&c);
    jpeg_mem_dest(&c, &bytes, &n);
    c.image_width = c.image_height = side;
    c.input_components = 1;
    c.in_color_space = JCS_GRAYSCALE;
    jpeg_set_defaults(&c);
    for (int i = 0; i < n_scans; i++) {
        scans[i] = (jpeg_scan_info){.comps_in_scan = 1, .Ss = i, .Se = i};
        if (i + 1 == n_scans && i > 0) scans[i].Se = 63;
    }
    if (n_scans > 1) {
        c.scan_info = scans;
        c.num_scans = n_scans;
    }
    jpeg_start_compress(&c, TRUE);
    for (uint32_t y = 0; y < side; y++) {
        for (uint32_t x = 0; x < side; x++) row[x] = (uint8_t)(x * y);
        JSAMPROW r = row;
        jpeg_write_scanlines(&c, &r, 1);
    }
    jpeg_finish_compress(&c);
    jpeg_destroy_compress(&c);
    buf b = {0};
    buf_append(&b, bytes, n);
    free(bytes);
    free(row);
    return b;
}

#endif
