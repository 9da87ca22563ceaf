/* Two texts, apart at the first NUL: no verdict hangs on which comes first, and a text is the same as itself.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "cache/near_rule.h"
#include "memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const LANGUAGES[] = {"en", "de", "fr", "es", ""};
    buf all = {0};
    buf_append(&all, data, size);
    buf_putc(&all, '\0');
    buf_putc(&all, '\0');
    if (!all.failed) {
        const char *a = all.data, *b = a + strlen(a) + 1;
        const char *language = LANGUAGES[size % 5];
        for (int how = NEAR_WORDS; how <= NEAR_HARD; how++) {
            near_verdict there = near_rule_compare(a, b, language, (near_how)how);
            near_verdict back = near_rule_compare(b, a, language, (near_how)how);
            holds((there == NEAR_SAME) == (back == NEAR_SAME));
            if (strlen(a) < NEAR_TEXT_MAX)
                holds(near_rule_compare(a, a, language, (near_how)how) == NEAR_SAME);
        }
    }
    buf_done(&all);
    return 0;
}
