/* tok_norm.c: the steps of a normaliser, as the Hugging Face tokenizers library takes them; Unicode data is
 * utf8proc's. Each rewrites the whole text through tok_text.h, so that offsets still lead to the original. */
#include "tokenizer/tok_norm.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "base/progress.h"
#include "tokenizer/tok_letter.h"

bool tok_cp_is_space(uint32_t cp)
{
    if (cp < 0x80) return cp == ' ' || (cp >= 9 && cp <= 13);
    return cp == 0x85 || cp == 0xA0 || cp == 0x1680 || (cp >= 0x2000 && cp <= 0x200A) || cp == 0x2028 ||
           cp == 0x2029 || cp == 0x202F || cp == 0x205F || cp == 0x3000;
}

static utf8proc_category_t category(uint32_t cp)
{
    return utf8proc_category((utf8proc_int32_t)cp);
}

bool tok_cp_is_bert_punct(uint32_t cp)
{
    if (cp < 0x80)
        return (cp > 32 && cp < 48) || (cp > 57 && cp < 65) || (cp > 90 && cp < 97) || (cp > 122 && cp < 127);
    utf8proc_category_t c = category(cp);
    return c >= UTF8PROC_CATEGORY_PC && c <= UTF8PROC_CATEGORY_PO;
}

bool tok_cp_is_numeric(uint32_t cp)
{
    if (cp < 0x80) return cp >= '0' && cp <= '9';
    utf8proc_category_t c = category(cp);
    return c >= UTF8PROC_CATEGORY_ND && c <= UTF8PROC_CATEGORY_NO;
}

bool tok_cp_is_word(uint32_t cp)
{
    utf8proc_category_t c = category(cp);
    return (c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_ND) || c == UTF8PROC_CATEGORY_PC;
}

static bool is_control(uint32_t cp)
{
    if (cp == '\t' || cp == '\n' || cp == '\r') return false;
    if (cp < 0x80) return cp < 32 || cp == 127;
    utf8proc_category_t c = category(cp);
    return c == UTF8PROC_CATEGORY_CC || c == UTF8PROC_CATEGORY_CF || c == UTF8PROC_CATEGORY_CO ||
           c == UTF8PROC_CATEGORY_CS;
}

/* The ideograph blocks of BERT's BasicTokenizer (google-research/bert, tokenization.py). */
static bool is_chinese(uint32_t cp)
{
    return (cp >= 0x4E00 && cp <= 0x9FFF) || (cp >= 0x3400 && cp <= 0x4DBF) ||
           (cp >= 0x20000 && cp <= 0x2A6DF) || (cp >= 0x2A700 && cp <= 0x2B73F) ||
           (cp >= 0x2B740 && cp <= 0x2B81F) || (cp >= 0x2B920 && cp <= 0x2CEAF) ||
           (cp >= 0xF900 && cp <= 0xFAFF) || (cp >= 0x2F800 && cp <= 0x2FA1F);
}

static int clean(tok_text *t)
{
    text_writer w = tok_text_rewrite(t, 0);
    while (w.at < t->len) {
        size_t next = w.at;
        uint32_t cp = tok_text_next(t, &next);
        if (cp == 0 || cp == 0xFFFD || is_control(cp))
            tok_text_skip(&w, next);
        else
            tok_text_put(&w, tok_cp_is_space(cp) ? ' ' : cp, 0);
    }
    return tok_text_finish(&w, t);
}

static int chinese(tok_text *t)
{
    text_writer w = tok_text_rewrite(t, 0);
    while (w.at < t->len) {
        size_t next = w.at;
        uint32_t cp = tok_text_next(t, &next);
        bool ideograph = is_chinese(cp);
        tok_text_put(&w, ideograph ? ' ' : cp, 0);
        if (!ideograph) continue;
        tok_text_put(&w, cp, 1);
        tok_text_put(&w, ' ', 1);
    }
    return tok_text_finish(&w, t);
}

static bool is_mark(uint32_t cp)
{
    utf8proc_category_t c = category(cp);
    return c >= UTF8PROC_CATEGORY_MN && c <= UTF8PROC_CATEGORY_ME;
}

