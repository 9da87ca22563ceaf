/* A sound without its silence: what is kept, where it came from, and that little is in memory. */
#include "helper.h"

#include "speech/trimmed.h"
#include "sounds.h"

enum { RATE = 16000, HOP = 320 };

/* Words of 08-lights-on.wav, each behind `leads[i]` samples of silence. */
static float *words_behind(const size_t *leads, size_t n_leads, size_t *ret_n)
{
    size_t n, all = 0, at = 0;
    float *word = read_sound(DATA "speech/wav/08-lights-on.wav", &n);
    for (size_t i = 0; i < n_leads; i++) all += leads[i] + n;
    float *x = calloc(all + 1, sizeof *x);
    for (size_t i = 0; i < n_leads; i++) {
        at += leads[i];
        memcpy(x + at, word, n * sizeof *x);
        at += n;
    }
    free(word);
    *ret_n = all;
    return x;
}

/* All of it by steps; every sample that is shown is the original's at its place, and places only grow. */
static size_t read_all(trimmed *t, const float *original, size_t n_original, size_t step, size_t *ret_seams)
{
    size_t at = 0, last = 0;
    for (const float *x;;) {
        size_t n;
        must(trimmed_view(t, at, step, &x, &n, &err));
        if (n == 0) return at;
        for (size_t i = 0; i < n; i++) {
            size_t from = trimmed_origin(t, at + i);
            assert_true(from < n_original && (at + i == 0 || from > last));
            if (at + i > 0 && from != last + 1) ++*ret_seams;
            if (i > 0 && from != last + 1) {
                assert_int_equal(trimmed_seam(t, at + i - 1, at + n), at + i);
                assert_int_equal(trimmed_origin_of_end(t, at + i), last + 1);
            }
            if (x[i] != original[from])
                fail_msg("sample %zu is not sample %zu of the original", at + i, from);
            last = from;
        }
        at += n;
    }
}

static size_t trim(const float *original, size_t n, bool trims, size_t step, size_t *ret_seams)
{
    trimmed *t;
    sound *s = copy_of(original, n);
    *ret_seams = 0;
    must(trimmed_new(&t, s, RATE, RATE, trims, &err));
    size_t left = read_all(t, original, n, step, ret_seams);
    assert_int_equal(trimmed_passed(t, left), n);
    trimmed_free(t);
    sound_free(s);
    return left;
}

/* Pauses over a second go, and with them what is before the first word and behind the last. */
static void long_pauses_go(void **state)
{
    static const size_t leads[] = {5 * RATE, 3 * RATE, RATE / 4, 20 * RATE};
    static const size_t steps[] = {RATE, 8 * RATE + 1, 60 * RATE};
    size_t n, seams;
    float *x = words_behind(leads, 4, &n);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        size_t left = trim(x, n, true, steps[i], &seams);
        assert_int_equal(seams, 2); /* before the second word and the fourth */
        assert_true(left > 4 * RATE && left < 8 * RATE);
    }
    free(x);
}

static void nothing_is_left_of_silence(void **state)
{
    size_t seams;
    float *x = calloc(20 * RATE, sizeof *x);
    for (size_t n = 0; n <= 20 * RATE; n += 5 * RATE + 1) assert_int_equal(trim(x, n, true, RATE, &seams), 0);
    free(x);
}

static void all_is_left_without_a_detector(void **state)
{
    static const size_t leads[] = {2 * RATE, 9 * RATE};
    size_t n, seams;
    float *x = words_behind(leads, 2, &n);
    assert_int_equal(trim(x, n, false, 3 * RATE, &seams), n);
    assert_int_equal(seams, 0);
    free(x);
}

/* Float WAV files may hold anything. */
static void what_is_no_number_is_no_speech(void **state)
{
    static const float odd[] = {NAN, INFINITY, -INFINITY, 3e38f, 1e-44f};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        trimmed *t;
        const float *v;
        size_t n = 5 * RATE;
        float *x = calloc(n, sizeof *x);
        for (size_t k = i * 100; k < n; k += 97 + i) x[k] = odd[i];
        sound *s = sound_of(x, n);
        must(trimmed_new(&t, s, RATE, RATE, true, &err));
        must(trimmed_view(t, 0, n, &v, &n, &err));
        assert_int_equal(n, 0);
        trimmed_free(t);
        sound_free(s);
    }
}

/* Of eight minutes, which are 32 MB of samples, a few seconds. */
static void little_is_in_memory(void **state)
{
    static const size_t leads[] = {300 * RATE, 200 * RATE};
    size_t n, got, at = 0;
    float *x = words_behind(leads, 2, &n);
    buf wav = {0};
    for (size_t i = 0; i < n; i++) {
        int16_t v = (int16_t)lrintf(x[i] * 32767);
        buf_append(&wav, &v, sizeof v);
    }
    audio_options o = {.rate = RATE, .raw_rate = 0};
    uint32_t bytes = (uint32_t)wav.len, riff = bytes + 36, sizes[] = {16, 0, RATE, 2 * RATE, 0};
    uint16_t form[] = {1, 1}, block[] = {2, 16};
    buf file = {0};
    buf_append(&file, "RIFF", 4), buf_append(&file, &riff, 4), buf_append(&file, "WAVEfmt ", 8);
    buf_append(&file, &sizes[0], 4), buf_append(&file, form, 4), buf_append(&file, &sizes[2], 8);
    buf_append(&file, block, 4), buf_append(&file, "data", 4), buf_append(&file, &bytes, 4);
    buf_append(&file, wav.data, wav.len);
    sound *s = NULL;
    trimmed *t;
    const float *v;
    must(sound_open(&s, file.data, file.len, &o, &err));
    must(trimmed_new(&t, s, RATE, RATE, true, &err));
    do {
        must(trimmed_view(t, at, RATE, &v, &got, &err));
        assert_true(sound_bytes(s) < 10 * RATE * sizeof(float));
        at += got;
    } while (got > 0);
    assert_true(at > 2 * RATE);
    trimmed_free(t);
    sound_free(s);
    buf_done(&file);
    buf_done(&wav);
    free(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(long_pauses_go),
        cmocka_unit_test(nothing_is_left_of_silence),
        cmocka_unit_test(all_is_left_without_a_detector),
        cmocka_unit_test(what_is_no_number_is_no_speech),
        cmocka_unit_test(little_is_in_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
