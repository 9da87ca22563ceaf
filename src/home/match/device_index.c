/* device_index.c: who has which words; see device_index.h. */
#include "match/device_index.h"

#include <string.h>

#include "base/err.h"

enum { STEM_BYTES_MIN = 3, NAME_WORDS_MAX = 32 };

/* ---- words of a text --------------------------------------------------------------------------- */

int device_index_words(const device_lexicon *lex, const char *text, word_list *ret, arena *a)
{
    words w;
    if (words_split(&w, a, text, strlen(text))) return SHOAL_ENOMEM;
    word_list l = {.at = arena_alloc(a, (2 * w.n + 1) * sizeof *l.at)};
    if (!l.at) return SHOAL_ENOMEM;
    for (size_t i = 0; i < w.n && l.n < NAME_WORDS_MAX; i++) {
        if (w.at[i].sign) continue;
        size_t cut = device_lexicon_elided(lex, w.at[i].s);
        if (cut) {
            l.at[l.n] = arena_strndup(a, w.at[i].s, cut - 1);
            if (!l.at[l.n++]) return SHOAL_ENOMEM;
        }
        l.at[l.n++] = w.at[i].s + cut;
    }
    *ret = l;
    return 0;
}

/* ---- comparing --------------------------------------------------------------------------------- */

static bool device_index_ends_with(const char *s, size_t n, const char *ending)
{
    size_t m = strlen(ending);
    return n >= m + STEM_BYTES_MIN && memcmp(s + n - m, ending, m) == 0;
}

/* longer == shorter + ending */
static bool is_extended(const char *longer, const char *shorter, const char *ending)
{
    size_t n = strlen(shorter);
    return n >= STEM_BYTES_MIN && strncmp(longer, shorter, n) == 0 && strcmp(longer + n, ending) == 0;
}

static bool same_but_ending(const language *t, const char *a, const char *b)
{
    size_t n = strlen(a), m = strlen(b);
    for (size_t i = 0; i < t->added.n; i++)
        if (is_extended(a, b, t->added.at[i]) || is_extended(b, a, t->added.at[i])) return true;
    for (size_t i = 0; i < t->changed.n; i++)
        for (size_t k = 0; k < t->changed.n; k++) {
            const char *x = t->changed.at[i], *y = t->changed.at[k];
            if (i == k || !device_index_ends_with(a, n, x) || !device_index_ends_with(b, m, y)) continue;
            size_t stem = n - strlen(x);
            if (stem == m - strlen(y) && memcmp(a, b, stem) == 0) return true;
        }
    return false;
}

bool device_index_alike(const language *t, const char *a, const char *b)
{
    char x[RESPELLED_BYTES], y[RESPELLED_BYTES];
    if (*a != *b) return false;
    if (strcmp(a, b) == 0) return true;
    if (device_lexicon_respell(a, x)) a = x;
    if (device_lexicon_respell(b, y)) b = y;
    return strcmp(a, b) == 0 || same_but_ending(t, a, b);
}

/* ---- finding ----------------------------------------------------------------------------------- */

typedef struct finder {
    const device_index *x;
    const index_word **ret;
    size_t n;
} finder;

static void look_up(finder *f, const char *word)
{
    const index_word *w = strmap_get(&f->x->words, word);
    for (size_t i = 0; w && i < f->n; i++)
        if (f->ret[i] == w) w = NULL;
    if (w && f->n < INDEX_FORMS_MAX) f->ret[f->n++] = w;
}

/* word[0..stem) with an ending. */
static void look_up_with(finder *f, const char *word, size_t stem, const char *ending)
{
    char form[RESPELLED_BYTES];
    size_t m = strlen(ending);
    if (stem < STEM_BYTES_MIN || stem + m >= sizeof form) return;
    memcpy(form, word, stem);
    memcpy(form + stem, ending, m + 1);
    look_up(f, form);
}

