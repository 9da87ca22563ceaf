/* jinja_text.c: texts that remember which of their bytes the request brought.
 *
 * A template's own "<|im_end|>" ends a turn; the same characters in a user's message must not. So every
 * string of a run carries one mark a byte where any of it came from outside, and whatever is made of it
 * (a slice, a join, an escaped copy) keeps the marks of the bytes it is made of. */
#include <string.h>

#include "base/progress.h"
#include "jinja/jinja.h"

void jinja_text_put(jtext *t, const char *s, size_t n, const uint8_t *marks)
{
    if (n == 0) return;
    progress_add(16 + n);
    bool marked = t->marks.len > 0 || marks;
    if (marked && buf_reserve(&t->marks, t->bytes.len + n - t->marks.len) == 0) {
        memset(t->marks.data + t->marks.len, 0, t->bytes.len + n - t->marks.len);
        if (marks) memcpy(t->marks.data + t->bytes.len, marks, n);
        t->marks.len = t->bytes.len + n;
    }
    buf_append(&t->bytes, s, n);
}

void jinja_text_puts(jtext *t, const char *s)
{
    jinja_text_put(t, s, strlen(s), NULL);
}

void jinja_text_put_for(jtext *t, const char *s, size_t n, jvalue of, size_t i)
{
    uint8_t marks[16];
    for (size_t at = 0; at < n; at += sizeof marks) {
        size_t here = n - at < sizeof marks ? n - at : sizeof marks;
        memset(marks, 1, here);
        jinja_text_put(t, s + at, here, of.marks && of.marks[i] ? marks : NULL);
    }
}

void jinja_text_add(jtext *t, jvalue v)
{
    jinja_text_put(t, v.s, v.n, v.marks);
}

bool jinja_text_failed(const jtext *t)
{
    return t->bytes.failed || t->marks.failed;
}

void jinja_text_done(jtext *t)
{
    buf_done(&t->bytes);
    buf_done(&t->marks);
}

jvalue jinja_text_take(jrun *r, jtext *t)
{
    if (jinja_text_failed(t)) jinja_fail(r, SHOAL_ENOMEM, "out of memory");
    jvalue v = jinja_strdup(r, t->bytes.data, t->bytes.len);
    uint8_t *marks = t->marks.len ? jinja_alloc(r, t->marks.len) : NULL;
    if (marks) memcpy(marks, t->marks.data, t->marks.len);
    v.marks = marks;
    jinja_text_done(t);
    return v;
}

jvalue jinja_part(jvalue s, size_t at, size_t n)
{
    if (at) s.s += at;
    s.n = n;
    if (s.marks) s.marks += at;
    return s;
}

jvalue jinja_foreign(jrun *r, jvalue s)
{
    uint8_t *marks = s.n ? jinja_alloc(r, s.n) : NULL;
    if (marks) memset(marks, 1, s.n);
    s.marks = marks;
    return s;
}
