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

bool sanitise_is(const char *s)
{
    uint32_t cp;
    for (size_t n = strlen(s); n > 0;) {
        if (sanitise_control(s, n)) return false;
        size_t len = utf8_decode(s, n, &cp);
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
        } else {
            len = utf8_decode(s + at, n - at, &cp);
            memmove(s + to, s + at, len);
            to += len;
        }
    }
    return to;
}

void sanitise_text(char *s, const char *keep)
{
    s[sanitise_bytes(s, strlen(s), keep)] = '\0';
}

void sanitise_line(buf *out, size_t from, size_t width)
{
    uint32_t cp;
    if (out->failed) return;
    size_t n = sanitise_bytes(out->data + from, out->len - from, ""), at = from;
    for (size_t i = 0; at < from + n && (width == 0 || i < width); i++)
        at += utf8_decode(out->data + at, from + n - at, &cp);
    while (at > from && out->data[at - 1] == ' ') at--;
    out->len = at;
    buf_putc(out, '\n');
}
