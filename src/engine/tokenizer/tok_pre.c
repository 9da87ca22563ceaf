/* tok_pre.c: splitting into words, as the Hugging Face tokenizers library does it; see tok_pre.h. Each step
 * makes a new list of words from the one before. */
#include "tokenizer/tok_pre.h"
#include "base/progress.h"

#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "tokenizer/tok_letter.h"

void tok_words_done(word_list *w)
{
    free(w->at);
    *w = (word_list){0};
}

static int words_add(word_list *w, size_t b, size_t e)
{
    if (b == e) return 0;
    if (w->n == w->cap) {
        size_t cap = w->cap ? w->cap * 2 : 64;
        word_span *at = realloc(w->at, cap * sizeof *at);
        if (!at) return SHOAL_ENOMEM;
        w->at = at;
        w->cap = cap;
    }
    w->at[w->n++] = (word_span){b, e};
    return 0;
}

/* Takes the parts of one word in order, matching or not, and joins them by the behaviour. */
typedef struct splitter {
    const pre_step *step;
    word_list *out;
    bool open, open_match; /* a part that the next one may still join */
    size_t begin, end;
} splitter;

static bool joins(const splitter *s, bool match)
{
    switch (s->step->behavior) {
    case SPLIT_CONTIGUOUS: return match == s->open_match;
    case SPLIT_WITH_PREVIOUS: return match && !s->open_match;
    case SPLIT_WITH_NEXT: return !match && s->open_match;
    default: return false;
    }
}

static int split_flush(splitter *s)
{
    bool drop = s->step->behavior == SPLIT_REMOVED && s->open_match;
    int rc = s->open && !drop ? words_add(s->out, s->begin, s->end) : 0;
    s->open = false;
    return rc;
}

static int split_part(splitter *s, size_t b, size_t e, bool match)
{
    if (b == e) return 0;
    match ^= s->step->invert;
    if (s->open && joins(s, match)) {
        s->end = e;
        s->open_match = match;
        return 0;
    }
    int rc = split_flush(s);
    s->open = true;
    s->open_match = match;
    s->begin = b;
    s->end = e;
    return rc;
}

static int by_class(const pre_step *p, const tok_text *t, word_span w, splitter *s)
{
    size_t from = w.begin;
    int rc = 0;
    for (size_t at = w.begin; rc == 0 && at < w.end;) {
        size_t b = at;
        if (!p->is(tok_text_next(t, &at))) continue;
        rc = split_part(s, from, b, false);
        if (rc == 0) rc = split_part(s, b, at, true);
        from = at;
    }
    return rc ? rc : split_part(s, from, w.end, false);
}

static int by_regex(const pre_step *p, const tok_text *t, word_span w, splitter *s, tok_match *m,
                    shoal_err *err)
{
    const char *text = t->s + w.begin;
    size_t len = w.end - w.begin, last = 0, from = 0, b, e;
    int rc;
    while ((rc = tok_regex_find(p->re, m, text, len, from, &b, &e, err)) > 0) {
        progress_add(256);
        if (b < last) b = last; /* a look-behind's \K */
        if (e > b) {
            if (split_part(s, w.begin + last, w.begin + b, false)) return SHOAL_ENOMEM;
            if (split_part(s, w.begin + b, w.begin + e, true)) return SHOAL_ENOMEM;
            last = from = e;
            continue;
        }
        if (e >= len) break;
        if (b > last) { /* between two characters: a border */
            if (split_part(s, w.begin + last, w.begin + b, false) || split_flush(s)) return SHOAL_ENOMEM;
            last = b;
        }
        from = e;
        tok_text_next(&(tok_text){.s = text, .len = len}, &from);
    }
    if (rc < 0) return rc;
    return split_part(s, w.begin + last, w.end, false);
}

static int by_literal(const pre_step *p, const tok_text *t, word_span w, splitter *s)
{
    size_t last = w.begin;
    for (size_t at = w.begin; p->text_len && at + p->text_len <= w.end;) {
        const char *hit = memchr(t->s + at, p->text[0], w.end - at);
        if (!hit || (size_t)(hit - t->s) + p->text_len > w.end) break;
        at = (size_t)(hit - t->s);
        if (memcmp(hit, p->text, p->text_len)) {
            at++;
            continue;
        }
        if (split_part(s, last, at, false)) return SHOAL_ENOMEM;
        if (split_part(s, at, at + p->text_len, true)) return SHOAL_ENOMEM;
        last = at += p->text_len;
    }
    return split_part(s, last, w.end, false);
}

static int split_word(const pre_step *p, const tok_text *t, word_span w, word_list *out, tok_match *m,
                      shoal_err *err)
{
    splitter s = {.step = p, .out = out};
    int rc = p->kind == PRE_REGEX   ? by_regex(p, t, w, &s, m, err)
             : p->kind == PRE_CLASS ? by_class(p, t, w, &s)
                                    : by_literal(p, t, w, &s);
    return rc ? rc : split_flush(&s);
}

