/* guard.h: rules that are held before anything acts.
 *
 *     "mach das Licht nicht an"          deny   negation     "nicht" forbids it
 *     "éteins la télé dans dix minutes"  deny   later        another time, or a condition
 *     "is the light on?"                 deny   question     it is asked, not asked for
 *     "turn on the sauna"                deny   unknown      nothing there is called so
 *     "enciende la luz", of several      ask    ambiguous    which of them
 *     "unlock the front door"            ask    dangerous    really? goes on when it is confirmed
 *     "turn everything off", of 40       ask    too_many     really all? goes on when it is confirmed
 *
 * What a guard denies is not made good by another rule: it is the first in that order that holds. Guard words of
 * other languages count, too, where the language that is spoken does not know their words. Pure; memory is
 * the caller's arena. */
#ifndef MATCH_GUARD_H
#define MATCH_GUARD_H

#include "match/match.h"
#include "nlu/follow.h"

/* X(enum, label, what it means) */
#define GUARD_VERDICTS(X)                          \
    X(GUARD_PASS, "pass", "no rule holds it back") \
    X(GUARD_DENY, "deny", "it may not be done")    \
    X(GUARD_ASK, "ask", "a question comes first; text asks it")
typedef enum guard_verdict {
#define GUARD_ENUM(e, n, about) e,
    GUARD_VERDICTS(GUARD_ENUM)
#undef GUARD_ENUM
} guard_verdict;
const char *guard_verdict_name(guard_verdict v);

/* In the order in which they are held. X(enum, name, verdict, may be confirmed) */
#define GUARD_RULES(X)                             \
    X(RULE_UNREAD, unread, GUARD_DENY, false)      \
    X(RULE_NEGATION, negation, GUARD_DENY, false)  \
    X(RULE_LATER, later, GUARD_DENY, false)        \
    X(RULE_QUESTION, question, GUARD_DENY, false)  \
    X(RULE_UNKNOWN, unknown, GUARD_DENY, false)    \
    X(RULE_AMBIGUOUS, ambiguous, GUARD_ASK, false) \
    X(RULE_DANGEROUS, dangerous, GUARD_ASK, true)  \
    X(RULE_TOO_MANY, too_many, GUARD_ASK, true)
typedef enum guard_rule {
#define GUARD_ENUM(e, name, verdict, confirmable) e,
    GUARD_RULES(GUARD_ENUM)
#undef GUARD_ENUM
        N_GUARD_RULES
} guard_rule;
const char *guard_rule_name(guard_rule r);
/* N_GUARD_RULES: there is none of that name. */
guard_rule guard_rule_named(const char *name);
#define GUARD_ALL_RULES ((1u << N_GUARD_RULES) - 1)

/* A text of one's own for a rule. */
typedef struct guard_saying {
    const char *rule;
    const char *language; /* NULL: every one */
    const char *text;     /* {names}, {what}, {count}, {max} and {why} are filled in */
} guard_saying;

typedef struct guard_list {
    const char **at;
    size_t n;
} guard_list;

typedef struct guard_rules {
    const device_lexicon *lex;
    unsigned held; /* bit i: rule i is held; unread always is */
    /* Asked back about: kinds, ids, actions; none of the three: the lexicon's careful kinds. */
    guard_list kinds;
    guard_list ids, actions; /* a trailing '*' stands for any end */
    size_t max_targets;      /* 0: any number */
    const guard_saying *say;
    size_t n_say;
} guard_rules;

/* What is about to be done. */
typedef struct guard_case {
    const matching *found; /* how the text was read, of the devices below */
    const device *devices;
    size_t n_devices;
    bool by_match;              /* its devices are the targets, and what it did not find is unknown */
    const char *const *targets; /* else these ids are */
    size_t n_targets;
    const char *const *actions; /* services that would be called, or what a classifier calls the request */
    size_t n_actions;
    bool unread;    /* it is more than can be looked at */
    bool confirmed; /* the question was answered: yes; declined: no */
    bool declined;
} guard_case;

typedef struct guarding {
    guard_verdict verdict;
    const char *rule; /* "negation"; "declined"; PASS: "" */
    const char *text; /* what is said; PASS: "" */
    const char *why;  /* in words, in the language of the request; never empty */
    bool confirmable; /* ASK: a yes is enough */
} guarding;

/* SHOAL_ENOMEM, or 0. */
int guard(guarding *ret, const guard_rules *rules, const guard_case *c, arena *a);

/* Is the whole text an answer to a question back? */
/* SHOAL_ENOMEM, or 0. */
int guard_read_answer(follow_reply *ret, const device_lexicon *l, const char *text, arena *a);

#endif
