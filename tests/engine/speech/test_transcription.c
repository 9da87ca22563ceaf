/* Speech to text with the real model: features, encoder rows and replies as the reference has them, its
 * transcripts, long sound, and what is refused. */
#include "helper.h"

#include <pthread.h>

#include "compute/compute.h"
#include "speech/rule.h"

/* Of a reference row's norm. The reference computed its features in another order of sums. */
#define FAR 1e-4

/* ---- encoder rows -------------------------------------------------------------------------------- */

typedef struct rows {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool done;
    int status;
    size_t n, cols;
    float *values;
} rows;

static void on_rows(void *user, const enc_result *r)
{
    rows *v = user;
    pthread_mutex_lock(&v->lock);
    v->status = r->status;
    v->n = r->rows;
    v->cols = r->cols;
    v->values = malloc((r->rows * r->cols + 1) * sizeof *v->values);
    if (r->values) memcpy(v->values, r->values, r->rows * r->cols * sizeof *v->values);
    v->done = true;
    pthread_cond_signal(&v->wake);
    pthread_mutex_unlock(&v->lock);
}

static void encode(ears *r, const enc_request *source, rows *v)
{
    *v = (rows){0};
    pthread_mutex_init(&v->lock, NULL);
    pthread_cond_init(&v->wake, NULL);
    must(engine_encode(r->e, source, on_rows, v, NULL, &err));
    pthread_mutex_lock(&v->lock);
    while (!v->done) pthread_cond_wait(&v->wake, &v->lock);
    pthread_mutex_unlock(&v->lock);
    pthread_mutex_destroy(&v->lock);
    pthread_cond_destroy(&v->wake);
    assert_int_equal(v->status, 0);
}

static double far_from(const float *a, const float *ref, size_t n)
{
    double off = 0, all = 0;
    for (size_t i = 0; i < n; i++) {
        off += ((double)a[i] - (double)ref[i]) * ((double)a[i] - (double)ref[i]);
        all += (double)ref[i] * (double)ref[i];
    }
    return sqrt(off / (all > 0 ? all : 1));
}

/* From samples to the encoder's rows. */
static double farthest_row(ears *r, float *samples, size_t n, const float *ref, size_t n_ref)
{
    transcription *t;
    gen_request q;
    enc_request source;
    rows v;
    double far = 0;
    must(transcription_new(&t, &r->h, sound_of(samples, n), &(transcription_options){.no_vad = true}, &err));
    shoal_err err = {0};
    assert_int_equal(transcription_next(t, &err), 1);
    transcription_request(t, &q, &source);
    encode(r, &source, &v);
    assert_true(v.n * v.cols >= n_ref);
    for (size_t i = 0; i < n_ref / v.cols; i++) {
        double d = far_from(v.values + i * v.cols, ref + i * v.cols, v.cols);
        if (!(d <= far)) far = d;
    }
    free(v.values);
    transcription_free(t);
    return far;
}

/* Under AddressSanitizer some of the sounds: the others differ in what is said, not in the way that they go.
 */
#ifdef __SANITIZE_ADDRESS__
#define EVERY_SOUND 3
#else
#define EVERY_SOUND 1
#endif

static void sound_gives_the_reference_rows(void **state)
{
    fixture x;
    ears r;
    double worst = 0;
    fixture_open(&x, "speech");
    ears_open(&r, MODEL, (engine_options){0});
    for (int i = 0; i < 6; i += EVERY_SOUND) {
        char wav[32], enc[32];
        size_t n, n_ref;
        snprintf(wav, sizeof wav, "wav.%d", i);
        snprintf(enc, sizeof enc, "encoder.%d", i);
        float *samples = fixture_sound(&x, wav, &n), *ref = fixture_bytes(&x, enc, &n_ref);
        double d = farthest_row(&r, samples, n, ref, n_ref / sizeof *ref);
        if (!(d <= worst)) worst = d;
        free(ref);
    }
    print_message("encoder rows: at most %.2g of the norm away\n", worst);
    assert_true(worst <= FAR);
    ears_close(&r);
    fixture_close(&x);
}

/* A model without any token of Whisper's but the end: the plainest of its kind. */
static void a_bare_model_hears_too(void **state)
{
    fixture x;
    ears r;
    size_t n, n_ref;
    fixture_open(&x, "hf/whisper");
    ears_open(&r, DATA "hf/whisper", (engine_options){0});
    assert_int_equal(r.h.n_languages, 0);
    assert_int_equal(r.h.time_0, -1);
    assert_int_equal(r.h.n_window, 480000);
    float *samples = fixture_sound(&x, "wav_int16", &n);
    float *ref = fixture_bytes(&x, "encoder_first64", &n_ref);
    double d = farthest_row(&r, samples, n, ref, n_ref / sizeof *ref);
    if (!(d <= FAR)) fail_msg("%.2g of the norm away", d);
    free(ref);
    ears_close(&r);
    fixture_close(&x);
}

/* ---- replies ------------------------------------------------------------------------------------- */

