/* docs_files.h: the files that `shoal docs add` takes: those that are named, and what lies in named folders.
 */
#ifndef CLI_ASK_DOCS_FILES_H
#define CLI_ASK_DOCS_FILES_H

#include <stddef.h>

#include "base/err.h"

enum { DOCS_FILES_MAX = 1000000, DOCS_DEPTH_MAX = 64 };

typedef struct docs_files {
    char **v; /* paths as they were given, without "./" in front and '/' behind; in order */
    size_t n, cap;
    size_t n_skipped; /* in folders: what is no text, Markdown, HTML or CSV by its ending */
} docs_files;

/* Add a file, or all of a folder and the folders in it: without names that begin with a dot, and without
 * following links to folders. SHOAL_ENOTFOUND: it is not there. */
int docs_files_add(docs_files *f, const char *path, shoal_err *err);
void docs_files_done(docs_files *f);

#endif
