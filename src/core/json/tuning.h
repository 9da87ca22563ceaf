/* tuning.h: how a worker is to run its model: the options that are its own, in one table.
 *
 * shoal.yaml, requests that load a model, `shoal load` and `shoal worker` read these rows, so that none of
 * them takes what another refuses. Agents and the protocol between machines carry them as texts
 * ("kv_type=q8_0") and know no option. A new one is a row here, its line in config_help.c, and its use in
 * backend/backend_tuning.c.
 *
 *     tuning t = {0};
 *     tuning_parse(&t, "max_batch=4 kv_type=q8_0", &err);
 *     t.max_batch == 4; strcmp(tuning_kv_type_words[t.kv_type], "q8_0") == 0; */
#ifndef JSON_TUNING_H
#define JSON_TUNING_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "json/json.h"

/* UINT(key, least, most, what it is for): 0 is not said. WORD(key, what it is for, words ...): the first, which
 * is 0, is not said either. */
#define TUNING_TABLE(UINT, WORD)                                                                         \
    UINT(max_batch, 1, 1024, "sequences that decode together")                                           \
    UINT(max_queue, 1, 100000, "waiting requests")                                                       \
    UINT(prefill_chunk, 8, 65536, "tokens of a prompt read in one step")                                 \
    WORD(drafts, "whether next tokens are guessed, where that is faster", "auto", "off")                 \
    WORD(regroup, "a type with wider groups that its matrices are brought to", "off", "s8_64", "s8_128", \
         "s8_256", "s4_64", "s4_128")                                                                    \
    WORD(kv_type, "what keys and values are kept as", "auto", "f32", "f16", "q8_0")                      \
    WORD(vad, "whether a transcription leaves out what is no speech", "on", "off")                       \
    WORD(audio_window, "what the encoder computes of a window that short sound does not fill", "speech", \
         "full")

typedef struct tuning { /* zeroed: nothing is said */
#define TUNING_UINT(key, least, most, about) unsigned key;
#define TUNING_WORD(key, about, ...)         unsigned key;
    TUNING_TABLE(TUNING_UINT, TUNING_WORD)
#undef TUNING_UINT
#undef TUNING_WORD
} tuning;

/* "tuning_KEY_words": the words of each WORD; NULL behind the last. */
#define TUNING_UINT(key, least, most, about)
#define TUNING_WORD(key, about, ...) extern const char *const tuning_##key##_words[];
TUNING_TABLE(TUNING_UINT, TUNING_WORD)
#undef TUNING_UINT
#undef TUNING_WORD

typedef struct tuning_row {
    const char *key, *about;
    size_t at;                /* of the unsigned in a tuning */
    unsigned least, most;     /* of numbers */
    const char *const *words; /* NULL: a number */
} tuning_row;

#define TUNING_COUNT(...) +1
enum { TUNING_N_ROWS = 0 TUNING_TABLE(TUNING_COUNT, TUNING_COUNT), TUNING_TEXT_BYTES = 512 };
#undef TUNING_COUNT
extern const tuning_row tuning_rows[TUNING_N_ROWS];

/* "" where row i is not said; else its value, "q8_0" or a number, which is in `number` then. */
const char *tuning_value(const tuning *t, size_t i, char number[12]);
/* SHOAL_EINVALID: there is no such key, or no such value. */
int tuning_set(tuning *t, const char *key, const char *value, shoal_err *err);
/* What `over` says is put over what *t says. */
void tuning_override(tuning *t, const tuning *over);
/* Says `all` whatever `few` says, and the same? */
bool tuning_includes(const tuning *all, const tuning *few);

/* "max_batch=4 kv_type=q8_0": what is said, in the table's order; "" when nothing is. */
void tuning_format(const tuning *t, char ret[TUNING_TEXT_BYTES]);
/* The same back, put over what *t says. SHOAL_EINVALID as tuning_set. */
int tuning_parse(tuning *t, const char *text, shoal_err *err);
/* Into an object, a number or a text each. 0 or -1. */
int tuning_put_json(json_t *o, const tuning *t);

#endif
