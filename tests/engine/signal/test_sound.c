/* Sounds in windows: the same samples as a whole decode in every format, in bounded memory, and errors before
 * any is taken. What is counted is bytes of samples and blocks decoded. */
#include "encode.h"
#include "helper.h"
#include "signal/sound.h"

#define SECONDS 7

/* Speech-like: it rises and falls. */
static float *make_samples(size_t n_frames, int channels, int rate)
{
    float *x = malloc(n_frames * (size_t)channels * sizeof *x);
    assert_non_null(x);
    for (size_t i = 0; i < n_frames; i++)
        for (int c = 0; c < channels; c++)
            x[i * (size_t)channels + (size_t)c] =
                (float)(0.4 * sin((double)i * (300 + 200 * c) * 6.2831853 / rate) *
                        sin((double)i * 3 / rate));
    return x;
}

/* Windows of n samples, one behind the other and some overlapping, are what a whole decode gives. */
static void check_windows(const buf *b, const audio_options *o, size_t n, size_t step)
{
    float *all = NULL;
    size_t n_all = 0, got;
    sound *s = NULL;
    shoal_err err = {0};
    const float *x;
    if (audio_decode(&all, &n_all, NULL, b->data, b->len, o, &err) != 0) fail_msg("%s", err.message);
    if (sound_open(&s, b->data, b->len, o, &err) != 0) fail_msg("%s", err.message);
    assert_int_equal(sound_measure(s, &err), 0);
    assert_int_equal(sound_length(s), n_all);
    for (size_t at = 0; at < n_all + 2 * step; at += step) {
        size_t want = at >= n_all ? 0 : n_all - at < n ? n_all - at : n;
        if (sound_view(s, at, n, &x, &got, &err) != 0) fail_msg("%s", err.message);
        assert_int_equal(got, want);
        if (want > 0) assert_memory_equal(x, all + at, want * sizeof *x);
    }
    assert_int_equal(sound_length(s), n_all);
    sound_free(s);
    free(all);
}

static const struct {
    const char *name;
    int format, rate, channels;
} FORMATS[] = {
    {"WAV", SF_FORMAT_WAV | SF_FORMAT_PCM_16, 16000, 1},
    {"WAV at 44100", SF_FORMAT_WAV | SF_FORMAT_PCM_24, 44100, 2},
    {"WAV in ADPCM", SF_FORMAT_WAV | SF_FORMAT_IMA_ADPCM, 8000, 1},
    {"FLAC", SF_FORMAT_FLAC | SF_FORMAT_PCM_16, 16000, 1},
    {"FLAC at 44099", SF_FORMAT_FLAC | SF_FORMAT_PCM_16, 44099, 2},
    {"AIFF", SF_FORMAT_AIFF | SF_FORMAT_PCM_16, 22050, 1},
    {"Vorbis", SF_FORMAT_OGG | SF_FORMAT_VORBIS, 44100, 2},
    {"Opus", SF_FORMAT_OGG | SF_FORMAT_OPUS, 48000, 1},
    {"MP3", SF_FORMAT_MPEG | SF_FORMAT_MPEG_LAYER_III, 44100, 2},
};

static void windows_are_what_a_whole_decode_gives(void **state)
{
    for (size_t i = 0; i < COUNT_OF(FORMATS); i++) {
        size_t n = (size_t)FORMATS[i].rate * SECONDS + 13;
        float *x = make_samples(n, FORMATS[i].channels, FORMATS[i].rate);
        buf b = encode(FORMATS[i].format, FORMATS[i].rate, FORMATS[i].channels, x, n);
        free(x);
        if (b.len == 0) print_message("%s cannot be written by this build: skipped\n", FORMATS[i].name);
        if (b.len == 0) continue;
        check_windows(&b, NULL, 16000, 16000);
        check_windows(&b, NULL, 30000, 7001);
        check_windows(&b, NULL, 512, 4096);
        check_windows(&b, &(audio_options){.rate = 8000}, 200000, 200000);
        buf_done(&b);
    }
}

/* An hour of one value in FLAC is small, and no more than a window of it is in memory. */
static void an_hour_needs_the_memory_of_a_window(void **state)
{
    enum { RATE = 16000, WINDOW = 30 * RATE };
    size_t n = (size_t)3600 * RATE, most = 0, got, heard = 0;
    float *zeros = calloc(n, sizeof *zeros);
    const float *x;
    sound *s = NULL;
    shoal_err err = {0};
    buf b = encode(SF_FORMAT_FLAC | SF_FORMAT_PCM_16, RATE, 1, zeros, n);
    free(zeros);
    assert_true(b.len > 0 && b.len < 1 << 20);
    if (sound_open(&s, b.data, b.len, NULL, &err) != 0) fail_msg("%s", err.message);
    assert_int_equal(sound_measure(s, &err), 0);
    assert_int_equal(sound_length(s), n);
    assert_int_equal(sound_bytes(s), 0); /* counting keeps nothing */
    for (size_t at = 0; at < n; at += WINDOW) {
        assert_int_equal(sound_view(s, at, WINDOW, &x, &got, &err), 0);
        heard += got;
        if (sound_bytes(s) > most) most = sound_bytes(s);
    }
    assert_int_equal(heard, n);
    if (most > 2 * WINDOW * sizeof(float)) fail_msg("%zu bytes for a window of %d samples", most, WINDOW);
    sound_free(s);
    buf_done(&b);
}

typedef struct counter {
    size_t n, stop_at; /* blocks asked for; 0: never stop */
} counter;

static int count(void *user, shoal_err *err)
{
    counter *c = user;
    c->n++;
    return c->n == c->stop_at ? err_set(err, SHOAL_ECANCELLED, "enough") : 0;
}

