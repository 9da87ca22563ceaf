/* Bytes as a sound file that one of the codecs' libraries decodes; twice, with the same outcome. It stands
 * apart from fuzz_signal_audio since tests/fail leaves it out: libvorbis and libsndfile use memory that they
 * did not get. */
#include <stdint.h>
#include <string.h>

#include "memory.h"
#include "signal/audio.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    audio_options o = {.max_seconds = 0.5, .max_bytes = 1 << 16};
    float *x[2] = {NULL, NULL};
    size_t n[2] = {0, 0};
    int rc[2];
    for (int i = 0; i < 2; i++) rc[i] = audio_decode(&x[i], &n[i], NULL, data, size, &o, NULL);
    if (holds(rc[0] == rc[1]) && rc[0] == 0)
        holds(n[0] == n[1] && memcmp(x[0], x[1], n[0] * sizeof *x[0]) == 0);
    free(x[0]);
    free(x[1]);
    return 0;
}
