/* tok_norm_map.c: normalising by a precompiled map, in the two ways that the field does it. */
#include <string.h>
#include <utf8proc.h>

#include "base/utf8.h"
#include "tokenizer/tok_norm.h"

#define META "\xE2\x96\x81"
enum { META_LEN = 3, SHORT_GRAPHEME = 6 };

/* ---- the Hugging Face library's Precompiled ---- */

static size_t grapheme_end(const tok_text *t, size_t at)
{
    utf8proc_int32_t state = 0;
    uint32_t last = tok_text_next(t, &at);
    while (at < t->len) {
        size_t next = at;
        uint32_t cp = tok_text_next(t, &next);
        if (utf8proc_grapheme_break_stateful((utf8proc_int32_t)last, (utf8proc_int32_t)cp, &state)) break;
        last = cp;
        at = next;
    }
    return at;
}

/* New characters are told to the writer one late, for a text that becomes nothing takes its old characters
 * from the new one before it. */
typedef struct late {
    text_writer w;
    uint32_t cp;
    int change;
    bool any;
} late;

static void put_late(late *l, uint32_t cp, int change)
{
    if (l->any) tok_text_put(&l->w, l->cp, l->change);
    l->cp = cp;
    l->change = change;
    l->any = true;
}

/* Old bytes [b, e) become what the map says of their beginning: the library looks for the shortest key and
 * lets it stand for the whole. */
static bool put_mapped(const norm_step *s, late *l, size_t b, size_t e)
{
    const char *old = l->w.src->s + b, *text;
    size_t len;
    if (!charsmap_find(&s->map, old, e - b, true, &text, &len)) return false;
    int n_new = (int)utf8_count(text, len), more = n_new - (int)utf8_count(old, e - b);
    const tok_text new_text = {.s = text, .len = len};
    size_t at = 0;
    for (int i = 0; i < n_new; i++) put_late(l, tok_text_next(&new_text, &at), i >= n_new - more);
    if (more < 0) l->change += more;
    return true;
}

int tok_norm_precompiled(const norm_step *s, tok_text *t)
{
    late l = {.w = tok_text_rewrite(t, 0)};
    for (size_t at = 0, end; at < t->len; at = end) {
        end = grapheme_end(t, at);
        if (end - at < SHORT_GRAPHEME && put_mapped(s, &l, at, end)) continue;
        for (size_t next = at; at < end; at = next) {
            uint32_t cp = tok_text_next(t, &next);
            if (!put_mapped(s, &l, at, next)) put_late(&l, cp, 0);
        }
    }
    if (l.any) tok_text_put(&l.w, l.cp, l.change);
    return tok_text_finish(&l.w, t);
}

/* ---- SentencePiece's own normaliser ---- */

typedef struct spm_run {
    const norm_step *step;
    text_writer w;
    bool started;     /* the dummy has its place before the first character */
    bool after_space; /* the last character written is a space, or there is none and spaces go */
} spm_run;

static void spm_put(spm_run *r, const char *s, size_t len, size_t b, size_t e)
{
    if (!r->started && r->step->spm.dummy && !r->step->spm.suffix)
        tok_text_put_for(&r->w, META, META_LEN, b, e);
    r->started = true;
    if (len == 1 && s[0] == ' ')
        tok_text_put_for(&r->w, META, META_LEN, b, e);
    else
        tok_text_put_for(&r->w, s, len, b, e);
}

/* What old bytes [b, e) become, without spaces that go. */
static void spm_piece(spm_run *r, const char *s, size_t len, size_t b, size_t e)
{
    bool remove = r->step->spm.remove_extra;
    tok_text t = {.s = s, .len = len};
    for (size_t at = 0, next = 0; at < len; at = next) {
        tok_text_next(&t, &next);
        bool space = s[at] == ' ';
        if (!(remove && space && r->after_space)) spm_put(r, s + at, next - at, b, e);
        r->after_space = space;
    }
}

int tok_norm_spm(const norm_step *s, tok_text *t)
{
    spm_run r = {.step = s, .w = tok_text_rewrite(t, 0), .after_space = true};
    size_t last = 0;
    for (size_t at = 0, next; at < t->len; at = next) {
        const char *text = t->s + at;
        size_t len;
        next = at;
        tok_text_next(t, &next);
        size_t n = charsmap_find(&s->map, text, t->len - at, false, &text, &len);
        if (n)
            next = at + n;
        else
            len = next - at;
        spm_piece(&r, text, len, at, next);
        last = at;
    }
    tok_text *d = &r.w.dst;
    while (s->spm.remove_extra && d->len >= META_LEN && !memcmp(d->own + d->len - META_LEN, META, META_LEN))
        d->len -= META_LEN;
    if (r.started && s->spm.dummy && s->spm.suffix) tok_text_put_for(&r.w, META, META_LEN, last, t->len);
    return tok_text_finish(&r.w, t);
}
