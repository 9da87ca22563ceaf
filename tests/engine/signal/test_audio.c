#include "encode.h"
#include "helper.h"
#include "signal/audio.h"

/* ---- files made here -------------------------------------------------------------------------------- */

static void put_u16(buf *b, unsigned v)
{
    uint8_t p[2] = {(uint8_t)v, (uint8_t)(v >> 8)};
    assert_int_equal(buf_append(b, p, 2), 0);
}

static void put_u32(buf *b, uint32_t v)
{
    put_u16(b, v & 0xFFFF);
    put_u16(b, v >> 16);
}

typedef struct wav_spec {
    unsigned format, bits, channels;
    uint32_t rate, data_size; /* data_size 0 as given: the true one */
    bool extensible, junk, rf64;
} wav_spec;

static void put_fmt(buf *b, const wav_spec *w)
{
    unsigned frame = w->channels * ((w->bits + 7) / 8);
    buf_puts(b, "fmt ");
    put_u32(b, w->extensible ? 40 : 16);
    put_u16(b, w->extensible ? 0xFFFE : w->format);
    put_u16(b, w->channels);
    put_u32(b, w->rate);
    put_u32(b, w->rate * frame);
    put_u16(b, frame);
    put_u16(b, w->bits);
    if (!w->extensible) return;
    put_u16(b, 22);
    put_u16(b, w->bits);
    put_u32(b, 0);
    put_u16(b, w->format);
    assert_int_equal(buf_append(b, "\0\0\0\0\x10\0\x80\0\0\xaa\0\x38\x9b\x71", 14), 0);
}

/* A WAV file of the given bytes; buf_done it. */
static buf make_wav(const wav_spec *w, const void *data, size_t n)
{
    buf b = {0};
    buf_puts(&b, w->rf64 ? "RF64" : "RIFF");
    put_u32(&b, 0xFFFFFFFF);
    buf_puts(&b, "WAVE");
    if (w->rf64) {
        buf_puts(&b, "ds64");
        put_u32(&b, 28);
        for (int i = 0; i < 7; i++) put_u32(&b, i == 2 ? (uint32_t)n : 0);
    }
    if (w->junk) {
        buf_puts(&b, "LIST");
        put_u32(&b, 5);
        assert_int_equal(buf_append(&b, "INFOx\0", 6), 0);
    }
    put_fmt(&b, w);
    buf_puts(&b, "data");
    put_u32(&b, w->rf64 ? 0xFFFFFFFF : w->data_size ? w->data_size : (uint32_t)n);
    assert_int_equal(buf_append(&b, data, n), 0);
    if (w->junk) {
        if (n % 2) buf_putc(&b, 0);
        assert_int_equal(buf_append(&b, "LIST\4\0\0\0\xff\x7f\xff\x7f", 12), 0);
    }
    assert_false(b.failed);
    return b;
}

/* n samples of file `b` at `rate`, which must decode; free() them. */
static float *decode(const buf *b, uint32_t rate, size_t *ret_n, audio_info *info)
{
    float *x = NULL;
    shoal_err err = {0};
    audio_options o = {.rate = rate};
    if (audio_decode(&x, ret_n, info, b->data, b->len, &o, &err) != 0) fail_msg("%s", err.message);
    return x;
}

static void check_refused(const void *bytes, size_t n, const audio_options *o, int code, const char *says)
{
    float *x = NULL;
    size_t n_x = 77;
    shoal_err err = {0};
    int rc = audio_decode(&x, &n_x, NULL, bytes, n, o, &err);
    if (rc != code || !strstr(err.message, says))
        fail_msg("%d \"%s\", not %d \"%s\"", rc, err.message, code, says);
    assert_null(x);
    assert_int_equal(n_x, 77);
    assert_int_equal(err.code, code);
}

/* ---- WAV -------------------------------------------------------------------------------------------- */

