/* match_devices.c: what the texts of devices mean in several languages, and who has a word; see match_devices.h. */
#include "match/match_devices.h"

#include <string.h>

#include "base/err.h"

enum { NAME_WORDS_MAX = 32 };

/* ---- words of a text --------------------------------------------------------------------------- */

/* Elisions come apart, hyphens and signs are left out. */
static int cut_words(const match_devices *d, const char *text, words *ret)
{
    words w;
    arena *a = d->index.a;
    if (words_split(&w, a, text, strlen(text))) return SHOAL_ENOMEM;
    words l = {.text = text, .at = arena_alloc(a, (2 * w.n + 1) * sizeof *l.at)};
    if (!l.at) return SHOAL_ENOMEM;
    for (size_t i = 0; i < w.n && l.n < NAME_WORDS_MAX; i++) {
        if (w.at[i].sign) continue;
        size_t cut = device_lexicon_elided(d->lex, w.at[i].s);
        if (cut) {
            l.at[l.n].s = arena_strndup(a, w.at[i].s, cut - 1);
            if (!l.at[l.n++].s) return SHOAL_ENOMEM;
        }
        l.at[l.n++].s = w.at[i].s + cut;
    }
    *ret = l;
    return 0;
}

/* ---- comparing --------------------------------------------------------------------------------- */

static bool ends_with(const word_endings *e, const char *s, size_t n, const char *ending)
{
    size_t m = strlen(ending);
    return n >= m + e->stem_min && memcmp(s + n - m, ending, m) == 0;
}

/* longer == shorter + ending */
static bool is_extended(const word_endings *e, const char *longer, const char *shorter, const char *ending)
{
    size_t n = strlen(shorter);
    return n >= e->stem_min && strncmp(longer, shorter, n) == 0 && strcmp(longer + n, ending) == 0;
}

static bool same_but_ending(const word_endings *e, const char *a, const char *b)
{
    size_t n = strlen(a), m = strlen(b);
    for (size_t i = 0; i < e->added.n; i++)
        if (is_extended(e, a, b, e->added.at[i]) || is_extended(e, b, a, e->added.at[i])) return true;
    for (size_t i = 0; i < e->changed.n; i++)
        for (size_t k = 0; k < e->changed.n; k++) {
            const char *x = e->changed.at[i], *y = e->changed.at[k];
            if (i == k || !ends_with(e, a, n, x) || !ends_with(e, b, m, y)) continue;
            size_t stem = n - strlen(x);
            if (stem == m - strlen(y) && memcmp(a, b, stem) == 0) return true;
        }
    return false;
}

bool match_devices_alike(const language *t, const char *a, const char *b)
{
    char x[RESPELLED_BYTES], y[RESPELLED_BYTES];
    if (*a != *b) return false;
    if (strcmp(a, b) == 0) return true;
    if (device_lexicon_respell(a, x)) a = x;
    if (device_lexicon_respell(b, y)) b = y;
    return strcmp(a, b) == 0 || same_but_ending(&t->endings, a, b);
}

/* ---- finding ----------------------------------------------------------------------------------- */

bool match_devices_word(const match_devices *d, const char *folded, word_owners *ret)
{
    char other[RESPELLED_BYTES];
    *ret = (word_owners){0};
    bool found = device_index_word(&d->index, folded, ret);
    return (device_lexicon_respell(folded, other) && device_index_word(&d->index, other, ret)) || found;
}

bool match_devices_find(const match_devices *d, const language *t, const char *folded, word_owners *ret)
{
    char other[RESPELLED_BYTES];
    if (match_devices_word(d, folded, ret)) return true;
    ret->inflected = true;
    bool found = device_index_forms(&d->index, &t->endings, folded, ret);
    return (device_lexicon_respell(folded, other) &&
            device_index_forms(&d->index, &t->endings, other, ret)) ||
           found;
}

/* ---- meaning ----------------------------------------------------------------------------------- */

static const word_sense *any_sense(const match_devices *d, const char *word)
{
    return device_lexicon_sense(&d->lex->any, word);
}

static bool is_lexicon_word(void *user, const char *word)
{
    const device_lexicon *lex = user;
    return word_sense_names(device_lexicon_sense(&lex->any, word));
}

