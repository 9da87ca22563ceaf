/* event.c: the lines of an event. */
#include "ingress/event.h"

#include <string.h>

static bool take_line(const char **bytes, size_t *n, const char **ret, size_t *ret_n)
{
    const char *end = *n ? memchr(*bytes, '\n', *n) : NULL;
    if (!end) return false;
    *ret = *bytes;
    *ret_n = (size_t)(end - *bytes);
    *n -= *ret_n + 1;
    *bytes = end + 1;
    return true;
}

static void note(const char *line, size_t n, const char *field, const char **ret, size_t *ret_n)
{
    size_t n_field = strlen(field);
    if (n < n_field || memcmp(line, field, n_field) != 0) return;
    *ret = line + n_field;
    *ret_n = n - n_field;
}

bool event_next(const char **bytes, size_t *n, event *ret)
{
    const char *line;
    size_t n_line;
    *ret = (event){.id = "", .name = "", .data = ""};
    while (take_line(bytes, n, &line, &n_line)) {
        if (n_line == 0) return true;
        note(line, n_line, "id: ", &ret->id, &ret->n_id);
        note(line, n_line, "event: ", &ret->name, &ret->n_name);
        note(line, n_line, "data: ", &ret->data, &ret->n_data);
    }
    return false;
}