static void every_sample_type_of_wav_is_read(void **state)
{
    static const struct {
        wav_spec w;
        const char *bytes;
        float want[3];
    } cases[] = {
        {{1, 8, 1, 16000, 0, false, false, false}, "\x80\xff\x00", {0, 127 / 128.0f, -1}},
        {{1, 16, 1, 16000, 0, false, true, false}, "\x00\x40\x01\x00\x00\x80", {0.5f, 1 / 32768.0f, -1}},
        {{1, 24, 1, 16000, 0, true, true, false}, "\0\0\x40\1\0\0\0\0\x80", {0.5f, 1 / 8388608.0f, -1}},
        {{1, 20, 1, 16000, 0, false, false, false}, "\0\0\x40\x10\0\0\0\0\x80", {0.5f, 16 / 8388608.0f, -1}},
        {{1, 32, 1, 16000, 0, false, false, true}, "\0\0\0\x40\0\0\1\0\0\0\0\x80", {0.5f, 1 / 32768.0f, -1}},
        {{3, 32, 1, 16000, 0, true, true, true}, "\0\0\0\x3f\0\0\0\xc0\0\0\x80\xbf", {0.5f, -2, -1}},
        {{3, 64, 1, 16000, 0, false, true, false},
         "\0\0\0\0\0\0\xe0\x3f\0\0\0\0\0\0\0\0\0\0\0\0\0\0\xf0\xbf",
         {0.5f, 0, -1}},
        {{6, 8, 1, 16000, 0, false, false, false},
         "\xd5\x55\xaa",
         {8 / 32768.0f, -8 / 32768.0f, 32256 / 32768.0f}},
        {{7, 8, 1, 16000, 0, false, true, false}, "\xff\x00\x80", {0, -32124 / 32768.0f, 32124 / 32768.0f}},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        buf b = make_wav(&cases[i].w, cases[i].bytes, 3 * ((cases[i].w.bits + 7) / 8));
        size_t n;
        audio_info info;
        float *x = decode(&b, 16000, &n, &info);
        assert_int_equal(n, 3);
        for (size_t k = 0; k < 3; k++)
            if (x[k] != cases[i].want[k])
                fail_msg("%zu: %g, not %g", i, (double)x[k], (double)cases[i].want[k]);
        assert_string_equal(info.format, "WAV");
        assert_false(info.cut);
        free(x);
        buf_done(&b);
    }
}

static void a_real_file_is_read(void **state)
{
    buf b = read_whole(DATA("not-it.wav"));
    size_t n, n_want;
    audio_info info;
    float *x = decode(&b, 16000, &n, &info), *want = load_tensor(DATA("wake.safetensors"), "wav.2", &n_want);
    assert_int_equal(n, n_want);
    assert_memory_equal(x, want, n * sizeof *x);
    assert_int_equal(info.rate, 16000);
    assert_int_equal(info.channels, 1);
    assert_true(fabs(info.seconds - (double)n / 16000) < 1e-9);
    free(x);
    free(want);
    buf_done(&b);
}

static void channels_are_averaged(void **state)
{
    static const int16_t frames[] = {3, -3, 6, 9, 12, 30, -32768, -32768, -32768};
    wav_spec w = {1, 16, 3, 16000, 0, true, false, false};
    buf b = make_wav(&w, frames, sizeof frames);
    size_t n;
    float *x = decode(&b, 16000, &n, NULL);
    assert_int_equal(n, 3);
    assert_true(fabsf(x[0] - 2 / 32768.0f) < 1e-9f);
    assert_true(fabsf(x[1] - 17 / 32768.0f) < 1e-9f);
    assert_true(fabsf(x[2] + 1) < 1e-6f);
    free(x);
    buf_done(&b);
}

/* Noise of n samples; free() it. */
static int16_t *noise(size_t n)
{
    int16_t *x = malloc(n * sizeof *x);
    assert_non_null(x);
    uint32_t seed = 5;
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        x[i] = (int16_t)((int)(seed >> 17) - 16384);
    }
    return x;
}

