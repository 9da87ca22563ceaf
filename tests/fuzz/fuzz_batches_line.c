/* Input of a batch: in pieces of any size it has the same lines, each of them lies where it is said to be, and what is
 * parsed is parsed again in the same way. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "batches/batch_line.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LINES_MAX = 64, LINE_BYTES = 200 };

typedef struct seen {
    const char *all;
    size_t size, n;
    int64_t last_end;
    struct {
        int64_t n, start, n_bytes;
        bool over;
    } lines[LINES_MAX];
} seen;

/* Memory may be refused (tests/fail); nothing else is. */
static int check_body(const batch_line *l)
{
    buf out = {0};
    json_t *again = NULL;
    int rc = batch_line_put_body(&out, l, "/v1/responses");
    if (rc == 0) rc = json_parse(&again, out.data, out.len, "the body", NULL);
    if (rc != 0 && rc != SHOAL_ENOMEM) abort();
    if (rc == 0 && !json_is_false(json_object_get(again, "store"))) abort();
    json_decref(again);
    buf_done(&out);
    return rc;
}

static int see_line(void *user, int64_t n, int64_t start, int64_t n_bytes, const char *text, shoal_err *err)
{
    seen *s = user;
    batch_line l;
    batch_fault f = {0};
    if (start < s->last_end || n_bytes < 1 || (size_t)(start + n_bytes) > s->size) abort();
    if ((text == NULL) != (n_bytes > LINE_BYTES)) abort();
    if (text && memcmp(text, s->all + start, (size_t)n_bytes) != 0) abort();
    s->last_end = start + n_bytes;
    if (s->n < LINES_MAX) {
        s->lines[s->n].n = n, s->lines[s->n].start = start, s->lines[s->n].n_bytes = n_bytes;
        s->lines[s->n].over = !text;
    }
    s->n++;
    if (!text) return 0;
    int rc = batch_line_parse(&l, text, (size_t)n_bytes, "/v1/responses", &f);
    if (rc == SHOAL_EINVALID && (!f.code || !*f.message)) abort();
    if (rc != 0) return rc == SHOAL_ENOMEM ? rc : 0;
    if (!*l.custom_id || !json_is_object(l.body)) abort();
    rc = check_body(&l);
    json_drop(l.root);
    return rc;
}

static int read_all(seen *s, size_t piece)
{
    batch_reader r = {.most_bytes = LINE_BYTES};
    shoal_err err;
    int rc = 0;
    for (size_t at = 0; rc == 0 && at < s->size; at += piece) {
        size_t n = s->size - at < piece ? s->size - at : piece;
        rc = batch_reader_push(&r, s->all + at, n, see_line, s, &err);
    }
    if (rc == 0) rc = batch_reader_end(&r, see_line, s, &err);
    if (rc != 0 && rc != SHOAL_ENOMEM) abort();
    batch_reader_done(&r);
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static seen whole, cut;
    whole = (seen){.all = (const char *)data, .size = size};
    cut = whole;
    if (read_all(&whole, size ? size : 1) != 0 || read_all(&cut, size ? 1 + data[0] % 7 : 1) != 0) return 0;
    if (whole.n != cut.n || memcmp(whole.lines, cut.lines, sizeof whole.lines) != 0) abort();
    return 0;
}
