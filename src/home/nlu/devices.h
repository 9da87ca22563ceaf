/* devices.h: the devices of one home, ready to be named.
 *
 * A person names a device by its whole name, by some of its words, by where it is and what it is ("the light
 * in the office"), or means several ("all lights upstairs"). devices_find says which can be meant: every word
 * has to be a word of the device's name, alias, area or id, or one that means its kind.
 *
 * Built in the caller's arena for one request, or for many; then it is not written to, and any thread may read it. Pure. */
#ifndef NLU_DEVICES_H
#define NLU_DEVICES_H

#include "nlu/device_index.h"
#include "nlu/lexicon.h"

#define WORD_MEMO_SLOTS 32

/* Who has the words of a text, so that each is looked up once, however many patterns it fits. word[i] NULL: nobody yet. */
typedef struct word_memo {
    const char *word[WORD_MEMO_SLOTS];
    word_owners who[WORD_MEMO_SLOTS];
} word_memo;

typedef struct devices {
    const lexicon *lex;
    const device *at;
    size_t n;
    device_index index; /* content: synonyms replaced */
    word_memo *memo;    /* of who reads one text; NULL: none */
} devices;

/* `list` is borrowed. SHOAL_ENOMEM, or 0; call devices_done in any case. At most DEVICES_MAX are looked at. */
int devices_init(devices *ret, const lexicon *lex, const device *list, size_t n, arena *a);
void devices_done(devices *d);

/* Replace what the lexicon gives another word for ("television" by "tv"); several words may become one. */
int devices_canonical(word_list *ret, const lexicon *lex, const words *w, arena *a);
/* Is it a word of some device's name, alias, area or id? devices_know_typed: before synonyms are replaced, of
 * name and aliases alone. */
bool devices_know(const devices *d, const char *folded);
bool devices_know_typed(const devices *d, const char *folded);

/* The kind of a device; NULL: it is none of the lexicon's. */
const kind_def *devices_kind(const devices *d, size_t device);

/* Has the device this service beside those of its kind? NULL: yes. devices_have_service: has any? */
bool devices_has_service(const devices *d, size_t device, const char *service);
bool devices_have_service(const devices *d, const char *service);

/* Has the device's name, as it is written, one of these in it? */
bool devices_name_has(const devices *d, size_t device, const phrase_list *l);

#define MENTION_WORDS_MAX 24

/* What was said of a device. */
typedef struct entity_mention {
    size_t n;
    const char *at[MENTION_WORDS_MAX]; /* content words, synonyms replaced */
    size_t begin, end;                 /* bytes in the text */
    bool plural;                       /* the word for the kind is a plural */
    bool all, both, everything, pronoun;
    bool singular; /* the pronoun is for one thing */
    bool beside;   /* it says what the device is near to: "the lamp by the door" */
    size_t count;  /* "the two lamps"; 0: none was said */
} entity_mention;

/* Does it say which devices? A pronoun does not. */
static inline bool entity_mention_says_target(const entity_mention *m)
{
    return m->n || m->all || m->both || m->everything;
}

/* Which devices of these kinds (bit i: kind i; UINT64_MAX: any) can be meant? For one device: the best fits,
 * several when it is unclear which. For a group (all, plural, everything): each that fits. *ret_group says
 * which of the two it was. Kinds are a preference: when nothing of them fits, what fits of others is given.
 */
device_set devices_find(const devices *d, const entity_mention *m, uint64_t kinds, bool *ret_group);
/* It is the whole name of one device, and its words are of no other: "the printer". */
bool devices_is_sole_name(const devices *d, const entity_mention *m);
/* Some word of the mention fits no device at all and means no kind. */
bool devices_has_unknown(const devices *d, const entity_mention *m);
/* There are words, and each means one of these kinds: "the door". */
bool devices_mean_kinds(const devices *d, const entity_mention *m, uint64_t kinds);
/* The word means a kind (any of its `words` or `names`), in singular or plural. */
bool devices_is_kind_word(const lexicon *l, const char *folded, bool *ret_plural);

#endif
