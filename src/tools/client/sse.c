/* sse.c: see sse.h. */
#include "client/sse.h"

#include <string.h>

static void take_line(sse_event *e, const char *line, size_t n)
{
    const struct {
        const char *name;
        const char **at;
        size_t *n;
    } fields[] = {
        {"event:", &e->name, &e->n_name}, {"data:", &e->data, &e->n_data}, {"id:", &e->id, &e->n_id}};
    if (n > 0 && line[n - 1] == '\r') n--;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        size_t skip = strlen(fields[i].name);
        if (n < skip || memcmp(line, fields[i].name, skip) != 0) continue;
        if (n > skip && line[skip] == ' ') skip++;
        *fields[i].at = line + skip;
        *fields[i].n = n - skip;
    }
}

size_t sse_read(sse_event *ret, const char *s, size_t n)
{
    *ret = (sse_event){0};
    for (size_t at = 0; at < n;) {
        const char *eol = memchr(s + at, '\n', n - at);
        if (!eol) return 0;
        size_t len = (size_t)(eol - s) - at;
        if (len == 0 || (len == 1 && s[at] == '\r')) return (size_t)(eol + 1 - s);
        take_line(ret, s + at, len);
        at = (size_t)(eol + 1 - s);
    }
    return 0;
}

bool sse_is_done(const sse_event *e)
{
    return e->n_data == 6 && memcmp(e->data, "[DONE]", 6) == 0;
}
