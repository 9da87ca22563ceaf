/* trim.h: texts without the white space around them. Any thread. */
#ifndef BASE_TRIM_H
#define BASE_TRIM_H

#include <stdbool.h>

/* The same text, but for white space (space, tab, CR, LF) around it. */
bool trim_equal(const char *a, const char *b);

#endif
