/* languages.h: language codes and their English names. */
#ifndef SPEECH_LANGUAGES_H
#define SPEECH_LANGUAGES_H

#include <stddef.h>

typedef struct language {
    const char *code, *name; /* "en", "english" */
} language;

extern const language LANGUAGES[];
extern const size_t N_LANGUAGES;

/* By code or name, in any case; NULL: unknown. */
const language *language_find(const char *name);

#endif
