/* verify.h: rules that hold an answer against what the request gives.
 *
 *     verify_check devices = {.kind = VERIFY_DEVICES, .devices = checker, .lexicon = lex};
 *     verify_answer a = {.text = "Turning on Lamp.", .calls = made, .n_calls = 1};
 *     verify_verdict v;
 *     rc = verify_apply(&v, &devices, &k, &a, arena);         // k: verify_case.h
 *     if (v.why != VERIFY_FINE && v.mends) ... v.mended ...
 *
 * A rule passes what it can account for and nothing else: what it cannot read, what is too long for it and
 * what it has nothing to hold against does not pass. Each is a pure function of one file:
 *
 *     devices   device_checker     calls of devices that are there and were meant, and a text that fits them
 *     numbers   verify_text.c      no number that question and context lack
 *     pattern   verify_text.c      regular expressions that must, or must not, be found
 *     json      verify_json.h      JSON of a schema
 *     nli       verify_nli.h       each sentence follows from the context, says a model; it is asked
 *                                elsewhere
 *
 * Calls of tools act, and of these rules only `devices` knows what they do: an answer with calls passes no
 * list of checks without it (verify_may_leave). */
#ifndef ENSEMBLE_VERIFY_H
#define ENSEMBLE_VERIFY_H

#include "ensemble/verify_case.h"
#include "regex/regex.h"

/* X(enum, how traces say it): never a word of the request or of the answer. */
#define VERIFY_WHYS(X)                                                    \
    X(VERIFY_FINE, "it passed")                                           \
    X(VERIFY_SILENT, "no answer came")                                    \
    X(VERIFY_EMPTY, "it says nothing")                                    \
    X(VERIFY_CALLS_UNCHECKED, "no check knows what its calls do")         \
    X(VERIFY_NO_TOOL, "a tool that was not offered")                      \
    X(VERIFY_NO_DEVICE, "a device that is not in the list")               \
    X(VERIFY_NO_LIST, "there is no list of devices to hold it against")   \
    X(VERIFY_BROKEN_CALL, "a call that cannot be read")                   \
    X(VERIFY_CALL_AS_TEXT, "a call written as text")                      \
    X(VERIFY_NO_CALL, "it does not do what was asked")                    \
    X(VERIFY_OTHER_CALLS, "it does something else than was asked")        \
    X(VERIFY_NOT_TO_ACT, "it acts where nothing may be done")             \
    X(VERIFY_OTHER_TEXT, "its text says something else than it does")     \
    X(VERIFY_OTHER_REPLY, "another reply than the rule's")                \
    X(VERIFY_NUMBER, "a number that was not given")                       \
    X(VERIFY_LACKS, "it lacks what it must have")                         \
    X(VERIFY_HAS, "it has what it must not have")                         \
    X(VERIFY_NO_JSON, "it is no JSON")                                    \
    X(VERIFY_NO_FIT, "it does not fit the schema")                        \
    X(VERIFY_NO_CONTEXT, "there is no context to hold it against")        \
    X(VERIFY_NOT_ENTAILED, "a sentence does not follow from the context") \
    X(VERIFY_NOT_CHECKED, "the model that checks did not answer")         \
    X(VERIFY_TOO_LONG, "it is too long to be checked")
typedef enum verify_why {
#define VERIFY_WHY_ENUM(e, text) e,
    VERIFY_WHYS(VERIFY_WHY_ENUM)
#undef VERIFY_WHY_ENUM
} verify_why;
const char *verify_why_text(verify_why w);

typedef enum verify_kind {
    VERIFY_DEVICES,
    VERIFY_NUMBERS,
    VERIFY_PATTERN,
    VERIFY_JSON,
    VERIFY_NLI,
} verify_kind;

typedef struct verify_answer {
    const char *text; /* "" for none */
    const device_call *calls;
    size_t n_calls;
} verify_answer;

typedef struct verify_check {
    const char *name; /* as traces say it */
    verify_kind kind;
    const struct device_checker *devices; /* DEVICES */
    const void *lexicon;                  /* of that; NULL: lists alone, not what the request means */
    regex **must, **must_not;             /* PATTERN */
    size_t n_must, n_must_not;
    const struct verify_schema *schema; /* JSON; NULL: any */
    const char *model, *entails;        /* NLI: who is asked, and its label for "it follows" */
    double min_score;                   /* of that label */
} verify_check;

typedef struct verify_verdict {
    verify_why why;
    bool mends;           /* the rule knows the right answer: */
    verify_answer mended; /* this one */
    size_t n_options;     /* or that it is one of these, which a model may choose from; 0: it does not */
    const device_option *options;
} verify_verdict;

/* Everything of the verdict lives in the arena, or is the answer's. Not for NLI. SHOAL_ENOMEM, or 0. */
int verify_apply(verify_verdict *ret, const verify_check *c, const verify_case *k, const verify_answer *a,
                 arena *mem);

/* Without text and calls, or with calls though none of the checks knows them: VERIFY_EMPTY,
 * VERIFY_CALLS_UNCHECKED, else VERIFY_FINE. */
verify_why verify_may_leave(const verify_check *checks, size_t n, const verify_answer *a);

/* ---- the rules ------------------------------------------------------------------------------------ */

/* The rule of devices is of a module above, which knows what requests for a home mean (home/rules). A program
 * has one or none (stage_registry.devices). */
typedef struct device_checker {
    /* What words mean; errors begin with "file:line: ". */
    int (*open)(void **ret_lexicon, const char *path, shoal_err *err);
    void (*close)(void *lexicon); /* NULL is fine */
    /* As verify_apply. lexicon NULL: lists alone. */
    int (*apply)(verify_verdict *ret, const void *lexicon, const verify_case *k, const verify_answer *a,
                 arena *mem);
} device_checker;

/* *ret_strange: some number of `text` is in none of the `n` texts. Numbers in digits. */
int verify_numbers(const char *text, const char *const *known, size_t n, bool *ret_strange, arena *mem);
/* Over the text with a line "NAME ARGUMENTS" behind it for each call. */
int verify_pattern(verify_why *ret, const verify_check *c, const verify_answer *a);

#endif
