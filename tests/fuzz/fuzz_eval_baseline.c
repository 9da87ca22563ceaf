/* Bytes as an accepted run of shoal eval: what parses is compared with a run of a few cases, and every case is counted. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "eval/eval_baseline.h"
#include "memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const eval_case cases[] = {{.id = "a"}, {.id = "b"}, {.id = "a"}};
    eval_result v[] = {
        {.c = &cases[0]}, {.c = &cases[1], .verdict = EVAL_WRONG}, {.c = &cases[2], .verdict = EVAL_HARMFUL}};
    const eval_results r = {v, 3};
    eval_baseline b;
    eval_comparison c;
    buf line = {0};
    if (eval_baseline_parse(&b, (const char *)data, size, "baseline", NULL) != 0) return 0;
    if (holds(eval_compare(&c, &b, &r, NULL) == 0)) {
        if (c.n_new > 3 || c.n_worse + c.n_better + c.n_new > 3 || c.n_gone != b.n - (3 - c.n_new)) abort();
        eval_comparison_put(&c, "baseline", &line);
        holds(!line.failed);
    }
    buf_done(&line);
    eval_comparison_done(&c);
    eval_baseline_done(&b);
    return 0;
}
