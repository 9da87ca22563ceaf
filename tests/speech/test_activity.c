/* The gate in front of a transcription: speech passes, also quiet and in noise, silence and what is steady do
 * not, and it says where the first sound is. */
#include "helper.h"

#include <glob.h>

#include "speech/activity.h"

enum { RATE = 16000, FRAME = 480 };

static float noise_at(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (float)(*seed >> 8) / 8388608.0f - 1;
}

static double loudness(const float *x, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += (double)x[i] * (double)x[i];
    return sqrt(sum / (double)n);
}

/* Every recording of the tests: as it is, at a hundredth of that, and in noise a quarter as loud. */
static void speech_passes(void **state)
{
    glob_t all;
    assert_int_equal(glob(DATA "speech/wav/[01]*.wav", 0, NULL, &all), 0);
    assert_true(all.gl_pathc > 3);
    for (size_t i = 0; i < all.gl_pathc; i++) {
        size_t n;
        uint32_t seed = 3;
        float *x = read_sound(all.gl_pathv[i], &n);
        float loud = (float)loudness(x, n);
        if (!activity_of(x, n, RATE).speech) fail_msg("%s is not heard", all.gl_pathv[i]);
        for (size_t k = 0; k < n; k++) x[k] += loud / 4 * noise_at(&seed);
        if (!activity_of(x, n, RATE).speech) fail_msg("%s is not heard in noise", all.gl_pathv[i]);
        for (size_t k = 0; k < n; k++) x[k] *= 0.05f;
        if (!activity_of(x, n, RATE).speech) fail_msg("%s is not heard when it is quiet", all.gl_pathv[i]);
        free(x);
    }
    globfree(&all);
}

/* A word of a tenth of a piece is not lost among the noise around it. */
static void a_word_in_noise_passes(void **state)
{
    size_t n, all = 10 * RATE;
    uint32_t seed = 3;
    float *word = read_sound(DATA "speech/wav/08-lights-on.wav", &n), *x = malloc(all * sizeof *x);
    assert_true(n < all);
    float loud = (float)loudness(word, n);
    for (size_t i = 0; i < all; i++) x[i] = loud / 4 * noise_at(&seed);
    assert_false(activity_of(x, all, RATE).speech);
    for (size_t i = 0; i < n; i++) x[all - n + i] += word[i];
    assert_true(activity_of(x, all, RATE).speech);
    free(word);
    free(x);
}

static void silence_and_steady_sounds_do_not_pass(void **state)
{
    static const size_t lengths[] = {1, 100, FRAME, FRAME + 1, 5 * FRAME, RATE, 30 * RATE};
    static const float peaks[] = {0, 1e-6f, 1e-3f, 0.1f, 1};
    for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++)
        for (size_t p = 0; p < sizeof peaks / sizeof *peaks; p++)
            for (int tone = 0; tone < 2; tone++) {
                size_t n = lengths[l];
                uint32_t seed = 3;
                float *x = malloc(n * sizeof *x);
                for (size_t i = 0; i < n; i++)
                    x[i] = peaks[p] * (tone ? (float)sin((double)i * 0.1728) : noise_at(&seed));
                if (activity_of(x, n, RATE).speech)
                    fail_msg("%zu samples, peak %g, %s", n, (double)peaks[p], tone ? "tone" : "noise");
                free(x);
            }
    assert_false(activity_of(NULL, 0, RATE).speech);
}

static void the_first_sound_is_found(void **state)
{
    size_t n;
    float *word = read_sound(DATA "speech/wav/08-lights-on.wav", &n);
    size_t begin = activity_of(word, n, RATE).begin;
    for (size_t lead = 0; lead < 3 * RATE; lead += 7001) {
        float *x = calloc(lead + n, sizeof *x);
        memcpy(x + lead, word, n * sizeof *x);
        activity a = activity_of(x, lead + n, RATE);
        assert_true(a.speech);
        if (a.begin > lead + begin + FRAME || a.begin + FRAME < lead + begin)
            fail_msg("behind %zu samples: %zu, in the word %zu", lead, a.begin, begin);
        free(x);
    }
    free(word);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(speech_passes),
        cmocka_unit_test(a_word_in_noise_passes),
        cmocka_unit_test(silence_and_steady_sounds_do_not_pass),
        cmocka_unit_test(the_first_sound_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
