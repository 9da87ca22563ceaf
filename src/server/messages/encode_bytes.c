/* encode_bytes.c: see encode_bytes.h. */
#include "messages/encode_bytes.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "formats/csv_write.h"
#include "base/number.h"
#include "base/utf8.h"
#include "messages/fields.h"
#include "messages/multipart.h"
#include "messages/query.h"

static int check_size(const encode_spec *s, const char *field, api_error *e)
{
    if (s->bytes.failed) return api_error_nomem(e);
    if (s->bytes.len == 0) return api_error_bad(e, field, "\"%s\" is empty", field);
    if (s->bytes.len <= ENCODE_BYTES_MAX) return 0;
    return api_error_set(e, 413, "invalid_request_error", "request_too_large", field,
                         "\"%s\" is longer than %zu bytes", field, ENCODE_BYTES_MAX);
}

/* ---- tables -------------------------------------------------------------------------------------------- */

static int write_header(encode_spec *s, const json_t *columns, api_error *e)
{
    size_t n = json_array_size(columns);
    if (n == 0 || n > ENCODE_COLUMNS_MAX)
        return api_error_bad(e, "columns", "\"columns\" must be an array of 1 to %d names",
                             ENCODE_COLUMNS_MAX);
    for (size_t i = 0; i < n; i++) {
        const char *name = fields_text(json_array_get(columns, i));
        if (!name) return api_error_bad(e, "columns", "columns[%zu]: must be text without NUL characters", i);
        csv_write_text(&s->bytes, name, i > 0);
    }
    buf_putc(&s->bytes, '\n');
    return 0;
}

static int write_row(encode_spec *s, const json_t *row, size_t r, size_t n, api_error *e)
{
    if (json_array_size(row) != n)
        return api_error_bad(e, "rows", "rows[%zu]: must be an array of %zu values, one a column", r, n);
    for (size_t i = 0; i < n; i++) {
        const json_t *v = json_array_get(row, i);
        const char *text = fields_text(v);
        if (json_is_number(v))
            csv_write_number(&s->bytes, json_number_value(v), i > 0);
        else if (json_is_null(v))
            buf_puts(&s->bytes, i > 0 ? ",nan" : "nan");
        else if (text)
            csv_write_text(&s->bytes, text, i > 0);
        else
            return api_error_bad(e, "rows", "rows[%zu][%zu]: must be a number, null or text without NUL", r,
                                 i);
    }
    buf_putc(&s->bytes, '\n');
    return s->bytes.len > ENCODE_BYTES_MAX ? check_size(s, "rows", e) : 0;
}

int encode_bytes_score(encode_spec *s, api_error *e)
{
    const json_t *csv = fields_get(s->root, "csv"), *rows = fields_get(s->root, "rows");
    const json_t *columns = fields_get(s->root, "columns");
    if ((csv != NULL) == (rows != NULL))
        return api_error_bad(e, "csv", "give either \"csv\", a text, or \"columns\" and \"rows\"");
    if (csv) {
        const char *text = fields_text(csv);
        if (!text) return api_error_bad(e, "csv", "\"csv\" must be text without NUL characters");
        buf_puts(&s->bytes, text);
        return check_size(s, "csv", e);
    }
    int rc = write_header(s, columns, e);
    size_t n = json_array_size(rows);
    if (rc == 0 && n == 0) return api_error_bad(e, "rows", "\"rows\" must be an array of rows, not empty");
    for (size_t r = 0; rc == 0 && r < n; r++)
        rc = write_row(s, json_array_get(rows, r), r, json_array_size(columns), e);
    return rc == 0 ? check_size(s, "rows", e) : rc;
}

/* ---- pictures ------------------------------------------------------------------------------------------ */

int encode_bytes_image(encode_spec *s, api_error *e)
{
    int rc = fields_file(s->root, "image", "PNG or JPEG file", &s->bytes, e);
    return rc == 0 ? check_size(s, "image", e) : rc;
}

/* ---- bodies that are the thing itself --------------------------------------------------------------- */

