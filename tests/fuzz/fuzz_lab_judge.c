/* Answers from a server that may send anything: whole, with one canonical form, or not whole, with a reason.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lab/judge.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) return 0;
    char why[120] = "";
    buf canon = {0}, again = {0};
    int rc = judge_canon(&canon, (const char *)data + 1, size - 1, data[0] & 1, why, sizeof why);
    if (rc != 0 && !why[0]) abort();
    if (rc == 0 && judge_canon(&again, canon.data, canon.len, false, why, sizeof why) == 0 &&
        strcmp(canon.data, again.data) != 0)
        abort(); /* what is canonical stays as it is */
    if (rc == 0) judge_difference(canon.data, again.data ? again.data : "", why, sizeof why);
    buf_done(&again);
    buf_done(&canon);
    return 0;
}