static void sound_gives_the_reference_ids(void **state)
{
    fixture x;
    ears r;
    size_t i;
    json_t *c;
    fixture_open(&x, "speech");
    ears_open(&r, MODEL, (engine_options){0});
    json_array_foreach(json_object_get(x.expected, "cases"), i, c)
    {
        if (i % EVERY_SOUND != 0) continue;
        char wav[32];
        size_t n, k;
        heard got;
        json_t *ids = json_object_get(c, "greedy_ids"), *id;
        snprintf(wav, sizeof wav, "wav.%zu", i);
        float *samples = fixture_sound(&x, wav, &n);
        must(hear(&r, samples, n, NULL, &got, &err));
        const char *text = json_string_value(json_object_get(c, "text"));
        assert_int_equal(got.n_segments, *text ? 1 : 0); /* of noise there is none */
        assert_string_equal(text_of(&got), text);
        assert_int_equal(got.ids.len / sizeof(int32_t) + 1, json_array_size(ids)); /* the end is no text */
        json_array_foreach(ids, k, id) if (k + 1 < json_array_size(ids))
            assert_int_equal(((int32_t *)(void *)got.ids.data)[k], json_integer_value(id));
        assert_true(got.avg_logprob <= 0 && got.avg_logprob > -1);
        assert_string_equal(got.language, "en");
        heard_done(&got);
    }
    assert_int_equal(i, 7);
    ears_close(&r);
    fixture_close(&x);
}

static void files_give_their_transcripts(void **state)
{
    json_t *list = NULL, *c;
    size_t i;
    ears r;
    must(json_parse_file(&list, DATA "speech/wav/transcripts.json", 1 << 20, &err));
    ears_open(&r, MODEL, (engine_options){0});
    json_array_foreach(list, i, c)
    {
        if (i % EVERY_SOUND != 0) continue;
        char path[512];
        size_t n;
        heard got;
        snprintf(path, sizeof path, DATA "speech/%s", json_string_value(json_object_get(c, "file")));
        float *samples = read_sound(path, &n);
        must(hear(&r, samples, n, &(transcription_options){.language = "English"}, &got, &err));
        const char *text = text_of(&got);
        assert_string_equal(text + (*text == ' '), json_string_value(json_object_get(c, "heard")));
        heard_done(&got);
    }
    assert_int_equal(i, 22);
    json_decref(list);
    ears_close(&r);
}

/* ---- long sound ---------------------------------------------------------------------------------- */

static void add_file(buf *all, const char *name, size_t silence)
{
    char path[512];
    size_t n;
    float *quiet = calloc(silence + 1, sizeof *quiet);
    snprintf(path, sizeof path, DATA "speech/wav/%s", name);
    float *x = read_sound(path, &n);
    buf_append(all, x, n * sizeof *x);
    buf_append(all, quiet, silence * sizeof *quiet);
    free(x);
    free(quiet);
}

static void long_sound_is_cut_where_it_is_quiet(void **state)
{
    ears r;
    heard got;
    buf all = {0};
    ears_open(&r, MODEL, (engine_options){0});
    add_file(&all, "08-lights-on.wav", 96000);
    add_file(&all, "02-is-pump-fifty-seven-running.wav", 200000);
    add_file(&all, "01-can-you-pause-front-door-player.wav", 0);
    size_t n = all.len / sizeof(float);
    assert_true(n > 2 * r.h.n_window);
    must(hear(&r, (float *)(void *)all.data, n, NULL, &got, &err));
    assert_string_equal(got.text.data,
                        " lights on is pump fifty seven running can you pause front door player");
    assert_true(got.n_segments >= 2 && got.n_progress >= got.n_segments);
    for (size_t i = 0; i < got.n_segments; i++) {
        assert_true(got.start_ms[i] < got.end_ms[i]);
        assert_true(i == 0 || got.start_ms[i] >= got.end_ms[i - 1]);
        assert_true(got.end_ms[i] <= (int64_t)(n / 16));
    }
    heard_done(&got);
    ears_close(&r);
}

/* A window's reply as the engine would give it: what stands in front, then these, up to -1. */
static void take_reply(transcription *t, const int32_t *ids, heard *got)
{
    shoal_err why = {0};
    assert_int_equal(transcription_next(t, &why), 1);
    assert_int_equal(transcription_add(t, 1529, -9) + transcription_add(t, 1531, -9), 0);
    for (; *ids >= 0; ids++) assert_int_equal(transcription_add(t, *ids, -0.5f), 0);
    must(transcription_take(t, on_segment, got, &err));
}

