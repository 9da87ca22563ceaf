/* sanitise.h: words of others, fit for a terminal.
 *
 * Names, answers and reasons come from files, servers and models, which are anybody's: an escape sequence in
 * them could move the cursor, overwrite what was said or fill the clipboard. Whatever shows such words takes
 * the control characters out: U+0000 to U+001F, U+007F, and U+0080 to U+009F, which are two bytes in UTF-8
 * and which some terminals obey as others do ESC and its letter (ECMA-48, 5.3). Bytes that are no UTF-8 go
 * with them. Each becomes one '?'.
 *
 *     char name[100] = "home\x1b[2J";
 *     sanitise_text(name, "");                      // "home?[2J"
 *     out.len = sanitise_bytes(out.data, out.len, "\n\t");
 *
 * What is piped into a program is that program's matter (cli_printf). */
#ifndef LOGGING_SANITISE_H
#define LOGGING_SANITISE_H

#include "base/buf.h"

/* How many bytes of s[n] are no text for a terminal: a control character, or a byte that is no UTF-8. 0: it
 * begins with a fine character, or n is 0. */
size_t sanitise_control(const char *s, size_t n);

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
