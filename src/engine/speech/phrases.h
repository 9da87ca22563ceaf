/* phrases.h: whether a transcript repeats itself, or what another one ended with.
 *
 * A model that has lost its place writes a phrase again and again; such a text compresses far better than
 * speech does. Pure functions. Source of the ratio: openai/whisper utils.py. */
#ifndef SPEECH_PHRASES_H
#define SPEECH_PHRASES_H

#include <stddef.h>
#include <stdint.h>

/* *ret: bytes of the text, blanks at its ends left out, over what zlib makes of them; 0: there is no text.
 * 0 or SHOAL_ENOMEM. */
int phrases_compression(const char *text, size_t n, double *ret);

/* Leaves three copies of each run of ids that comes four times or more in a row, whatever ids of at least
 * `time_0` (time tokens; -1: there are none) stand between; those stay. *n becomes how many ids are left. 0
 * or SHOAL_ENOMEM. */
int phrases_drop_loops(int32_t *ids, size_t *n, int32_t time_0);

/* Bytes at the beginning of `now` that repeat the last words of `before`, the first word of `now` perhaps cut
 * in half; 0: none do. Case and punctuation do not count. */
size_t phrases_repeated(const char *before, size_t n_before, const char *now, size_t n_now);

#endif
