/* phrase.h: patterns over the units of a sentence.
 *
 *     turn|switch|put .. on          words, alternatives, a gap of any length
 *     set .. to?                     an optional word
 *     for {duration}                 a unit of a kind: {number} {duration} {state} {any};
 *                                {value} is a number with or without its measure
 *     .. on $                        ^ and $: where the request begins and ends
 *
 * A pattern may begin anywhere in a range; what it used is a bit a unit, the rest (device names, values,
 * fillers) is for the caller to explain. */
#ifndef NLU_PHRASE_H
#define NLU_PHRASE_H

#include "yaml/yaml.h"
#include "base/words.h"

#define PHRASE_PARTS_MAX 16
#define UNITS_MAX        64 /* of one sentence; longer ones are not understood */

typedef uint64_t unit_set; /* bit i: unit i */
typedef uint64_t
    word_bits; /* a bit for each of some words, which others may share: what has none of them is not among them */

static inline size_t unit_set_len(unit_set s)
{
    return (size_t)__builtin_popcountll(s);
}

typedef enum unit_kind {
    UNIT_WORD,
    UNIT_DEVICE,   /* the full name of one device (or of several that share it) */
    UNIT_NUMBER,   /* value, and perhaps a unit of measure */
    UNIT_DURATION, /* value in seconds */
    UNIT_SIGN,
} unit_kind;

/* A word, or several that are one thing. */
typedef struct unit {
    unit_kind kind;
    const char *s; /* WORD, SIGN: folded */
    uint64_t key;  /* WORD, SIGN: words_key of s, and its bit */
    word_bits bits;
    size_t begin, end;   /* bytes in the text */
    double value;        /* NUMBER, DURATION */
    const char *measure; /* NUMBER: "%" or what stood behind it, folded; NULL: none */
    size_t device;       /* DEVICE: the first device of that name */
    size_t name;         /* DEVICE: which of its names, see devices.h */
    bool state;          /* WORD: some device can be in this state */
    bool adverb;         /* WORD: it names nothing here: the "back" of "turn it back on" */
} unit;

#define WORD_BITS 64
#define WORD_ANY  UINT64_MAX /* also what stands for no word has it */

/* Knuth, The Art of Computer Programming 3, 6.4: multiplicative hashing. */
static inline word_bits word_bit(uint64_t key)
{
    return (word_bits)1 << (key * 0x9E3779B97F4A7C15u >> 58);
}

/* Every WORD and SIGN is made here: patterns compare keys. */
static inline unit unit_of_word(const char *folded, bool sign)
{
    uint64_t key = words_key(folded);
    return (unit){.kind = sign ? UNIT_SIGN : UNIT_WORD, .s = folded, .key = key, .bits = word_bit(key)};
}

typedef enum part_kind {
    PART_WORD,
    PART_GAP,
    PART_NUMBER,
    PART_DURATION,
    PART_VALUE,
    PART_STATE,
    PART_ANY,
    PART_START,
    PART_END
} part_kind;
typedef struct phrase_part {
    part_kind kind;
    bool optional;
    unsigned n_alts;
    const char **alts; /* WORD: folded */
    uint64_t *keys;    /* WORD: of alts */
    word_bits bits;    /* WORD: of alts */
} phrase_part;

typedef struct phrase {
    unsigned n;
    word_bits begins; /* of the words that it can begin with; WORD_ANY: with others, too */
    word_bits needs;  /* of its last word that is not optional; WORD_ANY: it has none */
    phrase_part *parts;
    const char *source; /* borrowed from the document: dead once that is freed */
} phrase;

typedef struct phrase_list {
    size_t n;
    phrase *at;
    word_bits begins; /* of all its phrases */
    word_bits bits;   /* of those that are one word */
    /* Phrases that can begin with a word of bit b, in their order: by_bit[bit_at[b]], up to bit_at[b + 1]; WORD_BITS: with
     * what is no word. */
    unsigned bit_at[WORD_BITS + 2];
    const phrase **by_bit;
} phrase_list;

/* A list of patterns, or one. Errors name the line. Memory: the arena. */
int phrase_list_read(phrase_list *ret, const yaml_doc *d, const yaml_node *n, arena *a, shoal_err *err);

/* Parts [from, from + n) of a phrase, whose memory they share. */
phrase phrase_slice(const phrase *p, unsigned from, unsigned n);

/* The bits of the words in [from, to). */
word_bits phrase_words(const unit *u, size_t from, size_t to);
/* Could p match where these words are? Most patterns cannot, which is cheaper to see than by phrase_match. */
static inline bool phrase_may_match(const phrase *p, word_bits words)
{
    return (p->begins & words || p->begins == WORD_ANY) && (p->needs & words || p->needs == WORD_ANY);
}

/* Match p within units [from, to); it has to begin at `from` when `at_start`. Of several ways, the one that
 * uses most units. Returns what it used, 0: no match. Units of `taken` are passed over by gaps only. */
unit_set phrase_match(const phrase *p, const unit *u, size_t from, size_t to, unit_set taken, bool at_start);
/* The longest match of a list that begins at `from`, without gaps at its ends; 0: none. */
unit_set phrase_list_at(const phrase_list *l, const unit *u, size_t from, size_t to, unit_set taken);
/* The same without gaps within, which would swallow what is not explained. *ret_n: how many units; written on a match
 * alone. */
bool phrase_list_run(const phrase_list *l, const unit *u, size_t from, size_t to, unit_set taken,
                     size_t *ret_n);
/* The first match of the list anywhere in the range. */
unit_set phrase_list_in(const phrase_list *l, const unit *u, size_t from, size_t to, unit_set taken);
bool phrase_list_has_word(const phrase_list *l, const char *folded); /* as a phrase of its own */

#endif
