/* device_index.h: which devices of one home have a word, and whose name begins with it.
 *
 * What a text says is for its reader to tell: nlu/devices.c replaces synonyms, match/match_devices.c takes compounds
 * apart and knows several languages. Both keep it here, and ask here:
 *
 *     device_index x = {.a = arena, .read = read, .user = user};
 *     rc = device_index_build(&x, list, n);
 *     word_owners who = {0};
 *     if (device_index_word(&x, "kitchen", &who) || device_index_forms(&x, &endings, "kitchens", &who))
 *         ... word_owners_has(&who, i, FROM_NAME | FROM_AREA) ...
 *     device_index_done(&x);
 *
 * Built for one request, so that a word costs the same however many devices a home has and however many names they
 * bear. Memory is the arena and the maps', which device_index_done frees; at most DEVICES_MAX devices. */
#ifndef NLU_DEVICE_INDEX_H
#define NLU_DEVICE_INDEX_H

#include "base/strmap.h"
#include "nlu/source.h"
#include "pipeline/device_set.h"

/* Where a device has a word. FROM_TYPED: in a name or an alias as it is written, for readers that change words. */
enum { FROM_NAME = 1, FROM_AREA = 2, FROM_GROUP = 4, FROM_ID = 8, FROM_TYPED = 16, N_FROM = 5 };
#define FROM_PLACE (FROM_AREA | FROM_GROUP | FROM_ID)

typedef struct word_owners {
    unsigned from;         /* where any device has it */
    bool inflected;        /* found with another ending alone */
    device_set by[N_FROM]; /* by[k]: those that have it from 1 << k */
} word_owners;

static inline bool word_owners_has(const word_owners *o, size_t device, unsigned from)
{
    bool has = false;
    for (unsigned k = 0; k < N_FROM; k++) has = has || (from >> k & 1 && device_set_has(&o->by[k], device));
    return has;
}

typedef struct index_word {
    const char *s; /* folded */
    word_owners who;
    struct index_word *next; /* in the order they came */
} index_word;

/* A text of a device: its name, an alias, its area, a group or its id. */
typedef struct index_text {
    size_t device;
    size_t nth;               /* of the device's names */
    bool alias;               /* not its first name */
    words raw;                /* as it is written, folded */
    word_list content, parts; /* what of it names something; the same with compounds taken apart */
    uint64_t kinds, rooms;    /* what the words mean; bit i: the lexicon's kind or room i */
    struct index_text *next;  /* for lists of texts */
} index_text;

typedef struct indexed_device {
    uint64_t kinds, rooms; /* kinds: for the caller to set */
    size_t n_names;
    index_text **names; /* the name and the aliases that name something; names[n_names]: the id */
} indexed_device;

typedef struct device_index {
    arena *a;
    /* Reads what stands in a device's name, area, group or id into ret, and adds its words with device_index_add.
     * SHOAL_ENOMEM, or 0. */
    int (*read)(void *user, index_text *ret, unsigned from, const char *text);
    void *user;
    indexed_device *devices;
    index_word *first, *last;
    strmap words;  /* -> index_word */
    strmap starts; /* the first word of a text -> index_text, the last that was added first */
} device_index;

/* `list` is borrowed; n is at most DEVICES_MAX. SHOAL_ENOMEM, or 0; call device_index_done in any case. */
int device_index_build(device_index *x, const device *list, size_t n);
void device_index_done(device_index *x);

/* For readers. Each borrows what it is given; SHOAL_ENOMEM, or 0. */
int device_index_add(device_index *x, const char *word, size_t device, unsigned from);
int device_index_add_all(device_index *x, const word_list *l, size_t device, unsigned from);
int device_index_add_start(device_index *x, index_text *t); /* it can be found by its first word */
/* One more text of a device; NULL: memory is out. */
index_text *device_index_add_text(device_index *x, size_t device, unsigned from, const char *text);

/* Endings by which two words may differ and still be the same. */
typedef struct word_endings {
    word_list added;                            /* one has it and the other does not: "lamp", "lamps" */
    word_list changed;                          /* they stand for each other: "rote", "roten" */
    size_t stem_min;                            /* bytes before the ending */
    bool (*same)(const char *a, const char *b); /* what must hold of such a pair, too; NULL: nothing */
} word_endings;

/* Join to *ret who has the word as it stands, or a form of it with another ending. False: nobody. */
bool device_index_word(const device_index *x, const char *word, word_owners *ret);
bool device_index_forms(const device_index *x, const word_endings *e, const char *word, word_owners *ret);
void word_owners_join(word_owners *to, const word_owners *more);

#endif
