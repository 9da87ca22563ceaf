/* pipeline_function.c: functions of templates: read, and applied; see pipeline_function.h. */
#include "pipeline/pipeline_function.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "json/json.h"
#include "base/utf8.h"

static const struct {
    const char *name, *arguments;
} functions[] = {
#define FUNCTION_ROW(e, name, arguments) [e] = {name, arguments},
    PIPELINE_FUNCTION_TABLE(FUNCTION_ROW)
#undef FUNCTION_ROW
};

/* ---- reading ----------------------------------------------------------------------------------------- */

static const char *skip_blanks(const char *s, const char *end)
{
    while (s < end && isspace((unsigned char)*s)) s++;
    return s;
}

static int no_such_function(const char *name, size_t n, shoal_err *err)
{
    buf list = {0};
    for (int k = 0; k < N_PIPELINE_FUNCTIONS; k++)
        buf_printf(&list, "%s%s", k ? ", " : "", functions[k].name);
    int rc = list.failed ? err_nomem(err)
                         : err_set(err, SHOAL_EINVALID, "there is no function '%.*s'; there are %s",
                                   (int)(n < 32 ? n : 32), name, list.data);
    buf_done(&list);
    return rc;
}

/* A number of 1 to FUNCTION_NUMBER_MAX; with `either_way` also one of these from the end. */
static int function_read_number(const char **at, const char *end, bool either_way, const char *name,
                                long *ret, shoal_err *err)
{
    const char *s = *at;
    bool negative = either_way && s < end && *s == '-';
    s += negative;
    long v = 0;
    const char *digits = s;
    for (; s < end && isdigit((unsigned char)*s) && s - digits < 8; s++) v = 10 * v + (*s - '0');
    if (s == digits || v < 1 || v > FUNCTION_NUMBER_MAX || (s < end && isalnum((unsigned char)*s)))
        return err_set(err, SHOAL_EINVALID, "'%s' takes a number of 1 to %d%s behind a colon (%s:3)", name,
                       FUNCTION_NUMBER_MAX, either_way ? ", or one from the end (-1)" : "", name);
    *ret = negative ? -v : v;
    *at = s;
    return 0;
}

static char unescaped(char c)
{
    return c == 'n' ? '\n' : c == 't' ? '\t' : c;
}

static int pipeline_function_read_text(const char **at, const char *end, const char *name,
                                       pipeline_function *f, size_t i, shoal_err *err)
{
    const char *s = *at;
    char quote = s < end && (*s == '\'' || *s == '"') ? *s++ : 0;
    size_t n = 0;
    for (; quote && s < end && *s != quote; s++) {
        bool escaped = *s == '\\';
        if (escaped && ++s == end) break;
        if (n == FUNCTION_TEXT_MAX)
            return err_set(err, SHOAL_EINVALID, "a text of '%s' is longer than %d bytes", name,
                           FUNCTION_TEXT_MAX);
        f->text[i][n++] = escaped ? unescaped(*s) : *s;
    }
    if (!quote || s >= end)
        return err_set(err, SHOAL_EINVALID, "'%s' takes %s in quotes behind a colon (%s:'a'%s)", name,
                       f->kind == FUNCTION_REPLACE ? "two texts" : "a text", name,
                       f->kind == FUNCTION_REPLACE ? ":'b'" : "");
    f->text[i][n] = 0;
    f->n_text[i] = n;
    *at = s + 1;
    return 0;
}

static int read_arguments(const char **at, const char *end, pipeline_function *f, shoal_err *err)
{
    const char *name = functions[f->kind].name;
    int rc = 0;
    size_t n_texts = 0;
    for (const char *a = functions[f->kind].arguments; *a && !rc; a++) {
        const char *s = skip_blanks(*at, end);
        if (s < end && *s == ':') *at = skip_blanks(s + 1, end);
        rc = *a == 't' ? pipeline_function_read_text(at, end, name, f, n_texts++, err)
                       : function_read_number(at, end, *a == 'i', name, &f->number, err);
    }
    if (!rc && f->kind == FUNCTION_REPLACE && f->n_text[0] == 0)
        rc = err_set(err, SHOAL_EINVALID, "'replace' needs a text to look for, not an empty one");
    return rc;
}

