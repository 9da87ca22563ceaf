/* Any bytes as a line of a log: what log_scan takes is read whole by log_read, with the same level, also with a field more. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "logging/log_read.h"
#include "logging/log_scan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Where memory is refused once (tests/fail), the second time reads. */
static bool reads(log_line *l, const char *s, size_t n)
{
    return log_read(l, s, n) || log_read(l, s, n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char more[] = ",\"replica\":\"m/0\"";
    const char *line = (const char *)data;
    log_scanned s;
    log_line l;
    buf b = {0};
    if (!log_scan(&s, line, size, "replica")) return 0;
    if (s.head >= size || memchr(line, '\n', size)) abort();
    buf_append(&b, line, s.head);
    buf_append(&b, more, sizeof more - 1);
    buf_append(&b, line + s.head, size - s.head);
    if (b.failed) {
        buf_done(&b);
        return 0;
    }
    if (!reads(&l, line, size) || l.event.level != s.level) abort();
    log_read_done(&l);
    if (!reads(&l, b.data, b.len) || l.event.n_fields == 0 || strcmp(l.fields[0].key, "replica") != 0)
        abort();
    log_read_done(&l);
    buf_done(&b);
    return 0;
}
