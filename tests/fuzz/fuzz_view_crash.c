/* A report of a crash that anybody wrote: it is shown without control characters, whatever is in it. */
#include <stdint.h>
#include <stdlib.h>

#include "json/json.h"
#include "view/crash_view.h"
#include "memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool name_all(void *user, const uint64_t *offsets, size_t n, buf *out, size_t *where)
{
    for (size_t i = 0; i < n; i++) {
        where[i] = out->len;
        buf_printf(out, "f%zu at\x1b file\nline %llu\n", i, (unsigned long long)offsets[i]);
    }
    return offsets[n - 1] % 2 == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t *report = NULL;
    buf out = {0};
    const crash_symbols s = {.build = "ab", .name = name_all};
    if (json_parse(&report, (const char *)data, size, "report", NULL) != 0) return 0;
    crash_view_line(&out, "01796084356-worker-9453.json", report, size % 90);
    crash_view_put(&out, report, size % 3 ? &s : NULL, size % 90);
    if (out.failed && !memory_was_refused()) abort();
    for (size_t i = 0; !out.failed && i < out.len; i++)
        if (((unsigned char)out.data[i] < ' ' && out.data[i] != '\n') || out.data[i] == 0x7f) abort();
    buf_done(&out);
    json_decref(report);
    return 0;
}
