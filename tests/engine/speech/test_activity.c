/* The voice activity detector: speech passes, also quiet and in noise, and is marked where it is; what is no
 * speech is not; and the decisions are the same however the sound is cut into pushes. */
#include "helper.h"

#include <glob.h>

#include "speech/activity.h"
#include "sounds.h"

/* One decision for each hop of x[n], malloc'd; pushes of `piece` samples. */
static bool *decisions(const float *x, size_t n, uint32_t rate, size_t piece, size_t *ret_n)
{
    activity *a;
    bool *speech = calloc(n / (rate / 50) + 2, sizeof *speech);
    *ret_n = 0;
    must(activity_new(&a, rate, &err));
    if (piece > activity_push_max(a)) piece = activity_push_max(a);
    for (size_t at = 0; at < n; at += piece) {
        size_t k = n - at < piece ? n - at : piece;
        assert_int_equal(activity_push(a, x + at, k), 0);
        while (activity_next(a, &speech[*ret_n])) ++*ret_n;
        assert_true(*ret_n * activity_hop(a) <= at + k);
        assert_true((*ret_n + 1) * activity_hop(a) + activity_behind(a) >= at + k);
    }
    activity_end(a);
    while (activity_next(a, &speech[*ret_n])) ++*ret_n;
    size_t hops = n / activity_hop(a);
    assert_int_equal(*ret_n, hops == 0 && n > 0 ? 1 : hops);
    activity_free(a);
    return speech;
}

static size_t n_speech(const float *x, size_t n)
{
    size_t hops, sum = 0;
    bool *s = decisions(x, n, 16000, SIZE_MAX, &hops);
    for (size_t i = 0; i < hops; i++) sum += s[i];
    free(s);
    return sum;
}

static double level_of(const float *x, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += (double)x[i] * (double)x[i];
    return 10 * log10(sum / (double)n);
}

/* Every recording of the tests: as it is, in noise 10 dB below it, and that 30 dB quieter. */
static void speech_passes(void **state)
{
    glob_t all;
    assert_int_equal(glob(DATA "speech/wav/[01]*.wav", 0, NULL, &all), 0);
    assert_true(all.gl_pathc > 3);
    for (size_t i = 0; i < all.gl_pathc; i++) {
        size_t n;
        float *x = read_sound(all.gl_pathv[i], &n);
        if (n_speech(x, n) < 20) fail_msg("%s is not heard", all.gl_pathv[i]);
        add_noise(x, n, 'p', level_of(x, n) - 10, 3);
        if (n_speech(x, n) < 20) fail_msg("%s is not heard in noise", all.gl_pathv[i]);
        for (size_t k = 0; k < n; k++) x[k] *= 0.0316f;
        if (n_speech(x, n) < 20) fail_msg("%s is not heard when it is quiet", all.gl_pathv[i]);
        free(x);
    }
    globfree(&all);
}

static void what_is_no_speech_does_not(void **state)
{
    static const size_t lengths[] = {1, 319, 321, 1600, 16000, 30 * 16000};
    static const char *const pass[] = {"keys", "claps", "drops"}; /* now and then, for the model to tell */
    for (size_t i = 0; i < N_SOUNDS; i++) {
        bool may = false;
        for (size_t k = 0; k < sizeof pass / sizeof *pass; k++) may |= strcmp(pass[k], SOUND_NAMES[i]) == 0;
        for (size_t l = 0; !may && l < sizeof lengths / sizeof *lengths; l++) {
            float *x = make_sound(i, lengths[l]);
            size_t got = n_speech(x, lengths[l]);
            if (got) print_error("%s of %zu samples: %zu hops\n", SOUND_NAMES[i], lengths[l], got);
            if (got) fail();
            free(x);
        }
    }
    assert_int_equal(n_speech(NULL, 0), 0);
}

/* The word's own samples lie from 0.15 s to 0.97 s. */
static void speech_is_marked_where_it_is(void **state)
{
    size_t n, hops;
    float *word = read_sound(DATA "speech/wav/08-lights-on.wav", &n);
    for (size_t lead = 0; lead < 9 * 16000; lead += 17003) {
        size_t all = lead + n + 5 * 16000, first = 0, last = 0;
        float *x = calloc(all, sizeof *x);
        memcpy(x + lead, word, n * sizeof *x);
        add_noise(x, all, 'w', -60, 1);
        bool *s = decisions(x, all, 16000, SIZE_MAX, &hops);
        for (size_t i = hops; i-- > 0;)
            if (s[i]) first = i;
        for (size_t i = 0; i < hops; i++)
            if (s[i]) last = i;
        double begin = ((double)first * 320 - (double)lead) / 16000,
               end = ((double)last * 320 - (double)lead) / 16000;
        if (begin > 0.15 || (begin < -0.5 && first > 0) || end < 0.95 || end > 1.6)
            fail_msg("behind %zu samples: from %.2f to %.2f s", lead, begin, end);
        for (size_t i = first; i <= last; i++) assert_true(s[i]);
        free(s);
        free(x);
    }
    free(word);
}

static void pushes_do_not_matter(void **state)
{
    static const size_t pieces[] = {1, 319, 320, 2559, 2560, 16000};
    size_t n, hops, k;
    float *x = read_sound(DATA "speech/wav/14-hey-pause-living-room-media.wav", &n);
    bool *whole = decisions(x, n, 16000, 5000, &hops);
    for (size_t p = 0; p < sizeof pieces / sizeof *pieces; p++) {
        bool *s = decisions(x, n, 16000, pieces[p], &k);
        assert_int_equal(k, hops);
        assert_memory_equal(s, whole, hops * sizeof *s);
        free(s);
    }
    free(whole);
    free(x);
}

/* The same word at another rate, and rates that there are none of. */
static void rates_do_not_matter(void **state)
{
    static const uint32_t rates[] = {8000, 24000, 48000};
    buf b = {0};
    activity *a = NULL;
    shoal_err why;
    must(file_read(&b, DATA "speech/wav/08-lights-on.wav", 1 << 20, &err));
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) {
        size_t n, hops, sum = 0;
        float *x = NULL;
        must(audio_decode(&x, &n, NULL, b.data, b.len, &(audio_options){.rate = rates[i]}, &err));
        bool *s = decisions(x, n, rates[i], SIZE_MAX, &hops);
        for (size_t k = 0; k < hops; k++) sum += s[k];
        if (sum < 30) fail_msg("at %u Hz: %zu hops", rates[i], sum);
        free(s);
        free(x);
    }
    buf_done(&b);
    assert_int_equal(activity_new(&a, 7999, &why), SHOAL_EUNSUPPORTED);
    assert_int_equal(activity_new(&a, 192001, &why), SHOAL_EUNSUPPORTED);
    activity_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(speech_passes),
        cmocka_unit_test(what_is_no_speech_does_not),
        cmocka_unit_test(speech_is_marked_where_it_is),
        cmocka_unit_test(pushes_do_not_matter),
        cmocka_unit_test(rates_do_not_matter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
