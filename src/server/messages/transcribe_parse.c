/* transcribe_parse.c: fields that come with a sound file; see transcribe_parse.h. */
#include "messages/transcribe_parse.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "json/json.h"
#include "base/number.h"
#include "json/sampling.h"
#include "base/utf8.h"
#include "cache/cache_key.h"

const char *const TRANSCRIBE_FIELDS[] = {"model",
                                         "language",
                                         "prompt",
                                         "temperature",
                                         "response_format",
                                         "stream",
                                         "timestamp_granularities[]",
                                         "timestamp_granularities",
                                         "include[]",
                                         "include",
                                         "vad",
                                         "vad_filter",
                                         "chunking_strategy",
                                         NULL};

void transcribe_spec_done(transcribe_spec *s)
{
    arena_free(s->mem);
    *s = (transcribe_spec){0};
}

/* A field's text; absent or empty leaves *ret as it was. */
static int transcribe_parse_read_text(transcribe_spec *s, const multipart *m, const char *name,
                                      const char **ret, api_error *e)
{
    const multipart_part *p = multipart_find(m, name);
    size_t bad;
    if (!p || p->len == 0) return 0;
    if (p->len > UPLOAD_FIELD_MAX || memchr(p->data, '\0', p->len) || !utf8_valid(p->data, p->len, &bad))
        return api_error_bad(e, name, "\"%s\" must be text of at most %d bytes without NUL characters", name,
                             UPLOAD_FIELD_MAX);
    *ret = arena_strndup(s->mem, p->data, p->len);
    return *ret ? 0 : api_error_nomem(e);
}

static int read_flag(transcribe_spec *s, const multipart *m, const char *name, bool *ret, api_error *e)
{
    const char *v = NULL;
    int rc = transcribe_parse_read_text(s, m, name, &v, e);
    if (rc != 0 || !v) return rc;
    *ret = strcasecmp(v, "true") == 0 || strcmp(v, "1") == 0;
    if (*ret || strcasecmp(v, "false") == 0 || strcmp(v, "0") == 0) return 0;
    return api_error_bad(e, name, "\"%s\" must be true or false", name);
}

static int read_temperature(transcribe_spec *s, const multipart *m, api_error *e)
{
    const char *v = NULL;
    double x = 0;
    shoal_err err;
    int rc = transcribe_parse_read_text(s, m, "temperature", &v, e);
    if (rc != 0 || !v) return rc;
    if (!number_double(v, &x)) return api_error_bad(e, "temperature", "\"temperature\" must be a number");
    if (sampling_check("temperature", x, &err) != 0)
        return api_error_bad(e, "temperature", "%s", err.message);
    s->request.temperature = (float)x;
    if (x > 0) rng_draw(&s->request.seed, sizeof s->request.seed);
    return 0;
}

static int read_format(transcribe_spec *s, const multipart *m, api_error *e)
{
    const char *v = NULL;
    int rc = transcribe_parse_read_text(s, m, "response_format", &v, e);
    if (rc == 0 && v && !captions_parse(v, &s->format))
        rc = api_error_bad(e, "response_format",
                           "\"response_format\" must be json, text, srt, vtt or verbose_json");
    if (rc == 0) rc = read_flag(s, m, "stream", &s->stream, e);
    if (rc == 0 && s->stream && s->format != CAPTIONS_JSON && s->format != CAPTIONS_TEXT)
        rc = api_error_bad(e, "stream", "a stream is text alone: leave out \"response_format\"");
    s->request.times =
        s->format == CAPTIONS_SRT || s->format == CAPTIONS_VTT || s->format == CAPTIONS_VERBOSE_JSON;
    return rc;
}

/* "segment" is what verbose_json has anyway. */
static int check_granularities(const multipart *m, api_error *e)
{
    for (size_t i = 0; i < m->n; i++) {
        const multipart_part *p = &m->parts[i];
        if (strcmp(p->name, "timestamp_granularities[]") != 0 &&
            strcmp(p->name, "timestamp_granularities") != 0)
            continue;
        if (p->len != 7 || memcmp(p->data, "segment", 7) != 0)
            return api_error_bad(e, "timestamp_granularities",
                                 "only \"segment\" is given: words have no times of their own here");
    }
    return 0;
}

static void say_vad(transcribe_spec *s, bool on)
{
    s->request.vad = on ? SHOAL__V1__VOICE_ACTIVITY__VAD_ON : SHOAL__V1__VOICE_ACTIVITY__VAD_OFF;
}