/* Whole segments go out; the next window begins behind the last of them. */
static void times_cut_windows_into_segments(void **state)
{
    enum { T = 1536, N = 200000 };
    static const int32_t open_end[] = {T, 430, 295, T + 50, T + 50, 430, T + 100, T + 100, 295, -1},
                         single[] = {T, 430, T + 25, 1527, -1}, none[] = {430, 1527, -1};
    static const int64_t begins[] = {0, 1000, 2000, 10000}, ends[] = {1000, 2000, 2500, 12500};
    ears r;
    heard got = {0};
    transcription *t;
    shoal_err err = {0};
    float *x = malloc(N * sizeof *x);
    for (size_t i = 0; i < N; i++) x[i] = (float)(i % 100) / (i / 3200 % 2 ? 200 : 2000); /* no steady tone */
    ears_open(&r, MODEL, (engine_options){0});
    whisper_tokens h = r.h;
    h.time_0 = T; /* as if its vocabulary went on */
    transcription_options o = {.times = true, .no_vad = true};
    assert_int_equal(transcription_new(&t, &h, sound_of(x, N), &o, &err), 0);
    take_reply(t, open_end, &got);
    assert_int_equal(got.n_segments, 2);
    assert_string_equal(got.text.data, " lights on lights");
    assert_int_equal(transcription_done_ms(t), 2000);
    take_reply(t, single, &got);
    assert_int_equal(transcription_done_ms(t), 10000);
    take_reply(t, none, &got);
    assert_int_equal(transcription_next(t, &err), 0);
    assert_int_equal(transcription_done_ms(t), transcription_duration_ms(t));
    assert_int_equal(got.n_segments, 4);
    for (size_t i = 0; i < 4; i++)
        if (got.start_ms[i] != begins[i] || got.end_ms[i] != ends[i])
            fail_msg("segment %zu: %lld to %lld", i, (long long)got.start_ms[i], (long long)got.end_ms[i]);
    assert_true(got.avg_logprob == -0.5);
    transcription_free(t);
    heard_done(&got);
    ears_close(&r);
}

/* A reply of the bundled model to the next window: these words and the end. */
static void take_words(transcription *t, const int32_t *ids, size_t n, heard *got)
{
    shoal_err why = {0};
    assert_int_equal(transcription_next(t, &why), 1);
    for (int32_t lead = 0; lead < 3; lead++) assert_int_equal(transcription_add(t, 1529, -9), 0);
    for (size_t i = 0; i < n; i++) assert_int_equal(transcription_add(t, ids[i], -0.5f), 0);
    assert_int_equal(transcription_add(t, 1527, -0.5f), 0);
    must(transcription_take(t, on_segment, got, &err));
}

/* Sound without a pause: each window begins 1.5 s before the one before it ended, and what both heard comes
 * once. When they do not agree, the window begins at that end. */
static void words_at_a_windows_edge_come_once(void **state)
{
    enum { N = 24 * 16000 };
    static const int32_t lights_on[] = {430, 295}, on_lights[] = {295, 430}, lights[] = {430};
    ears r;
    heard got = {0};
    transcription *t;
    shoal_err why;
    float *x = malloc(N * sizeof *x);
    for (size_t i = 0; i < N; i++) x[i] = (float)(i % 100) / 200;
    ears_open(&r, MODEL, (engine_options){0});
    transcription_options o = {.no_vad = true};
    must(transcription_new(&t, &r.h, sound_of(x, N), &o, &err));
    take_words(t, lights_on, 2, &got);
    int64_t cut = got.end_ms[0];
    assert_true(cut > 5000 && cut <= 8000);
    assert_int_equal(transcription_done_ms(t), cut - 1500);
    take_words(t, on_lights, 2, &got);
    assert_string_equal(text_of(&got), " lights on lights");
    assert_int_equal(got.start_ms[1], cut);
    cut = got.end_ms[1];
    take_words(t, lights_on, 2, &got); /* "lights" came, "on" is new */
    assert_string_equal(text_of(&got), " lights on lights on");
    cut = got.end_ms[2];
    take_words(t, lights, 1, &got); /* "on" did not come again */
    assert_int_equal(got.n_segments, 3);
    assert_int_equal(transcription_done_ms(t), cut);
    while (transcription_done_ms(t) < 24000) {
        take_words(t, lights, 1, &got);
        if (got.n_segments == 4) assert_int_equal(got.start_ms[3], cut);
    }
    assert_int_equal(transcription_next(t, &why), 0);
    transcription_free(t);
    heard_done(&got);
    ears_close(&r);
}

static size_t times_in(const char *text, const char *words)
{
    size_t n = 0;
    while ((text = strstr(text, words))) {
        text++;
        n++;
    }
    return n;
}

/* Whole sentences one behind the other, further apart than a pause and nearer: every word, once. */
static void sentences_in_one_recording_are_all_heard(void **state)
{
    static const size_t gaps[] = {12000, 20000, 40000};
    ears r;
    ears_open(&r, MODEL, (engine_options){0});
    for (size_t i = 0; i < 3; i += EVERY_SOUND) {
        heard got;
        buf all = {0};
        for (int k = 0; k < 3; k++) {
            add_file(&all, "08-lights-on.wav", gaps[i]);
            add_file(&all, "02-is-pump-fifty-seven-running.wav", gaps[i]);
            add_file(&all, "19-lock-down-the-dorm-lock-thanks.wav", gaps[i]);
        }
        size_t n = all.len / sizeof(float);
        must(hear(&r, (float *)(void *)all.data, n, NULL, &got, &err));
        bool all_there = times_in(text_of(&got), " lights on") == 3 &&
                         times_in(text_of(&got), " is pump fifty seven running") == 3 &&
                         times_in(text_of(&got), " lock down the") == 3;
        if (!all_there) fail_msg("gaps of %zu samples: \"%s\"", gaps[i], text_of(&got));
        heard_done(&got);
    }
    ears_close(&r);
}

