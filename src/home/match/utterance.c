/* utterance.c: texts as units, and their language; see utterance.h. */
#include "match/utterance.h"

#include <string.h>

#include "match/compound.h"

const word_sense *utterance_sense(const language *t, const unit *u)
{
    return u->kind == UNIT_NUMBER ? NULL : device_lexicon_sense(&t->senses, u->s);
}

static bool is_in(const char *s, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(s, list[i]) == 0) return true;
    return false;
}

static bool utterance_ends_sentence(const word *w)
{
    static const char *const ends[] = {".", "!", "?", ";", ":"};
    return w->sign && is_in(w->s, ends, sizeof ends / sizeof *ends);
}

static bool is_left_out(const word *w)
{
    static const char *const out[] = {"-", "\xC2\xA1", "\xC2\xBF", "\"", "'"};
    return w->sign && is_in(w->s, out, sizeof out / sizeof *out);
}

static void put_unit(utterance *d, const word *w, const char *s, size_t begin, size_t end)
{
    unit_kind kind = w->sign ? UNIT_SIGN : w->number ? UNIT_NUMBER : UNIT_WORD;
    unit u = unit_of_word(s, w->sign);
    u.kind = kind;
    u.begin = begin;
    u.end = end;
    u.value = w->value;
    d->units[d->n++] = u;
    d->n_words += kind == UNIT_WORD;
}

static int utterance_put_word(utterance *d, const device_lexicon *l, const word *w, arena *a)
{
    size_t cut = w->sign || w->number ? 0 : device_lexicon_elided(l, w->s);
    size_t begin = w->begin;
    if (cut) {
        const char *head = arena_strndup(a, w->s, cut - 1);
        if (!head) return SHOAL_ENOMEM;
        put_unit(d, w, head, begin, begin + cut - 1);
        begin += cut;
        while (begin < w->end && ((unsigned char)d->text[begin] & 0xC0) == 0x80) begin++;
    }
    put_unit(d, w, w->s + cut, begin, w->end);
    return 0;
}

/* The sentence that began at `from` ends here; false: it is too long. */
static bool end_sentence(utterance *d, size_t from)
{
    if (d->n == from) return true;
    if (d->n - from > UNITS_MAX) return false;
    d->sentences[d->n_sentences++] = (utterance_sentence){from, d->n};
    return true;
}

static bool breaks_line(const words *w, size_t i)
{
    if (i == 0) return false;
    size_t gap = w->at[i].begin - w->at[i - 1].end;
    return memchr(w->text + w->at[i - 1].end, '\n', gap) != NULL;
}

static int cut_units(utterance *d, const device_lexicon *l, const words *w, arena *a)
{
    size_t from = 0;
    bool fits = true;
    for (size_t i = 0; i < w->n && fits; i++) {
        if (utterance_ends_sentence(&w->at[i]) || breaks_line(w, i)) {
            fits = end_sentence(d, from);
            from = d->n;
        }
        if (utterance_ends_sentence(&w->at[i]) || is_left_out(&w->at[i])) continue;
        if (d->n + 2 > UTTERANCE_UNITS_MAX) fits = false;
        if (fits && utterance_put_word(d, l, &w->at[i], a)) return SHOAL_ENOMEM;
    }
    d->cut = w->cut || !fits || !end_sentence(d, from);
    return 0;
}

static bool is_word_of(void *user, const char *word)
{
    return word_sense_names(device_lexicon_sense(&((const language *)user)->senses, word));
}

static size_t count_known(const utterance *d, const language *t)
{
    size_t n = 0;
    compound c;
    for (size_t i = 0; i < d->n; i++) {
        if (d->units[i].kind != UNIT_WORD) continue;
        n += utterance_sense(t, &d->units[i]) || compound_split(&c, t, d->units[i].s, is_word_of, (void *)t);
    }
    return n;
}

static void choose_language(utterance *d, const device_lexicon *l, const language *const *only, size_t n_only)
{
    size_t n = n_only ? n_only : l->n_languages;
    for (size_t i = 0; i < n; i++) {
        const language *t = n_only ? only[i] : &l->languages[i];
        size_t known = count_known(d, t);
        if (d->t && known < d->n_known) continue;
        if (!d->t || known > d->n_known) d->n_tied = 0;
        if (d->n_tied < LANGUAGES_MAX) d->tied[d->n_tied++] = t;
        d->t = d->tied[0];
        d->n_known = known;
    }
}

int utterance_read(utterance *ret, const device_lexicon *l, const language *const *only, size_t n_only,
                   const char *text, arena *a)
{
    utterance d = {.text = text};
    words w;
    if (words_split(&w, a, text, strlen(text))) return SHOAL_ENOMEM;
    d.units = arena_alloc(a, (UTTERANCE_UNITS_MAX + 1) * sizeof *d.units);
    d.sentences = arena_alloc(a, (UTTERANCE_UNITS_MAX + 1) * sizeof *d.sentences);
    if (!d.units || !d.sentences || cut_units(&d, l, &w, a)) return SHOAL_ENOMEM;
    choose_language(&d, l, only, n_only);
    if (d.cut) d.n = d.n_sentences = 0;
    *ret = d;
    return 0;
}

unit_set utterance_find(const utterance *d, const utterance_sentence *s, const phrase_list *l, unit_set taken)
{
    const unit *u = d->units + s->from;
    size_t n = s->to - s->from;
    unit_set all = 0;
    for (size_t at = 0; at < n; at++) all |= phrase_list_at(l, u, at, n, taken);
    return all;
}
