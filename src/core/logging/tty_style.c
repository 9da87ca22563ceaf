/* tty_style.c: see tty_style.h. */
#include "logging/tty_style.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_set(const char *name)
{
    const char *v = getenv(name);
    return v && *v;
}

static bool said(const char *when)
{
    const char *v = getenv("SHOAL_COLOR");
    return v && strcmp(v, when) == 0;
}

bool tty_style_always(void)
{
    return said("always");
}

bool tty_style_shows(int fd)
{
    const char *term = getenv("TERM");
    if (said("always")) return true;
    if (said("never") || is_set("NO_COLOR") || !isatty(fd)) return false;
    return term && *term ? strcmp(term, "dumb") != 0 : is_set("COLORTERM");
}

int tty_style_choose(const char *when, shoal_err *err)
{
    if (!when) return 0;
    if (strcmp(when, "auto") != 0 && strcmp(when, "always") != 0 && strcmp(when, "never") != 0)
        return err_set(err, SHOAL_EINVALID, "--color is auto, always or never, not '%.40s'", when);
    return setenv("SHOAL_COLOR", when, 1) == 0 ? 0 : err_nomem(err);
}
