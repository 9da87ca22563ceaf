/* query.c: percent-encoding undone (RFC 3986, section 2.1; a plus is a space, as forms have it). */
#include "messages/query.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/number.h"
#include "base/utf8.h"

/* s[0..n) as it was meant; `space` is what a plus stands for. */
static int decode(const char *s, size_t n, char space, char **ret, api_error *e, const char *param)
{
    buf out = {0};
    for (const char *at = s, *end = s + n; at < end; at++) {
        bool coded = *at == '%' && end - at > 2 && hex_digit(at[1]) >= 0 && hex_digit(at[2]) >= 0;
        int c = coded ? hex_digit(at[1]) << 4 | hex_digit(at[2]) : *at == '+' ? space : (uint8_t)*at;
        if (coded) at += 2;
        buf_putc(&out, c ? (char)c : '?');
    }
    bool ok = !out.failed && buf_reserve(&out, 0) == 0;
    if (ok && !utf8_valid(out.data ? out.data : "", out.len, NULL)) {
        buf_done(&out);
        return api_error_bad(e, param, "%s must be UTF-8", param);
    }
    *ret = ok ? buf_take(&out) : NULL;
    buf_done(&out);
    return *ret ? 0 : api_error_nomem(e);
}

int query_value(const char *query, const char *name, char **ret, api_error *e)
{
    size_t n = strlen(name);
    const char *at = query;
    while (at && !(strncmp(at, name, n) == 0 && at[n] == '=')) at = (at = strchr(at, '&')) ? at + 1 : NULL;
    *ret = NULL;
    if (!at) return 0;
    at += n + 1;
    return decode(at, strcspn(at, "&"), ' ', ret, e, name);
}

int query_number(const char *query, const char *name, int64_t min, int64_t max, int64_t *ret, api_error *e)
{
    char *text = NULL;
    int64_t v;
    int rc = query_value(query, name, &text, e);
    if (rc == 0 && text && (!number_i64(text, &v) || v < min || v > max))
        rc = api_error_bad(e, name, "%s: must be a whole number from %lld to %lld, not '%.40s'", name,
                           (long long)min, (long long)max, text);
    else if (rc == 0 && text)
        *ret = v;
    free(text);
    return rc;
}

int query_segment(const char *s, size_t n, char **ret, api_error *e)
{
    *ret = NULL;
    int status = decode(s, n, '+', ret, e, "path");
    return status == 400 ? api_error_bad(e, "path", "the name in the path must be UTF-8") : status;
}
