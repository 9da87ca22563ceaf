/* hub_file.h: files of models as model hubs deliver them and Python writes them.
 *
 * A clone without Git LFS leaves small pointer files where the large files should be, and a download that needs a login
 * may leave a web page. Python's json module writes NaN, Infinity and -Infinity, which JSON does not have; some editors
 * put a byte order mark in front. Requests and our own files are read strictly (json.h). Any thread. */
#ifndef JSON_HUB_FILE_H
#define JSON_HUB_FILE_H

#include <jansson.h>

#include "base/buf.h"
#include "base/err.h"

/* SHOAL_EFORMAT: data[0..n), the beginning of the file `path`, is a Git LFS pointer or an HTML page. */
int hub_file_check(const void *data, size_t n, const char *path, shoal_err *err);

/* Rewrite a text as JSON has it: no byte order mark; NaN is null, Infinity and -Infinity are the largest and the
 * smallest double. The rest, right or wrong, stays. 0 or SHOAL_ENOMEM. */
int hub_file_plain_json(buf *text);

/* Append a file of at most max_bytes, checked, and as JSON has it. */
int hub_file_read_json(buf *out, const char *path, size_t max_bytes, shoal_err *err);
/* The same, parsed; *ret is the caller's. */
int hub_file_parse_json(json_t **ret, const char *path, size_t max_bytes, shoal_err *err);

#endif
