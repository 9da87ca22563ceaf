/* lexicon.h: what a language's words mean for devices: kinds, values, actions, guards and replies, read from
 * YAML.
 *
 * Nothing here knows a word of any home or language: lexicons/home.yaml does, and says at its top how it is
 * written. A lexicon is immutable after lexicon_load; any thread may use it. */
#ifndef NLU_LEXICON_H
#define NLU_LEXICON_H

#include "base/strmap.h"
#include "nlu/source.h"

#define LEXICON_KINDS_MAX 64

/* Word lists. X(member, required, what it is for) */
#define LEXICON_LISTS(X)                                                                    \
    X(fillers, true, "words without meaning for a request, anywhere")                       \
    X(leads, true, "polite beginnings after which a request follows")                       \
    X(determiners, true, "the, my, ...")                                                    \
    X(prepositions, true, "of, in, ...: between the words that name a device")              \
    X(all, true, "all, every, ...: each device that fits")                                  \
    X(both, true, "both, the two: exactly two")                                             \
    X(everything, true, "each device of the home")                                          \
    X(except, true, "what follows is left out of a group")                                  \
    X(pronouns, true, "it, them: what was named before")                                    \
    X(singular, false, "it, this: pronouns for one thing, so of several it is asked which") \
    X(joins, true, "and, then, comma: between requests or devices")                         \
    X(scope, true, "and, or: a prohibition goes on through these joins")                    \
    X(correct, false, "no, I mean: what was asked just before does not count")              \
    X(report, false, "said, told: what stands beside them is no request")                   \
    X(contrast, true, "but, instead: end what a prohibition covers")                        \
    X(prohibit, true, "what follows is forbidden")                                          \
    X(keep, true, "leave, keep: what follows stays as it is, and that alone")               \
    X(alternatives, false, "or: joins of which one is meant")                               \
    X(withdraw, true, "never mind: nothing of the request counts")                          \
    X(later, true, "times, delays and conditions")                                          \
    X(questions, true, "how a question begins")                                             \
    X(ask_state, true, "is .. {state}, what is the state of ..")                            \
    X(ask_which, true, "which .. are {state}")                                              \
    X(ask_count, true, "how many .. are {state}")                                           \
    X(known, false, "words that no typing error is looked for in")                          \
    X(agree, false, "yes: an answer that is made of these alone agrees")                    \
    X(decline, false, "no: one that is made of these alone declines")                       \
    X(differences, false, "by {value}: how much more or less, not how much")                \
    X(negative, false, "minus: the number after it is below zero")                          \
    X(adverbs, false, "prepositions that nothing need follow: outside")                     \
    X(beside, false, "near, by: what follows is another device")                            \
    X(adverbial, false, "\"back on\": its first word names nothing here")                   \
    X(degrees, false, "a little: a part of what is asked")                                  \
    X(entirely, false, "fully: more than a state tells")                                    \
    X(remarks, false, "is, seems: it says how something is, so none is offered")

/* Sentences; {name}, {names}, {what}, {verb}, {can}, {say}, {example}, {state}, {min}, {max} are filled in.
 */
#define LEXICON_REPLIES(X) \
    X(leave)               \
    X(leave_all)           \
    X(later)               \
    X(later_all)           \
    X(question)            \
    X(missing)             \
    X(which)               \
    X(cannot)              \
    X(no_action)           \
    X(need_value)          \
    X(out_of_range)        \
    X(not_understood)      \
    X(remark)              \
    X(propose)             \
    X(fallback)            \
    X(no_devices)          \
    X(state)               \
    X(state_yes)           \
    X(state_no)            \
    X(state_unknown) X(none_so) X(some_so) X(count_so) X(what_is_it) X(too_long) X(and) X(or) X(more)

/* Sentences that a lexicon may lack. X(name, the one that is said in its place) */
#define LEXICON_OTHER_REPLIES(X) \
    X(wrong_unit, need_value)    \
    X(difference, need_value)    \
    X(not_so, cannot)            \
    X(remark_word, remark)       \
    X(all_so, some_so)           \
    X(left_out, leave)
