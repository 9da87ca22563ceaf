/* json_put.c: see json_put.h. */
#include "json/json_put.h"

#include <math.h>
#include <string.h>

#include "base/number.h"
#include "json/json.h"

void json_put_key(buf *out, const char *key)
{
    static const char OPEN[] = {'{', '[', ':', ',', ' ', '\n'};
    if (out->len > 0 && !memchr(OPEN, out->data[out->len - 1], sizeof OPEN)) buf_putc(out, ',');
    if (!key) return;
    buf_putc(out, '"');
    buf_puts(out, key);
    buf_puts(out, "\":");
}

void json_put_open(buf *out, const char *key, char bracket)
{
    json_put_key(out, key);
    buf_putc(out, bracket);
}

void json_put_text_n(buf *out, const char *key, const char *s, size_t n)
{
    json_put_key(out, key);
    json_put_string(out, s ? s : "", n);
}

void json_put_text(buf *out, const char *key, const char *s)
{
    json_put_text_n(out, key, s, s ? strlen(s) : 0);
}

void json_put_filled(buf *out, const char *key, const char *s)
{
    if (s && *s) json_put_text(out, key, s);
}

void json_put_buf(buf *out, const char *key, const buf *text)
{
    out->failed |= text->failed;
    json_put_text_n(out, key, text->data, text->len);
}

void json_put_texts(buf *out, const char *key, const char *const *list, size_t n)
{
    json_put_open(out, key, '[');
    for (size_t i = 0; i < n; i++) json_put_text(out, NULL, list[i]);
    buf_putc(out, ']');
}

void json_put_bool(buf *out, const char *key, bool v)
{
    json_put_key(out, key);
    buf_puts(out, v ? "true" : "false");
}

void json_put_integer(buf *out, const char *key, int64_t v)
{
    json_put_key(out, key);
    number_put_i64(out, v);
}

void json_put_real(buf *out, const char *key, double v, int digits)
{
    json_put_key(out, key);
    if (isfinite(v))
        json_put_number(out, v, digits);
    else
        buf_puts(out, "null");
}

void json_put_json(buf *out, const char *key, const json_t *v, int digits)
{
    json_put_key(out, key);
    json_put_digits(out, v, digits);
}
