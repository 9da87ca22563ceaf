/* batch_check.h: a batch's input read and checked, in a thread of the executor's.
 *
 * An input in which every line is a request becomes the batch's lines, and it is in progress; else it fails, with what is
 * wrong by line, up to BATCH_FAULTS of them. */
#ifndef BATCHES_BATCH_CHECK_H
#define BATCHES_BATCH_CHECK_H

#include "batches/batch_line.h"
#include "retrieve/store_batch.h"

enum { BATCH_FAULTS = 100 };

typedef struct batch_check {
    int64_t id, input, now;
    const char *endpoint;
    size_t most_line_bytes;
    int64_t most_lines;
} batch_check;

/* 0: it runs now, or has failed. Else it is as it was, and may be checked again. */
int batch_check_run(const batch_check *c, store *s, steps *count, shoal_err *err);

#endif
