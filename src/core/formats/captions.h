/* captions.h: a transcript in the forms that OpenAI's transcription endpoint answers in.
 *
 *     caption c[] = {{.start_ms = 0, .end_ms = 1200, .text = " Turn on", .len = 8}, ...};
 *     transcript t = {.language = "english", .duration_ms = 2500, .segments = c, .n_segments = 2};
 *     captions_write(&out, CAPTIONS_SRT, &t);
 *
 * Pure functions. Texts come from models: bytes that are no UTF-8 become U+FFFD; in cues line breaks and
 * control characters become spaces, "-->" becomes "-- >", and what WebVTT would read as markup is escaped, so
 * that no text can forge a cue. */
#ifndef FORMATS_CAPTIONS_H
#define FORMATS_CAPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

/* X(enum, response_format, content type) */
#define CAPTIONS_TABLE(X)                                         \
    X(CAPTIONS_JSON, "json", "application/json")                  \
    X(CAPTIONS_TEXT, "text", "text/plain; charset=utf-8")         \
    X(CAPTIONS_SRT, "srt", "application/x-subrip; charset=utf-8") \
    X(CAPTIONS_VTT, "vtt", "text/vtt; charset=utf-8")             \
    X(CAPTIONS_VERBOSE_JSON, "verbose_json", "application/json")
typedef enum captions_format {
#define CAPTIONS_ENUM(e, name, type) e,
    CAPTIONS_TABLE(CAPTIONS_ENUM)
#undef CAPTIONS_ENUM
        CAPTIONS_COUNT
} captions_format;

const char *captions_name(captions_format f); /* "srt" */
const char *captions_type(captions_format f); /* its Content-Type */
bool captions_parse(const char *name, captions_format *ret);

typedef struct caption {
    int64_t start_ms, end_ms;
    const char *text; /* len bytes, borrowed; Whisper's begin with a space */
    size_t len;
    /* What verbose_json says besides; zeros where nothing is known. */
    int64_t seek;        /* hundredths of a second where its window began */
    const uint32_t *ids; /* [n_ids] tokens */
    size_t n_ids;
    double temperature, avg_logprob, compression_ratio, no_speech_prob;
} caption;

typedef struct transcript {
    bool translated;      /* the task was to translate */
    const char *language; /* in English, lower case: "english"; NULL: not known */
    int64_t duration_ms;  /* of the sound */
    const char *text;     /* text_len bytes; NULL: the segments' texts one after the other */
    size_t text_len;
    const caption *segments;
    size_t n_segments;
} transcript;

/* Append t. The whole text loses blanks at both ends; segments without text make no cue. Returns 0 or
 * SHOAL_ENOMEM. */
int captions_write(buf *out, captions_format f, const transcript *t);

#endif