/* ---- replies that look wrong --------------------------------------------------------------------- */

static transcription *of_silence(const whisper_tokens *h, float temperature)
{
    transcription *t;
    transcription_options o = {.no_vad = true, .temperature = temperature, .seed = 5};
    must(transcription_new(&t, h, sound_of(calloc(16000, sizeof(float)), 16000), &o, &err));
    return t;
}

/* A reply of n ids of one likelihood; the sampling that it was asked for. */
static sampling reply_with(transcription *t, const int32_t *ids, size_t n, float logprob, heard *got)
{
    gen_request r;
    enc_request source;
    shoal_err why = {0};
    assert_int_equal(transcription_next(t, &why), 1);
    transcription_request(t, &r, &source);
    assert_int_equal(transcription_add(t, 1531, -9) + transcription_add(t, 1535, -9), 0);
    assert_int_equal(transcription_add(t, 1529, -9), 0);
    for (size_t i = 0; i < n; i++) assert_int_equal(transcription_add(t, ids[i], logprob), 0);
    assert_int_equal(transcription_add(t, 1527, logprob), 0);
    must(transcription_take(t, on_segment, got, &err));
    return r.sampling;
}

/* At 0, 0.2 ... 1.0, with another seed each time and the same ones at the next run; then the likeliest. */
static void unlikely_replies_are_drawn_again(void **state)
{
    static const int32_t first[] = {430}, other[] = {295};
    uint64_t seeds[6];
    ears r;
    ears_open(&r, MODEL, (engine_options){0});
    for (int run = 0; run < 2; run++) {
        heard got = {0};
        transcription *t = of_silence(&r.h, 0);
        for (int i = 0; i < 6; i++) {
            assert_int_equal(got.n_segments, 0);
            sampling s = reply_with(t, i == 3 ? other : first, 1, i == 3 ? -1.5f : -2 - (float)i, &got);
            assert_true(fabsf(s.temperature - (float)i / 5) < 1e-6f);
            if (run == 0) seeds[i] = s.seed;
            assert_int_equal(s.seed, seeds[i]);
            assert_true(i == 0 || seeds[i] != seeds[i - 1]);
        }
        shoal_err why;
        assert_int_equal(transcription_next(t, &why), 0);
        assert_string_equal(text_of(&got), " on");
        assert_true(fabs(got.temperature - 0.6) < 1e-6 && got.avg_logprob == -1.5);
        assert_int_equal(transcription_windows(t), 1);
        transcription_free(t);
        heard_done(&got);
    }
    ears_close(&r);
}

static void a_likely_reply_ends_the_draws(void **state)
{
    static const int32_t ids[] = {430, 295};
    ears r;
    heard got = {0};
    ears_open(&r, MODEL, (engine_options){0});
    transcription *t = of_silence(&r.h, 0);
    reply_with(t, ids, 2, -2, &got);
    reply_with(t, ids, 2, -0.25f, &got);
    assert_int_equal(got.n_segments, 1);
    assert_true(got.avg_logprob == -0.25 && fabs(got.temperature - 0.2) < 1e-6);
    transcription_free(t);
    heard_done(&got);
    got = (heard){0};
    t = of_silence(&r.h, 0.5f); /* the caller's choice stands */
    assert_true(reply_with(t, ids, 2, -2, &got).temperature == 0.5f);
    assert_int_equal(got.n_segments, 1);
    transcription_free(t);
    heard_done(&got);
    ears_close(&r);
}

/* Six loops: of the last one three copies are left. Five, and one that is none: that one. */
static void replies_that_repeat_themselves_are_drawn_again(void **state)
{
    int32_t loop[48];
    static const int32_t words[] = {430, 295};
    ears r;
    for (size_t i = 0; i < 48; i++) loop[i] = words[i % 2];
    ears_open(&r, MODEL, (engine_options){0});
    for (int good = 6; good >= 2; good -= 4) {
        heard got = {0};
        transcription *t = of_silence(&r.h, 0);
        for (int i = 0; i < 6; i++)
            reply_with(t, i == good ? words : loop, i == good ? 2 : 48, i == good ? -1.25f : -0.5f, &got);
        assert_int_equal(got.n_segments, 1);
        assert_string_equal(text_of(&got), good == 2 ? " lights on" : " lights on lights on lights on");
        assert_true(good == 2 ? got.compression_ratio < 1.5 : got.compression_ratio > 2.4);
        transcription_free(t);
        heard_done(&got);
    }
    ears_close(&r);
}

/* ---- short sound --------------------------------------------------------------------------------- */

/* As if the bundled model were one of OpenAI's: a window of 30 s, time tokens behind its vocabulary, and two
 * languages. */
