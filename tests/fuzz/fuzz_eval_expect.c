/* Expectations and answers that anybody may have written: what is checked can be judged, and each difference
 * has its three parts. Input: an expectation, a line end, a status in three digits, an answer. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "eval/pipeline_expect.h"
#include "memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static json_t *parsed(const char *text, size_t n)
{
    json_t *v = NULL;
    return json_parse(&v, text, n, "input", NULL) == 0 ? v : NULL;
}

static void judge(const json_t *expect, int status, const json_t *answer)
{
    json_t *diffs = json_array();
    const eval_answer a = {.status = status, .body = answer};
    if (!holds(diffs != NULL)) return;
    if (holds(pipeline_expect_judge(expect, "turn on the light", &a, diffs, NULL) == 0))
        for (size_t i = 0; i < json_array_size(diffs); i++) {
            const json_t *d = json_array_get(diffs, i);
            if (!json_is_string(json_object_get(d, "what")) || !json_object_get(d, "expected") ||
                !json_object_get(d, "got"))
                abort();
        }
    json_decref(diffs);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data, *end = size ? memchr(text, '\n', size) : NULL;
    size_t n = end ? (size_t)(end - text) : size, rest = end && size - n > 4 ? size - n - 4 : 0;
    json_t *expect = parsed(text, n), *answer = rest ? parsed(end + 4, rest) : NULL;
    int status = rest ? (end[1] - '0') * 100 : 200;
    shoal_err err = {0};
    int rc = expect ? pipeline_expect_check(expect, &err) : SHOAL_EFORMAT;
    if (expect && rc && !*err.message) abort();
    if (rc == 0) judge(expect, status, answer);
    json_decref(expect);
    json_decref(answer);
    return 0;
}
