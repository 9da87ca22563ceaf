/* drained_set.c: names, a line each. */
#include "control/drained_set.h"

#include <string.h>

#include "trust/identity.h"

enum { FILE_MAX = 1 << 20 };
static const char NAME[] = "drains";

static int drained_set_read_line(const folder *dir, const char *line, size_t n, size_t number,
                                 char ret[IDENTITY_NAME_SIZE], shoal_err *err)
{
    if (n >= IDENTITY_NAME_SIZE || !identity_name_ok(line, n))
        return err_set(
            err, SHOAL_EINVALID,
            "%s/%s: line %zu is no machine's name; put it right, or remove the file if nobody drains",
            dir->path, NAME, number);
    memcpy(ret, line, n);
    ret[n] = '\0';
    return 0;
}

int drained_set_read(const folder *dir, int (*each)(void *user, const char *name), void *user, shoal_err *err)
{
    buf text = {0};
    char name[IDENTITY_NAME_SIZE];
    int rc = folder_has(dir, NAME) ? folder_read(dir, NAME, FILE_MAX, false, &text, err) : 0;
    size_t number = 1;
    for (size_t at = 0, n; rc == 0 && at < text.len; at += n + 1, number++) {
        const char *end = memchr(text.data + at, '\n', text.len - at);
        n = end ? (size_t)(end - (text.data + at)) : text.len - at;
        rc = drained_set_read_line(dir, text.data + at, n, number, name, err);
        if (rc == 0) rc = each(user, name);
    }
    buf_done(&text);
    return rc;
}

int drained_set_write(const folder *dir, const char *const *names, size_t n, shoal_err *err)
{
    buf text = {0};
    for (size_t i = 0; i < n; i++) buf_printf(&text, "%s\n", names[i]);
    int rc = text.failed ? err_nomem(err)
                         : folder_write(dir, NAME, 0600, text.data ? text.data : "", text.len, err);
    buf_done(&text);
    return rc;
}
