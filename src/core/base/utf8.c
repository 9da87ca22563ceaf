/* utf8.c: UTF-8 by RFC 3629, hex, and base64 by RFC 4648. Works on byte ranges and never looks past them; no
 * locale is asked. */
#include "base/utf8.h"

#include <string.h>
#include <utf8proc.h>

#include "base/loop_work.h"
#include "shoal.h"

size_t utf8_decode(const char *s, size_t n, uint32_t *ret_cp)
{
    const unsigned char *p = (const unsigned char *)s;
    if (n == 0) return 0;
    uint32_t cp = p[0];
    if (cp < 0x80) {
        *ret_cp = cp;
        return 1;
    }
    size_t len = cp >= 0xF0 ? 4 : cp >= 0xE0 ? 3 : 2;
    static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
    if (cp < 0xC2 || cp > 0xF4 || len > n) return 0;
    cp &= 0x7Fu >> len;
    for (size_t i = 1; i < len; i++) {
        if ((p[i] & 0xC0) != 0x80) return 0;
        cp = cp << 6 | (p[i] & 0x3F);
    }
    if (cp < least[len] || cp > 0x10FFFF || (cp >= 0xD800 && cp < 0xE000)) return 0;
    *ret_cp = cp;
    return len;
}

size_t utf8_encode(uint32_t cp, char out[4])
{
    if (cp < 0x80) {
        out[0] = (char)cp;
        return 1;
    }
    if (cp < 0x800) {
        out[0] = (char)(0xC0 | cp >> 6);
        out[1] = (char)(0x80 | (cp & 0x3F));
        return 2;
    }
    if (cp < 0x10000) {
        if (cp >= 0xD800 && cp < 0xE000) return 0;
        out[0] = (char)(0xE0 | cp >> 12);
        out[1] = (char)(0x80 | (cp >> 6 & 0x3F));
        out[2] = (char)(0x80 | (cp & 0x3F));
        return 3;
    }
    if (cp > 0x10FFFF) return 0;
    out[0] = (char)(0xF0 | cp >> 18);
    out[1] = (char)(0x80 | (cp >> 12 & 0x3F));
    out[2] = (char)(0x80 | (cp >> 6 & 0x3F));
    out[3] = (char)(0x80 | (cp & 0x3F));
    return 4;
}

bool utf8_valid(const char *s, size_t n, size_t *ret_bad)
{
    for (size_t i = 0; i < n;) {
        uint32_t cp;
        size_t len = utf8_decode(s + i, n - i, &cp);
        if (len == 0) {
            if (ret_bad) *ret_bad = i;
            return false;
        }
        i += len;
    }
    return true;
}

bool utf8_is_line(const char *s, size_t max)
{
    size_t n = strlen(s);
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)s[i] < ' ' || s[i] == 0x7F) return false;
    return n <= max && utf8_valid(s, n, NULL);
}

size_t utf8_count(const char *s, size_t n)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++) count += ((unsigned char)s[i] & 0xC0) != 0x80;
    return count;
}

/* Of what a terminal would obey, or cannot show, '?' is shown (logging/sanitise.h): a column. */
size_t utf8_columns(const char *s, size_t n)
{
    size_t columns = 0;
    uint32_t cp;
    for (size_t i = 0, len; i < n; i += len ? len : 1) {
        len = utf8_decode(s + i, n - i, &cp);
        bool shown = len > 0 && cp >= 0x20 && (cp < 0x7F || cp >= 0xA0);
        columns += shown && cp >= 0x300 ? (size_t)utf8proc_charwidth((utf8proc_int32_t)cp) : 1;
    }
    return columns;
}

void utf8_put_c(buf *out, const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        size_t run = strnlen(s + i, n - i);
        buf_append(out, s + i, run);
        i += run;
        if (i < n) buf_append(out, "\xEF\xBF\xBD", 3);
    }
}

size_t utf8_incomplete_tail(const char *s, size_t n)
{
    for (size_t back = 1; back <= 3 && back <= n; back++) {
        unsigned char c = (unsigned char)s[n - back];
        if ((c & 0xC0) == 0x80) continue;
        size_t len = c >= 0xF0 && c <= 0xF4 ? 4 : c >= 0xE0 && c < 0xF0 ? 3 : c >= 0xC2 && c < 0xE0 ? 2 : 1;
        return len > back ? back : 0;
    }
    return 0;
}

int hex_digit(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

bool hex_decode(const char *hex, size_t hex_len, uint8_t *out, size_t n)
{
    if (hex_len != 2 * n) return false;
    for (size_t i = 0; i < n; i++) {
        int hi = hex_digit(hex[2 * i]), lo = hex_digit(hex[2 * i + 1]);
        if (hi < 0 || lo < 0) return false;
        out[i] = (uint8_t)(hi << 4 | lo);
    }
    return true;
}

void percent_encode(buf *out, const char *s, size_t n, const char *also)
{
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)s[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (letter || (c && (strchr("-._~", c) || strchr(also, c))))
            buf_putc(out, (char)c);
        else
            buf_printf(out, "%%%02X", c);
    }
}

int base64_encode(buf *out, const void *data, size_t n)
{
    static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const uint8_t *p = data;
    size_t i = 0, letters;
    if (size_mul(n / 3 + 1, 4, &letters) || out->failed || buf_reserve(out, letters) != 0) {
        out->failed = true;
        return SHOAL_ENOMEM;
    }
    char *to = out->data + out->len;
    for (; i + 3 <= n; i += 3, to += 4) {
        uint32_t v = (uint32_t)p[i] << 16 | (uint32_t)p[i + 1] << 8 | p[i + 2];
        to[0] = digit[v >> 18];
        to[1] = digit[v >> 12 & 63];
        to[2] = digit[v >> 6 & 63];
        to[3] = digit[v & 63];
    }
    if (i < n) {
        bool two = i + 2 == n;
        uint32_t v = (uint32_t)p[i] << 16 | (two ? (uint32_t)p[i + 1] << 8 : 0);
        *to++ = digit[v >> 18];
        *to++ = digit[v >> 12 & 63];
        *to++ = two ? digit[v >> 6 & 63] : '=';
        *to++ = '=';
    }
    *to = '\0';
    out->len = (size_t)(to - out->data);
    loop_work_add(n);
    return 0;
}

static int digit64(char c)
{
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

int base64_decode(buf *out, const char *s, size_t n)
{
    size_t start = out->len, pad = n && s[n - 1] == '=' ? 1 + (n > 1 && s[n - 2] == '=') : 0;
    if (n % 4) return SHOAL_EFORMAT;
    loop_work_add(n);
    if (buf_reserve(out, n / 4 * 3)) return SHOAL_ENOMEM;
    for (size_t i = 0; i < n; i += 4) {
        uint32_t v = 0;
        bool bad = false;
        size_t left = i + 4 == n ? 4 - pad : 4;
        for (size_t k = 0; k < left; k++) {
            int d = digit64(s[i + k]);
            bad |= d < 0;
            v |= (uint32_t)(d & 63) << (18 - 6 * k);
        }
        if (bad || (left < 4 && (v & (left == 3 ? 0xFF : 0xFFFF)))) {
            out->len = start;
            return SHOAL_EFORMAT;
        }
        char bytes[3] = {(char)(v >> 16), (char)(v >> 8), (char)v};
        buf_append(out, bytes, left - 1);
    }
    return 0;
}