static whisper_tokens as_openai(const ears *r)
{
    static whisper_language languages[] = {{1531, "en", "english"}, {1532, "de", "german"}};
    whisper_tokens h = r->h;
    h.time_0 = 1536;
    h.n_frames = 3000;
    h.n_window = 480000;
    h.multilingual = true;
    h.languages = languages;
    h.n_languages = 2;
    return h;
}

static transcription *of_zeros(const whisper_tokens *h, size_t ms, bool full)
{
    transcription *t;
    transcription_options o = {.full_window = full, .no_vad = true, .seed = 5};
    must(transcription_new(&t, h, sound_of(calloc(16 * ms + 1, sizeof(float)), 16 * ms), &o, &err));
    return t;
}

static size_t frames_asked_for(transcription *t)
{
    gen_request r;
    enc_request source;
    transcription_request(t, &r, &source);
    return source.n_features;
}

static size_t first_frames(const whisper_tokens *h, size_t ms, bool full)
{
    shoal_err why;
    transcription *t = of_zeros(h, ms, full);
    assert_int_equal(transcription_next(t, &why), 1);
    size_t n = frames_asked_for(t);
    transcription_free(t);
    return n;
}

/* 512 positions of 20 ms at least, 128 behind the sound, in steps of 64, half of the window at
 * most; two frames make a position. */
static void short_sound_takes_a_part_of_the_window(void **state)
{
    static const struct {
        size_t ms, frames;
    } rows[] = {{1, 1024},     {5000, 1024},  {7680, 1024},  {7681, 1152},
                {11520, 1408}, {11521, 3000}, {30000, 3000}, {40000, 3000}};
    ears r;
    ears_open(&r, MODEL, (engine_options){0});
    whisper_tokens h = as_openai(&r);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t n = first_frames(&h, rows[i].ms, false);
        if (n != rows[i].frames) fail_msg("%zu ms: %zu frames", rows[i].ms, n);
        assert_int_equal(first_frames(&h, rows[i].ms, true), 3000);
    }
    assert_int_equal(first_frames(&r.h, 1000, false), r.h.n_frames); /* no time tokens */
    ears_close(&r);
}

/* The reply to the window that is ready: language, task, no times, then these, of which times are unlikely. */
static void answer(transcription *t, int32_t language, const int32_t *ids, size_t n, float logprob,
                   heard *got)
{
    assert_int_equal(transcription_add(t, language, -9) + transcription_add(t, 1535, -9), 0);
    assert_int_equal(transcription_add(t, 1529, -9), 0);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(transcription_add(t, ids[i], ids[i] < 1536 ? logprob : -1.5f), 0);
    must(transcription_take(t, on_segment, got, &err));
}

/* Once more at the same temperature, then as any other window. The language is that of the reply that counts.
 */
static void a_doubtful_reply_to_a_part_is_asked_for_again_of_the_whole(void **state)
{
    enum { END = 1527 };
    static const struct {
        int32_t ids[10];
        size_t n;
        float logprob;
        bool again;
    } rows[] = {{{430, 295, END}, 3, -0.29f, false},
                {{430, 295, END}, 3, -0.31f, true},
                {{1536, 430, 295, 1560, END}, 5, -0.29f, false},
                {{430, 295}, 2, -0.1f, true},                                        /* it does not end */
                {{END}, 1, -0.1f, true},                                             /* nothing is said */
                {{430, 295, 300, 430, 295, 300, END}, 7, -0.1f, true},               /* twice the same */
                {{1, 430, 295, 300, 301, 430, 295, 300, 301, END}, 10, -0.1f, true}, /* four in a row again */
                {{1, 430, 295, 300, 2, 430, 295, 300, END}, 9, -0.1f, false}};
    ears r;
    shoal_err why;
    ears_open(&r, MODEL, (engine_options){0});
    whisper_tokens h = as_openai(&r);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        heard got = {0};
        transcription *t = of_zeros(&h, 2000, false);
        assert_int_equal(transcription_next(t, &why), 1);
        answer(t, 1532, rows[i].ids, rows[i].n, rows[i].logprob, &got);
        assert_int_equal(got.n_segments, rows[i].again ? 0 : 1);
        assert_int_equal(transcription_next(t, &why), rows[i].again);
        if (rows[i].again) {
            gen_request q;
            enc_request source;
            transcription_request(t, &q, &source);
            assert_int_equal(source.n_features, 3000);
            assert_true(q.sampling.temperature == 0 && q.sampling.seed == 5);
            answer(t, 1531, rows[0].ids, rows[0].n, -0.9f, &got);
            assert_int_equal(got.n_segments, 1);
            assert_string_equal(text_of(&got), " lights on");
            assert_int_equal(transcription_next(t, &why), 0);
        }
        assert_string_equal(transcription_language(t)->code, rows[i].again ? "en" : "de");
        assert_int_equal(transcription_windows(t), 1);
        transcription_free(t);
        heard_done(&got);
    }
    ears_close(&r);
}

/* ---- silence and noise --------------------------------------------------------------------------- */

