/* jinja_format.c: Python's two ways to put values into a text: "%s" % x and "{}".format(x). */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "jinja/jinja.h"

/* %s %d %i %f %r and %%, with a width or precision of numbers. */
static void put_percent(jrun *r, jtext *out, char kind, int precision, jvalue v)
{
    char s[64];
    bool number = v.kind == V_INT || v.kind == V_FLOAT || v.kind == V_BOOL;
    double f = v.kind == V_FLOAT ? v.f : v.kind == V_INT ? (double)v.i : v.b;
    if (kind == 's') {
        jinja_print(r, out, v);
    } else if ((kind == 'd' || kind == 'i') && number && (v.kind != V_FLOAT || (f > -9e18 && f < 9e18))) {
        snprintf(s, sizeof s, "%lld",
                 v.kind == V_FLOAT ? (long long)f
                 : v.kind == V_INT ? (long long)v.i
                                   : v.b);
        jinja_text_puts(out, s);
    } else if (kind == 'f' && number && f > -1e30 && f < 1e30) {
        snprintf(s, sizeof s, "%.*f", precision, f);
        jinja_text_puts(out, s);
    } else {
        jinja_fail(r, SHOAL_EINVALID, "%%%c of %s cannot be written",
                   isprint((unsigned char)kind) ? kind : '?', jinja_kind_name(v));
    }
}

jvalue jinja_percent(jrun *r, jvalue format, const jvalue *at, size_t n)
{
    jtext out = {0};
    size_t used = 0;
    for (size_t i = 0; i < format.n && r->rc == 0; i++) {
        int precision = 6;
        if (format.s[i] != '%') {
            jinja_text_add(&out, jinja_part(format, i, 1));
            continue;
        }
        if (i + 2 < format.n && format.s[i + 1] == '.' && isdigit((unsigned char)format.s[i + 2])) {
            precision = format.s[i + 2] - '0';
            i += 2;
        }
        char kind = ++i < format.n ? format.s[i] : 0;
        if (kind == '%')
            jinja_text_puts(&out, "%");
        else if (used == n)
            jinja_fail(r, SHOAL_EINVALID, "a format has more places than values");
        else
            put_percent(r, &out, kind, precision, at[used++]);
        if (out.bytes.len > JINJA_MAX_OUTPUT) jinja_fail(r, SHOAL_ELIMIT, "a formatted text is too long");
    }
    return jinja_text_take(r, &out);
}

/* The value of the place "{field}": by its number, its name, or the next. */
static jvalue field_value(jrun *r, jvalue field, const jargs *a, size_t *next)
{
    size_t i = 0;
    if (field.n == 0) i = (*next)++;
    for (size_t k = 0; k < field.n && isdigit((unsigned char)field.s[k]) && i < 100; k++)
        i = i * 10 + (size_t)(field.s[k] - '0');
    bool number = field.n == 0 || isdigit((unsigned char)field.s[0]);
    if (number && i < a->n && !a->keyword[i]) return a->at[i];
    for (size_t k = 0; k < a->n && !number; k++)
        if (a->keyword[k] && strlen(a->keyword[k]) == field.n && !memcmp(a->keyword[k], field.s, field.n))
            return a->at[k];
    return jinja_fail(r, SHOAL_EINVALID, "format has no value for {%.*s}", (int)(field.n < 40 ? field.n : 40),
                      field.n ? field.s : "");
}

jvalue jinja_format(jrun *r, jvalue s, const jargs *a)
{
    jtext out = {0};
    size_t next = 0;
    for (size_t i = 0; i < s.n && r->rc == 0; i++) {
        bool brace = s.s[i] == '{' || s.s[i] == '}', twice = i + 1 < s.n && s.s[i + 1] == s.s[i];
        if (!brace || twice) {
            jinja_text_add(&out, jinja_part(s, i, 1));
            i += brace;
            continue;
        }
        const char *end = s.s[i] == '{' ? memchr(s.s + i, '}', s.n - i) : NULL;
        jvalue field = end ? jinja_part(s, i + 1, (size_t)(end - s.s) - i - 1) : s;
        if (!end || memchr(field.s, ':', field.n) || memchr(field.s, '!', field.n))
            jinja_fail(r, SHOAL_EUNSUPPORTED, "format knows {}, {0} and {name} only");
        else
            jinja_print(r, &out, field_value(r, field, a, &next));
        i += field.n + 1;
        if (out.bytes.len > JINJA_MAX_OUTPUT) jinja_fail(r, SHOAL_ELIMIT, "a formatted text is too long");
    }
    return jinja_text_take(r, &out);
}