static void what_is_too_long_is_refused_before_it_is_decoded(void **state)
{
    static const int formats[] = {SF_FORMAT_FLAC | SF_FORMAT_PCM_16, SF_FORMAT_AIFF | SF_FORMAT_PCM_16,
                                  SF_FORMAT_WAV | SF_FORMAT_IMA_ADPCM};
    for (size_t i = 0; i < COUNT_OF(formats); i++) {
        counter c = {0};
        sound *s = NULL;
        shoal_err err = {0};
        audio_options o = {.max_seconds = SECONDS - 1, .cancel = {count, &c}};
        float *x = make_samples(16000 * SECONDS, 1, 16000);
        buf b = encode(formats[i], 16000, 1, x, 16000 * SECONDS);
        free(x);
        int rc = sound_open(&s, b.data, b.len, &o, &err);
        if (rc == 0) rc = sound_measure(s, &err); /* a WAV file says late that its codec is another */
        assert_int_equal(rc, SHOAL_ELIMIT);
        assert_non_null(strstr(err.message, "longer than 6 seconds"));
        assert_int_equal(c.n, 0);
        sound_free(s);
        buf_done(&b);
    }
}

/* Of a file that does not say its length the decoder stops where the limit is, and keeps nothing. */
static void what_does_not_say_its_length_is_refused_on_the_way(void **state)
{
    for (size_t i = 0; i < COUNT_OF(FORMATS); i++) {
        sound *s = NULL;
        shoal_err err = {0};
        audio_options o = {.max_seconds = SECONDS - 1};
        size_t n = (size_t)FORMATS[i].rate * SECONDS;
        float *x = make_samples(n, FORMATS[i].channels, FORMATS[i].rate);
        buf b = encode(FORMATS[i].format, FORMATS[i].rate, FORMATS[i].channels, x, n);
        free(x);
        if (b.len == 0) continue;
        int rc = sound_open(&s, b.data, b.len, &o, &err);
        if (rc == 0) rc = sound_measure(s, &err);
        if (rc != SHOAL_ELIMIT) fail_msg("%s: %d %s", FORMATS[i].name, rc, err.message);
        if (s) assert_int_equal(sound_bytes(s), 0);
        sound_free(s);
        buf_done(&b);
    }
}

/* Nothing is decoded behind the question that was answered with no. */
static void decoding_ends_when_nobody_waits_for_it(void **state)
{
    for (size_t i = 0; i < COUNT_OF(FORMATS); i++) {
        counter c = {.stop_at = 5};
        sound *s = NULL;
        shoal_err err = {0};
        audio_options o = {.cancel = {count, &c}};
        size_t n = (size_t)FORMATS[i].rate * SECONDS;
        float *x = make_samples(n, FORMATS[i].channels, FORMATS[i].rate);
        buf b = encode(FORMATS[i].format, FORMATS[i].rate, FORMATS[i].channels, x, n);
        free(x);
        if (b.len == 0) continue;
        assert_int_equal(sound_open(&s, b.data, b.len, &o, &err), 0);
        assert_int_equal(sound_measure(s, &err), SHOAL_ECANCELLED);
        assert_string_equal(err.message, "enough");
        assert_int_equal(c.n, 5);
        sound_free(s);
        buf_done(&b);
    }
}

static void a_sound_that_ends_in_the_first_view_is_measured_by_it(void **state)
{
    float *x = make_samples(16000, 1, 16000);
    const float *seen;
    size_t got;
    sound *s = NULL;
    shoal_err err = {0};
    buf b = encode(SF_FORMAT_FLAC | SF_FORMAT_PCM_16, 16000, 1, x, 16000);
    free(x);
    assert_int_equal(sound_open(&s, b.data, b.len, NULL, &err), 0);
    assert_false(sound_is_measured(s));
    assert_int_equal(sound_view(s, 0, 16000, &seen, &got, &err), 0);
    assert_int_equal(sound_view(s, 0, 16001, &seen, &got, &err), 0);
    assert_int_equal(got, 16000);
    assert_true(sound_is_measured(s));
    assert_int_equal(sound_length(s), 16000);
    assert_int_equal(sound_view(s, 100, 1, &seen, &got, &err), 0);
    assert_int_equal(sound_view(s, 99, 1, &seen, &got, &err), SHOAL_EINVALID);
    sound_free(s);
    buf_done(&b);
}

static void files_that_are_none_are_refused(void **state)
{
    static const struct {
        const char *bytes;
        size_t n;
        int code;
    } cases[] = {{"RIFF", 4, SHOAL_EFORMAT},
                 {"hello, this is text", 19, SHOAL_EUNSUPPORTED},
                 {"fLaC but not really a file", 26, SHOAL_EFORMAT},
                 {"OggS but not really a file", 26, SHOAL_EFORMAT}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        sound *s = NULL;
        shoal_err err = {0};
        assert_int_equal(sound_open(&s, cases[i].bytes, cases[i].n, NULL, &err), cases[i].code);
        assert_int_equal(err.code, cases[i].code);
        assert_null(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_are_what_a_whole_decode_gives),
        cmocka_unit_test(an_hour_needs_the_memory_of_a_window),
        cmocka_unit_test(what_is_too_long_is_refused_before_it_is_decoded),
        cmocka_unit_test(what_does_not_say_its_length_is_refused_on_the_way),
        cmocka_unit_test(decoding_ends_when_nobody_waits_for_it),
        cmocka_unit_test(a_sound_that_ends_in_the_first_view_is_measured_by_it),
        cmocka_unit_test(files_that_are_none_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