static void silence_says_nothing(void **state)
{
    ears r;
    heard got;
    ears_open(&r, MODEL, (engine_options){0});
    for (size_t n = 0; n <= 320000; n += 160000) {
        must(hear(&r, calloc(n + 1, sizeof(float)), n, NULL, &got, &err));
        assert_int_equal(got.n_segments, 0);
        heard_done(&got);
    }
    must(hear(&r, calloc(2, sizeof(float)), 1, NULL, &got, &err));
    assert_int_equal(got.n_segments, 0);
    heard_done(&got);
    ears_close(&r);
}

/* n samples of noise of so many dB of full scale (root mean square), malloc'd. */
static float *white_noise(size_t n, double db)
{
    float *x = malloc((n + 1) * sizeof *x), peak = (float)(sqrt(3) * pow(10, db / 20));
    uint32_t seed = 7;
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        x[i] = peak * ((float)(seed >> 8) / 8388608.0f - 1);
    }
    return x;
}

static float *tone(size_t n, double hz, double peak)
{
    float *x = malloc((n + 1) * sizeof *x);
    for (size_t i = 0; i < n; i++) x[i] = (float)(peak * sin((double)i * hz * 6.283185307 / 16000));
    return x;
}

static void says_nothing(ears *r, float *x, size_t n, const char *what)
{
    heard got;
    must(hear(r, x, n, NULL, &got, &err));
    if (got.n_segments > 0) fail_msg("%s: \"%s\"", what, got.text.data);
    heard_done(&got);
}

/* The model makes commands of these; in a home that is a lamp that goes on by itself. */
static void noise_and_tones_say_nothing(void **state)
{
    ears r;
    ears_open(&r, MODEL, (engine_options){0});
    for (size_t s = 1; s <= 12; s += 11 * EVERY_SOUND) {
        says_nothing(&r, white_noise(s * 16000, -60), s * 16000, "noise of -60 dB");
        says_nothing(&r, white_noise(s * 16000, -15), s * 16000, "loud noise");
        says_nothing(&r, white_noise(s * 16000, -85), s * 16000, "a microphone in a quiet room");
        says_nothing(&r, tone(s * 16000, 440, 0.5), s * 16000, "a tone");
        says_nothing(&r, tone(s * 16000, 50, 0.02), s * 16000, "hum");
    }
    float *beep = calloc(80001, sizeof *beep), *part = tone(32000, 440, 0.5);
    memcpy(beep + 24000, part, 32000 * sizeof *part);
    free(part);
    says_nothing(&r, beep, 80000, "a tone between silences");
    ears_close(&r);
}

static float *silence_before(const float *x, size_t n, size_t lead, size_t behind)
{
    float *all = calloc(lead + n + behind + 1, sizeof *all);
    memcpy(all + lead, x, n * sizeof *x);
    return all;
}

/* However much silence is in front of it, and wherever windows end. */
static void words_behind_silence_come_once(void **state)
{
    static const unsigned leads_ms[] = {500,   1000,  1500,  2000,  8900,  9000,  9400,  9800,  9900, 9990,
                                        10000, 10500, 19700, 20000, 28000, 28800, 29500, 29990, 45000};
    ears r;
    size_t n;
    float *words = read_sound(DATA "speech/wav/08-lights-on.wav", &n);
    ears_open(&r, MODEL, (engine_options){0});
    for (size_t i = 0; i < sizeof leads_ms / sizeof *leads_ms; i += EVERY_SOUND)
        for (size_t behind = 0; behind <= 5 * 16000; behind += 5 * 16000) {
            heard got;
            size_t lead = (size_t)leads_ms[i] * 16;
            float *all = silence_before(words, n, lead, behind);
            must(hear(&r, all, lead + n + behind, NULL, &got, &err));
            if (strcmp(got.text.data ? got.text.data : "", " lights on") != 0 || got.n_segments != 1)
                fail_msg("behind %u ms, %zu samples behind it: \"%s\"", leads_ms[i], behind,
                         got.text.data ? got.text.data : "");
            if (got.start_ms[0] > leads_ms[i] || got.end_ms[0] < leads_ms[i])
                fail_msg("behind %u ms it was heard from %lld to %lld ms", leads_ms[i],
                         (long long)got.start_ms[0], (long long)got.end_ms[0]);
            heard_done(&got);
        }
    free(words);
    ears_close(&r);
}

static void what_the_model_does_not_know_is_refused(void **state)
{
    ears r;
    heard got;
    shoal_err err = {0};
    ears_open(&r, MODEL, (engine_options){0});
    transcription_options o = {.language = "klingon"};
    assert_int_equal(hear(&r, calloc(1, 4), 0, &o, &got, &err), SHOAL_EINVALID);
    assert_non_null(strstr(err.message, "klingon"));
    ears_close(&r);
    ears_open(&r, DATA "hf/whisper", (engine_options){0});
    o = (transcription_options){.translate = true};
    assert_int_equal(hear(&r, calloc(1, 4), 0, &o, &got, &err), SHOAL_EINVALID);
    o = (transcription_options){.prompt = "names"};
    assert_int_equal(hear(&r, calloc(1, 4), 0, &o, &got, &err), SHOAL_EINVALID);
    ears_close(&r);
}

