/* generation_config.json and preprocessor_config.json (behind a NUL byte) of a model that hears: what is
 * taken keeps every id inside the vocabulary, so that a reply's rule writes nowhere else. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "infer/engine.h"
#include "memory.h"
#include "speech/rule.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { N_VOCAB = 64 };

static void check_rule(const whisper_tokens *h, bool times)
{
    speech_rule r;
    float *logits = calloc(N_VOCAB, sizeof *logits); /* exact: a write beside it is seen */
    int32_t ids[6];
    if (!logits) return;
    speech_rule_init(&r, h, NULL, times, times);
    for (size_t n = 0; n <= 6; n++) {
        memset(logits, 0, N_VOCAB * sizeof *logits);
        speech_rule_mask(&r, ids, n, logits, N_VOCAB);
        if (n == 6) break;
        size_t best = 0;
        for (size_t i = 1; i < N_VOCAB; i++)
            if (logits[i] > logits[best]) best = i;
        ids[n] = (int32_t)best;
    }
    free(logits);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *nul = memchr(data, '\0', size);
    size_t n = nul ? (size_t)(nul - data) : size;
    char *generation = strndup((const char *)data, n);
    char *features = nul ? strndup((const char *)nul + 1, size - n - 1) : NULL;
    whisper_tokens h = {.n_vocab = N_VOCAB, .n_ctx = 16, .sot = 1, .eot = 2};
    shoal_err err = {0};
    if (generation && whisper_tokens_read(&h, generation, features, 80, 100, &err) == 0) {
        check_rule(&h, false);
        check_rule(&h, true);
    }
    whisper_tokens_done(&h);
    free(features);
    free(generation);
    return 0;
}
