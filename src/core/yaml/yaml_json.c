/* yaml_json.c: a part of a YAML document as JSON, for values whose form is somebody else's (JSON schemas).
 * Which scalars are no strings: YAML 1.2.2, section 10.2 (the JSON schema), so that `on`, `0x10` and `007`
 * stay texts. */
#include <ctype.h>
#include <string.h>

#include "base/utf8.h"
#include "json/json.h"
#include "yaml/yaml.h"

static size_t digits(const char *s)
{
    size_t n = 0;
    while (isdigit((unsigned char)s[n])) n++;
    return n;
}

/* -? (0 | [1-9] digits) (. digits)? ([eE] [-+]? digits)? */
static bool is_number(const char *s)
{
    s += *s == '-';
    size_t whole = digits(s);
    if (whole == 0 || (whole > 1 && *s == '0')) return false;
    s += whole;
    if (*s == '.') {
        if (digits(s + 1) == 0) return false;
        s += 1 + digits(s + 1);
    }
    if (*s == 'e' || *s == 'E') {
        s += s[1] == '-' || s[1] == '+' ? 2 : 1;
        if (digits(s) == 0) return false;
        s += digits(s);
    }
    return !*s;
}

static int put_scalar(buf *out, const yaml_node *n)
{
    bool word = strcmp(n->text, "true") == 0 || strcmp(n->text, "false") == 0 || strcmp(n->text, "null") == 0;
    if (n->plain && n->len == 0) return buf_puts(out, "null");
    if (n->plain && (word || is_number(n->text))) return buf_puts(out, n->text);
    return json_put_string(out, n->text, n->len);
}

int yaml_put_json(buf *out, const yaml_node *n)
{
    if (n->kind == YAML_SCALAR) return put_scalar(out, n);
    bool map = n->kind == YAML_MAP;
    buf_putc(out, map ? '{' : '[');
    for (size_t i = 0; i < n->n; i++) {
        if (i) buf_putc(out, ',');
        if (map) json_put_string(out, n->keys[i]->text, n->keys[i]->len);
        if (map) buf_putc(out, ':');
        yaml_put_json(out, n->items[i]);
    }
    return buf_putc(out, map ? '}' : ']');
}

/* YAML 1.1, section 4.1 (characters) and 4.2.4 (NEL, LS and PS break lines). */
static bool needs_escape(uint32_t cp)
{
    bool line = cp == 0x2028 || cp == 0x2029;
    bool direction =
        cp == 0x200E || cp == 0x200F || (cp >= 0x202A && cp <= 0x202E) || (cp >= 0x2066 && cp <= 0x2069);
    return (cp >= 0x7F && cp < 0xA0) || line || direction || cp == 0xFEFF || cp == 0xFFFE || cp == 0xFFFF;
}

int yaml_put_text(buf *out, const char *s, size_t n)
{
    buf json = {0};
    json_put_string(&json, s, n);
    for (size_t i = 0; i < json.len;) {
        uint32_t cp;
        size_t len = utf8_decode(json.data + i, json.len - i, &cp);
        if (needs_escape(cp))
            buf_printf(out, "\\u%04x", (unsigned)cp);
        else
            buf_append(out, json.data + i, len);
        i += len;
    }
    out->failed |= json.failed;
    buf_done(&json);
    return out->failed ? SHOAL_ENOMEM : 0;
}
