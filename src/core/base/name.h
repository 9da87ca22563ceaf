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

/* Of "NAME:latest", as Ollama's clients write it, NAME, copied into ret; else s itself. */
const char *name_without_latest(char ret[NAME_BYTES_MAX + 1], const char *s);

#endif
