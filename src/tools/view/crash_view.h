/* crash_view.h: a report of a crash (os/crash.h) for people. Pure; the report may be anybody's bytes. */
#ifndef VIEW_CRASH_VIEW_H
#define VIEW_CRASH_VIEW_H

#include <stddef.h>

#include "base/buf.h"
#include "json/json.h"

/* One line of a list: when, what, of which model, by which signal. */
void crash_view_line(buf *out, const char *name, const json_t *report, size_t width);

/* What names the addresses of the program itself. */
typedef struct crash_symbols {
    const char *build; /* the build id that it has symbols of */
    /* Append what is at each of n offsets, a line or several for each; where[i]: where these of offset i begin in out.
     * False: it cannot. */
    bool (*name)(void *user, const uint64_t *offsets, size_t n, buf *out, size_t *where);
    void *user;
} crash_symbols;

enum { CRASH_FRAMES_SHOWN = 64 };

/* The whole report: facts, steps, frames. s: NULL: frames have offsets alone. */
void crash_view_put(buf *out, const json_t *report, const crash_symbols *s, size_t width);

#endif
