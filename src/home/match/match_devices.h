/* match_devices.h: the devices of one home, ready to be named in any of a lexicon's languages.
 *
 * Each device is what its texts say: the words of its name, aliases, area, groups and id, and, in whatever
 * language they are written, the kinds and rooms that these words mean. So "Küchenlicht" is found by its
 * name, by "Licht in der Küche" and by "kitchen light".
 *
 * Built for one request; time and memory grow with the devices' words, not with their square. Texts are
 * borrowed, memory is the caller's arena and the maps', which match_devices_done frees. */
#ifndef MATCH_MATCH_DEVICES_H
#define MATCH_MATCH_DEVICES_H

#include "match/compound.h"
#include "nlu/device_index.h"

typedef struct match_devices {
    const device_lexicon *lex;
    const device *at;
    size_t n;
    device_index index; /* content: without determiners and prepositions */
    strmap group_names; /* a group -> index_text; once each */
    index_text *groups;
} match_devices;

/* `list` is borrowed. SHOAL_ENOMEM, or 0; call match_devices_done in any case. At most DEVICES_MAX are looked at. */
int match_devices_init(match_devices *ret, const device_lexicon *lex, const device *list, size_t n, arena *a);
void match_devices_done(match_devices *d);

/* Who has the word. False: nobody. */
bool match_devices_word(const match_devices *d, const char *folded, word_owners *ret);
/* The same, and, when nobody has it as it stands, with another ending of the language. */
bool match_devices_find(const match_devices *d, const language *t, const char *folded, word_owners *ret);
/* The same word but for its spelling or an ending of the language? Both folded. */
bool match_devices_alike(const language *t, const char *a, const char *b);

#endif
