/* fields.h: fields of a JSON request, with errors in the OpenAI form that name the field.
 *
 * Absent and null leave *ret as it was. Each returns 0 or the HTTP status in *e. */
#ifndef MESSAGES_FIELDS_H
#define MESSAGES_FIELDS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "messages/api_error.h"

/* The body as a JSON object; the caller owns *ret. */
int fields_parse(json_t **ret, const char *body, size_t len, api_error *e);
int fields_str(const json_t *o, const char *key, const char **ret, api_error *e);
int fields_int(const json_t *o, const char *key, int64_t min, int64_t max, int64_t *ret, api_error *e);
/* "seed": any integer from -2^63 to 2^64, as clients draw them. */
int fields_seed(const json_t *o, int64_t *ret, api_error *e);
int fields_num(const json_t *o, const char *key, double min, double max, float *ret, api_error *e);
int fields_bool(const json_t *o, const char *key, bool *ret, api_error *e);
/* NULL when absent or null. */
const json_t *fields_get(const json_t *o, const char *key);
/* Put v under the key, resp. at the end of the list. v is taken; NULL: memory ran out. */
int fields_put(json_t *o, const char *key, json_t *v, api_error *e);
int fields_append(json_t *list, json_t *v, api_error *e);
/* A field's name in another API, and here. */
typedef struct fields_name {
    const char *theirs, *ours;
} fields_name;
/* Put the fields that `from` has into `to` under our names. */
int fields_rename(json_t *to, const json_t *from, const fields_name *rows, size_t n, api_error *e);
/* Append the bytes of a file in base64, as it is or as a data: URL; `what` it is ("sound file") goes into the
 * sentence. */
int fields_file(const json_t *o, const char *key, const char *what, buf *ret, api_error *e);
/* The text of a JSON string that has no NUL in it, else NULL. */
const char *fields_text(const json_t *v);

#endif
