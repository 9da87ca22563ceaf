/* detect_parse.c: fields of /v1/vad; see detect_parse.h. The ranges are signal/vad.h's to check, in the
 * worker. */
#include "messages/detect_parse.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/number.h"
#include "messages/multipart.h"
#include "cache/cache_key.h"

#define MS_MAX 86400000.0

/* The part's text into out; false when it does not fit or is none. */
static bool detect_parse_text_of(const multipart_part *p, char *out, size_t cap)
{
    if (p->len >= cap || memchr(p->data, '\0', p->len)) return false;
    memcpy(out, p->data, p->len);
    out[p->len] = '\0';
    return true;
}

static int read_number(const multipart *m, const char *name, double max, double *ret, api_error *e)
{
    const multipart_part *p = multipart_find(m, name);
    char text[40];
    double v = 0;
    if (!p) return 0;
    if (!detect_parse_text_of(p, text, sizeof text) || !number_double(text, &v) || !(v >= 0 && v <= max))
        return api_error_bad(e, name, "\"%s\" must be a number from 0 to %g", name, max);
    *ret = v;
    return 0;
}

static int read_form(detect_spec *s, const multipart *m, api_error *e)
{
    Shoal__V1__DetectSpeechRequest *r = &s->request;
    const multipart_part *file = multipart_find(m, "file"), *model = multipart_find(m, "model"),
                         *all = multipart_find(m, "probabilities");
    if (!file) return api_error_bad(e, "file", "\"file\" must be a sound file");
    r->audio.data = (uint8_t *)file->data;
    r->audio.len = file->len;
    if (model && !detect_parse_text_of(model, s->model, sizeof s->model))
        return api_error_bad(e, "model", "\"model\" must be a model's name");
    r->probabilities = all && all->len == 4 && strncasecmp(all->data, "true", 4) == 0;
    if (all && !r->probabilities && !(all->len == 5 && strncasecmp(all->data, "false", 5) == 0))
        return api_error_bad(e, "probabilities", "\"probabilities\" must be true or false");
    int rc = read_number(m, "threshold", 1, &r->threshold, e);
    if (rc == 0) rc = read_number(m, "min_speech_ms", MS_MAX, &r->min_speech_ms, e);
    if (rc == 0) rc = read_number(m, "min_silence_ms", MS_MAX, &r->min_silence_ms, e);
    if (rc == 0) rc = read_number(m, "max_speech_ms", MS_MAX, &r->max_speech_ms, e);
    return rc ? rc : read_number(m, "pad_ms", MS_MAX, &r->pad_ms, e);
}

static int parse_form(detect_spec *s, const char *content_type, const char *body, size_t len, api_error *e)
{
    multipart *m = malloc(sizeof *m);
    int rc = m ? multipart_parse(m, content_type, body, len, e) : api_error_nomem(e);
    if (rc == 0) rc = read_form(s, m, e);
    free(m);
    return rc;
}

int detect_spec_parse(detect_spec *ret, const char *content_type, const char *body, size_t len, api_error *e)
{
    detect_spec s = {.request = SHOAL__V1__DETECT_SPEECH_REQUEST__INIT};
    int rc = 0;
    if (multipart_is_form(content_type)) {
        rc = parse_form(&s, content_type, body, len, e);
    } else if (content_type && strncasecmp(content_type, "audio/", 6) == 0) {
        s.request.audio.data = (uint8_t *)body;
        s.request.audio.len = len;
    } else {
        rc = api_error_set(e, 415, "invalid_request_error", "unsupported_media_type", NULL,
                           "the content type must be multipart/form-data, or audio/... with the file as the "
                           "body");
    }
    if (rc == 0 && s.request.audio.len == 0) rc = api_error_bad(e, "file", "the sound file is empty");
    if (rc == 0) *ret = s;
    return rc;
}

bool detect_spec_key(const detect_spec *s, const char *identity, sha256_digest *ret)
{
    const Shoal__V1__DetectSpeechRequest *r = &s->request;
    cache_key *k = cache_key_new("vad");
    cache_key_str(k, "identity", identity);
    cache_key_bytes(k, "audio", r->audio.data, r->audio.len);
    cache_key_num(k, "threshold", r->threshold);
    cache_key_num(k, "min_speech_ms", r->min_speech_ms);
    cache_key_num(k, "min_silence_ms", r->min_silence_ms);
    cache_key_num(k, "max_speech_ms", r->max_speech_ms);
    cache_key_num(k, "pad_ms", r->pad_ms);
    cache_key_int(k, "probabilities", r->probabilities);
    return cache_key_end(k, ret);
}
