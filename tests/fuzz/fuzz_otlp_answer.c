/* Any bytes as a collector's answer, in either form, and as a line of its head: read within bounds or refused, and what
 * was read is a text. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "otlp/otlp.h"
#include "otlp/otlp_http.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    shoal_err err;
    for (int json = 0; json < 2; json++) {
        otlp_answer a = {0};
        int rc = otlp_answer_parse(&a, json, data, size, &err);
        if (rc == 0 && !memchr(a.why, 0, sizeof a.why)) abort();
        if (rc == 0 && a.n_rejected > INT64_MAX) abort();
        if (rc != 0 && a.n_rejected != 0) abort();
    }
    if (otlp_retry_after_ms((const char *)data, size) > 3600000) abort();
    return 0;
}
