/* regex.h: a regular expression from a configuration, over texts from anybody.
 *
 * PCRE2 with bounds on steps and memory, so that no text makes a pattern hold up the loop: after
 * REGEX_STEPS the search gives up, which is neither a match nor none. Of a text the first REGEX_BYTES are
 * looked at. One thread at a time for each pattern. */
#ifndef REGEX_REGEX_H
#define REGEX_REGEX_H

#include <stddef.h>

#include "base/err.h"

enum { REGEX_BYTES = 16384, REGEX_STEPS = 100000, REGEX_HEAP_KIB = 1024, REGEX_STEP_BYTES = 1024 };

typedef struct regex regex;
typedef enum { REGEX_NONE, REGEX_FOUND, REGEX_GAVE_UP } regex_result;

/* SHOAL_EINVALID: it is no pattern; the sentence says where. */
int regex_compile(regex **ret, const char *source, shoal_err *err);
/* The same for a "pattern" of JSON Schema, whose language is ECMA-262's. */
int regex_compile_ecma(regex **ret, const char *source, shoal_err *err);
void regex_free(regex *p); /* accepts NULL */
/* Of its program: a short pattern may come to a long one, and as long it took to compile. */
size_t regex_bytes(const regex *p);
/* The text is UTF-8; invalid bytes match nothing. */
regex_result regex_find(const regex *p, const char *text, size_t len);
/* For a pattern of regex_compile_ecma from anybody: *n_left is how much work it may be, and becomes what is
 * left of that. To try one part of the pattern at one place is a step, or several where the text is long,
 * since a part may look through all of it. REGEX_GAVE_UP where it is more, and for more than REGEX_BYTES. */
regex_result regex_find_counted(const regex *p, const char *text, size_t len, size_t *n_left);

#endif