/* "auto", or {"type": "server_vad"}; the detector has none of OpenAI's settings. */
static int check_chunking(const char *v, api_error *e)
{
    shoal_err err;
    json_t *o = NULL;
    if (strcmp(v, "auto") == 0) return 0;
    int rc = json_parse(&o, v, strlen(v), "chunking_strategy", &err);
    const char *type = rc == 0 ? json_string_value(json_object_get(o, "type")) : NULL;
    bool known = type && strcmp(type, "server_vad") == 0, bare = json_object_size(o) == 1;
    json_decref(o);
    if (!known)
        return api_error_bad(e, "chunking_strategy",
                             "\"chunking_strategy\" must be \"auto\" or {\"type\": \"server_vad\"}");
    if (!bare)
        return api_error_bad(
            e, "chunking_strategy",
            "\"chunking_strategy\" takes no threshold, padding or length here: leave them out");
    return 0;
}

/* "vad" is this server's name for it, "vad_filter" faster-whisper's, "chunking_strategy" OpenAI's. */
static int read_vad(transcribe_spec *s, const multipart *m, api_error *e)
{
    const char *own = NULL, *filter = NULL, *chunking = NULL;
    bool on = true, filters = true;
    int rc = transcribe_parse_read_text(s, m, "vad", &own, e);
    if (rc == 0) rc = transcribe_parse_read_text(s, m, "vad_filter", &filter, e);
    if (rc == 0) rc = transcribe_parse_read_text(s, m, "chunking_strategy", &chunking, e);
    if (rc == 0 && own && (strcasecmp(own, "on") == 0 || strcasecmp(own, "off") == 0))
        on = strcasecmp(own, "on") == 0;
    else if (rc == 0)
        rc = read_flag(s, m, "vad", &on, e);
    if (rc == 0) rc = read_flag(s, m, "vad_filter", &filters, e);
    if (rc == 0 && chunking) rc = check_chunking(chunking, e);
    if (rc != 0) return rc;
    bool off = (own && !on) || (filter && !filters);
    if (off && ((own && on) || (filter && filters) || chunking))
        return api_error_bad(e, own ? "vad" : "vad_filter",
                             "\"vad\", \"vad_filter\" and \"chunking_strategy\" contradict each other");
    if (own || filter || chunking) say_vad(s, !off);
    return 0;
}

/* OpenAI's "logprobs" of a transcription. */
static int refuse_include(const multipart *m, api_error *e)
{
    if (!multipart_find(m, "include[]") && !multipart_find(m, "include")) return 0;
    return api_error_bad(e, "include",
                         "\"include\" is not offered: transcripts have no log-probabilities here");
}

static int read_fields(transcribe_spec *s, const multipart *m, api_error *e)
{
    const char *language = "", *prompt = "";
    int rc = transcribe_parse_read_text(s, m, "model", &s->model, e);
    if (rc == 0) rc = transcribe_parse_read_text(s, m, "language", &language, e);
    if (rc == 0) rc = transcribe_parse_read_text(s, m, "prompt", &prompt, e);
    if (rc == 0) rc = read_temperature(s, m, e);
    if (rc == 0) rc = read_format(s, m, e);
    if (rc == 0) rc = check_granularities(m, e);
    if (rc == 0) rc = read_vad(s, m, e);
    if (rc == 0) rc = refuse_include(m, e);
    s->request.language = (char *)language;
    s->request.prompt = (char *)prompt;
    return rc;
}

int transcribe_spec_read(transcribe_spec *ret, bool translate, const multipart *fields, api_error *e)
{
    transcribe_spec s = {.format = CAPTIONS_JSON, .mem = arena_new(0)};
    s.request = (Shoal__V1__TranscribeRequest)SHOAL__V1__TRANSCRIBE_REQUEST__INIT;
    s.request.translate = translate;
    int rc = s.mem ? read_fields(&s, fields, e) : api_error_nomem(e);
    if (rc == 0)
        *ret = s;
    else
        transcribe_spec_done(&s);
    return rc;
}

bool transcribe_spec_key(const transcribe_spec *s, const char *identity, const sha256_digest *audio,
                         sha256_digest *ret)
{
    const Shoal__V1__TranscribeRequest *r = &s->request;
    if (r->temperature > 0) return false;
    cache_key *k = cache_key_new(r->translate ? "translations" : "transcriptions");
    cache_key_str(k, "identity", identity);
    cache_key_bytes(k, "audio", audio->bytes, sizeof audio->bytes);
    cache_key_str(k, "language", r->language);
    cache_key_str(k, "prompt", r->prompt);
    cache_key_int(k, "vad", (int64_t)r->vad);
    cache_key_int(k, "format", s->format);
    cache_key_int(k, "stream", s->stream);
    return cache_key_end(k, ret);
}
