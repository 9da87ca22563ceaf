/* device_index.h: the devices of one home, ready to be named in any of a lexicon's languages.
 *
 * Each device is what its texts say: the words of its name, aliases, area, groups and id, and, in whatever
 * language they are written, the kinds and rooms that these words mean. So "Küchenlicht" is found by its
 * name, by "Licht in der Küche" and by "kitchen light".
 *
 * Built for one request; time and memory grow with the devices' words, not with their square. Texts are
 * borrowed, memory is the caller's arena and the maps', which device_index_done frees. */
#ifndef MATCH_DEVICE_INDEX_H
#define MATCH_DEVICE_INDEX_H

#include "match/compound.h"
#include "nlu/devices.h"

/* Where a device has a word. */
enum { FROM_NAME = 1, FROM_AREA = 2, FROM_GROUP = 4, FROM_ID = 8 };

typedef struct posting {
    size_t device;
    unsigned from;
    struct posting *next;
} posting;

typedef struct index_word {
    posting *all; /* the last device first; one posting a device and place */
} index_word;

/* A name, alias or group in words. */
typedef struct index_name {
    size_t device;
    word_list raw;            /* every word, as it folds */
    word_list content, parts; /* without determiners and prepositions; the same with compounds apart */
    bool alias;
    struct index_name *next; /* of those that begin with the same word */
} index_name;

typedef struct indexed_device {
    uint64_t kinds, rooms;
    size_t n_names;
    index_name **names;
} indexed_device;

typedef struct device_index {
    const device_lexicon *lex;
    const device *at;
    size_t n;
    arena *a;
    indexed_device *devices;
    strmap words;  /* folded, and as device_lexicon_respell writes it -> index_word */
    strmap starts; /* the first word of names and aliases -> index_name */
    strmap groups; /* the folded name of a group -> index_name; once each */
    size_t n_groups, cap_groups;
    index_name **group_at;
} device_index;

/* `list` is borrowed. SHOAL_ENOMEM, or 0; call device_index_done in any case. */
int device_index_init(device_index *ret, const device_lexicon *lex, const device *list, size_t n, arena *a);
void device_index_done(device_index *x);

/* Who has the word, and, when nobody has it as it stands, with another ending of the language: *ret gets up
 * to INDEX_FORMS_MAX. Returns how many; *ret_inflected says which of the two it was. */
#define INDEX_FORMS_MAX 16
size_t device_index_find(const device_index *x, const language *t, const char *folded,
                         const index_word *ret[INDEX_FORMS_MAX], bool *ret_inflected);
bool device_index_has(const device_index *x, const language *t, const char *folded);
/* The same word but for its spelling or an ending of the language? Both folded. */
bool device_index_alike(const language *t, const char *a, const char *b);

/* Cut a text into folded words: elisions come apart, hyphens and signs are left out. SHOAL_ENOMEM, or 0. */
int device_index_words(const device_lexicon *lex, const char *text, word_list *ret, arena *a);

#endif