/* "auto" and regions are what clients send. */
static void languages_are_known_by_many_names(void **state)
{
    static const char *const known[] = {"en", "EN", "English", "en-US", "en_GB", "auto", "AUTO", ""};
    static const char *const unknown[] = {"xx", "engl", "e", "de", "enx"};
    ears r;
    heard got;
    shoal_err why;
    ears_open(&r, MODEL, (engine_options){0});
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        transcription_options o = {.language = known[i]};
        must(hear(&r, calloc(1, 4), 0, &o, &got, &err));
        assert_string_equal(got.language, "en");
    }
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        transcription_options o = {.language = unknown[i]};
        assert_int_equal(hear(&r, calloc(1, 4), 0, &o, &got, &why), SHOAL_EINVALID);
        assert_non_null(strstr(why.message, "it knows en"));
    }
    ears_close(&r);
}

/* A model of one language has no token for it, and says its name all the same. */
static void a_model_without_languages_is_english(void **state)
{
    whisper_tokens h = {.n_vocab = 100, .sot = 10, .eot = 9};
    speech_rule r;
    float logits[100] = {0};
    must(whisper_tokens_read(&h, "{\"is_multilingual\": false, \"no_timestamps_token_id\": 20}", NULL, 80,
                             3000, &err));
    assert_int_equal(h.n_languages, 1);
    assert_string_equal(h.languages[0].name, "english");
    assert_ptr_equal(whisper_tokens_find_language(&h, "en"), &h.languages[0]);
    h.no_speech = 15;
    logits[15] = 9;
    speech_rule_init(&r, &h, NULL, false, true);
    assert_int_equal(r.n_lead, 0);
    assert_false(r.finds_language);
    speech_rule_mask(&r, NULL, 0, logits, 100);
    assert_true(r.no_speech > 0.9f); /* the text's first row is the one that tells */
    assert_true(logits[15] == GEN_NEVER);
    speech_rule_init(&r, &h, &h.languages[0], false, false);
    assert_int_equal(r.n_lead, 1);
    whisper_tokens_done(&h);
}

static void other_models_do_not_hear(void **state)
{
    model *m;
    whisper_tokens h;
    must(model_open(&m, DATA "hf/bart", NULL, &err));
    shoal_err err = {0};
    assert_int_equal(whisper_tokens_init(&h, m, &err), SHOAL_EUNSUPPORTED);
    whisper_tokens_done(&h);
    model_free(m);
}

/* A prompt goes in front and does not come back as text. */
static void a_prompt_is_not_repeated(void **state)
{
    ears r;
    heard got;
    size_t n;
    ears_open(&r, MODEL, (engine_options){0});
    float *x = read_sound(DATA "speech/wav/08-lights-on.wav", &n);
    buf words = {0};
    for (int i = 0; i < 200; i++) buf_puts(&words, "kitchen lamp ");
    transcription_options o = {.prompt = words.data};
    must(hear(&r, x, n, &o, &got, &err));
    assert_null(got.text.data ? strstr(got.text.data, "startof") : NULL);
    heard_done(&got);
    buf_done(&words);
    ears_close(&r);
}

/* ---- the rule ------------------------------------------------------------------------------------ */

enum {
    N_VOCAB = 40,
    EOT = 10,
    SOT = 11,
    EN = 12,
    DE = 13,
    TRANSLATE = 14,
    TRANSCRIBE = 15,
    PREV = 16,
    NO_SPEECH = 17,
    NO_TIMES = 18,
    TIME_0 = 19
};

static whisper_language both[] = {{EN, "en", "english"}, {DE, "de", "german"}};
static int32_t never[] = {3}, never_first[] = {4};
static const whisper_tokens made = {.n_vocab = N_VOCAB,
                                    .multilingual = true,
                                    .sot = SOT,
                                    .eot = EOT,
                                    .transcribe = TRANSCRIBE,
                                    .translate = TRANSLATE,
                                    .no_timestamps = NO_TIMES,
                                    .no_speech = NO_SPEECH,
                                    .previous = PREV,
                                    .time_0 = TIME_0,
                                    .max_first_time = 5,
                                    .languages = both,
                                    .n_languages = 2,
                                    .never = never,
                                    .n_never = 1,
                                    .never_first = never_first,
                                    .n_never_first = 1};

static bool may(const speech_rule *r, const int32_t *ids, size_t n, int32_t id)
{
    speech_rule copy = *r;
    float logits[N_VOCAB] = {0};
    for (size_t i = 0; i <= EOT; i++) logits[i] = 9; /* text is likelier than all times together */
    speech_rule_mask(&copy, ids, n, logits, N_VOCAB);
    return logits[id] > GEN_NEVER;
}