bool encode_bytes_is_raw(task_endpoint_id kind, const char *content_type)
{
    if (!content_type) return false;
    if (kind == ASK_SCORE) return strncasecmp(content_type, "text/csv", 8) == 0;
    return kind == ASK_IMAGE && strncasecmp(content_type, "image/", 6) == 0;
}

/* The strings of a spec belong to its JSON, so what a query or a form says becomes some. NULL: not said. */
static int read_said(encode_spec *s, const char *model, const char *top, api_error *e)
{
    s->root = json_object();
    if (!s->root) return api_error_nomem(e);
    if (model && json_object_set_new(s->root, "model", json_string(model)) != 0) return api_error_nomem(e);
    int64_t k;
    if (top && !number_i64(top, &k)) return api_error_bad(e, "top_k", "\"top_k\" must be a whole number");
    if (top && json_object_set_new(s->root, "top_k", json_integer(k)) != 0) return api_error_nomem(e);
    int rc = fields_str(s->root, "model", &s->model, e);
    return rc || s->kind != ASK_IMAGE ? rc : fields_int(s->root, "top_k", 1, 100000, &s->top_k, e);
}

static int take_bytes(encode_spec *s, const char *data, size_t n, api_error *e)
{
    buf_append(&s->bytes, data, n);
    return check_size(s, s->kind == ASK_SCORE ? "csv" : "image", e);
}

int encode_bytes_raw(encode_spec *ret, task_endpoint_id kind, const char *query, const char *body, size_t len,
                     api_error *e)
{
    encode_spec s = {.kind = kind, .n_inputs = 1};
    char *model = NULL, *top = NULL;
    int rc = query_value(query, "model", &model, e);
    if (rc == 0) rc = query_value(query, "top_k", &top, e);
    if (rc == 0) rc = read_said(&s, model, top, e);
    if (rc == 0) rc = take_bytes(&s, body, len, e);
    free(model);
    free(top);
    if (rc == 0)
        *ret = s;
    else
        encode_spec_done(&s);
    return rc;
}

/* ---- forms --------------------------------------------------------------------------------------------- */

/* A part's text into out; absent or empty: *ret is NULL. */
static int part_text(const multipart *m, const char *name, char out[96], const char **ret, api_error *e)
{
    const multipart_part *p = multipart_find(m, name);
    *ret = NULL;
    if (!p || p->len == 0) return 0;
    if (p->len >= 96 || memchr(p->data, '\0', p->len) || !utf8_valid(p->data, p->len, NULL))
        return api_error_bad(e, name, "\"%s\" must be text of at most 95 bytes", name);
    memcpy(out, p->data, p->len);
    out[p->len] = '\0';
    *ret = out;
    return 0;
}

static int read_form(encode_spec *s, const multipart *m, api_error *e)
{
    const char *name = s->kind == ASK_SCORE ? "csv" : "image", *model = NULL, *top = NULL;
    const multipart_part *file = multipart_find(m, "file");
    char model_text[96], top_text[96];
    if (!file) file = multipart_find(m, name);
    if (!file)
        return api_error_bad(e, "file", "\"file\" must be a %s",
                             s->kind == ASK_SCORE ? "CSV file" : "PNG or JPEG file");
    int rc = part_text(m, "model", model_text, &model, e);
    if (rc == 0) rc = part_text(m, "top_k", top_text, &top, e);
    if (rc == 0) rc = read_said(s, model, top, e);
    return rc == 0 ? take_bytes(s, file->data, file->len, e) : rc;
}

bool encode_bytes_is_form(task_endpoint_id kind, const char *content_type)
{
    return (kind == ASK_SCORE || kind == ASK_IMAGE) && multipart_is_form(content_type);
}

int encode_bytes_form(encode_spec *ret, task_endpoint_id kind, const char *content_type, const char *body,
                      size_t len, api_error *e)
{
    encode_spec s = {.kind = kind, .n_inputs = 1};
    multipart *m = malloc(sizeof *m);
    int rc = m ? multipart_parse(m, content_type, body, len, e) : api_error_nomem(e);
    if (rc == 0) rc = read_form(&s, m, e);
    free(m);
    if (rc == 0)
        *ret = s;
    else
        encode_spec_done(&s);
    return rc;
}
