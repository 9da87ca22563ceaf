/* transcription.h: sound into text, window by window, by whoever runs the engine.
 *
 * A model hears some seconds at once. A transcription leaves out what is no speech (trimmed.h), cuts the rest
 * into windows, says for each what the engine is to generate, and makes segments of what came, with the times
 * of the original. Where a model writes time tokens, the next window begins where its last whole segment
 * ended; else each piece of speech is a window, and one that is too long is cut in a pause or, where there is
 * none, into windows that overlap, of which the second leaves out the words that it repeats. No more than a
 * window and some seconds of samples are in memory (sound.h).
 *
 *     transcription_new(&t, &tokens, sound, &options, &err);         // the sound is t's now
 *     while ((rc = transcription_next(t, &err)) > 0) {                // makes features: some milliseconds
 *         gen_request r;
 *         enc_request source;
 *         transcription_request(t, &r, &source);
 *         engine_generate(e, &r, ...);                                // EVENT_TOKEN: transcription_add
 *         transcription_take(t, on_segment, user, &err);              // after EVENT_DONE
 *     }
 *
 * A reply is checked: with <|nospeech|> over 0.6 and a mean log-probability below -1 nothing was said. One
 * that compresses more than 2.4 times, or is below -1, is generated again at temperature 0.2, 0.4 ... 1.0
 * (the same window comes from transcription_next again), unless the caller gave a temperature; of those that
 * all look wrong the likeliest is taken, and of phrases that it repeats three copies are left. Draws depend
 * on the seed, the place and the attempt alone.
 *
 * Where sound does not fill its window, a model with time tokens first gets a part of it, which costs less:
 * 2.56 s behind the sound, 10.24 s at least, and half of the window at most. A reply to a part that is
 * doubtful (no end, no text, below -0.3, repeating itself) is dropped, and transcription_next gives the whole
 * window, which is then as any other.
 *
 * Time tokens come in pairs and never go back, a text begins and ends with one, and some tokens are never
 * said: that is a gen_rule of its own, a function of the reply alone. The language is the likeliest one
 * behind <|startoftranscript|> unless it is given. One thread at a time; the rule may be asked from another
 * one. Source: Radford et al. 2022; openai/whisper transcribe.py, decoding.py (without the text of earlier
 * windows as a prompt). */
#ifndef SPEECH_TRANSCRIPTION_H
#define SPEECH_TRANSCRIPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "infer/engine.h"
#include "signal/sound.h"
#include "speech/whisper_tokens.h"

/* Zero means what stands in brackets. */
typedef struct transcription_options {
    const char *language; /* code or English name [find out] */
    bool translate;       /* into English */
    bool times;           /* segments by the model's time tokens, where it has them; long sound always */
    const char *prompt;   /* words and spellings that the sound may hold [none] */
    float temperature;    /* [0: greedy, and higher where a reply looks wrong] */
    bool full_window;     /* every window is computed whole [a part of it, of short sound] */
    bool no_vad;          /* the model hears everything, noise and silence, too [speech alone] */
    uint64_t seed;
    size_t n_ctx;         /* the engine's context [the model's] */
    uint64_t deadline_ns; /* [none] */
} transcription_options;

/* Borrowed during the callback. */
typedef struct heard_segment {
    int64_t start_ms, end_ms, window_ms; /* window_ms: where its window began */
    const char *text;                    /* NUL-terminated UTF-8, len bytes; Whisper's begin with a space */
    size_t len;
    const int32_t *ids; /* time tokens included */
    size_t n_ids;
    /* Of its window: */
    double avg_logprob;       /* of the tokens, the end included */
    double compression_ratio; /* of the text, by zlib */
    double temperature;       /* that the reply was drawn at */
    double no_speech_prob;    /* 0 also where the model has no such token */
} heard_segment;

typedef void (*heard_fn)(void *user, const heard_segment *s);

typedef struct transcription transcription;

/* The sound (at the model's rate) is taken, whatever comes of it, and measured if it is not yet; h is
 * borrowed, and so are a file's bytes. SHOAL_EINVALID: a language or a task that the model does not know. */
int transcription_new(transcription **ret, const whisper_tokens *h, sound *s, const transcription_options *o,
                      shoal_err *err);
void transcription_free(transcription *t); /* NULL is fine; not while the engine has its request */

/* Can short sound be heard without computing its whole window? */
bool transcription_shortens(const whisper_tokens *h);

/* 1: the next window is ready; 0: all has been heard; or an error. Costs a window's features. */
int transcription_next(transcription *t, shoal_err *err);
/* What the engine is to generate; both borrow from t. */
void transcription_request(transcription *t, gen_request *ret, enc_request *ret_source);
/* A token of the reply. */
int transcription_add(transcription *t, int32_t id, float logprob); /* 0 or SHOAL_ENOMEM */
/* The window's reply is whole: its segments, in order, unless it is to be generated again. fn may be NULL. */
int transcription_take(transcription *t, heard_fn fn, void *user, shoal_err *err);

/* Set once the first window was taken, if it was not given; NULL: not known (a model without languages). */
const whisper_language *transcription_language(const transcription *t);
int64_t transcription_duration_ms(const transcription *t);
int64_t transcription_done_ms(const transcription *t); /* heard so far */
size_t transcription_windows(const transcription *t);  /* that a model heard, each counted once */
/* Bytes of samples that one transcription has in memory at most, beside the file. */
size_t transcription_bytes(const whisper_tokens *h);

#endif
