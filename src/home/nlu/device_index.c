/* device_index.c: who has which words; see device_index.h. */
#include "nlu/device_index.h"

#include <string.h>

#include "shoal.h"

enum { FORM_BYTES_MAX = 512 };

/* ---- building ---------------------------------------------------------------------------------- */

static index_word *new_word(device_index *x, const char *word)
{
    index_word *w = arena_alloc(x->a, sizeof *w);
    if (!w || !strmap_put(&x->words, word, w)) return NULL;
    w->s = word;
    if (x->last)
        x->last->next = w;
    else
        x->first = w;
    return x->last = w;
}

int device_index_add(device_index *x, const char *word, size_t device, unsigned from)
{
    index_word *w = strmap_get(&x->words, word);
    if (!w) w = new_word(x, word);
    if (!w) return SHOAL_ENOMEM;
    w->who.from |= from;
    device_set_add(&w->who.by[__builtin_ctz(from)], device);
    return 0;
}

int device_index_add_all(device_index *x, const word_list *l, size_t device, unsigned from)
{
    int rc = 0;
    for (size_t i = 0; i < l->n && !rc; i++) rc = device_index_add(x, l->at[i], device, from);
    return rc;
}

int device_index_add_start(device_index *x, index_text *t)
{
    if (!t->raw.n) return 0;
    const char *first = t->raw.at[0].s;
    t->next = strmap_get(&x->starts, first);
    return strmap_put(&x->starts, first, t) ? 0 : SHOAL_ENOMEM;
}

index_text *device_index_add_text(device_index *x, size_t device, unsigned from, const char *text)
{
    index_text *t = arena_alloc(x->a, sizeof *t);
    if (!t) return NULL;
    t->device = device;
    t->nth = x->devices[device].n_names;
    if (x->read(x->user, t, from, text)) return NULL;
    x->devices[device].rooms |= t->rooms;
    return t;
}

/* A name that says nothing ("?!") is none. */
static bool add_name(device_index *x, size_t i, const char *name, bool alias)
{
    indexed_device *to = &x->devices[i];
    index_text *t = device_index_add_text(x, i, FROM_NAME, name);
    if (!t) return false;
    t->alias = alias;
    if (t->content.n) to->names[to->n_names++] = t;
    return true;
}

static bool add_device(device_index *x, size_t i, const device *d)
{
    indexed_device *to = &x->devices[i];
    to->names = arena_alloc(x->a, (d->n_aliases + 2) * sizeof *to->names);
    index_text *id = to->names ? device_index_add_text(x, i, FROM_ID, d->id) : NULL;
    bool well = id && (!d->area || device_index_add_text(x, i, FROM_AREA, d->area));
    for (size_t k = 0; k < d->n_groups && well; k++)
        well = device_index_add_text(x, i, FROM_GROUP, d->groups[k]);
    well = well && add_name(x, i, d->name, false);
    for (size_t k = 0; k < d->n_aliases && well; k++) well = add_name(x, i, d->aliases[k], true);
    if (!well) return false;
    id->nth = to->n_names;
    to->names[to->n_names] = id;
    return true;
}

int device_index_build(device_index *x, const device *list, size_t n)
{
    x->devices = arena_alloc(x->a, (n + 1) * sizeof *x->devices);
    bool well = x->devices;
    for (size_t i = 0; i < n && well; i++) well = add_device(x, i, &list[i]);
    return well ? 0 : SHOAL_ENOMEM;
}

void device_index_done(device_index *x)
{
    strmap_done(&x->words);
    strmap_done(&x->starts);
}

/* ---- looking up -------------------------------------------------------------------------------- */

void word_owners_join(word_owners *to, const word_owners *more)
{
    to->from |= more->from;
    for (size_t k = 0; k < N_FROM; k++) device_set_join(&to->by[k], &more->by[k]);
}

bool device_index_word(const device_index *x, const char *word, word_owners *ret)
{
    const index_word *w = strmap_get(&x->words, word);
    if (w) word_owners_join(ret, &w->who);
    return w != NULL;
}

typedef struct form_finder {
    const device_index *x;
    const word_endings *e;
    const char *word;
    size_t n;
    word_owners *ret;
    bool found;
} form_finder;

static bool has_ending(const form_finder *f, const char *ending)
{
    size_t m = strlen(ending);
    return f->n >= m + f->e->stem_min && memcmp(f->word + f->n - m, ending, m) == 0;
}

/* The first `stem` bytes of the word with another ending. */
static void look_up(form_finder *f, size_t stem, const char *ending)
{
    char form[FORM_BYTES_MAX];
    size_t m = strlen(ending);
    if (stem < f->e->stem_min || stem + m >= sizeof form) return;
    memcpy(form, f->word, stem);
    memcpy(form + stem, ending, m + 1);
    if (f->e->same && !f->e->same(form, f->word)) return;
    f->found = device_index_word(f->x, form, f->ret) || f->found;
}

bool device_index_forms(const device_index *x, const word_endings *e, const char *word, word_owners *ret)
{
    form_finder f = {.x = x, .e = e, .word = word, .n = strlen(word), .ret = ret};
    for (size_t i = 0; i < e->added.n; i++) {
        if (has_ending(&f, e->added.at[i])) look_up(&f, f.n - strlen(e->added.at[i]), "");
        look_up(&f, f.n, e->added.at[i]);
    }
    for (size_t i = 0; i < e->changed.n; i++)
        for (size_t k = 0; k < e->changed.n && has_ending(&f, e->changed.at[i]); k++)
            look_up(&f, f.n - strlen(e->changed.at[i]), e->changed.at[k]);
    return f.found;
}
