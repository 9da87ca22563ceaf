/* regex.c: PCRE2 with limits; see regex.h. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "regex/regex.h"

#include <pcre2.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/utf8.h"

struct regex {
    pcre2_code *code;
    pcre2_match_data *data;
    pcre2_match_context *context;
};

enum {
    OWN = PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C,
    /* \d is ASCII's, $ is the very end, \u0041 is a letter, [] matches nothing, and a group that was not there
     * matches "". */
    ECMA = PCRE2_UTF | PCRE2_NEVER_BACKSLASH_C | PCRE2_DOLLAR_ENDONLY | PCRE2_ALT_BSUX |
           PCRE2_MATCH_UNSET_BACKREF | PCRE2_AUTO_CALLOUT | PCRE2_ALLOW_EMPTY_CLASS
};

static int compile(regex *p, const char *source, uint32_t options, shoal_err *err)
{
    int code = 0;
    PCRE2_SIZE at = 0;
    pcre2_compile_context *context = pcre2_compile_context_create(NULL);
    if (!context) return err_nomem(err);
    if (options == ECMA) pcre2_set_compile_extra_options(context, PCRE2_EXTRA_ALT_BSUX); /* \u{1F600} */
    p->code = pcre2_compile((PCRE2_SPTR)source, PCRE2_ZERO_TERMINATED, options, &code, &at, context);
    pcre2_compile_context_free(context);
    if (!p->code) {
        PCRE2_UCHAR why[160] = "";
        if (code == PCRE2_ERROR_NOMEMORY || code == PCRE2_ERROR_HEAP_FAILED) return err_nomem(err);
        pcre2_get_error_message(code, why, sizeof why);
        return err_set(err, SHOAL_EINVALID, "at byte %zu of '%.60s': %s", (size_t)at, source,
                       (const char *)why);
    }
    p->data = pcre2_match_data_create(1, NULL);
    p->context = pcre2_match_context_create(NULL);
    if (!p->data || !p->context) return err_nomem(err);
    pcre2_set_match_limit(p->context, REGEX_STEPS);
    pcre2_set_heap_limit(p->context, REGEX_HEAP_KIB);
    return 0;
}

static int new_regex(regex **ret, const char *source, uint32_t options, shoal_err *err)
{
    regex *p = calloc(1, sizeof *p);
    int rc = p ? compile(p, source, options, err) : err_nomem(err);
    if (rc == 0)
        *ret = p;
    else
        regex_free(p);
    return rc;
}

int regex_compile(regex **ret, const char *source, shoal_err *err)
{
    int rc = new_regex(ret, source, OWN, err);
    if (rc == 0)
        pcre2_jit_compile((*ret)->code, PCRE2_JIT_COMPLETE); /* a machine that forbids it interprets */
    return rc;
}

/* The escape at *at, which is moved behind it, as PCRE2 has it: white space is that of Unicode (ECMA-262, section
 * 12.2), and \v is one character. */
static void put_escape(buf *out, const char **at, bool in_class)
{
    static const char SPACES[] = "\\s\\xA0\\u1680\\u2000-\\u200A\\u2028\\u2029\\u202F\\u205F\\u3000\\uFEFF";
    char c = (*at)[1];
    if (c == 'v')
        buf_puts(out, "\\x0B");
    else if (c == 's' && in_class)
        buf_puts(out, SPACES);
    else if ((c == 's' || c == 'S') && !in_class)
        buf_printf(out, "[%s%s]", c == 'S' ? "^" : "", SPACES);
    else
        buf_append(out, *at, c ? 2 : 1);
    *at += c ? 2 : 1;
}

static void put_ecma(buf *out, const char *source)
{
    bool in_class = false;
    while (*source) {
        if (*source == '\\') {
            put_escape(out, &source, in_class);
            continue;
        }
        in_class = in_class ? *source != ']' : *source == '[';
        buf_putc(out, *source++);
    }
    buf_append(out, "", 1);
}

/* Compiled for one text or two, so no machine program is made of it. */
int regex_compile_ecma(regex **ret, const char *source, shoal_err *err)
{
    buf own = {0};
    put_ecma(&own, source);
    int rc = own.failed ? err_nomem(err) : new_regex(ret, own.data, ECMA, err);
    buf_done(&own);
    return rc;
}

void regex_free(regex *p)
{
    if (!p) return;
    pcre2_match_context_free(p->context);
    pcre2_match_data_free(p->data);
    pcre2_code_free(p->code);
    free(p);
}

size_t regex_bytes(const regex *p)
{
    size_t n = 0;
    pcre2_pattern_info(p->code, PCRE2_INFO_SIZE, &n);
    return n;
}

static regex_result find_regex(const regex *p, const char *text, size_t len)
{
    int rc = pcre2_match(p->code, (PCRE2_SPTR)text, len, 0, 0, p->data, p->context);
    if (rc == PCRE2_ERROR_JIT_STACKLIMIT)
        rc = pcre2_match(p->code, (PCRE2_SPTR)text, len, 0, PCRE2_NO_JIT, p->data, p->context);
    if (rc >= 0) return REGEX_FOUND;
    bool none = rc == PCRE2_ERROR_NOMATCH || (rc <= PCRE2_ERROR_UTF8_ERR1 && rc >= PCRE2_ERROR_UTF8_ERR21);
    return none ? REGEX_NONE : REGEX_GAVE_UP;
}

regex_result regex_find(const regex *p, const char *text, size_t len)
{
    if (len > REGEX_BYTES) {
        len = REGEX_BYTES;
        len -= utf8_incomplete_tail(text, len);
    }
    return find_regex(p, text, len);
}

typedef struct count {
    size_t left, each;
} count;

/* PCRE2's own limit is for each place where a match may begin. */
static int on_part(pcre2_callout_block *block, void *user)
{
    count *c = user;
    if (c->left < c->each) return PCRE2_ERROR_CALLOUT;
    c->left -= c->each;
    return 0;
}

regex_result regex_find_counted(const regex *p, const char *text, size_t len, size_t *n_left)
{
    count c = {.left = *n_left, .each = 1 + len / REGEX_STEP_BYTES};
    if (len > REGEX_BYTES) return REGEX_GAVE_UP;
    pcre2_set_callout(p->context, on_part, &c);
    regex_result found = find_regex(p, text, len);
    pcre2_set_callout(p->context, NULL, NULL);
    *n_left = c.left;
    return found;
}
