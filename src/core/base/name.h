/* name.h: the one rule for names of models, routes, pipelines, ensembles, adapters, keys and collections.
 *
 * Names stand in paths, URLs, command lines and metrics: one that begins with '.' is a folder or a hidden
 * file, and one that begins with '-' an option. */
#ifndef BASE_NAME_H
#define BASE_NAME_H

#include <stdbool.h>
#include <stddef.h>

#define NAME_BYTES_MAX 64
/* Behind the name in a sentence that refuses it. */
#define NAME_RULE "may hold letters, digits, '-', '_' and '.' only, and begins with a letter, a digit or '_'"

/* 1 to NAME_BYTES_MAX letters, digits, '-', '_' and '.', the first neither '-' nor '.'. */
bool name_is_fine(const char *s, size_t n);

/* A name that is like s: each byte that no name may have becomes '-', and the end beyond NAME_BYTES_MAX goes. False:
 * that is no name either. */
bool name_make_fine(char ret[NAME_BYTES_MAX + 1], const char *s, size_t n);

/* Behind NAME_RULE: ", such as llama3.2-1b" of "llama3.2:1b"; "" where no name is like it. Returns ret. */
#define NAME_SUCH_SIZE (NAME_BYTES_MAX + 16)
const char *name_such(char ret[NAME_SUCH_SIZE], const char *s);

/* Of "NAME:latest", as Ollama's clients write it, NAME, copied into ret; else s itself. */
const char *name_without_latest(char ret[NAME_BYTES_MAX + 1], const char *s);

#endif