static void look_up_forms(finder *f, const language *t, const char *word)
{
    size_t n = strlen(word);
    for (size_t i = 0; i < t->added.n; i++) {
        if (device_index_ends_with(word, n, t->added.at[i]))
            look_up_with(f, word, n - strlen(t->added.at[i]), "");
        look_up_with(f, word, n, t->added.at[i]);
    }
    for (size_t i = 0; i < t->changed.n; i++)
        for (size_t k = 0; k < t->changed.n && device_index_ends_with(word, n, t->changed.at[i]); k++)
            look_up_with(f, word, n - strlen(t->changed.at[i]), t->changed.at[k]);
}

size_t device_index_find(const device_index *x, const language *t, const char *folded,
                         const index_word *ret[INDEX_FORMS_MAX], bool *ret_inflected)
{
    char other[RESPELLED_BYTES];
    finder f = {.x = x, .ret = ret};
    bool respelled = device_lexicon_respell(folded, other);
    look_up(&f, folded);
    if (respelled) look_up(&f, other);
    *ret_inflected = f.n == 0;
    if (f.n) return f.n;
    look_up_forms(&f, t, folded);
    if (respelled) look_up_forms(&f, t, other);
    return f.n;
}

bool device_index_has(const device_index *x, const language *t, const char *folded)
{
    const index_word *w[INDEX_FORMS_MAX];
    bool inflected;
    return device_index_find(x, t, folded, w, &inflected) > 0;
}

/* ---- building ---------------------------------------------------------------------------------- */

static int post(device_index *x, const char *word, size_t device, unsigned from)
{
    index_word *w = strmap_get(&x->words, word);
    if (!w) {
        w = arena_alloc(x->a, sizeof *w);
        if (!w || !strmap_put(&x->words, word, w)) return SHOAL_ENOMEM;
    }
    if (w->all && w->all->device == device) {
        w->all->from |= from;
        return 0;
    }
    posting *p = arena_alloc(x->a, sizeof *p);
    if (!p) return SHOAL_ENOMEM;
    *p = (posting){.device = device, .from = from, .next = w->all};
    w->all = p;
    return 0;
}

static int post_word(device_index *x, const char *word, size_t device, unsigned from)
{
    char other[RESPELLED_BYTES];
    int rc = post(x, word, device, from);
    if (rc || !device_lexicon_respell(word, other)) return rc;
    const char *kept = arena_strdup(x->a, other);
    return kept ? post(x, kept, device, from) : SHOAL_ENOMEM;
}

static const word_sense *any_sense(const device_index *x, const char *word)
{
    return device_lexicon_sense(&x->lex->any, word);
}

static bool is_lexicon_word(void *user, const char *word)
{
    const device_lexicon *lex = user;
    return word_sense_names(device_lexicon_sense(&lex->any, word));
}

/* Determiners and prepositions say nothing in a name, unless they are its end: "Lamp A". */
static bool is_content(const device_index *x, const word_list *l, size_t i)
{
    const word_sense *s = i + 1 == l->n ? NULL : any_sense(x, l->at[i]);
    return !s || !(s->classes & (WORD_DETERMINER | WORD_PREPOSITION)) || word_sense_names(s);
}

/* A word of a device that is no compound of the lexicon's words may be one with a word of its own:
 * "Thekenlicht" is the "Theke" of a light. Then its first part is whatever stands before. */
