/* whisper_tokens.h: what a Whisper-shaped model says about itself: its tokens, its languages, its features.
 *
 * A reply is steered by tokens in front of it: <|startoftranscript|><|en|><|transcribe|><|notimestamps|>.
 * Their ids come from generation_config.json (lang_to_id, task_to_id, no_timestamps_token_id,
 * prev_sot_token_id, suppress_tokens, begin_suppress_tokens) and, where it is silent, from the tokenizer,
 * which spells them as Whisper does. Time tokens, if there are any, follow no_timestamps: one for each 20 ms.
 *
 *     whisper_tokens h;
 *     whisper_tokens_init(&h, model, &err);
 *     const whisper_language *en = whisper_tokens_find_language(&h, "English");
 *
 * Immutable afterwards; any thread. Source: Radford et al. 2022 and openai/whisper tokenizer.py. */
#ifndef SPEECH_WHISPER_TOKENS_H
#define SPEECH_WHISPER_TOKENS_H

#include "base/err.h"
#include "model/model.h"
#include "signal/mel.h"

#define WHISPER_LANGUAGES_MAX 128

typedef struct whisper_language {
    int32_t id;       /* -1: it has no token */
    char code[8];     /* "en" */
    const char *name; /* "english"; static */
} whisper_language;

typedef struct whisper_tokens {
    const model *model;
    mel_options mel;
    size_t n_window;               /* samples that the model hears at once */
    size_t n_frames;               /* and its frames of features */
    size_t tick;                   /* samples between two time tokens */
    size_t n_vocab, n_ctx;         /* of the decoder */
    bool multilingual;             /* else neither language nor task is named in front of a reply; English */
    int32_t sot, eot;              /* what a reply begins with and ends with */
    int32_t transcribe, translate; /* -1, as the next four: the model has none */
    int32_t no_timestamps, no_speech, previous;
    int32_t time_0;              /* the first time token; -1: none */
    int32_t max_first_time;      /* the latest first time, in ticks; -1: any */
    whisper_language *languages; /* [n_languages] */
    size_t n_languages;
    int32_t *never, *never_first; /* ids that are never said, and those that a text never begins with */
    size_t n_never, n_never_first;
} whisper_tokens;

/* SHOAL_EUNSUPPORTED for a model that hears otherwise, or that has no tokenizer; SHOAL_EINVALID for a broken
 * configuration. The model is borrowed. whisper_tokens_done may be given *ret whatever is returned. */
int whisper_tokens_init(whisper_tokens *ret, const model *m, shoal_err *err);
/* Its part that reads the two texts (each may be NULL) for a model of n_mels bands and n_frames frames; h has
 * its sizes and ids already, and without a model no token is looked up by its spelling. */
int whisper_tokens_read(whisper_tokens *h, const char *generation_json, const char *preprocessor_json,
                        size_t n_mels, size_t n_frames, shoal_err *err);
void whisper_tokens_done(whisper_tokens *h);

/* By code, with or without a region ("en-US"), or by English name, in any case; NULL: the model does not know
 * it. */
const whisper_language *whisper_tokens_find_language(const whisper_tokens *h, const char *name);
const whisper_language *whisper_tokens_language_of(const whisper_tokens *h, int32_t id);

#endif