static void read_in_blocks(const buf *b, size_t block, const audio_options *o, const float *want,
                           size_t n_want)
{
    audio_reader *r = NULL;
    assert_int_equal(audio_reader_new(&r, o, NULL), 0);
    size_t got = 0, n;
    for (size_t at = 0; at <= b->len; at += block) {
        shoal_err err = {0};
        size_t more = b->len - at < block ? b->len - at : block;
        if (audio_reader_push(r, b->data + at, more, &err) != 0) fail_msg("%s", err.message);
        if (at + block > b->len) assert_int_equal(audio_reader_finish(r, &err), 0);
        const float *x = audio_reader_samples(r, &n);
        size_t drop = at + block > b->len ? n : n / 2; /* some wait for the next time */
        assert_true(got + drop <= n_want);
        if (drop) assert_memory_equal(x, want + got, drop * sizeof *x);
        audio_reader_drop(r, drop);
        got += drop;
    }
    assert_int_equal(got, n_want);
    audio_reader_free(r);
}

static void any_cut_of_the_upload_gives_the_same_bits(void **state)
{
    int16_t *pcm = noise(9001);
    static const wav_spec specs[] = {{1, 16, 1, 44100, 0, false, true, false},
                                     {1, 24, 3, 16000, 0, true, true, true},
                                     {3, 64, 1, 8000, 0, false, false, false}};
    static const size_t blocks[] = {1, 2, 3, 7, 43, 44, 45, 1000, 100000};
    for (size_t i = 0; i < COUNT_OF(specs); i++) {
        size_t n, bytes = 9001 * sizeof *pcm;
        if (specs[i].bits == 64) { /* int16 bits make wild doubles */
            double *d = calloc(2000, sizeof *d);
            for (size_t k = 0; k < 2000; k++) d[k] = pcm[k] / 32768.0;
            memcpy(pcm, d, 2000 * sizeof *d);
            bytes = 2000 * sizeof *d;
            free(d);
        }
        buf b = make_wav(&specs[i], pcm, bytes);
        float *whole = decode(&b, 16000, &n, NULL);
        for (size_t k = 0; k < COUNT_OF(blocks); k++) read_in_blocks(&b, blocks[k], NULL, whole, n);
        free(whole);
        buf_done(&b);
    }
    free(pcm);
}

static void raw_samples_are_read_as_told(void **state)
{
    int16_t *pcm = noise(1000);
    float want[1000];
    for (size_t i = 0; i < 1000; i++) want[i] = (float)pcm[i] / 32768.0f;
    buf b = {0};
    assert_int_equal(buf_append(&b, pcm, 2000), 0);
    read_in_blocks(&b, 7, &(audio_options){.raw_rate = 16000}, want, 1000);
    read_in_blocks(&b, 5000, &(audio_options){.raw_rate = 8000, .rate = 8000}, want, 1000);
    for (size_t i = 0; i < 500; i++) want[i] = (want[2 * i] + want[2 * i + 1]) * 0.5f;
    read_in_blocks(&b, 3, &(audio_options){.raw_rate = 16000, .raw_channels = 2}, want, 500);
    check_refused(b.data, b.len, &(audio_options){.raw_rate = 16000, .raw_channels = 65}, SHOAL_EUNSUPPORTED,
                  "65");
    buf_done(&b);
    free(pcm);
}

static void lengths_that_a_pipe_could_not_know_are_met(void **state)
{
    int16_t pcm[100] = {0};
    static const struct {
        uint32_t size;
        bool cut;
        size_t n;
    } cases[] = {{0xFFFFFFFF, false, 100},
                 {0x7FFFFF00, true, 100},
                 {220, true, 100},
                 {200, false, 100},
                 {101, false, 50}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        wav_spec w = {1, 16, 1, 16000, cases[i].size, false, false, false};
        buf b = make_wav(&w, pcm, sizeof pcm);
        size_t n;
        audio_info info;
        float *x = decode(&b, 16000, &n, &info);
        assert_int_equal(n, cases[i].n);
        assert_int_equal(info.cut, cases[i].cut);
        free(x);
        buf_done(&b);
    }
    wav_spec w = {1, 16, 1, 16000, 0, false, false, false};
    buf b = make_wav(&w, pcm, 0); /* size 0 and nothing behind it */
    size_t n;
    float *x = decode(&b, 16000, &n, NULL);
    assert_int_equal(n, 0);
    assert_non_null(x);
    free(x);
    buf_done(&b);
}

