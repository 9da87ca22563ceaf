/* json_quick.h: JSON as requests mostly are, in one pass.
 *
 * jansson reads byte by byte through four functions, which took a fifth of a request that the cache answers.
 * What is common is read here into the same values; the rest (\u escapes, numbers of more than 18 digits, and
 * all that is wrong in any way) is jansson's, which knows how to say what is wrong and where. */
#ifndef JSON_JSON_QUICK_H
#define JSON_JSON_QUICK_H

#include <jansson.h>
#include <stddef.h>

/* The one value that text[len] holds; the caller owns it. NULL: it is jansson's to read or to refuse, or
 * memory is out. */
json_t *json_quick(const char *text, size_t len);

#endif
