/* thinking.c: see thinking.h. What is held back is no longer than a marker and some white space. */
#include "text/thinking.h"

#include <ctype.h>
#include <string.h>

enum { SPACES_MAX = 64, ROOM = 1024 };

/* Qwen3, SmolLM3, DeepSeek and others; Magistral; Granite 3.2. */
static const thinking_form FORMS[] = {
    {"<think>", "</think>"},
    {"[THINK]", "[/THINK]"},
    {"Here is my thought process:", "Here is my response:"},
};

const thinking_form *thinking_find(const char *source)
{
    for (size_t i = 0; i < sizeof FORMS / sizeof *FORMS; i++)
        if (strstr(source, FORMS[i].open) || strstr(source, FORMS[i].close)) return &FORMS[i];
    return NULL;
}

static bool is_space(char c)
{
    return isspace((unsigned char)c);
}

bool thinking_is_open(const thinking_form *f, const char *prompt, size_t n, const uint8_t *marks)
{
    size_t len = strlen(f->open);
    while (n > 0 && is_space(prompt[n - 1])) n--;
    if (n < len || memcmp(prompt + n - len, f->open, len) != 0) return false;
    return !marks || !memchr(marks + n - len, 1, len);
}

int thinking_init(thinking *t, const thinking_form *form, bool open)
{
    *t = (thinking){.form = form,
                    .any = form && open,
                    .at = !form  ? THINK_DONE
                          : open ? THINK_LEAD
                                 : THINK_BEFORE};
    return form ? buf_reserve(&t->held, ROOM) : 0;
}

void thinking_done(thinking *t)
{
    buf_done(&t->held);
}

static size_t lead(const char *s, size_t n)
{
    size_t k = 0;
    while (k < n && is_space(s[k])) k++;
    return k;
}

/* White space, then the opening marker, or no thought at all. Returns the bytes that are decided. */
static size_t before(thinking *t, const char *s, size_t n, bool last)
{
    size_t skip = lead(s, n), len = strlen(t->form->open), have = n - skip < len ? n - skip : len;
    bool like = skip <= SPACES_MAX && (have == 0 || memcmp(s + skip, t->form->open, have) == 0);
    if (like && have == len) {
        t->at = THINK_LEAD;
        t->any = true;
        return skip + len;
    }
    if (!like || last) t->at = THINK_DONE; /* the white space is the answer's */
    return 0;
}

/* How much of s is certainly thought: not what may be the closing marker, nor white space before it. */
static size_t certain(const thinking *t, const char *s, size_t n)
{
    size_t len = strlen(t->form->close), keep = n < len - 1 ? n : len - 1, spaces = 0;
    while (keep > 0 && memcmp(s + n - keep, t->form->close, keep) != 0) keep--;
    size_t end = n - keep;
    while (spaces < SPACES_MAX && end > 0 && is_space(s[end - 1])) end--, spaces++;
    return end;
}

static size_t find_close(const thinking *t, const char *s, size_t n)
{
    size_t len = strlen(t->form->close);
    for (size_t i = 0; n >= len && i <= n - len; i++)
        if (memcmp(s + i, t->form->close, len) == 0) return i;
    return n;
}

/* Within the thought; returns the bytes that are decided. */
static size_t within(thinking *t, const char *s, size_t n, bool last, thinking_parts *ret)
{
    size_t close = find_close(t, s, n), end = close;
    bool found = close < n;
    if (found ||
        last) /* as much white space as is held back, so that the way the input is cut cannot matter */
        for (size_t k = 0; k < SPACES_MAX && end > 0 && is_space(s[end - 1]); k++) end--;
    else
        end = certain(t, s, n);
    ret->thought = s;
    ret->n_thought = end;
    if (found) t->at = THINK_GAP;
    return found ? close + strlen(t->form->close) : last ? n : end;
}

/* Each part is decided once at most, so that two ranges of `held` say it all. */
static void split(thinking *t, bool last, thinking_parts *ret)
{
    const char *s = t->held.data;
    size_t n = t->held.len, at = 0;
    if (t->at == THINK_BEFORE) at = before(t, s, n, last);
    if (t->at == THINK_LEAD) {
        at += lead(s + at, n - at);
        if (at < n) t->at = THINK_IN;
    }
    if (t->at == THINK_IN) at += within(t, s + at, n - at, last, ret);
    if (t->at == THINK_GAP) {
        at += lead(s + at, n - at);
        if (at < n) t->at = THINK_DONE;
    }
    if (t->at == THINK_DONE) {
        ret->answer = s + at;
        ret->n_answer = n - at;
        at = n;
    }
    t->n_used = at;
}

static void take(thinking *t, const char *s, size_t n, bool last, thinking_parts *ret)
{
    *ret = (thinking_parts){.thought = "", .answer = n ? s : "", .n_answer = n};
    if (t->at == THINK_DONE && t->held.len == t->n_used) return; /* nothing is held: as it is */
    ret->n_answer = 0;
    buf_consume(&t->held, t->n_used);
    t->n_used = 0;
    buf_append(&t->held, s, n);
    if (!t->held.failed && t->held.len > 0) split(t, last, ret);
}

void thinking_push(thinking *t, const char *s, size_t n, thinking_parts *ret)
{
    take(t, s, n, false, ret);
}

void thinking_end(thinking *t, const char *s, size_t n, thinking_parts *ret)
{
    take(t, s, n, true, ret);
}