static void a_reply_begins_with_its_language_and_task(void **state)
{
    speech_rule r;
    float logits[N_VOCAB] = {0};
    int32_t ids[4] = {DE, TRANSCRIBE, NO_TIMES};
    speech_rule_init(&r, &made, NULL, false, false);
    assert_int_equal(r.n_lead, 3);
    logits[DE] = 2;
    logits[1] = logits[NO_SPEECH] = 5;
    speech_rule_mask(&r, ids, 0, logits, N_VOCAB);
    for (int32_t i = 0; i < N_VOCAB; i++) assert_int_equal(logits[i] > GEN_NEVER, i == DE);
    assert_true(r.no_speech > 0.4f && r.no_speech < 0.5f);
    assert_true(may(&r, ids, 1, TRANSCRIBE) && !may(&r, ids, 1, TRANSLATE));
    assert_true(may(&r, ids, 2, NO_TIMES) && !may(&r, ids, 2, 0));
    assert_true(may(&r, ids, 3, 0) && may(&r, ids, 3, EOT) && !may(&r, ids, 3, TIME_0));
    assert_true(!may(&r, ids, 3, 3) && !may(&r, ids, 3, 4) && !may(&r, ids, 3, DE));
    ids[3] = 0;
    assert_true(!may(&r, ids, 4, 3) && may(&r, ids, 4, 4));
    speech_rule_init(&r, &made, &both[0], true, true);
    assert_int_equal(r.n_lead, 2);
    assert_true(may(&r, ids, 0, EN) && !may(&r, ids, 0, DE) && may(&r, ids, 1, TRANSLATE));
}

static void times_come_in_pairs_and_do_not_go_back(void **state)
{
    speech_rule r;
    int32_t ids[8] = {EN, TRANSCRIBE, TIME_0 + 2, 0, TIME_0 + 6, TIME_0 + 6, 1};
    speech_rule_init(&r, &made, NULL, false, true);
    assert_true(may(&r, ids, 2, TIME_0 + 5) && !may(&r, ids, 2, TIME_0 + 6) && !may(&r, ids, 2, 0));
    assert_true(may(&r, ids, 3, 0) && !may(&r, ids, 3, TIME_0 + 9)); /* text */
    assert_true(may(&r, ids, 4, 0) && may(&r, ids, 4, TIME_0 + 3) && !may(&r, ids, 4, TIME_0 + 2));
    assert_true(!may(&r, ids, 5, 0) && may(&r, ids, 5, EOT) && may(&r, ids, 5, TIME_0 + 6)); /* its pair */
    assert_true(!may(&r, ids, 5, TIME_0 + 5));
    assert_true(may(&r, ids, 6, 0) && !may(&r, ids, 6, TIME_0 + 7));
    assert_true(!may(&r, ids, 7, TIME_0 + 6) && may(&r, ids, 7, TIME_0 + 7));
    float logits[N_VOCAB] = {0}; /* all alike: some time is likelier than any one token */
    speech_rule_mask(&r, ids, 7, logits, N_VOCAB);
    assert_false(logits[0] > GEN_NEVER);
}

/* Where the reply would not be used, its end comes at once. */
static void a_loop_can_be_ended(void **state)
{
    speech_rule r;
    int32_t ids[] = {EN, TRANSCRIBE, NO_TIMES, 0, 1, 2, 0, 1, 2};
    speech_rule_init(&r, &made, &both[0], false, false);
    assert_true(speech_rule_repeats(ids + 3, 6) && !speech_rule_repeats(ids + 3, 5));
    assert_true(!speech_rule_repeats(NULL, 0));
    assert_true(may(&r, ids, 9, 1));
    r.ends_loops = true;
    assert_true(may(&r, ids, 8, 1) && may(&r, ids, 9, EOT) && !may(&r, ids, 9, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sound_gives_the_reference_rows),
        cmocka_unit_test(a_bare_model_hears_too),
        cmocka_unit_test(sound_gives_the_reference_ids),
        cmocka_unit_test(files_give_their_transcripts),
        cmocka_unit_test(long_sound_is_cut_where_it_is_quiet),
        cmocka_unit_test(times_cut_windows_into_segments),
        cmocka_unit_test(words_at_a_windows_edge_come_once),
        cmocka_unit_test(sentences_in_one_recording_are_all_heard),
        cmocka_unit_test(unlikely_replies_are_drawn_again),
        cmocka_unit_test(a_likely_reply_ends_the_draws),
        cmocka_unit_test(replies_that_repeat_themselves_are_drawn_again),
        cmocka_unit_test(short_sound_takes_a_part_of_the_window),
        cmocka_unit_test(a_doubtful_reply_to_a_part_is_asked_for_again_of_the_whole),
        cmocka_unit_test(silence_says_nothing),
        cmocka_unit_test(noise_and_tones_say_nothing),
        cmocka_unit_test(words_behind_silence_come_once),
        cmocka_unit_test(what_the_model_does_not_know_is_refused),
        cmocka_unit_test(languages_are_known_by_many_names),
        cmocka_unit_test(a_model_without_languages_is_english),
        cmocka_unit_test(other_models_do_not_hear),
        cmocka_unit_test(a_prompt_is_not_repeated),
        cmocka_unit_test(a_reply_begins_with_its_language_and_task),
        cmocka_unit_test(times_come_in_pairs_and_do_not_go_back),
        cmocka_unit_test(a_loop_can_be_ended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
