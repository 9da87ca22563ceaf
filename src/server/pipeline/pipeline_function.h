/* pipeline_function.h: what may stand behind a field of a template: {input | trim | first:200}.
 *
 * A closed set of pure functions of one text, each with arguments behind colons: numbers as they are, texts
 * in quotes of either kind ('\n', '\t', '\\', '\'' and '\"' are what they are elsewhere). They are applied
 * from left to right. What one of them makes is cut, between two characters, at PIPELINE_FILLED_MAX_BYTES, so
 * that no chain of them can fill the memory.
 *
 *     pipeline_function f;
 *     while ((rc = pipeline_function_next(&at, end, &f, err)) > 0) pipeline_function_apply(&f, &text);
 *
 * Pure. Inside pipeline*.c. */
#ifndef PIPELINE_PIPELINE_FUNCTION_H
#define PIPELINE_PIPELINE_FUNCTION_H

#include "base/buf.h"
#include "base/err.h"

enum {
    PIPELINE_FILLED_MAX_BYTES = 1 << 20,
    FUNCTION_TEXT_MAX = 256,      /* bytes of a text argument */
    FUNCTION_NUMBER_MAX = 1000000 /* of a number, either way */
};

/* X(enum, name, arguments: "" none, "n" a number from 1, "i" a number but 0, "t" a text, "tt" two) */
#define PIPELINE_FUNCTION_TABLE(X)       \
    X(FUNCTION_TRIM, "trim", "")         \
    X(FUNCTION_LOWER, "lower", "")       \
    X(FUNCTION_UPPER, "upper", "")       \
    X(FUNCTION_TITLE, "title", "")       \
    X(FUNCTION_SENTENCE, "sentence", "") \
    X(FUNCTION_ONE_LINE, "one_line", "") \
    X(FUNCTION_FIRST, "first", "n")      \
    X(FUNCTION_LAST, "last", "n")        \
    X(FUNCTION_WORDS, "words", "n")      \
    X(FUNCTION_LINES, "lines", "n")      \
    X(FUNCTION_LINE, "line", "i")        \
    X(FUNCTION_DEFAULT, "default", "t")  \
    X(FUNCTION_BEFORE, "before", "t")    \
    X(FUNCTION_AFTER, "after", "t")      \
    X(FUNCTION_REPLACE, "replace", "tt") \
    X(FUNCTION_JSON, "json", "")         \
    X(FUNCTION_PERCENT, "percent", "")
typedef enum pipeline_function_kind {
#define FUNCTION_ENUM(e, name, arguments) e,
    PIPELINE_FUNCTION_TABLE(FUNCTION_ENUM)
#undef FUNCTION_ENUM
        N_PIPELINE_FUNCTIONS
} pipeline_function_kind;

typedef struct pipeline_function {
    pipeline_function_kind kind;
    long number;
    char text[2][FUNCTION_TEXT_MAX + 1];
    size_t n_text[2];
} pipeline_function;

/* The next of "| trim | first:200", from *at to `end`: 1 and *at behind it, 0 at the end, or SHOAL_EINVALID
 * with a sentence that begins with what is wrong. */
int pipeline_function_next(const char **at, const char *end, pipeline_function *ret, shoal_err *err);
/* Replace the text by what the function makes of it. text->failed when memory is short. */
void pipeline_function_apply(const pipeline_function *f, buf *text);

#endif
