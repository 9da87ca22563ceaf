/* json.c: bounds around jansson; see json.h. The depth is checked by a scan of the text before jansson, which
 * recurses, sees it. To the getters null is the same as absent. */
#include "json/json.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "json/json_memory.h"
#include "json/json_quick.h"
#include "base/file.h"
#include "base/loop_work.h"
#include "base/number.h"
#include "base/utf8.h"

enum { MAX_INTEGER_CHARS = 20 }; /* -9223372036854775808 */

/* jansson recurses as deep as its own fixed limit (2048); ours is checked before it runs. */
static bool depth_ok(const char *s, size_t n, int max)
{
    int depth = 0;
    bool in_string = false;
    for (size_t i = 0; i < n; i++) {
        char c = s[i];
        if (in_string) {
            if (c == '\\')
                i++;
            else if (c == '"')
                in_string = false;
        } else if (c == '"') {
            in_string = true;
        } else if (c == '{' || c == '[') {
            if (++depth > max) return false;
        } else if (c == '}' || c == ']') {
            depth--;
        }
    }
    return true;
}

/* What jansson 2.14 and malloc take on 64 bits: an object has a table of eight buckets, a member an entry
 * that ends in its key, a text a copy, a list a table of pointers, whose old half is alive while it doubles.
 */
enum { OBJECT_BYTES = 256, LIST_BYTES = 128, MEMBER_BYTES = 80, TEXT_BYTES = 48, VALUE_BYTES = 56 };

size_t json_memory_of(const char *text, size_t len)
{
    size_t n = len + VALUE_BYTES;
    bool in_string = false;
    for (size_t i = 0; i < len; i++) {
        switch (text[i]) {
        case '"':
            in_string = !in_string;
            n += in_string ? TEXT_BYTES : 0;
            break;
        case '\\': i += in_string; break;
        case '{': n += in_string ? 0 : OBJECT_BYTES; break;
        case '[': n += in_string ? 0 : LIST_BYTES; break;
        case ':': n += in_string ? 0 : MEMBER_BYTES; break;
        case ',': n += in_string ? 0 : VALUE_BYTES; break;
        }
    }
    return n;
}

/* ---- freeing what is large ----------------------------------------------------------------------- */

enum { LARGE_PARTS = 1000 }; /* some 20 us */

static _Thread_local void (*drop_large)(void *user, json_t *v);
static _Thread_local void *drop_large_user;

void json_set_drop_large(void (*fn)(void *user, json_t *v), void *user)
{
    drop_large = fn;
    drop_large_user = user;
}

/* Counts v's parts as far as `left` goes. False: there are more. */
static bool count_parts(json_t *v, size_t *left)
{
    size_t i;
    const char *key;
    json_t *part;
    size_t n = json_is_object(v) ? json_object_size(v) : json_array_size(v);
    if (n > *left) return false;
    *left -= n;
    json_array_foreach(v, i, part) if (!count_parts(part, left)) return false;
    json_object_foreach(v, key, part) if (!count_parts(part, left)) return false;
    return true;
}

void json_drop(json_t *v)
{
    size_t left = LARGE_PARTS;
    if (drop_large && v && v->refcount == 1 && !count_parts(v, &left))
        drop_large(drop_large_user, v);
    else
        json_decref(v);
}

/* ---- parsed ahead -------------------------------------------------------------------------------- */

static _Thread_local json_ahead *offered;

void json_ahead_run(json_ahead *a, const char *text, size_t len)
{
    *a = (json_ahead){.text = text, .len = len};
    a->rc = json_parse_request(&a->value, text, len, "", &a->err);
}

void json_ahead_from(json_ahead *a, const buf *text, const json_t *v)
{
    *a = (json_ahead){0};
    if (text->failed || text->len <= JSON_AHEAD_BYTES || !(a->value = json_copy((json_t *)v))) return;
    a->text = text->data;
    a->len = text->len;
}

void json_ahead_offer(json_ahead *a)
{
    offered = a;
}

void json_ahead_done(json_ahead *a)
{
    json_drop(a->value);
    *a = (json_ahead){0};
}

static bool take_ahead(json_t **ret, const char *text, size_t len, const char *what, int *ret_rc,
                       shoal_err *err)
{
    json_ahead *a = offered;
    if (!a || !a->text || a->text != text || a->len != len) return false;
    a->text = NULL;
    *ret_rc = a->rc;
    if (a->rc == 0)
        *ret = a->value;
    else if (a->rc == SHOAL_ENOMEM)
        err_nomem(err);
    else
        err_set(err, a->rc, "%s%s", what, a->err.message);
    a->value = NULL;
    return true;
}