int pipeline_function_next(const char **at, const char *end, pipeline_function *ret, shoal_err *err)
{
    const char *s = skip_blanks(*at, end);
    if (s == end) return 0;
    if (*s != '|')
        return err_set(err, SHOAL_EINVALID,
                       "'%.*s' is behind a function that takes no more; '|' begins the next",
                       (int)(end - s < 32 ? end - s : 32), s);
    s = skip_blanks(s + 1, end);
    size_t n = 0;
    while (s + n < end && (isalnum((unsigned char)s[n]) || s[n] == '_')) n++;
    *ret = (pipeline_function){.kind = N_PIPELINE_FUNCTIONS};
    for (int k = 0; k < N_PIPELINE_FUNCTIONS; k++)
        if (strlen(functions[k].name) == n && memcmp(functions[k].name, s, n) == 0)
            ret->kind = (pipeline_function_kind)k;
    if (ret->kind == N_PIPELINE_FUNCTIONS) return no_such_function(s, n, err);
    *at = s + n;
    int rc = read_arguments(at, end, ret, err);
    return rc ? rc : 1;
}

/* ---- applying ---------------------------------------------------------------------------------------- */

/* One character of s[0..n), n > 0: bytes that are no UTF-8 count as one each. */
static size_t char_bytes(const char *s, size_t n, uint32_t *ret_cp)
{
    size_t len = utf8_decode(s, n, ret_cp);
    if (!len) *ret_cp = (unsigned char)*s;
    return len ? len : 1;
}

static void put_cased(buf *out, const char *s, size_t n, utf8proc_int32_t (*cased)(utf8proc_int32_t))
{
    uint32_t cp;
    char code[4];
    bool is_character = utf8_decode(s, n, &cp) == n;
    size_t n_code = is_character ? utf8_encode((uint32_t)cased((utf8proc_int32_t)cp), code) : 0;
    buf_append(out, n_code ? code : s, n_code ? n_code : n);
}

static void put_lower(buf *out, const char *s, size_t n)
{
    put_cased(out, s, n, utf8proc_tolower);
}

static void put_upper(buf *out, const char *s, size_t n)
{
    put_cased(out, s, n, utf8proc_toupper);
}

static void put_each(buf *out, const buf *in, void (*put)(buf *, const char *, size_t))
{
    uint32_t cp;
    for (size_t i = 0, n; i < in->len; i += n) {
        n = char_bytes(in->data + i, in->len - i, &cp);
        put(out, in->data + i, n);
    }
}

static bool is_letter(uint32_t cp)
{
    utf8proc_category_t c = utf8proc_category((utf8proc_int32_t)cp);
    return (c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_LO) || c == UTF8PROC_CATEGORY_MN;
}

/* The first letter of each word, or of the text alone, in upper case. */
static void put_capitals(buf *out, const buf *in, bool of_words)
{
    bool begins = true;
    uint32_t cp;
    for (size_t i = 0, n; i < in->len; i += n) {
        n = char_bytes(in->data + i, in->len - i, &cp);
        if (begins && is_letter(cp))
            put_cased(out, in->data + i, n, utf8proc_totitle);
        else
            buf_append(out, in->data + i, n);
        begins = of_words ? !is_letter(cp) && cp != '\'' && !(cp < 0x80 && isdigit((int)cp))
                          : begins && !is_letter(cp);
    }
}

static void put_one_line(buf *out, const buf *in)
{
    bool blank = false;
    for (size_t i = 0; i < in->len; i++) {
        if (isspace((unsigned char)in->data[i])) {
            blank = out->len > 0;
            continue;
        }
        if (blank) buf_putc(out, ' ');
        blank = false;
        buf_putc(out, in->data[i]);
    }
}

/* Where character number n begins, or the end. */
static size_t skip_characters(const buf *in, size_t n)
{
    size_t i = 0;
    uint32_t cp;
    while (n-- > 0 && i < in->len) i += char_bytes(in->data + i, in->len - i, &cp);
    return i;
}

static void put_last(buf *out, const buf *in, size_t n)
{
    size_t all = 0;
    uint32_t cp;
    for (size_t i = 0; i < in->len; all++) i += char_bytes(in->data + i, in->len - i, &cp);
    size_t from = skip_characters(in, all > n ? all - n : 0);
    buf_append(out, in->data + from, in->len - from);
}

/* Up to the end of word number n. */
static void put_words(buf *out, const buf *in, size_t n)
{
    size_t i = 0;
    while (n-- > 0 && i < in->len) {
        while (i < in->len && isspace((unsigned char)in->data[i])) i++;
        while (i < in->len && !isspace((unsigned char)in->data[i])) i++;
    }
    buf_append(out, in->data, i);
}

static size_t function_line_end(const buf *in, size_t at)
{
    const char *end = memchr(in->data + at, '\n', in->len - at);
    return end ? (size_t)(end - in->data) : in->len;
}

static void put_lines(buf *out, const buf *in, size_t n)
{
    size_t end = function_line_end(in, 0);
    while (--n > 0 && end < in->len) end = function_line_end(in, end + 1);
    buf_append(out, in->data, end);
}