/* Non-spacing marks go as BERT has it; all marks as the library's StripAccents. */
static int strip_accents(const norm_step *s, tok_text *t)
{
    text_writer w = tok_text_rewrite(t, 0);
    while (w.at < t->len) {
        size_t next = w.at;
        uint32_t cp = tok_text_next(t, &next);
        if (cp >= 0x300 && (category(cp) == UTF8PROC_CATEGORY_MN || (s->all_marks && is_mark(cp))))
            tok_text_skip(&w, next);
        else
            tok_text_put(&w, cp, 0);
    }
    return tok_text_finish(&w, t);
}

static int lowercase(tok_text *t)
{
    text_writer w = tok_text_rewrite(t, 0);
    while (w.at < t->len) {
        size_t next = w.at;
        uint32_t cp = tok_text_next(t, &next);
        /* The one character whose lower case is two (Unicode SpecialCasing, unconditional). */
        tok_text_put(&w, cp == 0x130 ? 'i' : (uint32_t)utf8proc_tolower((utf8proc_int32_t)cp), 0);
        if (cp == 0x130) tok_text_put(&w, 0x307, 1);
    }
    return tok_text_finish(&w, t);
}

static bool is_nmt_control(uint32_t cp)
{
    return (cp >= 1 && cp <= 8) || cp == 0x0B || (cp >= 0x0E && cp <= 0x1F) || cp == 0x7F || cp == 0x8F ||
           cp == 0x9F;
}

static bool is_nmt_space(uint32_t cp)
{
    return cp == 9 || cp == 10 || cp == 12 || cp == 13 || cp == 0x1680 || (cp >= 0x200B && cp <= 0x200F) ||
           cp == 0x2028 || cp == 0x2029 || cp == 0x2581 || cp == 0xFEFF || cp == 0xFFFD;
}

static int nmt(tok_text *t)
{
    text_writer w = tok_text_rewrite(t, 0);
    while (w.at < t->len) {
        size_t next = w.at;
        uint32_t cp = tok_text_next(t, &next);
        if (is_nmt_control(cp))
            tok_text_skip(&w, next);
        else
            tok_text_put(&w, is_nmt_space(cp) ? ' ' : cp, 0);
    }
    return tok_text_finish(&w, t);
}

static int bytes(tok_text *t)
{
    if (t->len == 0) return 0;
    text_writer w = tok_text_rewrite(t, 0);
    for (size_t at = 0; at < t->len;) {
        size_t b = at;
        tok_text_next(t, &at);
        for (size_t i = b; i < at; i++) tok_text_put(&w, tok_byte_letter((uint8_t)t->s[i]), i > b);
    }
    return tok_text_finish(&w, t);
}

static int strip_ends(const norm_step *s, tok_text *t)
{
    size_t b = 0, e = t->len;
    while (s->left && b < e) {
        size_t next = b;
        if (!tok_cp_is_space(tok_text_next(t, &next))) break;
        b = next;
    }
    while (s->right && e > b) {
        size_t last = e - 1, at;
        while (last > b && ((uint8_t)t->s[last] & 0xC0) == 0x80) last--;
        at = last;
        if (!tok_cp_is_space(tok_text_next(t, &at))) break;
        e = last;
    }
    text_writer w = tok_text_rewrite(t, b);
    tok_text_copy(&w, e);
    return tok_text_finish(&w, t);
}

static int prepend(const norm_step *s, tok_text *t)
{
    if (t->len == 0 || s->content_len == 0) return 0;
    size_t next = 0;
    uint32_t first = tok_text_next(t, &next);
    text_writer w = tok_text_rewrite(t, 0);
    tok_text_put_str(&w, s->content, s->content_len, 0);
    tok_text_put(&w, first, 1);
    tok_text_copy(&w, t->len);
    return tok_text_finish(&w, t);
}