/* ---- parsing ------------------------------------------------------------------------------------- */

int json_parse_request(json_t **ret, const char *text, size_t len, const char *what, shoal_err *err)
{
    int rc;
    if (take_ahead(ret, text, len, what, &rc, err)) return rc;
    if (depth_ok(text, len, JSON_DEPTH_MAX) &&
        json_memory_of(text, len) > JSON_REQUEST_MEMORY(len)) /* json_parse tells of depth */
        return err_set(err, SHOAL_ELIMIT,
                       "%s: too many small objects and lists for its length; send fewer at a time", what);
    return json_parse(ret, text, len, what, err);
}

static bool is_integer_too_big(const char *s, size_t n)
{
    char text[MAX_INTEGER_CHARS + 1];
    size_t minus = *s == '-';
    for (size_t i = minus; i < n; i++)
        if (s[i] < '0' || s[i] > '9') return false;
    if (n > MAX_INTEGER_CHARS) return true;
    memcpy(text, s, n);
    text[n] = '\0';
    errno = 0;
    (void)strtoll(text, NULL, 10);
    return errno == ERANGE;
}

static const char *skip_string(const char *s, const char *end)
{
    for (s++; s < end && *s != '"'; s++) s += *s == '\\';
    return s < end ? s + 1 : end;
}

static size_t count_number_chars(const char *s, const char *end)
{
    size_t n = 0;
    while (s + n < end && s[n] && strchr("+-.0123456789Ee", s[n])) n++;
    return n;
}

/* The text with ".0" behind each integer that fits no int64_t: jansson refuses those. JSON has integers of
 * any size (RFC 8259, section 6), and transformers writes 1e30 with all its digits where a tokenizer has no
 * limit. False: there is no such integer. */
static bool widen(buf *out, const char *text, size_t len)
{
    const char *end = text + len, *copied = text;
    for (const char *s = text; s < end;) {
        size_t n = count_number_chars(s, end);
        if (n && is_integer_too_big(s, n)) {
            buf_append(out, copied, (size_t)(s + n - copied));
            buf_puts(out, ".0");
            copied = s + n;
        }
        s = *s == '"' ? skip_string(s, end) : s + (n ? n : 1);
    }
    buf_append(out, copied, (size_t)(end - copied));
    return out->len > len;
}

/* `more`: JSON_REJECT_DUPLICATES or 0. */
static json_t *json_load(const char *text, size_t len, size_t more, json_error_t *e, bool *ret_nomem)
{
    size_t flags = more | JSON_DECODE_ANY | JSON_ALLOW_NUL;
    buf wide = {0};
    json_t *v = json_memory_load(text, len, flags, e, ret_nomem);
    if (!v && !*ret_nomem && json_error_code(e) == json_error_numeric_overflow && widen(&wide, text, len) &&
        !wide.failed)
        v = json_memory_load(wide.data, wide.len, flags, e, ret_nomem);
    *ret_nomem |= !v && (wide.failed || json_error_code(e) == json_error_out_of_memory);
    buf_done(&wide);
    return v;
}

static bool is_blank(const char *text, size_t len)
{
    size_t i = 0;
    while (i < len && (text[i] == ' ' || text[i] == '\t' || text[i] == '\r' || text[i] == '\n')) i++;
    return i == len;
}

static int json_json_parse(json_t **ret, const char *text, size_t len, int depth_max, size_t more,
                           const char *what, shoal_err *err)
{
    loop_work_add(len);
    json_t *v = json_quick(text, len);
    if (v) {
        *ret = v;
        return 0;
    }
    if (!depth_ok(text, len, depth_max))
        return err_set(err, SHOAL_ELIMIT, "%s: JSON is nested deeper than %d levels", what, depth_max);
    if (len && memchr(text, '\0', len))
        return err_set(err, SHOAL_EFORMAT, "%s: not JSON: it contains a NUL byte", what);
    if (is_blank(text, len)) return err_set(err, SHOAL_EFORMAT, "%s is empty, must be JSON", what);
    json_error_t e;
    bool nomem;
    v = json_load(text ? text : "", len, more, &e, &nomem);
    if (nomem) return err_nomem(err);
    if (!v)
        return err_set(err, SHOAL_EFORMAT, "%s: not JSON: line %d column %d: %s", what, e.line, e.column,
                       e.text);
    *ret = v;
    return 0;
}

