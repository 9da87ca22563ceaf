/* hub_file.c: see hub_file.h. */
#include "json/hub_file.h"

#include <string.h>
#include <strings.h>

#include "base/file.h"
#include "json/json.h"

/* The first line of a pointer (git-lfs, docs/spec.md). */
static const char LFS[] = "version https://git-lfs.github.com/spec/";
static const char BOM[] = "\xEF\xBB\xBF";

static bool hub_file_begins(const char *s, size_t n, const char *with)
{
    return n >= strlen(with) && strncasecmp(s, with, strlen(with)) == 0;
}

static bool is_html(const char *s, size_t n)
{
    size_t i = hub_file_begins(s, n, BOM) ? strlen(BOM) : 0;
    while (i < n && strchr(" \t\r\n", s[i]) && s[i]) i++;
    return hub_file_begins(s + i, n - i, "<!doctype html") || hub_file_begins(s + i, n - i, "<html");
}

int hub_file_check(const void *data, size_t n, const char *path, shoal_err *err)
{
    if (n == 0) return 0;
    if (hub_file_begins(data, n, LFS))
        return err_set(err, SHOAL_EFORMAT,
                       "%s: is a Git LFS pointer, not the file: run git lfs pull in its folder", path);
    if (is_html(data, n))
        return err_set(err, SHOAL_EFORMAT,
                       "%s: is an HTML page, not the file: download it again (its address may need a login)",
                       path);
    return 0;
}

/* ---- what Python writes ----------------------------------------------------------------------------- */

static const struct {
    const char *python, *json;
} CONSTANTS[] = {
    {"NaN", "null"}, {"Infinity", "1.7976931348623157e308"}, {"-Infinity", "-1.7976931348623157e308"}};
enum { N_CONSTANTS = sizeof CONSTANTS / sizeof *CONSTANTS };

/* What stands at s for a constant there, and how long that is; NULL: none is. */
static const char *constant_at(const char *s, size_t n, size_t *ret_len)
{
    for (size_t k = 0; k < N_CONSTANTS; k++) {
        *ret_len = strlen(CONSTANTS[k].python);
        if (n >= *ret_len && memcmp(s, CONSTANTS[k].python, *ret_len) == 0) return CONSTANTS[k].json;
    }
    return NULL;
}

/* The end of the string that begins at s[i]: behind its quote. */
static size_t skip_string(const char *s, size_t n, size_t i)
{
    for (i++; i < n && s[i] != '"'; i++)
        if (s[i] == '\\') i++;
    return i < n ? i + 1 : n;
}

int hub_file_plain_json(buf *text)
{
    const char *s = text->data;
    size_t n = text->len, i = 0, n_copied = 0, len;
    buf out = {0};
    if (hub_file_begins(s ? s : "", n, BOM)) i = n_copied = strlen(BOM);
    while (i < n) {
        const char *json = s[i] == 'N' || s[i] == 'I' || s[i] == '-' ? constant_at(s + i, n - i, &len) : NULL;
        if (json) {
            buf_append(&out, s + n_copied, i - n_copied);
            buf_puts(&out, json);
            n_copied = i += len;
        } else {
            i = s[i] == '"' ? skip_string(s, n, i) : i + 1;
        }
    }
    if (n_copied == 0) return 0;
    buf_append(&out, s + n_copied, n - n_copied);
    if (out.failed) {
        buf_done(&out);
        return SHOAL_ENOMEM;
    }
    buf_done(text);
    *text = out;
    return 0;
}

int hub_file_read_json(buf *out, const char *path, size_t max_bytes, shoal_err *err)
{
    buf text = {0};
    int rc = file_read(&text, path, max_bytes, err);
    if (rc == 0) rc = hub_file_check(text.data, text.len, path, err);
    if (rc == 0 &&
        (hub_file_plain_json(&text) != 0 || (text.len && buf_append(out, text.data, text.len) != 0)))
        rc = err_nomem(err);
    buf_done(&text);
    return rc;
}

int hub_file_parse_json(json_t **ret, const char *path, size_t max_bytes, shoal_err *err)
{
    buf text = {0};
    int rc = hub_file_read_json(&text, path, max_bytes, err);
    if (rc == 0) rc = json_parse(ret, text.data, text.len, path, err);
    buf_done(&text);
    return rc;
}
