/* tty_style.h: whether what is written may have colours.
 *
 * Where a person sees it they may, unless NO_COLOR (https://no-color.org) is set or TERM says "dumb"; a
 * terminal without TERM has them when COLORTERM is set. SHOAL_COLOR, which --color sets for a process and
 * those that it starts, says it outright: "always" or "never". */
#ifndef LOGGING_TTY_STYLE_H
#define LOGGING_TTY_STYLE_H

#include <stdbool.h>

#include "base/err.h"

bool tty_style_shows(int fd);

/* "always" was said: then there are rows for a person even where there is no terminal (| less -R). */
bool tty_style_always(void);

/* Take what --color was given (NULL: nothing) over into SHOAL_COLOR. SHOAL_EINVALID: it is not auto, always
 * or never. Before there are threads. */
int tty_style_choose(const char *when, shoal_err *err);

#endif
