/* state.c: where the state folder is. */
#define _GNU_SOURCE
#include "trust/state.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static bool is_set(const char *s)
{
    return s && *s;
}

int state_path(char **ret, const char *given, const char *sub, shoal_err *err)
{
    const char *named = is_set(given) ? given : getenv("SHOAL_STATE");
    const char *xdg = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    const char *slash = sub ? "/" : "", *tail = sub ? sub : "";
    int n;
    if (is_set(named))
        n = asprintf(ret, "%s%s%s", named, slash, tail);
    else if (geteuid() == 0)
        n = asprintf(ret, "/var/lib/shoal%s%s", slash, tail);
    else if (is_set(xdg))
        n = asprintf(ret, "%s/shoal%s%s", xdg, slash, tail);
    else if (is_set(home))
        n = asprintf(ret, "%s/.local/state/shoal%s%s", home, slash, tail);
    else
        return err_set(err, SHOAL_EINVALID,
                       "there is no home folder to keep state in: say where with --state DIR");
    return n < 0 ? err_nomem(err) : 0;
}
