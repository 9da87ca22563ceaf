/* utf8.h: UTF-8, base64, hex and percent-encoding on byte ranges. */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* Decode one code point at s[0..n). Returns its length in bytes (1..4), or 0 when the bytes are not
 * well-formed UTF-8 (RFC 3629: no overlong forms, no surrogates, at most U+10FFFF) or n is 0. */
size_t utf8_decode(const char *s, size_t n, uint32_t *ret_cp);

/* Encode cp into out (4 bytes of room); returns the length, 0 for a surrogate or > U+10FFFF. */
size_t utf8_encode(uint32_t cp, char out[4]);

/* True when all n bytes are well-formed; otherwise *ret_bad (may be NULL) is the first bad offset. */
bool utf8_valid(const char *s, size_t n, size_t *ret_bad);

/* Of at most `max` bytes, without control characters: it may stand in logs, headers and answers. */
bool utf8_is_line(const char *s, size_t max);

/* Number of code points in well-formed text (counts lead bytes otherwise). */
size_t utf8_count(const char *s, size_t n);

/* Columns of a terminal that the text takes: two of a wide character, none of a combining one. */
size_t utf8_columns(const char *s, size_t n);

/* How many bytes at the end of s[0..n) are the start of a character that is not complete yet (0..3). */
size_t utf8_incomplete_tail(const char *s, size_t n);

/* Append s[0..n) for readers of C strings: U+0000 becomes U+FFFD. */
void utf8_put_c(buf *out, const char *s, size_t n);

int hex_digit(char c); /* 0 to 15; -1: it is none */
/* Exactly 2*n hex digits into out[n]; false otherwise. */
bool hex_decode(const char *hex, size_t hex_len, uint8_t *out, size_t n);

/* Append s[0..n) percent-encoded (RFC 3986, section 2.1): unreserved characters and those of `also` stay. */
void percent_encode(buf *out, const char *s, size_t n, const char *also);

int base64_encode(buf *out, const void *data, size_t n); /* RFC 4648 section 4, padded */
/* Append the bytes that the padded digits stand for: SHOAL_EFORMAT (and nothing) when they are none. */
int base64_decode(buf *out, const char *s, size_t n);

#endif