/* Determiners and prepositions say nothing in a name, unless they are its end: "Lamp A". */
static bool is_content(const match_devices *d, const words *l, size_t i)
{
    const word_sense *s = i + 1 == l->n ? NULL : any_sense(d, l->at[i].s);
    return !s || !(s->classes & (WORD_DETERMINER | WORD_PREPOSITION)) || word_sense_names(s);
}

/* A word of a device that is no compound of the lexicon's words may be one with a word of its own:
 * "Thekenlicht" is the "Theke" of a light. Then its first part is whatever stands before. */
static bool split_head(const match_devices *d, const char *word, compound *c)
{
    size_t n = strlen(word);
    for (size_t i = 0; i < d->lex->n_languages; i++) {
        const language *t = &d->lex->languages[i];
        if (!t->links.n || n >= COMPOUND_BYTES_MAX) continue;
        for (size_t at = COMPOUND_PART_BYTES; at + COMPOUND_PART_BYTES <= n; at++) {
            const word_sense *s = device_lexicon_sense(&t->senses, word + at);
            if (!s || !(s->one | s->many)) continue;
            memcpy(c->parts[0], word, at);
            c->parts[0][at] = 0;
            memcpy(c->parts[1], word + at, n - at + 1);
            c->n = 2;
            return true;
        }
    }
    return false;
}

static bool split_any(const match_devices *d, const char *word, compound *c)
{
    if (is_lexicon_word((void *)d->lex, word)) return false;
    for (size_t i = 0; i < d->lex->n_languages; i++)
        if (compound_split(c, &d->lex->languages[i], word, is_lexicon_word, (void *)d->lex)) return true;
    return split_head(d, word, c);
}

static void mean(index_text *t, const word_sense *s)
{
    t->kinds |= s->one | s->many;
    t->rooms |= s->rooms;
}

static void mean_word(const match_devices *d, const char *word, index_text *t)
{
    const word_sense *s = any_sense(d, word);
    if (s) mean(t, s);
}

/* "living room", in any language. Returns the words that are part of such a phrase: "chambre d'enfant" is no
 * "chambre". */
static unit_set mean_phrases(const match_devices *d, index_text *t)
{
    unit_set used = 0;
    unit u[NAME_WORDS_MAX];
    size_t n = t->raw.n < NAME_WORDS_MAX ? t->raw.n : NAME_WORDS_MAX;
    for (size_t i = 0; i < n; i++) u[i] = unit_of_word(t->raw.at[i].s, false);
    for (size_t i = 0; i < n; i++) {
        const word_sense *first = any_sense(d, u[i].s);
        if (!first || !(first->classes & WORD_STARTS)) continue;
        for (size_t k = 0; k < d->lex->n_languages; k++)
            for (size_t j = 0; j < d->lex->languages[k].n_phrases; j++) {
                const sense_phrase *p = &d->lex->languages[k].phrases[j];
                unit_set got = phrase_match(&p->said, u, i, n, 0, true);
                if (got) mean(t, &p->sense);
                used |= got;
            }
    }
    return used;
}

/* ---- reading ----------------------------------------------------------------------------------- */

/* The word, and the same as device_lexicon_respell writes it. */
static int add_word(match_devices *d, const char *word, size_t device, unsigned from)
{
    char other[RESPELLED_BYTES];
    int rc = device_index_add(&d->index, word, device, from);
    if (rc || !device_lexicon_respell(word, other)) return rc;
    const char *kept = arena_strdup(d->index.a, other);
    return kept ? device_index_add(&d->index, kept, device, from) : SHOAL_ENOMEM;
}

static int add_parts(match_devices *d, index_text *t, const char *word, unsigned from)
{
    compound c;
    if (!split_any(d, word, &c)) {
        t->parts.at[t->parts.n++] = word;
        return 0;
    }
    for (size_t i = 0; i < c.n; i++) {
        const char *part = arena_strdup(d->index.a, c.parts[i]);
        if (!part || add_word(d, part, t->device, from)) return SHOAL_ENOMEM;
        t->parts.at[t->parts.n++] = part;
        mean_word(d, part, t);
    }
    return 0;
}

