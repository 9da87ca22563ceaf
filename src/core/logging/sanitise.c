/* sanitise.c: see sanitise.h. */
#include "logging/sanitise.h"

#include <string.h>

#include "base/utf8.h"

size_t sanitise_control(const char *s, size_t n)
{
    uint32_t cp;
    size_t len = utf8_decode(s, n, &cp);
    if (len == 0) return n > 0;
    return cp < 0x20 || (cp >= 0x7F && cp < 0xA0) ? len : 0;
}

static bool is_direction(uint32_t cp)
{
    return (cp >= 0x202A && cp <= 0x202E) || (cp >= 0x2066 && cp <= 0x206F);
}

bool sanitise_is(const char *s)
{
    uint32_t cp;
    for (size_t n = strlen(s); n > 0;) {
        if (sanitise_control(s, n)) return false;
        size_t len = utf8_decode(s, n, &cp);
        if (is_direction(cp)) return false;
        s += len;
        n -= len;
    }
    return true;
}

size_t sanitise_bytes(char *s, size_t n, const char *keep)
{
    uint32_t cp;
    size_t to = 0;
    for (size_t at = 0, len; at < n; at += len) {
        if (s[at] && strchr(keep, s[at])) {
            s[to++] = s[at];
            len = 1;
        } else if ((len = sanitise_control(s + at, n - at)) > 0) {
            s[to++] = '?';
        } else if ((len = utf8_decode(s + at, n - at, &cp)) && is_direction(cp)) {
            s[to++] = '?';
        } else {
            memmove(s + to, s + at, len);
            to += len;
        }
    }
    return to;
}

void sanitise_put(buf *out, const char *s, size_t n, const char *keep)
{
    uint32_t cp;
    for (size_t at = 0, len; at < n; at += len) {
        bool kept = s[at] && strchr(keep, s[at]);
        len = kept ? 0 : sanitise_control(s + at, n - at);
        if (len > 0) {
            buf_putc(out, '?');
            continue;
        }
        len = utf8_decode(s + at, n - at, &cp);
        if (is_direction(cp))
            buf_printf(out, "\\u%04x", cp);
        else
            buf_append(out, s + at, len);
    }
}

void sanitise_text(char *s, const char *keep)
{
    s[sanitise_bytes(s, strlen(s), keep)] = '\0';
}

/* How many first bytes of s[n] fit into `columns` columns. */
static size_t bytes_of_columns(const char *s, size_t n, size_t columns)
{
    uint32_t cp;
    size_t at = 0, used = 0;
    for (size_t len; at < n; at += len) {
        len = utf8_decode(s + at, n - at, &cp);
        used += utf8_columns(s + at, len);
        if (used > columns) break;
    }
    return at;
}

/* Cut behind a word, if the row has one that ends in it. */
static size_t cut(const char *s, size_t n, size_t width)
{
    size_t most = bytes_of_columns(s, n, width - 1), at = most;
    while (at > 0 && s[at] != ' ') at--;
    while (at > 0 && s[at - 1] == ' ') at--;
    return at ? at : most;
}

void sanitise_line(buf *out, size_t from, size_t width)
{
    buf line = {0};
    if (out->failed) return;
    sanitise_put(&line, out->data + from, out->len - from, "");
    size_t n = line.len;
    while (n > 0 && line.data[n - 1] == ' ') n--;
    bool fits = width == 0 || n == 0 || bytes_of_columns(line.data, n, width) == n;
    out->len = from;
    if (n > 0) buf_append(out, line.data, fits ? n : cut(line.data, n, width));
    if (!fits) buf_puts(out, "…");
    buf_putc(out, '\n');
    out->failed |= line.failed;
    buf_done(&line);
}
