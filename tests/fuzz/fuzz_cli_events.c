/* A stream of events that any server may send, and lines of a log in them: events end where they say, and no
 * row for a person has a control character. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "client/sse.h"
#include "view/log_view.h"
#include "memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look(const char *line, size_t n)
{
    buf out = {0};
    bool shown = log_view_put(&out, LOG_FORM_TERMINAL, 60, false, line, n);
    if (!shown && out.len) abort();
    for (size_t i = 0; shown && !out.failed && i < out.len; i++)
        if (((unsigned char)out.data[i] < ' ' && out.data[i] != '\n') || out.data[i] == 0x7f) abort();
    buf_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sse_event e;
    const char *s = (const char *)data;
    size_t at = 0;
    for (size_t n; (n = sse_read(&e, s + at, size - at)) > 0; at += n) {
        if (n > size - at || (e.n_data && (e.data < s + at || e.data + e.n_data > s + at + n))) abort();
        if (e.data) look(e.data, e.n_data);
    }
    look(s, size);
    return 0;
}