/* Forms of verbs for {is} and {it_is}: of one thing, and of several or of one with a plural name. A lexicon may lack
 * them. */
#define LEXICON_VERBS(X) X(is) X(are) X(it_is) X(they_are)

typedef enum value_kind { VALUE_NUMBER, VALUE_CHOICE, VALUE_DURATION, VALUE_TEXT } value_kind;
typedef struct value_choice {
    const char *means; /* what stands in the call */
    phrase_list said;
} value_choice;
/* A unit that a number may be given in: as much as `scale` times the value's own, plus `offset`. */
typedef struct value_unit {
    const char *name, *sign; /* "fahrenheit", "°F" */
    word_list measures;
    double scale, offset;
    double
        asks_above; /* a bare number above it that is out of bounds else may be in it, so it is asked; 0: never */
} value_unit;
/* Other bounds for devices whose name has one of these. */
typedef struct value_range {
    phrase_list names;
    double min, max;
} value_range;
typedef struct value_def {
    const char *name; /* the argument's name */
    const char *said; /* what people call it */
    value_kind kind;
    word_list measures; /* NUMBER: folded units of measure */
    bool bare;          /* NUMBER: may stand without one */
    bool list;          /* TEXT: "milk and eggs" are two */
    double min, max;    /* in its own unit */
    size_t n_units;
    value_unit *units; /* NUMBER: the first is its own; none: it has no units */
    size_t n_ranges;
    value_range *ranges; /* NUMBER */
    size_t n_choices;
    value_choice *choices; /* CHOICE; NUMBER: words for numbers ("half"), means is digits */
} value_def;

typedef struct kind_def {
    const char *name;
    word_list domains;       /* id prefixes */
    const char *also_domain; /* and of this one those whose name has a word of also_names */
    word_list also_names;
    word_list words;   /* mean any device of the kind */
    word_list names;   /* mean those named so, else any of the kind */
    word_list only;    /* mean those named so and nothing else: without a tv no speaker is one */
    word_list careful; /* services that are careful for it, as an action can be for all its kinds */
    word_list states;  /* "is everything locked" asks those that can be so; none: any of the states */
    word_list *so; /* [states.n] what a device of the kind may tell where it is so: heat, of one that is on */
    const char *example;
    const char *state_say; /* NULL: the usual reply */
} kind_def;

typedef struct action_def {
    const char *service; /* NULL: only says `say` */
    uint64_t kinds;      /* bit i: kinds[i] */
    uint64_t rivals;     /* of what is careful: kinds that the same words may mean, so it is asked which */
    const char *
        where; /* devices without this service cannot do it, nor does it explain anything of them; NULL: all can */
    const char *say, *verb;
    const char *say_unit; /* say, where values have a unit behind them; NULL: the same */
    const char *deed;     /* "set the brightness of {name}"; NULL: verb and name */
    const char *request;  /* that the {answer} completes, where it asks for a value of {name}; NULL: none */
    const char *makes;    /* the state that it leads to, folded; NULL: none that is known */
    const char *undoes;   /* the service that this one is the opposite of; NULL: none */
    size_t n_takes;
    const value_def *takes[4]; /* each must be given */
    phrase_list cues;
    bool implied; /* without a device it means the only one of its kinds */
    bool bare;    /* device and values alone ask for it, without a cue */
    bool gradual; /* a step of more, so "a little" is a way to do it */
    bool amount;  /* its value is how much more or less: "by 5 minutes" */
    bool careful; /* not done beside anything that was not understood, however harmless it looks */
} action_def;

/* What is asked for by its name: "what's the temperature?" */
typedef struct quantity_def {
    const value_def *value;
    uint64_t kinds;   /* bit i: a device of kinds[i] tells it, */
    uint64_t sensors; /* and one of these whose unit is of the value's, or whose name has one of */
    phrase_list names;
    phrase_list outdoors; /* where one of these is said, the name must have one, too */
    phrase_list cues;
    const char *unknown; /* said where devices are there and tell no number; {names} is filled in */
} quantity_def;

