/* sanitise.h: words of others, fit for a terminal.
 *
 * Names, answers and reasons come from files, servers and models, which are anybody's: an escape sequence in
 * them could move the cursor, overwrite what was said or fill the clipboard. Whatever shows such words takes
 * the control characters out: U+0000 to U+001F, U+007F, and U+0080 to U+009F, which are two bytes in UTF-8
 * and which some terminals obey as others do ESC and its letter (ECMA-48, 5.3). Bytes that are no UTF-8 go
 * with them. Each becomes one '?'.
 *
 * Controls of direction reorder what follows them, so that a name or a program reads otherwise than it is (Boucher and
 * Anderson, "Trojan Source", 2021): embeddings, overrides and isolates (Unicode, UAX #9: U+202A to U+202E, U+2066 to
 * U+2069), and the deprecated ones behind these (to U+206F). They are shown as JSON escapes them, "\u202e", so that JSON
 * stays JSON; in place, where nothing can grow, as '?'. Letters that are written from right to left, the marks U+200E and
 * U+200F, joiners and variation selectors stay.
 *
 *     char name[100] = "home\x1b[2J";
 *     sanitise_text(name, "");                      // "home?[2J"
 *     sanitise_put(&out, text, n, "\n\t");
 *
 * What is piped into a program is that program's matter (cli_printf). */
#ifndef LOGGING_SANITISE_H
#define LOGGING_SANITISE_H

#include "base/buf.h"

/* How many bytes of s[n] are no text for a terminal: a control character, or a byte that is no UTF-8. 0: it
 * begins with another character, or n is 0. */
size_t sanitise_control(const char *s, size_t n);

/* Append s[n] for a terminal; the letters of `keep` ("\n\t", "") are let through. */
void sanitise_put(buf *out, const char *s, size_t n, const char *keep);

/* Is all of it fine? */
bool sanitise_is(const char *s);

/* In place, which never grows; the letters of `keep` ("\n\t", "") are let through. bytes: the new length, and
 * no NUL is written behind it. */
void sanitise_text(char *s, const char *keep);
size_t sanitise_bytes(char *s, size_t n, const char *keep);

/* End the line of a table that began at out->data[from]: sanitise, cut behind a word to the width in columns
 * (0: not), with a mark where something was cut, without spaces at its end. */
void sanitise_line(buf *out, size_t from, size_t width);

#endif