/* ---- files through libsndfile ----------------------------------------------------------------------- */

static const struct {
    const char *name;
    int format, rate;
    double allowed; /* relative error of a sine */
} CODECS[] = {
    {"FLAC", SF_FORMAT_FLAC | SF_FORMAT_PCM_16, 44100, 1e-3},
    {"FLAC", SF_FORMAT_FLAC | SF_FORMAT_PCM_24, 16000, 1e-5},
    {"AIFF", SF_FORMAT_AIFF | SF_FORMAT_PCM_16, 22050, 1e-3},
    {"WAV", SF_FORMAT_WAV | SF_FORMAT_IMA_ADPCM, 16000, 0.1},
    {"WAV", SF_FORMAT_WAV | SF_FORMAT_MS_ADPCM, 16000, 0.1},
    {"WAV", SF_FORMAT_WAV | SF_FORMAT_PCM_16 | SF_ENDIAN_BIG, 16000, 1e-3},
    {"Ogg Vorbis", SF_FORMAT_OGG | SF_FORMAT_VORBIS, 44100, 0.1},
    {"Ogg Opus", SF_FORMAT_OGG | SF_FORMAT_OPUS, 48000, 0.1},
    {"MP3", SF_FORMAT_MPEG | SF_FORMAT_MPEG_LAYER_III, 44100, 0.15},
};

/* Least relative error of y over shifts: codecs delay. */
static double shifted_error(const float *y, size_t n, const float *want, size_t n_want)
{
    double best = 1e9;
    for (size_t shift = 0; shift < 2500 && shift + 4000 < n; shift++) {
        double e = relative(y + shift + 2000, want + 2000, n_want - 6000 < 4000 ? n_want - 6000 : 2000);
        if (e < best) best = e;
    }
    return best;
}

static void other_formats_are_decoded(void **state)
{
    float want[16000];
    for (size_t i = 0; i < 16000; i++)
        want[i] = 0.5f * (float)sin(2 * 3.14159265358979 * 440.0 * (double)i / 16000);
    for (size_t i = 0; i < COUNT_OF(CODECS); i++) {
        size_t rate = (size_t)CODECS[i].rate, n;
        float *x = malloc(2 * rate * sizeof *x);
        for (size_t k = 0; k < rate; k++)
            x[2 * k] = x[2 * k + 1] =
                0.5f * (float)sin(2 * 3.14159265358979 * 440.0 * (double)k / (double)rate);
        buf b = encode(CODECS[i].format, CODECS[i].rate, 2, x, rate);
        free(x);
        if (!b.len) {
            print_message("SKIP other_formats_are_decoded: this libsndfile writes no %s\n", CODECS[i].name);
            continue;
        }
        audio_info info;
        float *y = decode(&b, 16000, &n, &info);
        assert_string_equal(info.format, CODECS[i].name);
        assert_int_equal(info.rate, rate);
        assert_int_equal(info.channels, 2);
        if (n < 15900 || n > 18500) fail_msg("%s: %zu samples", CODECS[i].name, n);
        double e = shifted_error(y, n, want, 16000);
        if (e > CODECS[i].allowed) fail_msg("%s: relative error %g", CODECS[i].name, e);
        read_in_blocks(&b, 777, NULL, y, n);
        free(y);
        buf_done(&b);
    }
}