typedef struct talk_def {
    phrase_list cues; /* the whole text is one of these */
    word_list labels; /* or a classifier says one of these, a trailing '*' is a prefix */
    uint64_t kinds;   /* whose example it shows, where the home has one; 0: any */
    const char *say;
} talk_def;

typedef struct synonym {
    const char *means;
    phrase_list said;
} synonym;

/* A word for kinds, in singular or plural. Bit i: kinds[i] has it among its words, names, only. */
typedef struct kind_word {
    uint64_t words, names, only;
    bool plural;
} kind_word;

typedef struct lexicon {
    arena *memory;
#define LEXICON_MEMBER(name, required, about) phrase_list name;
    LEXICON_LISTS(LEXICON_MEMBER)
#undef LEXICON_MEMBER
    struct {
#define LEXICON_MEMBER(name) const char *name;
        LEXICON_REPLIES(LEXICON_MEMBER)
#undef LEXICON_MEMBER
#define LEXICON_MEMBER(name, otherwise) const char *name;
        LEXICON_OTHER_REPLIES(LEXICON_MEMBER)
#undef LEXICON_MEMBER
#define LEXICON_MEMBER(name) const char *name; /* NULL: none */
        LEXICON_VERBS(LEXICON_MEMBER)
#undef LEXICON_MEMBER
    } reply;
    word_list states;       /* folded, of kinds too; */
    const char **state_for; /* [states.n] and each as the first of those that mean the same: shut is closed */
    word_list no_states;    /* what is told of a device whose state is not known */
    word_list passing_states; /* of a device on its way between two others: opening */
    size_t n_numbers;
    struct lexicon_number {
        const char *word;
        double value;
    } * numbers;
    size_t n_measures; /* of time */
    struct lexicon_measure {
        const char *word;
        double seconds;
    } * measures;
    size_t n_kinds, n_values, n_actions, n_quantities, n_talk, n_synonyms;
    kind_def *kinds;
    value_def *values;
    action_def *actions;
    quantity_def *quantities;
    talk_def *talk;
    synonym *synonyms;
    bool begins_number[256]; /* by first byte: most words need not be looked up */
    size_t n_synonym_words;
    const char **synonym_words; /* sorted: the first words of synonyms */
    size_t n_vocabulary;
    const char **vocabulary;   /* sorted: every word that stands above, once */
    size_t vocabulary_at[257]; /* where the words with this first byte begin, and those behind them */
    strmap kind_words;         /* -> kind_word */
} lexicon;

/* The caller frees *ret; any thread may read it. Errors begin with "file:line: ". */
int lexicon_load(lexicon **ret, const char *path, shoal_err *err);
int lexicon_parse(lexicon **ret, const char *text, size_t len, const char *what, shoal_err *err);
void lexicon_free(lexicon *l); /* NULL is fine */

/* SIZE_MAX: none. The name decides where a domain serves several kinds. */
size_t lexicon_kind_of(const lexicon *l, const char *domain, size_t n_domain, const words *name);
bool lexicon_knows(const lexicon *l, const char *folded);
/* NULL: the word means no kind. */
const kind_word *lexicon_kind_word(const lexicon *l, const char *folded);
/* Units of the longest synonym that begins at u[from], 0: none. *ret_means: what it means. */
size_t lexicon_synonym_at(const lexicon *l, const unit *u, size_t from, size_t n, const char **ret_means);
bool lexicon_number(const lexicon *l, const char *folded, double *ret);
bool lexicon_measure(const lexicon *l, const char *folded, double *ret_seconds);
/* The unit of some value that a word says, NULL: none. */
const value_unit *lexicon_unit(const lexicon *l, const char *folded);
/* The state that a word means, the first of those that mean it; NULL: none. */
const char *lexicon_state(const lexicon *l, const char *folded);
static inline bool lexicon_is_state(const lexicon *l, const char *folded)
{
    return lexicon_state(l, folded) != NULL;
}
/* What is said when no request was found: the reply of the talk whose labels hold `label`, NULL: none. */
const char *lexicon_talk_of(const lexicon *l, const char *label);

#endif
