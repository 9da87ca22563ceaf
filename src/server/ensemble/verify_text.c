/* verify_text.c: rules over an answer's letters: numbers and patterns; see verify.h. */
#include <stdlib.h>
#include <string.h>

#include "base/words.h"
#include "base/number.h"
#include "ensemble/verify.h"

/* ---- numbers ------------------------------------------------------------------------------------- */

/* "-5" is another number than "5", unless the sign joins words: "pump-5", "2-5". */
static double verify_text_value_of(const words *w, size_t i)
{
    size_t at = w->at[i].begin;
    const char *text = w->text;
    bool sign = at > 0 && text[at - 1] == '-' && (at == 1 || strchr(" \t\n(:=,\"'", text[at - 2]) != NULL);
    return sign ? -w->at[i].value : w->at[i].value;
}

static int put_numbers(buf *out, const words *w)
{
    for (size_t i = 0; i < w->n; i++) {
        double v = verify_text_value_of(w, i);
        if (w->at[i].number) buf_append(out, &v, sizeof v);
    }
    return out->failed ? SHOAL_ENOMEM : 0;
}

/* Of a text of any length: words are split so many at a time. */
static int put_all_numbers(buf *out, const char *text, arena *mem)
{
    words w;
    for (size_t at = 0, n = strlen(text); at < n;) {
        if (words_split(&w, mem, text + at, n - at) || put_numbers(out, &w)) return SHOAL_ENOMEM;
        if (!w.cut || w.n == 0) break;
        at += w.at[w.n - 1].end;
    }
    return 0;
}

int verify_numbers(const char *text, const char *const *known, size_t n, bool *ret_strange, arena *mem)
{
    buf said = {0}, list = {0};
    int rc = put_all_numbers(&said, text, mem);
    for (size_t i = 0; i < n && !rc; i++) rc = put_all_numbers(&list, known[i], mem);
    size_t n_said = said.len / sizeof(double), n_known = list.len / sizeof(double);
    const double *want = (const void *)said.data;
    if (n_known) qsort(list.data, n_known, sizeof(double), number_compare_doubles);
    *ret_strange = false;
    for (size_t i = 0; i < n_said && !*ret_strange; i++)
        *ret_strange =
            !n_known || !bsearch(&want[i], list.data, n_known, sizeof(double), number_compare_doubles);
    buf_done(&said);
    buf_done(&list);
    return rc;
}

/* ---- patterns ------------------------------------------------------------------------------------ */

static bool verify_text_put_answer(buf *out, const verify_answer *a)
{
    buf_puts(out, a->text);
    for (size_t i = 0; i < a->n_calls; i++)
        buf_printf(out, "\n%s %s", a->calls[i].name, a->calls[i].arguments);
    return !out->failed;
}

/* A search that gives up knows nothing: then it neither has what it must nor lacks what it must not. */
static verify_why verify_text_judge(const verify_check *c, const buf *text)
{
    const char *s = text->len ? text->data : "";
    if (text->len > REGEX_BYTES) return VERIFY_TOO_LONG;
    for (size_t i = 0; i < c->n_must; i++)
        if (regex_find(c->must[i], s, text->len) != REGEX_FOUND) return VERIFY_LACKS;
    for (size_t i = 0; i < c->n_must_not; i++)
        if (regex_find(c->must_not[i], s, text->len) != REGEX_NONE) return VERIFY_HAS;
    return VERIFY_FINE;
}

int verify_pattern(verify_why *ret, const verify_check *c, const verify_answer *a)
{
    buf text = {0};
    int rc = verify_text_put_answer(&text, a) ? 0 : SHOAL_ENOMEM;
    if (rc == 0) *ret = verify_text_judge(c, &text);
    buf_done(&text);
    return rc;
}
