/* tok_regex.c: pcre2 with limits on steps and memory: patterns come from model files, texts from clients. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "tokenizer/tok_regex.h"

#include <pcre2.h>
#include <stdlib.h>

/* A megabyte of white space makes "\s*[\r\n]+" step back a million times: legal. Ten times that is a
 * pattern gone wrong. */
enum { MATCH_LIMIT = 20000000, HEAP_LIMIT_KIB = 262144 };

struct tok_regex {
    pcre2_code *code;
};

static int compile(tok_regex *re, const buf *pattern, const char *what, shoal_err *err)
{
    int code = 0;
    PCRE2_SIZE at = 0;
    re->code =
        pcre2_compile((PCRE2_SPTR)pattern->data, pattern->len, PCRE2_UTF | PCRE2_UCP, &code, &at, NULL);
    if (!re->code) {
        PCRE2_UCHAR message[160] = "";
        if (code == PCRE2_ERROR_NOMEMORY || code == PCRE2_ERROR_HEAP_FAILED) return err_nomem(err);
        pcre2_get_error_message(code, message, sizeof message);
        return err_set(err, SHOAL_EUNSUPPORTED, "%s: regular expression, at byte %zu of \"%.60s\": %s", what,
                       (size_t)at, pattern->data, (const char *)message);
    }
    pcre2_jit_compile(re->code, PCRE2_JIT_COMPLETE); /* a machine that forbids it interprets */
    return 0;
}

int tok_regex_compile(tok_regex **ret, const char *pattern, size_t len, const char *what, shoal_err *err)
{
    tok_regex *re = calloc(1, sizeof *re);
    buf spelled = {0};
    if (!re || buf_reserve(&spelled, 1)) {
        free(re);
        return err_nomem(err);
    }
    int rc = tok_onig_to_pcre(&spelled, pattern, len, what, err);
    if (rc == 0) rc = compile(re, &spelled, what, err);
    buf_done(&spelled);
    if (rc == 0)
        *ret = re;
    else
        free(re);
    return rc;
}

void tok_regex_free(tok_regex *re)
{
    if (!re) return;
    pcre2_code_free(re->code);
    free(re);
}

static bool tok_regex_prepare(tok_match *m)
{
    if (!m->data) m->data = pcre2_match_data_create(1, NULL);
    if (!m->context) {
        m->context = pcre2_match_context_create(NULL);
        if (m->context) {
            pcre2_set_match_limit(m->context, MATCH_LIMIT);
            pcre2_set_heap_limit(m->context, HEAP_LIMIT_KIB);
        }
    }
    return m->data && m->context;
}

int tok_regex_find(const tok_regex *re, tok_match *m, const char *s, size_t len, size_t from,
                   size_t *ret_begin, size_t *ret_end, shoal_err *err)
{
    if (!tok_regex_prepare(m)) return err_nomem(err);
    int rc = pcre2_match(re->code, (PCRE2_SPTR)s, len, from, PCRE2_NO_UTF_CHECK, m->data, m->context);
    if (rc == PCRE2_ERROR_JIT_STACKLIMIT)
        rc = pcre2_match(re->code, (PCRE2_SPTR)s, len, from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, m->data,
                         m->context);
    if (rc == PCRE2_ERROR_NOMATCH) return 0;
    if (rc == PCRE2_ERROR_NOMEMORY) return err_nomem(err);
    if (rc < 0)
        return err_set(err, SHOAL_ELIMIT, "the tokenizer's regular expression gave up at byte %zu", from);
    const PCRE2_SIZE *v = pcre2_get_ovector_pointer(m->data);
    *ret_begin = v[0];
    *ret_end = v[1] > v[0] ? v[1] : v[0]; /* \K in a look-around can put the end first */
    return 1;
}

void tok_match_done(tok_match *m)
{
    pcre2_match_data_free(m->data);
    pcre2_match_context_free(m->context);
    *m = (tok_match){0};
}
