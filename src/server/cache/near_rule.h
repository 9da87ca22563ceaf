/* near_rule.h: may the answer to one question be the answer to another that is near to it?
 *
 * Embeddings call "set it to 20" and "set it to 21" near, and "lock the door" and "do not lock the door". So
 * what a vector finds is judged by its words. Whatever is cheap to change and changes an answer must be the
 * same, in the same order: numbers as they are written, signs, quoted text to the letter, negations, whether
 * it is a question, and all words but those that a language knows to be polite or an article. Inflection may
 * differ, where nobody is acted for, and so may the place of a particle: "turn the light on", "turn on the
 * light".
 *
 *     near_rule_compare("turn on the light", "Please turn the light on!", "en", NEAR_WORDS)   NEAR_SAME
 *     near_rule_compare("turn on light 1", "turn on light 2", "en", NEAR_WORDS) NEAR_OTHER_NUMBERS
 *
 * The rule refuses where it does not know: a language without lists has no polite words. Pure. */
#ifndef CACHE_NEAR_RULE_H
#define CACHE_NEAR_RULE_H

#include <stddef.h>

enum { NEAR_TEXT_MAX = 2048 }; /* bytes of a text that is compared */

/* X(enum, name): what differs, as metrics call it */
#define NEAR_VERDICT_TABLE(X)                                             \
    X(NEAR_SAME, "same")                                                  \
    X(NEAR_OTHER_NUMBERS, "numbers")                                      \
    X(NEAR_OTHER_NEGATION, "negation")                                    \
    X(NEAR_OTHER_SIGNS, "signs") /* + - % / = ...*/                       \
    X(NEAR_OTHER_QUOTES, "quotes")                                        \
    X(NEAR_OTHER_QUESTION, "question") /* one asks, the other does not */ \
    X(NEAR_OTHER_NAMES, "names")                                          \
    X(NEAR_OTHER_ORDER, "order")                                          \
    X(NEAR_OTHER_WORDS, "words")                                          \
    X(NEAR_TOO_LONG, "length") /* or there was no memory to look */
typedef enum near_verdict {
#define NEAR_VERDICT_ENUM(e, name) e,
    NEAR_VERDICT_TABLE(NEAR_VERDICT_ENUM)
#undef NEAR_VERDICT_ENUM
} near_verdict;
const char *near_verdict_name(near_verdict v);

typedef enum near_how {
    NEAR_WORDS, /* all of the above */
    NEAR_EXACT, /* and no inflection: one lamp is not all lamps */
    NEAR_HARD /* all but words and their order, which somebody else judges; names (words with a capital inside
                 a sentence) must be the same */
} near_how;

/* language: ISO 639-1 of both, "" for unknown. Texts need not be UTF-8. */
near_verdict near_rule_compare(const char *a, const char *b, const char *language, near_how how);

#endif
