/* api_score.c: shoal_score_csv, shoal_score_rows, shoal_classify_image and shoal_classify_pixels; see
 * include/shoal.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "formats/csv_write.h"
#include "library/api_impl.h"

typedef struct sink {
    const shoal_model *m;
    shoal_score_fn fn;
    void *user;
} sink;

static int give_row(const scorer_row *r, void *user, shoal_err *err)
{
    const sink *s = user;
    const preprocessor *in = &s->m->in;
    shoal_score out = {.sensor = r->item.sensor,
                       .time = r->item.time,
                       .line = r->item.line,
                       .row = r->item.row,
                       .label = r->classes ? in->labels[r->best] : NULL,
                       .probability = r->classes ? r->classes[r->best] : NAN,
                       .scores = r->classes ? r->classes : r->score,
                       .raw = r->raw,
                       .n_scores = r->classes ? in->n_labels : in->n_raw,
                       .n_raw = in->n_raw};
    if (s->fn(s->user, &out) == 0) return 0;
    return err_set(err, SHOAL_ECANCELLED, "stopped at line %zu", r->item.line);
}

static int do_score(shoal_model *m, csv *c, shoal_score_fn fn, void *user, shoal_score_totals *ret,
                    shoal_err *err)
{
    sink s = {m, fn, user};
    preprocessor_totals t;
    int rc = preprocessor_score(&m->in, c, 0, give_row, &s, &t, err);
    if (rc == 0 && ret) *ret = (shoal_score_totals){t.n_rows, t.n_items, t.n_sensors};
    return rc;
}

int shoal_score_csv(shoal_model *m, const char *path, shoal_score_fn fn, void *user, shoal_score_totals *ret,
                    shoal_err *err)
{
    csv *c = NULL;
    api_enter(m);
    int rc = api_need_task(m, TASK_SCORE, err);
    if (rc == 0) rc = csv_open(&c, path, err);
    if (rc == 0) rc = do_score(m, c, fn, user, ret, err);
    csv_close(c);
    return api_leave(m, rc);
}

/* As the CSV that it could have come from: a quoted header, and seventeen digits, which bring every double
 * back. */
static int api_score_put_rows(buf *out, const char *const *columns, size_t n_columns, const double *rows,
                              size_t n_rows, shoal_err *err)
{
    for (size_t i = 0; i < n_columns; i++) csv_write_text(out, columns[i], i > 0);
    buf_putc(out, '\n');
    for (size_t r = 0; r < n_rows; r++) {
        for (size_t i = 0; i < n_columns; i++) {
            double v = rows[r * n_columns + i];
            if (isinf(v))
                return err_set(err, SHOAL_EINVALID, "row %zu: \"%.80s\" is infinite", r, columns[i]);
            csv_write_number(out, v, i > 0);
        }
        buf_putc(out, '\n');
    }
    return out->failed ? err_nomem(err) : 0;
}

int shoal_score_rows(shoal_model *m, const char *const *columns, size_t n_columns, const double *rows,
                     size_t n_rows, shoal_score_fn fn, void *user, shoal_score_totals *ret, shoal_err *err)
{
    buf text = {0};
    csv *c = NULL;
    api_enter(m);
    int rc = api_need_task(m, TASK_SCORE, err);
    if (rc == 0) rc = api_score_put_rows(&text, columns, n_columns, rows, n_rows, err);
    if (rc == 0) rc = csv_over(&c, text.data, text.len, "the rows", err);
    if (rc == 0) rc = do_score(m, c, fn, user, ret, err);
    csv_close(c);
    buf_done(&text);
    return api_leave(m, rc);
}

/* ---- pictures ------------------------------------------------------------------------------------------ */

/* Exactly one of the two. */
static int do_look(shoal_model *m, const void *bytes, size_t n, const float *pixels,
                   shoal_classification *ret, shoal_err *err)
{
    int rc = api_need_task(m, TASK_IMAGE, err);
    if (rc != 0) return rc;
    float *logits = calloc(m->in.n_labels + 1, sizeof *logits);
    if (!logits) return err_nomem(err);
    rc = pixels ? preprocessor_look_at(&m->in, pixels, 0, NULL, logits, err)
                : preprocessor_look(&m->in, bytes, n, 0, logits, err);
    if (rc == 0) rc = api_sort_labels(m, logits, 0, ret, err);
    if (rc != 0) free(logits);
    return rc;
}

int shoal_classify_image(shoal_model *m, const void *bytes, size_t n, shoal_classification *ret,
                         shoal_err *err)
{
    api_enter(m);
    return api_leave(m, do_look(m, bytes, n, NULL, ret, err));
}

int shoal_classify_pixels(shoal_model *m, const float *pixels, shoal_classification *ret, shoal_err *err)
{
    api_enter(m);
    return api_leave(m, do_look(m, NULL, 0, pixels, ret, err));
}
