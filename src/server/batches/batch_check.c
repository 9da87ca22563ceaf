/* batch_check.c: see batch_check.h. */
#include "batches/batch_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "batches/batch_put.h"
#include "batches/batch_window.h"

typedef struct checker {
    const batch_check *of;
    arena *mem;
    store_batch_line *lines;
    size_t n, cap;
    buf faults; /* JSON, separated by commas */
    int n_faults;
} checker;

static int add_fault(checker *c, const batch_fault *f, int64_t line)
{
    if (c->n_faults++ < BATCH_FAULTS) batch_put_fault(&c->faults, f, line);
    return c->faults.failed ? SHOAL_ENOMEM : 0;
}

static int add_line(checker *c, const store_batch_line *l)
{
    if (c->n == c->cap) {
        size_t cap = c->cap ? 2 * c->cap : 64;
        store_batch_line *more = realloc(c->lines, cap * sizeof *more);
        if (!more) return SHOAL_ENOMEM;
        c->lines = more;
        c->cap = cap;
    }
    c->lines[c->n] = *l;
    c->lines[c->n].custom_id = arena_strdup(c->mem, l->custom_id);
    return c->lines[c->n++].custom_id ? 0 : SHOAL_ENOMEM;
}

static int on_line(void *user, int64_t n, int64_t start, int64_t n_bytes, const char *text, shoal_err *err)
{
    checker *c = user;
    batch_line line = {0};
    batch_fault f = {.code = "line_too_long"};
    int rc = SHOAL_EINVALID;
    if (text)
        rc = batch_line_parse(&line, text, (size_t)n_bytes, c->of->endpoint, &f);
    else
        snprintf(f.message, sizeof f.message, "This line is longer than %zu bytes.", c->of->most_line_bytes);
    if (rc == 0) rc = add_line(c, &(store_batch_line){n, start, n_bytes, line.custom_id});
    if (rc == SHOAL_EINVALID) rc = add_fault(c, &f, n);
    json_drop(line.root);
    if (rc == 0 && (int64_t)c->n + c->n_faults > c->of->most_lines) return SHOAL_ELIMIT;
    if (rc == 0 && c->n_faults == BATCH_FAULTS) return SHOAL_EFULL; /* no more are said */
    return rc == SHOAL_ENOMEM ? err_nomem(err) : rc;
}

static int by_custom_id(const void *a, const void *b)
{
    const store_batch_line *x = *(const store_batch_line *const *)a, *y = *(const store_batch_line *const *)b;
    int order = strcmp(x->custom_id, y->custom_id);
    return order ? order : x->n < y->n ? -1 : 1;
}

static int by_number(const void *a, const void *b)
{
    const store_batch_line *x = *(const store_batch_line *const *)a, *y = *(const store_batch_line *const *)b;
    return x->n < y->n ? -1 : x->n > y->n;
}

/* A custom_id names one line: each further one with it is a fault, in the order of the file. */
static int find_duplicates(checker *c)
{
    size_t n = 0;
    int rc = 0;
    const store_batch_line **order = malloc((c->n + 1) * sizeof *order),
                           **twice = malloc((c->n + 1) * sizeof *twice);
    for (size_t i = 0; order && i < c->n; i++) order[i] = &c->lines[i];
    if (!order || !twice) rc = SHOAL_ENOMEM;
    if (rc == 0) qsort(order, c->n, sizeof *order, by_custom_id);
    for (size_t i = 1; rc == 0 && i < c->n; i++)
        if (strcmp(order[i]->custom_id, order[i - 1]->custom_id) == 0) twice[n++] = order[i];
    if (n) qsort(twice, n, sizeof *twice, by_number);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        batch_fault f = {.code = "duplicate_custom_id", .param = "custom_id"};
        snprintf(f.message, sizeof f.message, "The custom_id '%.128s' was used by an earlier line.",
                 twice[i]->custom_id);
        rc = add_fault(c, &f, twice[i]->n);
    }
    free(order);
    free(twice);
    return rc;
}

static int read_lines(checker *c, store *s, steps *count, shoal_err *err)
{
    batch_reader r = {.most_bytes = c->of->most_line_bytes};
    batch_window w = {0};
    const char *piece;
    int64_t size = 0;
    int rc = store_file_size(s, c->of->input, &size, err);
    int64_t most = batch_window_bytes(size);
    for (int64_t at = 0; rc == 0 && at < size;) {
        int64_t n = size - at < most ? size - at : most;
        rc = batch_window_read(&w, s, c->of->input, at, n, &piece, err);
        if (rc == 0) rc = batch_reader_push(&r, piece, (size_t)n, on_line, c, err);
        if (rc == 0) rc = steps_add(count, (size_t)n, err);
        at += n;
    }
    if (rc == 0) rc = batch_reader_end(&r, on_line, c, err);
    batch_reader_done(&r);
    batch_window_done(&w);
    return rc;
}

/* What is wrong with the file as a whole; rc: of reading it. */
static int check_whole(checker *c, int rc, shoal_err *err)
{
    batch_fault f = {0};
    if (rc == SHOAL_ELIMIT) {
        f.code = "too_many_requests";
        snprintf(f.message, sizeof f.message, "The file has more than %lld requests, which is the limit.",
                 (long long)c->of->most_lines);
    } else if (rc == SHOAL_ENOTFOUND) {
        f = (batch_fault){.code = "input_file_not_found", .param = "input_file_id"};
        snprintf(f.message, sizeof f.message, "The input file is gone.");
    } else if (rc == 0 && c->n == 0 && c->n_faults == 0) {
        f.code = "empty_file";
        snprintf(f.message, sizeof f.message, "The input file has no requests.");
    } else {
        return rc;
    }
    return add_fault(c, &f, 0) == 0 ? 0 : err_nomem(err);
}

static int end_check(checker *c, store *s, shoal_err *err)
{
    buf list = {0};
    if (c->n_faults == 0) return store_batch_begin(s, c->of->id, c->lines, c->n, c->of->now, err);
    buf_putc(&list, '[');
    buf_join(&list, &c->faults);
    buf_putc(&list, ']');
    int rc = list.failed ? err_nomem(err) : store_batch_fail(s, c->of->id, list.data, c->of->now, err);
    buf_done(&list);
    return rc;
}

int batch_check_run(const batch_check *of, store *s, steps *count, shoal_err *err)
{
    checker c = {.of = of, .mem = arena_new(0)};
    int rc = c.mem ? read_lines(&c, s, count, err) : err_nomem(err);
    if (rc == SHOAL_EFULL && c.n_faults == BATCH_FAULTS) rc = 0;
    rc = check_whole(&c, rc, err);
    if (rc == 0 && find_duplicates(&c) != 0) rc = err_nomem(err);
    if (rc == 0) rc = end_check(&c, s, err);
    arena_free(c.mem);
    free(c.lines);
    buf_done(&c.faults);
    return rc;
}