/* Line n from 1, or from the end: -1 is the last. A line break at the very end begins no further line. */
static void put_line(buf *out, const buf *in, long n)
{
    size_t len = in->len && in->data[in->len - 1] == '\n' ? in->len - 1 : in->len, n_lines = len ? 1 : 0;
    for (size_t i = 0; i < len; i++) n_lines += in->data[i] == '\n';
    size_t wanted = n > 0 ? (size_t)n : n_lines + 1 - (size_t)-n, at = 0;
    if (wanted < 1 || wanted > n_lines) return;
    while (--wanted > 0) at = function_line_end(in, at) + 1;
    size_t end = function_line_end(in, at);
    buf_append(out, in->data + at, end - at - (end > at && in->data[end - 1] == '\r'));
}

static void put_trimmed(buf *out, const buf *in)
{
    size_t from = 0, end = in->len;
    while (from < end && isspace((unsigned char)in->data[from])) from++;
    while (end > from && isspace((unsigned char)in->data[end - 1])) end--;
    buf_append(out, in->data + from, end - from);
}

/* Where text number 0 stands from `at` on, or SIZE_MAX. */
static size_t function_find(const pipeline_function *f, const buf *in, size_t at)
{
    size_t n = f->n_text[0];
    for (size_t i = at; n <= in->len && i <= in->len - n; i++)
        if (memcmp(in->data + i, f->text[0], n) == 0) return i;
    return SIZE_MAX;
}

/* Stops where it is long enough, so that what is cut off later was never made. */
static void put_replaced(buf *out, const buf *in, const pipeline_function *f)
{
    size_t at = 0;
    while (at < in->len && out->len <= PIPELINE_FILLED_MAX_BYTES) {
        size_t found = function_find(f, in, at), end = found == SIZE_MAX ? in->len : found;
        buf_append(out, in->data + at, end - at);
        if (found == SIZE_MAX) break;
        buf_append(out, f->text[1], f->n_text[1]);
        at = found + f->n_text[0];
    }
}

/* What stands before the first text of this kind, all without one; resp. after it, nothing without one. */
static void put_side(buf *out, const buf *in, const pipeline_function *f)
{
    size_t found = function_find(f, in, 0);
    if (f->kind == FUNCTION_BEFORE) {
        buf_append(out, in->data, found == SIZE_MAX ? in->len : found);
    } else if (found != SIZE_MAX) {
        size_t from = found + f->n_text[0];
        buf_append(out, in->data + from, in->len - from);
    }
}

static bool function_is_blank(const buf *in)
{
    for (size_t i = 0; i < in->len; i++)
        if (!isspace((unsigned char)in->data[i])) return false;
    return true;
}

static void function_apply(const pipeline_function *f, const buf *in, buf *out)
{
    switch (f->kind) {
    case FUNCTION_TRIM: put_trimmed(out, in); break;
    case FUNCTION_LOWER: put_each(out, in, put_lower); break;
    case FUNCTION_UPPER: put_each(out, in, put_upper); break;
    case FUNCTION_TITLE: put_capitals(out, in, true); break;
    case FUNCTION_SENTENCE: put_capitals(out, in, false); break;
    case FUNCTION_ONE_LINE: put_one_line(out, in); break;
    case FUNCTION_FIRST: buf_append(out, in->data, skip_characters(in, (size_t)f->number)); break;
    case FUNCTION_LAST: put_last(out, in, (size_t)f->number); break;
    case FUNCTION_WORDS: put_words(out, in, (size_t)f->number); break;
    case FUNCTION_LINES: put_lines(out, in, (size_t)f->number); break;
    case FUNCTION_LINE: put_line(out, in, f->number); break;
    case FUNCTION_DEFAULT:
        if (function_is_blank(in))
            buf_append(out, f->text[0], f->n_text[0]);
        else
            buf_join(out, in);
        break;
    case FUNCTION_BEFORE:
    case FUNCTION_AFTER: put_side(out, in, f); break;
    case FUNCTION_REPLACE: put_replaced(out, in, f); break;
    case FUNCTION_JSON: json_put_string(out, in->data, in->len); break;
    case FUNCTION_PERCENT: percent_encode(out, in->data, in->len, ""); break;
    case N_PIPELINE_FUNCTIONS: break;
    }
}

void pipeline_function_apply(const pipeline_function *f, buf *text)
{
    buf out = {0};
    if (text->failed || buf_reserve(text, 0)) return;
    function_apply(f, text, &out);
    if (out.len > PIPELINE_FILLED_MAX_BYTES) {
        out.len = PIPELINE_FILLED_MAX_BYTES;
        out.len -= utf8_incomplete_tail(out.data, out.len);
        out.data[out.len] = 0;
    }
    buf_done(text);
    *text = out;
}
