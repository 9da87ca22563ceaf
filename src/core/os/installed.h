/* installed.h: the files that came with this program: in PREFIX/share/shoal for PREFIX/bin/shoal, in the root
 * of a tree for its build/shoal; a program in a folder of another name has none.
 *
 *     char path[INSTALLED_PATH_BYTES];
 *     if (installed_find(path, sizeof path, "models/models.json")) ... */
#ifndef OS_INSTALLED_H
#define OS_INSTALLED_H

#include <stdbool.h>
#include <stddef.h>

#define INSTALLED_PATH_BYTES 4200

/* The i-th place, from 0, where the file `name` may be; false when there are no more (or the system does not
 * say where the program is, or the path is too long). Any thread. */
bool installed_place(char *out, size_t cap, size_t i, const char *name);
/* Does that file lie in PREFIX/share/shoal? A package owns it, and nothing is to be put there. */
bool installed_has(const char *path);
/* The first of them where it is; false: out is "". */
bool installed_find(char *out, size_t cap, const char *name);

#endif
