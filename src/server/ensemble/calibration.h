/* calibration.h: a member's confidence map and threshold as a file: what `shoal calibrate` writes and a
 * gateway reads.
 *
 *     {"model": "home-chat-s", "digest": "9f2c...", "min_confidence": 0.83, "n": 400,
 *      "mean": 0.71, "spread": 0.38, "points": [[0.41, 0.12], [0.78, 0.64], [0.97, 0.98]]}
 *
 * The digest is of the model file whose answers were judged: with another one the numbers mean nothing. */
#ifndef ENSEMBLE_CALIBRATION_H
#define ENSEMBLE_CALIBRATION_H

#include "base/buf.h"
#include "base/err.h"
#include "ensemble/confidence.h"

#define CALIBRATION_BYTES_MAX ((size_t)64 << 10)

typedef struct calibration {
    char model[65], digest[65]; /* digest "": not known */
    double min_confidence;
    size_t n; /* samples it was made of */
    /* Of their confidences after the map, 0 where below min_confidence; spread 0: not known. */
    double mean, spread;
    confidence_map map;
} calibration;

/* SHOAL_EFORMAT and SHOAL_EINVALID name the file and say what is wrong; no map that falls is taken. */
int calibration_parse(calibration *ret, const char *text, size_t len, const char *what, shoal_err *err);
/* The map, mean and spread of n samples, which are sorted; the threshold is *ret's. */
void calibration_fit(calibration *ret, confidence_sample *samples, size_t n);
int calibration_load(calibration *ret, const char *path, shoal_err *err);
void calibration_put(buf *out, const calibration *c); /* one line */

#endif