static bool split_head(const device_index *x, const char *word, compound *c)
{
    size_t n = strlen(word);
    for (size_t i = 0; i < x->lex->n_languages; i++) {
        const language *t = &x->lex->languages[i];
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

static bool split_any(const device_index *x, const char *word, compound *c)
{
    if (is_lexicon_word((void *)x->lex, word)) return false;
    for (size_t i = 0; i < x->lex->n_languages; i++)
        if (compound_split(c, &x->lex->languages[i], word, is_lexicon_word, (void *)x->lex)) return true;
    return split_head(x, word, c);
}

/* What a device's words mean, by where they stand. */
typedef struct meaning {
    uint64_t kinds, rooms;
} meaning;

static void mean_word(const device_index *x, const char *word, meaning *m)
{
    const word_sense *s = any_sense(x, word);
    if (!s) return;
    m->kinds |= s->one | s->many;
    m->rooms |= s->rooms;
}

/* "living room", in any language. Returns the words that are part of such a phrase: "chambre d'enfant" is no
 * "chambre". */
static unit_set mean_phrases(const device_index *x, const word_list *l, meaning *m)
{
    unit_set used = 0;
    unit u[NAME_WORDS_MAX];
    size_t n = l->n < NAME_WORDS_MAX ? l->n : NAME_WORDS_MAX;
    for (size_t i = 0; i < n; i++) u[i] = (unit){.kind = UNIT_WORD, .s = l->at[i]};
    for (size_t i = 0; i < n; i++) {
        const word_sense *first = any_sense(x, l->at[i]);
        if (!first || !(first->classes & WORD_STARTS)) continue;
        for (size_t k = 0; k < x->lex->n_languages; k++)
            for (size_t j = 0; j < x->lex->languages[k].n_phrases; j++) {
                const sense_phrase *p = &x->lex->languages[k].phrases[j];
                unit_set got = phrase_list_at(&p->said, u, i, n, 0);
                if (!got) continue;
                used |= got;
                m->kinds |= p->sense.one | p->sense.many;
                m->rooms |= p->sense.rooms;
            }
    }
    return used;
}

static int add_parts(device_index *x, index_name *name, const char *word, unsigned from, meaning *m)
{
    compound c;
    if (!split_any(x, word, &c)) {
        name->parts.at[name->parts.n++] = word;
        return 0;
    }
    for (size_t i = 0; i < c.n; i++) {
        const char *part = arena_strdup(x->a, c.parts[i]);
        if (!part || post_word(x, part, name->device, from)) return SHOAL_ENOMEM;
        name->parts.at[name->parts.n++] = part;
        mean_word(x, part, m);
    }
    return 0;
}

/* The words of one text of a device. */
static int add_text(device_index *x, size_t device, const char *text, unsigned from, meaning *m,
                    index_name **ret)
{
    index_name *name = arena_alloc(x->a, sizeof *name);
    if (!name || device_index_words(x->lex, text, &name->raw, x->a)) return SHOAL_ENOMEM;
    name->device = device;
    name->content.at = arena_alloc(x->a, (name->raw.n + 1) * sizeof *name->content.at);
    name->parts.at = arena_alloc(x->a, (COMPOUND_PARTS_MAX * name->raw.n + 1) * sizeof *name->parts.at);
    if (!name->content.at || !name->parts.at) return SHOAL_ENOMEM;
    unit_set used = mean_phrases(x, &name->raw, m);
    for (size_t i = 0; i < name->raw.n; i++) {
        const char *word = name->raw.at[i];
        bool counted =
            from == FROM_ID && *word >= '0' && *word <= '9'; /* a machine did: "lounge_1" is no light 1 */
        if (counted || !is_content(x, &name->raw, i)) continue;
        name->content.at[name->content.n++] = word;
        if (!(used >> i & 1)) mean_word(x, word, m);
        if (post_word(x, word, device, from) || add_parts(x, name, word, from, m)) return SHOAL_ENOMEM;
    }
    *ret = name;
    return 0;
}

/* A name can be found by its first word. */
static int add_start(device_index *x, index_name *name)
{
    if (!name->raw.n) return 0;
    const char *first = name->raw.at[0];
    name->next = strmap_get(&x->starts, first);
    return strmap_put(&x->starts, first, name) ? 0 : SHOAL_ENOMEM;
}

static int add_names(device_index *x, size_t i, meaning *m)
{
    const device *d = &x->at[i];
    indexed_device *to = &x->devices[i];
    to->names = arena_alloc(x->a, (d->n_aliases + 1) * sizeof *to->names);
    if (!to->names) return SHOAL_ENOMEM;
    for (size_t k = 0; k <= d->n_aliases; k++) {
        index_name *name;
        int rc = add_text(x, i, k ? d->aliases[k - 1] : d->name, FROM_NAME, m, &name);
        if (!rc) rc = add_start(x, name);
        if (rc) return rc;
        name->alias = k > 0;
        to->names[to->n_names++] = name;
    }
    return 0;
}

static int note_group(device_index *x, index_name *name, const char *text)
{
    if (strmap_get(&x->groups, text) || !name->content.n) return 0;
    if (!strmap_put(&x->groups, text, name)) return SHOAL_ENOMEM;
    if (x->n_groups == x->cap_groups) {
        size_t cap = x->cap_groups ? 2 * x->cap_groups : 16;
        index_name **more = arena_alloc(x->a, cap * sizeof *more);
        if (!more) return SHOAL_ENOMEM;
        if (x->n_groups) memcpy(more, x->group_at, x->n_groups * sizeof *more);
        x->group_at = more;
        x->cap_groups = cap;
    }
    x->group_at[x->n_groups++] = name;
    return 0;
}

/* Of the kinds that its name means those that may also be in its domain. */
static uint64_t kinds_also(const device_index *x, const char *id, uint64_t named)
{
    size_t n = strcspn(id, ".");
    uint64_t kinds = 0;
    for (size_t i = 0; i < x->lex->n_kinds; i++)
        if (named >> i & 1 && word_list_has(&x->lex->kinds[i].also, id, n)) kinds |= (uint64_t)1 << i;
    return kinds;
}

/* The kind that is given, else that of the id's domain, and those of the name. */
static uint64_t device_index_kinds_of(const device_index *x, const device *d, uint64_t named)
{
    size_t kind = d->kind ? device_lexicon_kind(x->lex, d->kind)
                          : device_lexicon_kind_of_domain(x->lex, d->id, strcspn(d->id, "."));
    if (d->kind && kind != SIZE_MAX) return (uint64_t)1 << kind;
    return (kind == SIZE_MAX ? 0 : (uint64_t)1 << kind) | kinds_also(x, d->id, named);
}

static int device_index_add_device(device_index *x, size_t i)
{
    const device *d = &x->at[i];
    meaning named = {0}, placed = {0};
    index_name *text;
    const char *dot = strchr(d->id, '.');
    int rc = add_names(x, i, &named);
    if (!rc && d->area) rc = add_text(x, i, d->area, FROM_AREA, &placed, &text);
    for (size_t k = 0; k < d->n_groups && !rc; k++) {
        rc = add_text(x, i, d->groups[k], FROM_GROUP, &placed, &text);
        if (!rc) rc = note_group(x, text, d->groups[k]);
    }
    if (!rc && dot && dot[1]) rc = add_text(x, i, dot + 1, FROM_ID, &placed, &text);
    bool odd = !rc && d->kind && device_lexicon_kind(x->lex, d->kind) == SIZE_MAX;
    if (odd) rc = add_text(x, i, d->kind, FROM_ID, &placed, &text);
    x->devices[i].kinds = device_index_kinds_of(x, d, named.kinds);
    x->devices[i].rooms = named.rooms | placed.rooms;
    return rc;
}

int device_index_init(device_index *ret, const device_lexicon *lex, const device *list, size_t n, arena *a)
{
    *ret = (device_index){.lex = lex, .at = list, .n = n, .a = a};
    ret->devices = arena_alloc(a, (n + 1) * sizeof *ret->devices);
    if (!ret->devices) return SHOAL_ENOMEM;
    int rc = 0;
    for (size_t i = 0; i < n && !rc; i++) rc = device_index_add_device(ret, i);
    return rc;
}

void device_index_done(device_index *x)
{
    strmap_done(&x->words);
    strmap_done(&x->starts);
    strmap_done(&x->groups);
}