int json_parse(json_t **ret, const char *text, size_t len, const char *what, shoal_err *err)
{
    int rc;
    if (take_ahead(ret, text, len, what, &rc, err)) return rc;
    return json_json_parse(ret, text, len, JSON_DEPTH_MAX, JSON_REJECT_DUPLICATES, what, err);
}

int json_parse_last(json_t **ret, const char *text, size_t len, const char *what, shoal_err *err)
{
    return json_json_parse(ret, text, len, JSON_DEPTH_MAX, 0, what, err);
}

int json_parse_own(json_t **ret, const char *text, size_t len, const char *what, shoal_err *err)
{
    return json_json_parse(ret, text, len, JSON_OWN_DEPTH_MAX, JSON_REJECT_DUPLICATES, what, err);
}

int json_parse_file(json_t **ret, const char *path, size_t max_bytes, shoal_err *err)
{
    buf text = {0};
    int rc = file_read(&text, path, max_bytes, err);
    if (rc == 0) rc = json_parse(ret, text.data, text.len, path, err);
    buf_done(&text);
    return rc;
}

static const json_t *field(const json_t *o, const char *key)
{
    const json_t *v = json_object_get(o, key);
    return json_is_null(v) ? NULL : v;
}

int json_get_str(const json_t *o, const char *key, const char **ret, shoal_err *err)
{
    const json_t *v = field(o, key);
    if (!v) return 0;
    if (!json_is_string(v)) return err_set(err, SHOAL_EINVALID, "\"%s\" must be a string", key);
    if (strlen(json_string_value(v)) != json_string_length(v))
        return err_set(err, SHOAL_EINVALID, "\"%s\" must not contain a NUL character", key);
    *ret = json_string_value(v);
    return 0;
}

int json_get_int(const json_t *o, const char *key, int64_t min, int64_t max, int64_t *ret, shoal_err *err)
{
    const json_t *v = field(o, key);
    if (!v) return 0;
    if (!json_is_integer(v)) return err_set(err, SHOAL_EINVALID, "\"%s\" must be an integer", key);
    int64_t i = json_integer_value(v);
    if (i < min && max == INT64_MAX)
        return err_set(err, SHOAL_EINVALID, "\"%s\" is %lld, must be %lld or more", key, (long long)i,
                       (long long)min);
    if (i < min || i > max)
        return err_set(err, SHOAL_EINVALID, "\"%s\" is %lld, must be between %lld and %lld", key,
                       (long long)i, (long long)min, (long long)max);
    *ret = i;
    return 0;
}

int json_get_num(const json_t *o, const char *key, double min, double max, double *ret, shoal_err *err)
{
    const json_t *v = field(o, key);
    if (!v) return 0;
    if (!json_is_number(v)) return err_set(err, SHOAL_EINVALID, "\"%s\" must be a number", key);
    double d = json_number_value(v);
    if (!(d >= min && d <= max))
        return err_set(err, SHOAL_EINVALID, "\"%s\" is %g, must be between %g and %g", key, d, min, max);
    *ret = d;
    return 0;
}

int json_get_bool(const json_t *o, const char *key, bool *ret, shoal_err *err)
{
    const json_t *v = field(o, key);
    if (!v) return 0;
    if (!json_is_boolean(v)) return err_set(err, SHOAL_EINVALID, "\"%s\" must be true or false", key);
    *ret = json_is_true(v);
    return 0;
}

const char *json_text_of(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));
    return s ? s : "";
}

double json_number_of(const json_t *o, const char *key)
{
    return json_number_value(json_object_get(o, key));
}

json_int_t json_integer_of(const json_t *o, const char *key)
{
    return json_integer_value(json_object_get(o, key));
}

/* ---- writing ------------------------------------------------------------------------------------- */

int json_put(buf *out, const json_t *v)
{
    return json_put_digits(out, v, 17);
}

/* Is one of eight bytes below ' ', a quote or a backslash? It may err from the first such byte on, which is
 * looked at anyway. */
static bool has_escape(const char *s)
{
    const uint64_t ones = 0x0101010101010101u, tops = 0x8080808080808080u;
    uint64_t x, quote, slash;
    memcpy(&x, s, sizeof x);
    quote = x ^ ones * '"';
    slash = x ^ ones * '\\';
    return (((x - ones * ' ') & ~x) | ((quote - ones) & ~quote) | ((slash - ones) & ~slash)) & tops;
}

static size_t count_unescaped(const char *s, size_t n)
{
    size_t i = 0;
    while (i + 8 <= n && !has_escape(s + i)) i += 8;
    while (i < n && (unsigned char)s[i] >= ' ' && s[i] != '"' && s[i] != '\\') i++;
    return i;
}

