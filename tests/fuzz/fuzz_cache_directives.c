/* Bytes as Cache-Control and, behind the first NUL, as tags: what is taken can be said again and is the same.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "cache/cache_directives.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cache_directives w, again;
    buf all = {0}, tags = {0};
    buf_append(&all, data, size);
    buf_putc(&all, '\0');
    if (all.failed) {
        buf_done(&all);
        return 0;
    }
    const char *control = all.data, *given = memchr(data, 0, size) ? control + strlen(control) + 1 : NULL;
    int rc = cache_directives_parse(&w, control, given, NULL);
    for (size_t i = 0; rc == 0 && i < w.n_tags; i++) buf_printf(&tags, "%s,", w.tags[i]);
    if (rc == 0 && !tags.failed) {
        if (cache_directives_parse(&again, NULL, tags.data ? tags.data : "", NULL) != 0) abort();
        if (again.n_tags != w.n_tags || again.fresh) abort();
        for (size_t i = 0; i < w.n_tags; i++)
            if (strcmp(w.tags[i], again.tags[i]) != 0 || !*w.tags[i]) abort();
    }
    buf_done(&all);
    buf_done(&tags);
    return 0;
}