static int read_content(match_devices *d, index_text *t, unsigned from)
{
    arena *a = d->index.a;
    t->content.at = arena_alloc(a, (t->raw.n + 1) * sizeof *t->content.at);
    t->parts.at = arena_alloc(a, (COMPOUND_PARTS_MAX * t->raw.n + 1) * sizeof *t->parts.at);
    if (!t->content.at || !t->parts.at) return SHOAL_ENOMEM;
    unit_set used = mean_phrases(d, t);
    for (size_t i = 0; i < t->raw.n; i++) {
        const char *word = t->raw.at[i].s;
        bool counted =
            from == FROM_ID && *word >= '0' && *word <= '9'; /* a machine did: "lounge_1" is no light 1 */
        if (counted || !is_content(d, &t->raw, i)) continue;
        t->content.at[t->content.n++] = word;
        if (!(used >> i & 1)) mean_word(d, word, t);
        if (add_word(d, word, t->device, from) || add_parts(d, t, word, from)) return SHOAL_ENOMEM;
    }
    return 0;
}

/* Each group once, whoever is in it. */
static int note_group(match_devices *d, index_text *t, const char *text)
{
    if (strmap_get(&d->group_names, text) || !t->content.n) return 0;
    t->next = d->groups;
    d->groups = t;
    return strmap_put(&d->group_names, text, t) ? 0 : SHOAL_ENOMEM;
}

/* What stands behind the domain of an id. */
static const char *behind_domain(const char *id)
{
    const char *dot = strchr(id, '.');
    return dot ? dot + 1 : "";
}

static int match_devices_read(void *user, index_text *t, unsigned from, const char *text)
{
    match_devices *d = user;
    if (text == d->at[t->device].id) text = behind_domain(text);
    int rc = cut_words(d, text, &t->raw);
    if (!rc) rc = read_content(d, t, from);
    if (rc || from == FROM_GROUP) return rc ? rc : note_group(d, t, text);
    return from == FROM_NAME ? device_index_add_start(&d->index, t) : 0;
}

/* Of the kinds that its names mean those that may also be in its domain. */
static uint64_t kinds_also(const match_devices *d, size_t i)
{
    const indexed_device *x = &d->index.devices[i];
    const char *id = d->at[i].id;
    uint64_t named = 0, kinds = 0;
    for (size_t k = 0; k < x->n_names; k++) named |= x->names[k]->kinds;
    for (size_t k = 0; k < d->lex->n_kinds; k++)
        if (named >> k & 1 && word_list_has(&d->lex->kinds[k].also, id, strcspn(id, ".")))
            kinds |= (uint64_t)1 << k;
    return kinds;
}

/* The kind that is given, else that of the id's domain, and those of the names. */
static uint64_t kinds_of(const match_devices *d, size_t i)
{
    const device *x = &d->at[i];
    size_t kind = x->kind ? device_lexicon_kind(d->lex, x->kind)
                          : device_lexicon_kind_of_domain(d->lex, x->id, strcspn(x->id, "."));
    if (x->kind && kind != SIZE_MAX) return (uint64_t)1 << kind;
    return (kind == SIZE_MAX ? 0 : (uint64_t)1 << kind) | kinds_also(d, i);
}

/* A kind that the lexicon does not know is a word of the device. */
static bool add_odd_kind(match_devices *d, size_t i)
{
    const char *kind = d->at[i].kind;
    bool odd = kind && device_lexicon_kind(d->lex, kind) == SIZE_MAX;
    return !odd || device_index_add_text(&d->index, i, FROM_ID, kind);
}

int match_devices_init(match_devices *ret, const device_lexicon *lex, const device *list, size_t n, arena *a)
{
    *ret = (match_devices){.lex = lex, .at = list, .n = n < DEVICES_MAX ? n : DEVICES_MAX};
    ret->index = (device_index){.a = a, .read = match_devices_read, .user = ret};
    int rc = device_index_build(&ret->index, list, ret->n);
    for (size_t i = 0; i < ret->n && !rc; i++) {
        ret->index.devices[i].kinds = kinds_of(ret, i);
        if (!add_odd_kind(ret, i)) rc = SHOAL_ENOMEM;
    }
    return rc;
}

void match_devices_done(match_devices *d)
{
    device_index_done(&d->index);
    strmap_done(&d->group_names);
}
