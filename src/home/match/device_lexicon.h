/* device_lexicon.h: what devices, rooms and guard words are called in several languages, read from YAML.
 *
 * Nothing here knows a word of any language: lexicons/devices.yaml does, and says at its top how it is
 * written. A kind (light) and a room (kitchen) are the same thing in every language, so that a request in one
 * finds devices that are named in another. A lexicon is immutable after device_lexicon_load; any thread may
 * use it. */
#ifndef MATCH_DEVICE_LEXICON_H
#define MATCH_DEVICE_LEXICON_H

#include "base/strmap.h"
#include "nlu/device_index.h"

#define LANGUAGES_MAX    8
#define DEVICE_KINDS_MAX 64
#define ROOMS_MAX        64

/* Word lists of a language, patterns as phrase.h has them. X(class, member, required, what it is for) */
#define LANGUAGE_LISTS(X)                                                                             \
    X(WORD_DETERMINER, determiners, true, "the, my, ...")                                             \
    X(WORD_PREPOSITION, prepositions, true, "of, in, ...: between the words that name a device")      \
    X(WORD_ALL, all, true, "all, every, ...: each device that fits")                                  \
    X(WORD_BOTH, both, true, "both, the two: exactly two")                                            \
    X(WORD_EVERYTHING, everything, true, "each device, or each of a place")                           \
    X(WORD_EXCEPT, except, true, "what follows is left out of a group")                               \
    X(WORD_JOIN, joins, true, "and, or, comma: between devices")                                      \
    X(WORD_VERB, verbs, true, "what is asked for: whatever stands beside it is meant to be a device") \
    X(WORD_FILLER, fillers, true, "further words that name nothing")                                  \
    X(WORD_MEASURE, measures, true, "percent, degrees, ...: a number before them is a value")         \
    X(WORD_NEGATION, negation, true, "nothing may be done")                                           \
    X(WORD_LATER, later, true, "times, delays and conditions")                                        \
    X(WORD_QUESTION, questions, true, "what is asked, not asked for")                                 \
    X(WORD_HARMLESS, harmless, false, "what looks like a negation or a time and is none")             \
    X(WORD_YES, yes, true, "the whole answer to a question back: do it")                              \
    X(WORD_NO, no, true, "the whole answer to a question back: do not")

enum {
#define LANGUAGE_BIT(class, member, required, about) class##_AT,
    LANGUAGE_LISTS(LANGUAGE_BIT)
#undef LANGUAGE_BIT
        N_LANGUAGE_LISTS,
#define LANGUAGE_BIT(class, member, required, about) class = 1 << class##_AT,
    LANGUAGE_LISTS(LANGUAGE_BIT)
#undef LANGUAGE_BIT
        WORD_STARTS = 1 << 30 /* begins several words that mean a kind or a room */
};

/* What a guard says, {names}, {what}, {count} and {max} filled in, and why, in words; by rule. X(member) */
#define LANGUAGE_SAYINGS(X) \
    X(negation)             \
    X(later)                \
    X(question)             \
    X(unknown)              \
    X(ambiguous)            \
    X(dangerous)            \
    X(too_many)             \
    X(unread)               \
    X(declined)

typedef struct language_saying {
    const char *say, *why;
} language_saying;

/* What a word means in one language, or in any of them. */
typedef struct word_sense {
    unsigned classes;   /* WORD_*: it is one of these lists by itself */
    uint64_t one, many; /* bit i: names one device of kind i, or several */
    uint64_t named;     /* of these kinds those named so, when some are ("lamp") */
    uint64_t rooms;     /* bit i: room i */
    bool number;
    double value;
} word_sense;

/* Does it name a kind or a room? NULL does not. */
static inline bool word_sense_names(const word_sense *s)
{
    return s && (s->one || s->many || s->rooms);
}

/* Several words that mean a kind or a room: "living room". */
typedef struct sense_phrase {
    phrase said;
    word_sense sense;
} sense_phrase;

typedef struct language {
    const char *name; /* "de" */
    phrase_list lists[N_LANGUAGE_LISTS];
    strmap senses; /* folded word -> word_sense */
    size_t n_phrases;
    sense_phrase *phrases;
    word_list elisions;   /* l, d: what an apostrophe cuts off ("l'entrée") */
    word_list links;      /* between the parts of a compound, "" among them; none: no compounds */
    word_endings endings; /* by which a word may differ from the device's */
    struct {
#define LANGUAGE_MEMBER(name) language_saying name;
        LANGUAGE_SAYINGS(LANGUAGE_MEMBER)
#undef LANGUAGE_MEMBER
    } sayings;
    const char *passed, *confirmed; /* why nothing holds a request back */
    const char *and, * or, *more;   /* "A, B and C"; "{names} and {count} more" */
} language;

typedef struct device_kind {
    const char *name;
    word_list domains; /* of ids; as they are written */
    word_list also;    /* of these domains those devices whose names have a word of the kind */
    bool careful;      /* a guard asks back first */
} device_kind;

typedef struct device_lexicon {
    arena *memory;
    size_t n_languages, n_kinds, n_rooms;
    language languages[LANGUAGES_MAX];
    device_kind *kinds;
    const char **rooms;
    strmap any;         /* folded word -> word_sense of all languages together */
    word_list elisions; /* of all languages */
} device_lexicon;

/* The caller frees *ret; any thread may read it. Errors begin with "file:line: ". */
int device_lexicon_load(device_lexicon **ret, const char *path, shoal_err *err);
int device_lexicon_parse(device_lexicon **ret, const char *text, size_t len, const char *what,
                         shoal_err *err);
void device_lexicon_free(device_lexicon *l); /* NULL is fine */

/* The kind of that name, and the one that a domain of ids is; SIZE_MAX: none. */
size_t device_lexicon_kind(const device_lexicon *l, const char *name);
size_t device_lexicon_kind_of_domain(const device_lexicon *l, const char *domain, size_t n);
/* The language of that name; NULL: none. */
const language *device_lexicon_language(const device_lexicon *l, const char *name);

#define RESPELLED_BYTES 128
/* The sense of a folded word, or of the same as device_lexicon_respell writes it; NULL: none. */
const word_sense *device_lexicon_sense(const strmap *senses, const char *folded);
/* Another way to write a folded word: "kueche" as "küche" folds, "anna's" as "annas". False: there is none.
 */
bool device_lexicon_respell(const char *folded, char out[RESPELLED_BYTES]);
/* How many bytes an elision of any language cuts off a word ("l'entree"), with its apostrophe; 0: none. */
size_t device_lexicon_elided(const device_lexicon *l, const char *folded);

#endif