static void a_file_that_was_cut_says_so_or_is_refused(void **state)
{
    float *x = calloc(2 * 48000, sizeof *x);
    for (size_t i = 0; i < 2 * 48000; i++) x[i] = (float)(i * 7919 % 1000) / 1000 - 0.5f;
    for (size_t i = 0; i < COUNT_OF(CODECS); i++) {
        buf b = encode(CODECS[i].format, CODECS[i].rate, 2, x, 48000);
        for (size_t keep = 0; b.len && keep < 10; keep++) {
            float *y = NULL;
            size_t n;
            audio_info info = {0};
            int rc = audio_decode(&y, &n, &info, b.data, b.len * keep / 10, NULL, NULL);
            assert_true(rc == 0 || rc == SHOAL_EFORMAT || rc == SHOAL_EUNSUPPORTED);
            if (rc == 0) assert_true(n < (size_t)(48000.0 * 16000 / CODECS[i].rate));
            free(y);
        }
        buf_done(&b);
    }
    free(x);
}

/* ---- bounds and refusals ---------------------------------------------------------------------------- */

static void too_long_a_sound_is_refused(void **state)
{
    float *x = calloc(32000, sizeof *x);
    buf flac = encode(SF_FORMAT_FLAC | SF_FORMAT_PCM_16, 16000, 1, x, 32000);
    wav_spec w = {3, 32, 1, 16000, 0, false, false, false};
    buf wav = make_wav(&w, x, 32000 * sizeof *x);
    audio_options second = {.max_seconds = 1}, two = {.max_seconds = 2}, small = {.max_bytes = 50};
    check_refused(wav.data, wav.len, &second, SHOAL_ELIMIT, "longer than 1 seconds");
    check_refused(flac.data, flac.len, &second, SHOAL_ELIMIT, "longer than 1 seconds");
    check_refused(flac.data, flac.len, &small, SHOAL_ELIMIT, "50 bytes");
    size_t n;
    float *y = NULL;
    assert_int_equal(audio_decode(&y, &n, NULL, wav.data, wav.len, &two, NULL), 0);
    assert_int_equal(n, 32000);
    free(y);
    w = (wav_spec){1, 8, 64, 768000, 0, false, false, false};
    buf wide = make_wav(&w, x, 32000 * sizeof *x);
    check_refused(wide.data, wide.len, &(audio_options){.max_seconds = 0.1}, SHOAL_ELIMIT, "64 channels");
    buf_done(&wide);
    buf_done(&flac);
    buf_done(&wav);
    free(x);
}