/* The next place of the pattern at or after `from`: 1, 0 or an error. */
static int tok_norm_find(const norm_step *s, const tok_text *t, size_t from, tok_match *m, size_t *b,
                         size_t *e, shoal_err *err)
{
    if (s->re) return tok_regex_find(s->re, m, t->s, t->len, from, b, e, err);
    if (s->pattern_len == 0) return 0;
    for (size_t i = from; i + s->pattern_len <= t->len; i++) {
        const char *p = memchr(t->s + i, s->pattern[0], t->len - i);
        if (!p) return 0;
        i = (size_t)(p - t->s);
        if (i + s->pattern_len > t->len) return 0;
        if (memcmp(p, s->pattern, s->pattern_len)) continue;
        *b = i;
        *e = i + s->pattern_len;
        return 1;
    }
    return 0;
}

static int replace(const norm_step *s, tok_text *t, tok_match *m, shoal_err *err)
{
    size_t b, e;
    int rc = tok_norm_find(s, t, 0, m, &b, &e, err);
    if (rc <= 0) return rc;
    text_writer w = tok_text_rewrite(t, 0);
    while (rc > 0) {
        tok_text_copy(&w, b);
        tok_text_skip(&w, e);
        if (e > b) tok_text_put_str(&w, s->content, s->content_len, 1);
        size_t from = e;
        if (e == b && from < t->len) tok_text_next(t, &from);
        rc = e == b && b == t->len ? 0 : tok_norm_find(s, t, from, m, &b, &e, err);
    }
    if (rc == 0) tok_text_copy(&w, t->len);
    if (rc == 0) return tok_text_finish(&w, t) ? err_nomem(err) : 0;
    tok_text_done(&w.dst);
    return rc;
}

/* ---- Unicode normalisation forms (UAX 15) ---- */

typedef struct mark {
    uint32_t cp;
    int change;
    uint8_t ccc;
} mark;

typedef struct former {
    text_writer w;
    const norm_step *step;
    mark *run; /* a starter (or nothing) and the marks after it */
    size_t n, cap;
} former;

static uint8_t combining_class(uint32_t cp)
{
    return cp < 0x300 ? 0 : (uint8_t)utf8proc_get_property((utf8proc_int32_t)cp)->combining_class;
}

/* The one character that a + b make, or 0. */
static uint32_t compose_pair(uint32_t a, uint32_t b)
{
    if (b < 0x300) return 0;
    utf8proc_int32_t pair[3] = {(utf8proc_int32_t)a, (utf8proc_int32_t)b, 0};
    return utf8proc_normalize_utf32(pair, 2, UTF8PROC_COMPOSE | UTF8PROC_STABLE) == 1 ? (uint32_t)pair[0] : 0;
}

static int by_class(const void *a, const void *b)
{
    const mark *x = a, *y = b;
    return x->ccc != y->ccc ? (x->ccc < y->ccc ? -1 : 1) : 0;
}

/* Marks of one run in canonical order. Runs are short; a hostile long one is merged, not bubbled. */
static void reorder(mark *m, size_t n)
{
    bool sorted = true;
    for (size_t i = 1; i < n && sorted; i++) sorted = m[i - 1].ccc <= m[i].ccc;
    if (sorted) return;
    mark *tmp = n > 32 ? malloc(n * sizeof *tmp) : NULL;
    if (tmp) { /* stable counting sort over the 256 classes */
        size_t at[257] = {0};
        for (size_t i = 0; i < n; i++) at[m[i].ccc + 1]++;
        for (int c = 0; c < 256; c++) at[c + 1] += at[c];
        for (size_t i = 0; i < n; i++) tmp[at[m[i].ccc]++] = m[i];
        memcpy(m, tmp, n * sizeof *tmp);
        free(tmp);
        return;
    }
    for (size_t i = 1; i < n; i++)
        for (size_t j = i; j > 0 && by_class(&m[j - 1], &m[j]) > 0; j--) {
            mark x = m[j];
            m[j] = m[j - 1];
            m[j - 1] = x;
        }
}

/* UAX 15, D117: each mark joins the starter unless one of its own class, or a starter, is between. */
static void compose_run(former *f)
{
    if (f->n < 2 || f->run[0].ccc != 0) return;
    size_t kept = 1;
    int last = -1;
    for (size_t i = 1; i < f->n; i++) {
        mark m = f->run[i];
        uint32_t joined = (last < (int)m.ccc) ? compose_pair(f->run[0].cp, m.cp) : 0;
        if (joined) {
            f->run[0].cp = joined;
            f->run[0].change += m.change - 1;
        } else {
            last = m.ccc;
            f->run[kept++] = m;
        }
    }
    f->n = kept;
}

