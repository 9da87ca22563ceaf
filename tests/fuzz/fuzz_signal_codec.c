/* Bytes as a sound file that one of the codecs' libraries decodes: twice, and in windows, with the same
 * outcome. It stands apart from fuzz_signal_audio since tests/fail leaves it out: libvorbis and libsndfile
 * use memory that they did not get. */
#include <stdint.h>
#include <string.h>

#include "memory.h"
#include "signal/sound.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* All of it window by window, against x[n] of a whole decode that ended with rc. */
static void views(const uint8_t *data, size_t size, const audio_options *o, int rc, const float *x, size_t n)
{
    sound *s = NULL;
    int again = sound_open(&s, data, size, o, NULL);
    if (again == 0) again = sound_measure(s, NULL);
    holds((rc == 0) == (again == 0));
    if (rc == 0 && again == 0) holds(sound_length(s) == n);
    for (size_t at = 0; again == 0 && rc == 0 && at < n; at += 1000) {
        const float *v = NULL;
        size_t got = 0;
        again = sound_view(s, at, 1500, &v, &got, NULL);
        if (holds(again == 0))
            holds(got == (n - at < 1500 ? n - at : 1500) && memcmp(v, x + at, got * sizeof *v) == 0);
    }
    sound_free(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    audio_options o = {.max_seconds = 0.5, .max_bytes = 1 << 16};
    float *x[2] = {NULL, NULL};
    size_t n[2] = {0, 0};
    int rc[2];
    for (int i = 0; i < 2; i++) rc[i] = audio_decode(&x[i], &n[i], NULL, data, size, &o, NULL);
    if (holds(rc[0] == rc[1]) && rc[0] == 0)
        holds(n[0] == n[1] && memcmp(x[0], x[1], n[0] * sizeof *x[0]) == 0);
    views(data, size, &o, rc[0], x[0], n[0]);
    free(x[0]);
    free(x[1]);
    return 0;
}