static void what_is_no_sound_is_refused_with_a_way_out(void **state)
{
    static const struct {
        const char *bytes, *says;
        size_t n;
        int code;
    } bad[] = {
        {"", "0 bytes", 0, SHOAL_EFORMAT},
        {"RIFF", "4 bytes", 4, SHOAL_EFORMAT},
        {"\0\0\0\x18"
         "ftypM4A \0\0\0\0",
         "ffmpeg", 16, SHOAL_EUNSUPPORTED},
        {"\x1a\x45\xdf\xa3 webm and so on", "WebM", 18, SHOAL_EUNSUPPORTED},
        {"{\"file\": \"speech.wav\"}", "WAV, FLAC", 22, SHOAL_EUNSUPPORTED},
        {"RIFF\0\0\0\0AVI LIST", "another kind", 16, SHOAL_EFORMAT},
        {"RIFF\0\0\0\0WAVEdata\2\0\0\0\0\0", "fmt", 22, SHOAL_EFORMAT},
        {"RIFF\0\0\0\0WAVEfmt \0\0\0\0data", "empty", 24, SHOAL_EFORMAT},
        {"RIFF\0\0\0\0WAVEfmt \4\0\0\0\1\0\1\0data", "too short", 28, SHOAL_EFORMAT},
        {"RIFF\0\0\0\0WAVEJUNK", "before its samples", 16, SHOAL_EFORMAT},
        {"fLaC\0\0\0\0\0\0\0\0\0\0", "FLAC", 14, SHOAL_EFORMAT},
        {"OggS\0\0\0\0\0\0\0\0\0\0", "Ogg", 14, SHOAL_EFORMAT},
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        check_refused(bad[i].bytes, bad[i].n, NULL, bad[i].code, bad[i].says);
}

static void wrong_headers_are_refused(void **state)
{
    static const struct {
        wav_spec w;
        const char *says;
        int code;
    } bad[] = {
        {{1, 16, 0, 16000, 0, false, false, false}, "0 channels", SHOAL_EUNSUPPORTED},
        {{1, 16, 65, 16000, 0, false, false, false}, "65 channels", SHOAL_EUNSUPPORTED},
        {{1, 16, 1, 10, 0, false, false, false}, "10 samples", SHOAL_EUNSUPPORTED},
        {{1, 16, 1, 4000000000u, 0, true, false, false}, "4000000000", SHOAL_EUNSUPPORTED},
        {{1, 40, 1, 16000, 0, false, false, false}, "WAV", SHOAL_EFORMAT},
        {{77, 16, 1, 16000, 0, false, false, false}, "WAV", SHOAL_EFORMAT},
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        char data[64] = {0};
        buf b = make_wav(&bad[i].w, data, sizeof data);
        check_refused(b.data, b.len, NULL, bad[i].code, bad[i].says);
        buf_done(&b);
    }
    check_refused("RIFF", 4, &(audio_options){.rate = 7}, SHOAL_EINVALID, "7 samples");
}

static void samples_that_are_no_numbers_are_refused(void **state)
{
    static const uint32_t wrong[] = {0x7FC00000, 0x7F800000, 0xFF800000, 0x7F7FFFFF};
    wav_spec w = {3, 32, 1, 44100, 0, false, false, false};
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        uint32_t x[50] = {0};
        x[44] = wrong[i];
        buf b = make_wav(&w, x, sizeof x);
        check_refused(b.data, b.len, NULL, SHOAL_EFORMAT, "0.001 seconds");
        buf_done(&b);
    }
}

static void an_error_stays(void **state)
{
    audio_reader *r = NULL;
    assert_int_equal(audio_reader_new(&r, NULL, NULL), 0);
    shoal_err first = {0}, later = {0};
    assert_int_equal(audio_reader_push(r, "not a sound file", 16, &first), SHOAL_EUNSUPPORTED);
    assert_int_equal(audio_reader_push(r, "RIFF", 4, &later), SHOAL_EUNSUPPORTED);
    assert_string_equal(first.message, later.message);
    assert_int_equal(audio_reader_finish(r, NULL), SHOAL_EUNSUPPORTED);
    audio_reader_free(r);
    assert_int_equal(audio_reader_new(&r, &(audio_options){.raw_rate = 8000}, NULL), 0);
    assert_int_equal(audio_reader_finish(r, NULL), 0);
    assert_int_equal(audio_reader_finish(r, NULL), 0);
    assert_int_equal(audio_reader_push(r, "ab", 2, &later), SHOAL_EINVALID);
    audio_reader_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_sample_type_of_wav_is_read),
        cmocka_unit_test(a_real_file_is_read),
        cmocka_unit_test(channels_are_averaged),
        cmocka_unit_test(any_cut_of_the_upload_gives_the_same_bits),
        cmocka_unit_test(raw_samples_are_read_as_told),
        cmocka_unit_test(lengths_that_a_pipe_could_not_know_are_met),
        cmocka_unit_test(other_formats_are_decoded),
        cmocka_unit_test(a_file_that_was_cut_says_so_or_is_refused),
        cmocka_unit_test(too_long_a_sound_is_refused),
        cmocka_unit_test(what_is_no_sound_is_refused_with_a_way_out),
        cmocka_unit_test(wrong_headers_are_refused),
        cmocka_unit_test(samples_that_are_no_numbers_are_refused),
        cmocka_unit_test(an_error_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
