/* detect_parse.h: requests of /v1/vad: a form with a sound file, or the file itself. Pure. */
#ifndef MESSAGES_DETECT_PARSE_H
#define MESSAGES_DETECT_PARSE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/sha256.h"
#include "messages/api_error.h"
#include "shoal/v1/worker.pb-c.h"

typedef struct detect_spec {
    char model[96];                         /* "": the only one with the task */
    Shoal__V1__DetectSpeechRequest request; /* its audio is the body's */
} detect_spec;

/* 0 and *ret, or an HTTP status with *e filled. A form has file, and may have model, threshold,
 * min_speech_ms, min_silence_ms, max_speech_ms, pad_ms and probabilities; a body of audio/... is the file. */
int detect_spec_parse(detect_spec *ret, const char *content_type, const char *body, size_t len, api_error *e);
/* The cache key for the model of that identity; false when memory ran out. */
bool detect_spec_key(const detect_spec *s, const char *identity, sha256_digest *ret);

#endif