static void flush_run(former *f)
{
    for (size_t i = 0; i < f->n; i++) tok_text_put(&f->w, f->run[i].cp, f->run[i].change);
    f->n = 0;
}

static void end_run(former *f)
{
    if (f->n > 1) reorder(f->run + (f->run[0].ccc == 0), f->n - (f->run[0].ccc == 0));
    if (f->step->compose) compose_run(f);
}

static bool add_mark(former *f, mark m)
{
    if (m.ccc == 0) {
        end_run(f);
        uint32_t joined = f->step->compose && f->n == 1 ? compose_pair(f->run[0].cp, m.cp) : 0;
        if (joined) { /* two starters that make one, as Hangul does */
            f->run[0].cp = joined;
            f->run[0].change += m.change - 1;
            return true;
        }
        flush_run(f);
    }
    if (f->n == f->cap) {
        size_t cap = f->cap ? f->cap * 2 : 32;
        mark *run = realloc(f->run, cap * sizeof *run);
        if (!run) return false;
        f->run = run;
        f->cap = cap;
    }
    f->run[f->n++] = m;
    return true;
}

static bool is_formed(const norm_step *s, const tok_text *t)
{
    for (size_t at = 0; at < t->len;) {
        uint32_t cp = tok_text_next(t, &at);
        if (cp >= (s->compat || !s->compose ? 0x80u : 0x300u)) return false;
    }
    return true;
}

static int form(const norm_step *s, tok_text *t)
{
    if (is_formed(s, t)) return 0;
    former f = {.w = tok_text_rewrite(t, 0), .step = s};
    bool ok = true;
    for (size_t at = 0; ok && at < t->len;) {
        uint32_t cp = tok_text_next(t, &at);
        progress_add(64);
        utf8proc_int32_t parts[32] = {(utf8proc_int32_t)cp};
        utf8proc_ssize_t n = 1;
        int boundary = 0;
        int options = UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | (s->compat ? UTF8PROC_COMPAT : 0);
        if (cp >= 0xA0)
            n = utf8proc_decompose_char((utf8proc_int32_t)cp, parts, 32, (utf8proc_option_t)options,
                                        &boundary);
        if (n < 1 || n > 32) n = 1;
        for (utf8proc_ssize_t i = 0; ok && i < n; i++)
            ok = add_mark(&f, (mark){(uint32_t)parts[i], i > 0, combining_class((uint32_t)parts[i])});
    }
    end_run(&f);
    flush_run(&f);
    free(f.run);
    f.w.failed |= !ok;
    return tok_text_finish(&f.w, t);
}

static int tok_norm_run_step(const norm_step *s, tok_text *t, tok_match *m, shoal_err *err)
{
    int rc = 0;
    switch (s->kind) {
    case NORM_BERT_CLEAN: rc = clean(t); break;
    case NORM_BERT_CHINESE: rc = chinese(t); break;
    case NORM_FORM: rc = form(s, t); break;
    case NORM_STRIP_ACCENTS: rc = strip_accents(s, t); break;
    case NORM_LOWERCASE: rc = lowercase(t); break;
    case NORM_STRIP: rc = strip_ends(s, t); break;
    case NORM_PREPEND: rc = prepend(s, t); break;
    case NORM_REPLACE: return replace(s, t, m, err);
    case NORM_NMT: rc = nmt(t); break;
    case NORM_BYTES: rc = bytes(t); break;
    case NORM_PRECOMPILED: rc = tok_norm_precompiled(s, t); break;
    case NORM_SPM: rc = tok_norm_spm(s, t); break;
    }
    return rc ? err_nomem(err) : 0;
}

int tok_norm_run(const norm_step *steps, size_t n, tok_text *t, tok_match *m, shoal_err *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < n; i++) {
        rc = tok_norm_run_step(&steps[i], t, m, err);
        progress_add(16 * t->len);
    }
    return rc;
}
