/* batch_window.h: lines of a batch's input, read many at a time.
 *
 * The input is one row of the store. SQLite finds a place in it by a walk over its pages from the first on, so to read line by
 * line would take time in the square of the file's length. A window has the part of the file that holds the next lines.
 *
 *     batch_window w = {0};
 *     rc = batch_window_read(&w, store, input, line.start, line.n_bytes, &text, err);
 *     batch_window_done(&w);
 *
 * One thread at a time. */
#ifndef BATCHES_BATCH_WINDOW_H
#define BATCHES_BATCH_WINDOW_H

#include "retrieve/store_batch.h"

enum { BATCH_WINDOW_MIN = 256 << 10, BATCH_WINDOW_MAX = 4 << 20 };

typedef struct batch_window { /* zeroed: empty */
    char *bytes;
    int64_t start, n;
} batch_window;

/* How much of a file of that size is read at once. */
int64_t batch_window_bytes(int64_t file_bytes);
/* n_bytes of the file from `start`, without a NUL, until the next call. Errors as store_file_read's. */
int batch_window_read(batch_window *w, store *s, int64_t input, int64_t start, int64_t n_bytes,
                      const char **ret, shoal_err *err);
void batch_window_done(batch_window *w); /* empty again */

#endif