static void put_escape(buf *out, char c)
{
    static const char FROM[] = "\"\\\b\f\n\r\t", TO[] = "\"\\bfnrt";
    const char *at = c ? strchr(FROM, c) : NULL;
    if (at)
        buf_append(out, (char[]){'\\', TO[at - FROM]}, 2);
    else
        buf_printf(out, "\\u%04X", (unsigned)(unsigned char)c);
}

/* As jansson writes it, which looks at each character on its own: 4 MB took it 20 ms. */
static void put_text_json(buf *out, const char *s, size_t n)
{
    buf_putc(out, '"');
    for (size_t i = 0; i < n;) {
        size_t plain = count_unescaped(s + i, n - i);
        buf_append(out, s + i, plain);
        i += plain;
        if (i < n) put_escape(out, s[i++]);
    }
    buf_putc(out, '"');
}

/* As jansson writes it: a whole number has ".0", an exponent neither '+' nor zeros in front. */
void json_put_number(buf *out, double v, int digits)
{
    char text[NUMBER_SIZE];
    size_t n = number_write(text, v, digits);
    const char *e = memchr(text, 'e', n);
    if (!e) {
        buf_append(out, text, n);
        if (!memchr(text, '.', n)) buf_puts(out, ".0");
        return;
    }
    buf_append(out, text, (size_t)(e - text) + 1);
    if (e[1] == '-') buf_putc(out, '-');
    buf_puts(out, e + 2 + strspn(e + 2, "0"));
}

static void json_put_value(buf *out, const json_t *v, int digits);

static void put_array(buf *out, const json_t *v, int digits)
{
    size_t i;
    json_t *item;
    buf_putc(out, '[');
    json_array_foreach(v, i, item)
    {
        if (i) buf_putc(out, ',');
        json_put_value(out, item, digits);
    }
    buf_putc(out, ']');
}

static void put_object(buf *out, json_t *v, int digits)
{
    const char *key, *comma = "";
    size_t n;
    json_t *item;
    buf_putc(out, '{');
    json_object_keylen_foreach(v, key, n, item)
    {
        buf_puts(out, comma);
        put_text_json(out, key, n);
        buf_putc(out, ':');
        json_put_value(out, item, digits);
        comma = ",";
    }
    buf_putc(out, '}');
}

static void json_put_value(buf *out, const json_t *v, int digits)
{
    switch (json_typeof(v)) {
    case JSON_OBJECT: put_object(out, (json_t *)v, digits); break;
    case JSON_ARRAY: put_array(out, v, digits); break;
    case JSON_STRING: put_text_json(out, json_string_value(v), json_string_length(v)); break;
    case JSON_INTEGER: number_put_i64(out, json_integer_value(v)); break;
    case JSON_REAL: json_put_number(out, json_real_value(v), digits); break;
    case JSON_TRUE: buf_puts(out, "true"); break;
    case JSON_FALSE: buf_puts(out, "false"); break;
    case JSON_NULL: buf_puts(out, "null"); break;
    }
}

int json_put_digits(buf *out, const json_t *v, int digits)
{
    if (v)
        json_put_value(out, v, digits);
    else
        out->failed = true;
    return out->failed ? SHOAL_ENOMEM : 0;
}

/* How many bytes at the beginning of s stand for themselves in a string of JSON. */
static size_t count_plain(const char *s, size_t n)
{
    size_t i = 0;
    while (i < n && s[i] >= ' ' && s[i] < 0x7F && s[i] != '"' && s[i] != '\\') i++;
    return i;
}

int json_put_string(buf *out, const char *s, size_t n)
{
    buf_putc(out, '"');
    for (size_t i = 0; i < n;) {
        uint32_t cp;
        size_t plain = count_plain(s + i, n - i);
        buf_append(out, s + i, plain);
        i += plain;
        if (i == n) break;
        size_t len = utf8_decode(s + i, n - i, &cp);
        if (len == 0) {
            buf_puts(out, "\xEF\xBF\xBD");
            i++;
        } else if (cp == '"' || cp == '\\') {
            buf_printf(out, "\\%c", (char)cp);
        } else if (cp == '\n') {
            buf_puts(out, "\\n");
        } else if (cp < 0x20 || cp == 0x7F) {
            buf_printf(out, "\\u%04x", cp);
        } else {
            buf_append(out, s + i, len);
        }
        i += len;
    }
    return buf_putc(out, '"');
}
