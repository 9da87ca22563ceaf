/* batch_window.c: see batch_window.h. */
#include "batches/batch_window.h"

#include <stdlib.h>

enum { PARTS = 8 };

int64_t batch_window_bytes(int64_t file_bytes)
{
    int64_t n = file_bytes / PARTS;
    return n < BATCH_WINDOW_MIN ? BATCH_WINDOW_MIN : n > BATCH_WINDOW_MAX ? BATCH_WINDOW_MAX : n;
}

static bool holds(const batch_window *w, int64_t start, int64_t n_bytes)
{
    return w->bytes && n_bytes >= 0 && n_bytes <= w->n && start >= w->start &&
           start - w->start <= w->n - n_bytes;
}

static int fill(batch_window *w, store *s, int64_t input, int64_t start, int64_t n_bytes, shoal_err *err)
{
    int64_t size = 0;
    int rc = store_file_size(s, input, &size, err);
    if (rc == 0 && (start < 0 || n_bytes < 0 || start > size || n_bytes > size - start))
        rc = err_set(err, SHOAL_EFORMAT, "the input file is shorter than it was");
    if (rc != 0) return rc;
    int64_t n = batch_window_bytes(size);
    if (n > size - start) n = size - start;
    if (n < n_bytes) n = n_bytes;
    char *bytes = malloc((size_t)n + 1);
    if (!bytes) return err_nomem(err);
    rc = store_file_read(s, input, start, n, bytes, err);
    if (rc != 0) {
        free(bytes);
        return rc;
    }
    free(w->bytes);
    *w = (batch_window){bytes, start, n};
    return 0;
}

int batch_window_read(batch_window *w, store *s, int64_t input, int64_t start, int64_t n_bytes,
                      const char **ret, shoal_err *err)
{
    int rc = holds(w, start, n_bytes) ? 0 : fill(w, s, input, start, n_bytes, err);
    if (rc == 0) *ret = w->bytes + (start - w->start);
    return rc;
}

void batch_window_done(batch_window *w)
{
    free(w->bytes);
    *w = (batch_window){0};
}
