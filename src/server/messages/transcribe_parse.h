/* transcribe_parse.h: what comes with the sound file of /v1/audio/transcriptions and /v1/audio/translations,
 * as a checked struct. Pure. */
#ifndef MESSAGES_TRANSCRIBE_PARSE_H
#define MESSAGES_TRANSCRIBE_PARSE_H

#include "base/buf.h"
#include "base/sha256.h"
#include "messages/api_error.h"
#include "messages/upload.h"
#include "shoal/v1/worker.pb-c.h"
#include "formats/captions.h"

typedef struct transcribe_spec {
    arena *mem;        /* of the strings */
    const char *model; /* NULL: the only one with the task */
    captions_format format;
    bool stream;
    Shoal__V1__TranscribeRequest request; /* without audio */
} transcribe_spec;

/* Names of fields that mean something, then NULL. The others are ignored, as OpenAI does. */
extern const char *const TRANSCRIBE_FIELDS[];

/* 0 and *ret (transcribe_spec_done), or an HTTP status with *e filled and *ret untouched. */
int transcribe_spec_read(transcribe_spec *ret, bool translate, const multipart *fields, api_error *e);
void transcribe_spec_done(transcribe_spec *s); /* accepts a zeroed one */
/* The cache key for the model of that identity and the sound of that one; false: the answer is drawn, or
 * memory ran out. */
bool transcribe_spec_key(const transcribe_spec *s, const char *identity, const sha256_digest *audio,
                         sha256_digest *ret);

#endif
