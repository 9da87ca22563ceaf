/* transcribe_parse.h: forms of /v1/audio/transcriptions and /v1/audio/translations as checked structs. Pure.
 */
#ifndef GATEWAY_TRANSCRIBE_PARSE_H
#define GATEWAY_TRANSCRIBE_PARSE_H

#include "base/buf.h"
#include "base/sha256.h"
#include "gateway/api_error.h"
#include "shoal/v1/worker.pb-c.h"
#include "signal/captions.h"

typedef struct transcribe_spec {
    arena *mem;        /* of the strings */
    const char *model; /* NULL: the only one with the task */
    captions_format format;
    bool stream;
    Shoal__V1__TranscribeRequest request; /* its audio is the body's */
} transcribe_spec;

/* 0 and *ret (transcribe_spec_done), or an HTTP status with *e filled and *ret untouched. The body must
 * outlive the spec's use of request.audio. Fields that nobody knows are ignored, as OpenAI does. */
int transcribe_spec_parse(transcribe_spec *ret, bool translate, const char *content_type, const char *body,
                          size_t len, api_error *e);
void transcribe_spec_done(transcribe_spec *s); /* accepts a zeroed one */
/* The cache key for the model file of that digest; false: the answer is drawn, or memory ran out. */
bool transcribe_spec_key(const transcribe_spec *s, const char *digest, sha256_digest *ret);

#endif
