/* helper.h: fixtures for the tests of speech/. Include once a test file. */
#ifndef TESTS_SPEECH_HELPER_H
#define TESTS_SPEECH_HELPER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants the four above first. */
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "json/json.h"
#include "signal/audio.h"
#include "speech/transcriber.h"

#define DATA  SHOAL_SOURCE_DIR "/tests/data/"
#define MODEL SHOAL_SOURCE_DIR "/models/home-ears.gguf"

#define must(call)                                                                              \
    do {                                                                                        \
        shoal_err err = {0};                                                                    \
        if ((call) != 0) fail_msg("%s: %s (%s)", #call, err.message, shoal_err_name(err.code)); \
    } while (0)

/* ---- a safetensors file beside its expected.json ------------------------------------------------ */

typedef struct fixture {
    json_t *expected, *tensors;
    file_map map;
    const uint8_t *data;
} fixture;

static inline void fixture_open(fixture *f, const char *dir)
{
    char path[512];
    uint64_t n;
    *f = (fixture){0};
    snprintf(path, sizeof path, DATA "%s/expected.json", dir);
    must(json_parse_file(&f->expected, path, 64 << 20, &err));
    snprintf(path, sizeof path, DATA "%s/expected.safetensors", dir);
    must(file_map_open(&f->map, path, &err));
    memcpy(&n, f->map.data, 8);
    must(json_parse(&f->tensors, (const char *)f->map.data + 8, n, path, &err));
    f->data = f->map.data + 8 + n;
}

static inline void fixture_close(fixture *f)
{
    json_decref(f->expected);
    json_decref(f->tensors);
    file_map_close(&f->map);
}

/* The bytes of a tensor, malloc'd. */
static inline void *fixture_bytes(const fixture *f, const char *name, size_t *ret_bytes)
{
    json_t *t = json_object_get(f->tensors, name), *at = json_object_get(t, "data_offsets");
    if (!at) fail_msg("%s is missing", name);
    size_t begin = (size_t)json_integer_value(json_array_get(at, 0)),
           end = (size_t)json_integer_value(json_array_get(at, 1));
    void *v = malloc(end - begin + 1);
    memcpy(v, f->data + begin, end - begin);
    *ret_bytes = end - begin;
    return v;
}

/* x[n], malloc'd, as a sound that has it now. */
static inline sound *sound_of(float *x, size_t n)
{
    sound *s = NULL;
    must(sound_of_samples(&s, x, n, &err));
    return s;
}

static inline sound *copy_of(const float *x, size_t n)
{
    float *copy = malloc((n + 1) * sizeof *copy);
    memcpy(copy, x, n * sizeof *copy);
    return sound_of(copy, n);
}

/* 16-bit samples as floats, malloc'd. */
static inline float *fixture_sound(const fixture *f, const char *name, size_t *ret_n)
{
    int16_t *x = fixture_bytes(f, name, ret_n);
    *ret_n /= 2;
    float *y = malloc((*ret_n + 1) * sizeof *y);
    for (size_t i = 0; i < *ret_n; i++) y[i] = (float)x[i] / 32768.0f;
    free(x);
    return y;
}

/* ---- a model that hears ------------------------------------------------------------------------- */

typedef struct ears {
    model *m;
    engine *e;
    whisper_tokens h;
} ears;

static inline void ears_open(ears *r, const char *path, engine_options o)
{
    *r = (ears){0};
    if (o.n_threads == 0) o.n_threads = 2;
    must(model_open(&r->m, path, NULL, &err));
    must(whisper_tokens_init(&r->h, r->m, &err));
    must(engine_new(&r->e, r->m, &o, &err));
}

static inline void ears_close(ears *r)
{
    engine_free(r->e);
    whisper_tokens_done(&r->h);
    model_free(r->m);
}

/* What was heard. */
typedef struct heard {
    buf text, ids;
    size_t n_segments, n_progress;
    int64_t start_ms[64], end_ms[64];
    double avg_logprob, compression_ratio, temperature, no_speech_prob;
    char language[16];
} heard;

static inline void heard_done(heard *h)
{
    buf_done(&h->text);
    buf_done(&h->ids);
}

static inline const char *text_of(const heard *h)
{
    return h->text.data ? h->text.data : "";
}

static inline void on_segment(void *user, const heard_segment *s)
{
    heard *h = user;
    assert_true(h->n_segments < 64);
    h->start_ms[h->n_segments] = s->start_ms;
    h->end_ms[h->n_segments++] = s->end_ms;
    h->avg_logprob = s->avg_logprob;
    h->compression_ratio = s->compression_ratio;
    h->temperature = s->temperature;
    h->no_speech_prob = s->no_speech_prob;
    buf_append(&h->text, s->text, s->len);
    buf_append(&h->ids, s->ids, s->n_ids * sizeof *s->ids);
}

static inline void on_progress(void *user, const transcription *t)
{
    ((heard *)user)->n_progress++;
}

/* samples are taken. */
static inline int hear(ears *r, float *samples, size_t n, const transcription_options *o, heard *ret,
                       shoal_err *why)
{
    static const transcription_options defaults;
    transcription *t = NULL;
    *ret = (heard){0};
    int rc = transcription_new(&t, &r->h, sound_of(samples, n), o ? o : &defaults, why);
    if (rc == 0) rc = transcriber_run(r->e, t, on_segment, on_progress, ret, why);
    if (rc == 0 && transcription_language(t))
        snprintf(ret->language, sizeof ret->language, "%s", transcription_language(t)->code);
    transcription_free(t);
    return rc;
}

static inline float *read_sound(const char *path, size_t *ret_n)
{
    buf b = {0};
    float *x = NULL;
    must(file_read(&b, path, 64 << 20, &err));
    must(audio_decode(&x, ret_n, NULL, b.data, b.len, NULL, &err));
    buf_done(&b);
    return x;
}

#endif
