/* rule.h: which token may follow in a reply of a model that hears; see transcription.h.
 *
 * The tokens in front of the text are a part of the rule: the reply is language, task and, without times,
 * <|notimestamps|>, as far as the model has them, then the text. So the row behind <|startoftranscript|>
 * tells the language and whether anybody speaks, at the cost of two short steps. */
#ifndef SPEECH_RULE_H
#define SPEECH_RULE_H

#include <stdbool.h>

#include "speech/whisper_tokens.h"

typedef struct speech_rule {
    const whisper_tokens *h;
    bool times;
    bool finds_language; /* the first token is one of the languages */
    int32_t lead[3];     /* else, and behind it: these tokens */
    size_t n_lead;       /* with the language */
    bool ends_loops;     /* a reply ends where it begins to repeat itself (speech_rule_repeats) */
    float no_speech;     /* out: the probability of <|nospeech|> behind <|startoftranscript|>; 0: unknown */
} speech_rule;

/* language NULL: it is to be found out, if there is more than one. */
void speech_rule_init(speech_rule *r, const whisper_tokens *h, const whisper_language *language,
                      bool translate, bool times);
/* Do the last four of these ids stand earlier in them, too, or are both of their halves equal? */
bool speech_rule_repeats(const int32_t *ids, size_t n);
/* A gen_rule's mask; user is the speech_rule. */
void speech_rule_mask(void *user, const int32_t *ids, size_t n, float *logits, size_t n_vocab);

#endif
