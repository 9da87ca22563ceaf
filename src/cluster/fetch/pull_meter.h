/* pull_meter.h: how far a download is. On a terminal one live line; elsewhere a line when a file begins, at
 * each quarter and at its end; for a program lines of JSON: {"file":"x.gguf","sha256":"...","total":1000,
 * "completed":250}, without what nobody knows. Nothing is printed with `quiet`. */
#ifndef FETCH_PULL_METER_H
#define FETCH_PULL_METER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef struct pull_meter {
    FILE *to; /* NULL: quiet */
    bool live, events;
    const char *name, *sha256; /* sha256: what the file is to be, set before begin; NULL or "": not known */
    bool has_total;
    uint64_t total, from, at; /* bytes: of the file, where this run began, now */
    double began_s, drawn_s;
    int quarter; /* said so far */
} pull_meter;

void pull_meter_init(pull_meter *m, FILE *to); /* live when `to` is a terminal */
void pull_meter_begin(pull_meter *m, const char *name, bool has_total, uint64_t total, uint64_t from);
void pull_meter_at(pull_meter *m, uint64_t bytes);
void pull_meter_end(pull_meter *m, const char *how); /* "done", "stopped" */
/* A line of its own, with the live one out of the way; without control characters. */
void pull_meter_say(pull_meter *m, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
