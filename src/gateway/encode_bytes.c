/* encode_bytes.c: see encode_bytes.h. */
#include "gateway/encode_bytes.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/csv_write.h"
#include "base/utf8.h"
#include "gateway/fields.h"

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

/* Base64, as it is or as a data URL. A URL elsewhere is not fetched: a server that fetches for strangers is a
 * door into its own network. */
int encode_bytes_image(encode_spec *s, api_error *e)
{
    static const char BASE64[] = ";base64,";
    const char *text = fields_text(fields_get(s->root, "image"));
    if (!text || !*text)
        return api_error_bad(e, "image",
                             "\"image\" must be a PNG or JPEG file in base64, or a data: URL of one");
    if (strncasecmp(text, "data:", 5) == 0) {
        const char *comma = strchr(text, ',');
        size_t head = comma ? (size_t)(comma - text) + 1 : 0, n = strlen(BASE64);
        if (head < n || strncasecmp(text + head - n, BASE64, n) != 0)
            return api_error_bad(e, "image", "\"image\": a data: URL must be in base64");
        text += head;
    } else if (strstr(text, "://")) {
        return api_error_bad(e, "image", "\"image\": addresses are not fetched; send the file in base64");
    }
    int rc = base64_decode(&s->bytes, text, strlen(text));
    if (rc == SHOAL_EFORMAT) return api_error_bad(e, "image", "\"image\" is no base64");
    return rc == 0 ? check_size(s, "image", e) : api_error_nomem(e);
}

/* ---- bodies that are the thing itself --------------------------------------------------------------------
 */

bool encode_bytes_is_raw(encode_kind kind, const char *content_type)
{
    if (!content_type) return false;
    if (kind == ENCODE_SCORE) return strncasecmp(content_type, "text/csv", 8) == 0;
    return kind == ENCODE_IMAGE && strncasecmp(content_type, "image/", 6) == 0;
}

static int hex_of(char c)
{
    const char *at = c ? strchr("0123456789abcdef", c | 0x20) : NULL;
    return at ? (int)(at - "0123456789abcdef") : -1;
}

/* One value of a query, decoded; *ret is NULL when there is none of that name. The caller frees it. */
static int query_value(const char *query, const char *name, char **ret, api_error *e)
{
    size_t n = strlen(name);
    const char *at = query;
    while (at && !(strncmp(at, name, n) == 0 && at[n] == '=')) at = (at = strchr(at, '&')) ? at + 1 : NULL;
    *ret = NULL;
    if (!at) return 0;
    at += n + 1;
    buf out = {0};
    for (const char *end = at + strcspn(at, "&"); at < end; at++) {
        int high = *at == '%' ? hex_of(at[1]) : -1, low = high >= 0 ? hex_of(at[2]) : -1;
        int c = low >= 0 ? high << 4 | low : *at == '+' ? ' ' : (uint8_t)*at;
        if (low >= 0) at += 2;
        buf_putc(&out, c ? (char)c : '?');
    }
    bool ok = !out.failed && buf_reserve(&out, 0) == 0;
    if (ok && !utf8_valid(out.data ? out.data : "", out.len, NULL)) {
        buf_done(&out);
        return api_error_bad(e, name, "?%s= must be UTF-8", name);
    }
    *ret = ok ? buf_take(&out) : NULL;
    buf_done(&out);
    return *ret ? 0 : api_error_nomem(e);
}

/* The strings of a spec belong to its JSON, so a query becomes some. */
static int read_query(encode_spec *s, const char *query, api_error *e)
{
    char *model = NULL, *top = NULL;
    s->root = json_object();
    int rc = s->root ? query_value(query, "model", &model, e) : api_error_nomem(e);
    if (rc == 0) rc = query_value(query, "top_k", &top, e);
    if (rc == 0 && model && json_object_set_new(s->root, "model", json_string(model)) != 0)
        rc = api_error_nomem(e);
    if (rc == 0 && top && json_object_set_new(s->root, "top_k", json_integer(atoll(top))) != 0)
        rc = api_error_nomem(e);
    free(model);
    free(top);
    return rc;
}

int encode_bytes_raw(encode_spec *ret, encode_kind kind, const char *query, const char *body, size_t len,
                     api_error *e)
{
    encode_spec s = {.kind = kind, .n_inputs = 1};
    int rc = read_query(&s, query, e);
    if (rc == 0) rc = fields_str(s.root, "model", &s.model, e);
    if (rc == 0 && kind == ENCODE_IMAGE) rc = fields_int(s.root, "top_k", 1, 100000, &s.top_k, e);
    if (rc == 0) buf_append(&s.bytes, body, len);
    if (rc == 0) rc = check_size(&s, kind == ENCODE_SCORE ? "csv" : "image", e);
    if (rc == 0)
        *ret = s;
    else
        encode_spec_done(&s);
    return rc;
}
