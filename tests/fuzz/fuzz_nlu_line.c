/* Lines of sensors, and what a model says of them: up to the first NUL the line, after it what is said. An
 * alert comes only of a line that was read, and of what is said nothing is kept that the line and its form
 * lack. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "memory.h"
#include "nlu/line.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Every number that is kept stands in the line. */
static void see_numbers(const line_reading *r, const char *text, arena *a)
{
    words w;
    if (!holds(words_split(&w, a, text, strlen(text)) == 0)) return;
    for (size_t i = 0; i < w.n; i++) {
        bool found = !w.at[i].number;
        for (size_t k = 0; k < r->line.n && !found; k++)
            found = r->line.at[k].number && r->line.at[k].value == w.at[i].value;
        if (!found) abort();
    }
}

static void see(const line_forms *f, const line_reading *r, const char *line, const char *said, arena *a)
{
    if (!r->text || (r->verdict != LINE_OTHER && !*r->text)) abort();
    if (utf8_valid(line, strlen(line), NULL) && !utf8_valid(r->text, strlen(r->text), NULL)) abort();
    if ((r->verdict == LINE_READ) != (r->values[0] != NULL)) abort();
    if (r->verdict != LINE_READ) return;
    if (!r->form || r->outcome < 0 || r->outcome > 2 || r->line.cut) abort();
    bool kept = false;
    const char *text = line_check(r, said, a, &kept);
    if (!holds(text != NULL)) return;
    if (!*text || (!kept && text != r->text)) abort();
    if (kept) see_numbers(r, text, a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static line_forms *forms; /* read once; reachable to the end, so no leak */
    if (!forms && !holds(line_forms_load(&forms, SHOAL_SOURCE_DIR "/lexicons/sensors.yaml", NULL) == 0))
        return 0;
    arena *a = arena_new(0);
    char *line = a ? arena_strndup(a, (const char *)data, size) : NULL;
    line_reading r = {0};
    if (holds(line && line_read(&r, forms, line, a, NULL) == 0)) {
        size_t n = strlen(line);
        see(forms, &r, line, n < size ? line + n + 1 : "", a);
    }
    arena_free(a);
    return 0;
}