/* A text of letters, and which byte of the word each of its own bytes is a part of. */
typedef struct letters {
    buf text;
    size_t *byte_of; /* [text.len + 1] */
} letters;

static int spell(letters *l, const char *s, size_t n)
{
    l->byte_of = malloc((2 * n + 1) * sizeof *l->byte_of);
    if (!l->byte_of) return SHOAL_ENOMEM;
    for (size_t i = 0; i < n; i++) {
        char letter[4];
        size_t len = utf8_encode(tok_byte_letter((uint8_t)s[i]), letter);
        for (size_t k = 0; k < len; k++) l->byte_of[l->text.len + k] = i;
        buf_append(&l->text, letter, len);
    }
    l->byte_of[l->text.len] = n;
    return l->text.failed ? SHOAL_ENOMEM : 0;
}

/* The step sees the word's letters. Letters are split whole, so words may begin and end within characters. */
static int split_letters(const pre_step *p, const tok_text *t, word_span w, word_list *out, tok_match *m,
                         shoal_err *err)
{
    letters l = {0};
    word_list parts = {0};
    int rc = spell(&l, t->s + w.begin, w.end - w.begin);
    tok_text spelt = {.s = l.text.data, .len = l.text.len};
    if (rc == 0) rc = split_word(p, &spelt, (word_span){0, l.text.len}, &parts, m, err);
    for (size_t i = 0; rc == 0 && i < parts.n; i++)
        rc = words_add(out, w.begin + l.byte_of[parts.at[i].begin], w.begin + l.byte_of[parts.at[i].end]);
    tok_words_done(&parts);
    buf_done(&l.text);
    free(l.byte_of);
    return rc;
}

static int split_words(const pre_step *p, const tok_text *t, const word_list *in, word_list *out,
                       tok_match *m, shoal_err *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < in->n; i++)
        rc = (p->letters ? split_letters : split_word)(p, t, in->at[i], out, m, err);
    return rc == SHOAL_ENOMEM ? err_nomem(err) : rc;
}

/* ' ' becomes the step's text, and the word is given one more in front when it wants it. */
static void write_word(const pre_step *p, const tok_text *t, word_span w, text_writer *out)
{
    out->at = w.begin;
    bool meta = p->kind == PRE_METASPACE;
    bool has = meta ? (w.end - w.begin >= p->text_len && !memcmp(t->s + w.begin, p->text, p->text_len))
                    : t->s[w.begin] == ' ';
    bool want = !has && !(meta && t->s[w.begin] == ' ');
    if (meta && p->prepend == PREPEND_NEVER) want = false;
    if (meta && p->prepend == PREPEND_FIRST && tok_text_origin(t, w.begin, w.begin + 1).begin != 0)
        want = false;
    if (want) {
        size_t next = w.begin;
        uint32_t first = tok_text_next(t, &next);
        tok_text_put_str(out, meta ? p->text : " ", meta ? p->text_len : 1, 0);
        tok_text_put(out, first, 1);
    }
    while (out->at < w.end) {
        if (meta && t->s[out->at] == ' ') {
            size_t next = out->at + 1;
            tok_text_skip(out, next);
            tok_text_put_str(out, p->text, p->text_len, 1);
        } else {
            size_t next = out->at;
            tok_text_next(t, &next);
            tok_text_copy(out, next);
        }
    }
}

static int write_words(const pre_step *p, tok_text *t, const word_list *in, word_list *out, shoal_err *err)
{
    text_writer w = tok_text_rewrite(t, 0);
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < in->n; i++) {
        size_t begin = w.dst.len;
        write_word(p, t, in->at[i], &w);
        rc = words_add(out, begin, w.dst.len);
    }
    if (rc)
        tok_text_done(&w.dst);
    else
        rc = tok_text_finish(&w, t);
    return rc ? err_nomem(err) : 0;
}

int tok_pre_run(const pre_step *steps, size_t n, tok_text *t, size_t begin, size_t end, word_list *words,
                tok_match *m, shoal_err *err)
{
    word_list next = {0};
    words->n = 0;
    int rc = words_add(words, begin, end) ? err_nomem(err) : 0;
    for (size_t i = 0; rc == 0 && i < n; i++) {
        next.n = 0;
        bool writes = steps[i].kind == PRE_PREFIX_SPACE || steps[i].kind == PRE_METASPACE;
        if (writes)
            rc = write_words(&steps[i], t, words, &next, err);
        else
            rc = split_words(&steps[i], t, words, &next, m, err);
        word_list old = *words;
        *words = next;
        next = old;
    }
    tok_words_done(&next);
    return rc;
}
