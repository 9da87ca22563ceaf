/* Bytes as a sound file, whole, in pieces and in windows: all give the same samples or the same error. The
 * first byte says how large the pieces are, and whether the bytes are raw. */
#include <stdint.h>
#include <string.h>

#include "memory.h"
#include "signal/sound.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int read_pieces(audio_reader *r, const uint8_t *data, size_t size, size_t piece)
{
    int rc = 0;
    for (size_t at = 0; rc == 0 && at < size; at += piece)
        rc = audio_reader_push(r, data + at, size - at < piece ? size - at : piece, NULL);
    return rc == 0 ? audio_reader_finish(r, NULL) : rc;
}

/* In one window, against x[n] of a whole decode that ended with rc. */
static void view(const uint8_t *data, size_t size, const audio_options *o, int rc, const float *x, size_t n)
{
    sound *s = NULL;
    const float *v = NULL;
    size_t got = 0;
    int again = sound_open(&s, data, size, o, NULL);
    if (again == 0) again = sound_measure(s, NULL);
    if (again == 0) again = sound_view(s, 0, n + 1, &v, &got, NULL);
    holds((rc == 0) == (again == 0));
    if (rc == 0 && again == 0)
        holds(got == n && sound_length(s) == n && (n == 0 || memcmp(v, x, n * sizeof *v) == 0));
    sound_free(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) return 0;
    size_t piece = data[0] % 64 + 1, n = 0, n_again = 0;
    audio_options o = {.max_seconds = 0.5, .max_bytes = 1 << 16, .raw_rate = data[0] >= 0xF0 ? 11025 : 0};
    audio_reader *r = NULL;
    float *whole = NULL;
    int rc = audio_decode(&whole, &n, NULL, data + 1, size - 1, &o, NULL);
    if (holds(audio_reader_new(&r, &o, NULL) == 0)) {
        int again = read_pieces(r, data + 1, size - 1, piece);
        const float *x = audio_reader_samples(r, &n_again);
        holds((rc == 0) == (again == 0));
        if (rc == 0 && again == 0) holds(n == n_again && (n == 0 || memcmp(x, whole, n * sizeof *x) == 0));
    }
    audio_reader_free(r);
    if (!o.raw_rate) view(data + 1, size - 1, &o, rc, whole, n);
    free(whole);
    return 0;
}
