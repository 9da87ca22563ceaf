/* holders.c: see holders.h. */
#include "control/holders.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool holders_has(const member_entry *e, const char *digest)
{
    for (size_t i = 0; e->stored && i < e->stored->n_digests; i++)
        if (strcmp(e->stored->digests[i], digest) == 0) return true;
    return false;
}

static bool holders_same_site(const member_entry *a, const member_entry *b)
{
    return a->facts && b->facts && strcmp(a->facts->site, b->facts->site) == 0;
}

/* FNV-1a. */
static size_t start_of(const char *name)
{
    uint32_t h = 2166136261u;
    for (; *name; name++) h = (h ^ (uint8_t)*name) * 16777619u;
    return h;
}

static void add_those(holders_item *to, const member_table *r, const member_entry *asks, bool near,
                      holders_address *where)
{
    size_t n = member_table_count(r), start = start_of(asks->name);
    for (size_t k = 0; k < n && to->n < HOLDERS_OF_FILE_MAX; k++) {
        const member_entry *e = member_table_at(r, (start + k) % n);
        if (e == asks || e->role != ROLE_NODE || holders_same_site(e, asks) != near ||
            !holders_has(e, to->digest))
            continue;
        if (!where(e, to->at[to->n].address, sizeof to->at[0].address)) continue;
        to->at[to->n++].node = e->name;
    }
}

static bool holders_grow(holders_list *l)
{
    if (l->n < l->cap) return true;
    size_t cap = l->cap ? 2 * l->cap : 8;
    holders_item *more = realloc(l->items, cap * sizeof *more);
    if (!more) return false;
    l->items = more;
    l->cap = cap;
    return true;
}

bool holders_add(holders_list *l, const member_table *r, const member_entry *to, const char *digest,
                 holders_address *where)
{
    if (holders_has(to, digest) || l->n == HOLDERS_FILES_MAX) return true;
    for (size_t i = 0; i < l->n; i++)
        if (strcmp(l->items[i].digest, digest) == 0) return true;
    if (!holders_grow(l)) return false;
    holders_item *x = &l->items[l->n];
    x->n = 0;
    snprintf(x->digest, sizeof x->digest, "%s", digest);
    add_those(x, r, to, true, where);
    add_those(x, r, to, false, where);
    if (x->n > 0) l->n++;
    return true;
}

typedef struct space { /* of a message */
    Shoal__V1__HeldFile file;
    Shoal__V1__Holder holders[HOLDERS_OF_FILE_MAX], *list[HOLDERS_OF_FILE_MAX];
} space;

Shoal__V1__Holders *holders_message(holders_list *l)
{
    space *s = calloc(l->n + 1, sizeof *s);
    Shoal__V1__HeldFile **files = calloc(l->n + 1, sizeof(Shoal__V1__HeldFile *));
    shoal__v1__holders__init(&l->message);
    for (size_t i = 0; s && files && i < l->n; i++) {
        holders_item *x = &l->items[i];
        files[i] = &s[i].file;
        shoal__v1__held_file__init(files[i]);
        files[i]->digest = x->digest;
        files[i]->holders = s[i].list;
        files[i]->n_holders = x->n;
        for (size_t k = 0; k < x->n; k++) {
            shoal__v1__holder__init(&s[i].holders[k]);
            s[i].holders[k].node = (char *)x->at[k].node;
            s[i].holders[k].address = x->at[k].address;
            s[i].list[k] = &s[i].holders[k];
        }
    }
    if (!s || !files) {
        free(s);
        free(files);
        return NULL;
    }
    l->memory = s;
    l->message.files = files;
    l->message.n_files = l->n;
    return &l->message;
}

void holders_done(holders_list *l)
{
    free(l->items);
    free(l->memory);
    free(l->message.files);
    *l = (holders_list){0};
}
