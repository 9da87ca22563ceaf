/* json.h: jansson with bounds and with errors that name the field.
 *
 * jansson's refcounts are kept: json_t * that a getter returns is borrowed from its parent. */
#ifndef JSON_JSON_H
#define JSON_JSON_H

#include <jansson.h>
#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"

#define JSON_DEPTH_MAX     64
#define JSON_OWN_DEPTH_MAX 256

/* Parse exactly one JSON value of at most JSON_DEPTH_MAX levels; `what` names the source in errors.
 * The caller owns *ret (json_decref). Duplicate keys are refused. An integer that fits no int64_t is a real
 * number. */
int json_parse(json_t **ret, const char *text, size_t len, const char *what, shoal_err *err);

/* The same for what a model wrote: of a key that is there twice the last value counts, as clients' parsers
 * have it. */
int json_parse_last(json_t **ret, const char *text, size_t len, const char *what, shoal_err *err);

/* The same, to JSON_OWN_DEPTH_MAX levels, for what this program wrote itself around values of others. */
int json_parse_own(json_t **ret, const char *text, size_t len, const char *what, shoal_err *err);

/* Bytes of memory that the values of this text take, from above: of what was not parsed yet, valid or not. */
size_t json_memory_of(const char *text, size_t len);

/* The same for what a client sent: text whose values would take more than JSON_REQUEST_MEMORY(len) is
 * SHOAL_ELIMIT. Numbers and texts stay far below it; "{},{},..." takes eighty times its length. */
#define JSON_REQUEST_MEMORY(len) (40 * (len) + (4u << 20))
int json_parse_request(json_t **ret, const char *text, size_t len, const char *what, shoal_err *err);

/* Frees what a client's text became, as json_decref does. Of a value with many parts that takes long (50 ms
 * for 4 MiB of "[],"): a thread that may not wait so long, such as an event loop, names a function that has
 * it freed elsewhere. v may be NULL. */
void json_drop(json_t *v);
/* Of the calling thread; fn owns v then. NULL: no more. */
void json_set_drop_large(void (*fn)(void *user, json_t *v), void *user);

/* What json_parse_request made of a text on another thread, e.g. of a pool, while the loop served others. The
 * one who offers it on a thread has the next json_parse or json_parse_request of exactly this text there take
 * it:
 *
 *     json_ahead_run(&a, text, len);       // in the pool
 *     json_ahead_offer(&a);                // on the loop
 *     handle(text, len);                   // parses text, which costs nothing now
 *     json_ahead_offer(NULL);
 *     json_ahead_done(&a);                 // frees what was not taken */
enum { JSON_AHEAD_BYTES = 64 << 10 }; /* a longer text is worth another thread */
typedef struct json_ahead {
    const char *text; /* borrowed; NULL: nothing was parsed, or it has been taken */
    size_t len;
    json_t *value;
    int rc;
    shoal_err err; /* of rc, without the name of the source */
} json_ahead;
void json_ahead_run(json_ahead *a, const char *text, size_t len);
/* The same for a text that was just written from v, such as a request in another dialect: parsing it would
 * only make v again. Of a long text; the value that is offered is a copy of v that shares its parts, which
 * must not be changed. */
void json_ahead_from(json_ahead *a, const buf *text, const json_t *v);
void json_ahead_offer(json_ahead *a); /* NULL: no more */
void json_ahead_done(json_ahead *a);

/* The same as json_parse for a file of at most max_bytes. */
int json_parse_file(json_t **ret, const char *path, size_t max_bytes, shoal_err *err);

/* Optional fields: absent or null leaves *ret as it was (set the default before); a wrong type or a
 * value out of [min, max] is SHOAL_EINVALID with the key in the sentence. Strings are borrowed. */
int json_get_str(const json_t *o, const char *key, const char **ret, shoal_err *err);
int json_get_int(const json_t *o, const char *key, int64_t min, int64_t max, int64_t *ret, shoal_err *err);
int json_get_num(const json_t *o, const char *key, double min, double max, double *ret, shoal_err *err);
int json_get_bool(const json_t *o, const char *key, bool *ret, shoal_err *err);

/* Members of what is trusted or only shown: "" or 0 where there is none, or one of another type. The text is
 * borrowed. */
const char *json_text_of(const json_t *o, const char *key);
double json_number_of(const json_t *o, const char *key);
json_int_t json_integer_of(const json_t *o, const char *key);

/* Append compact JSON of v, resp. the quoted and escaped string s[0..n) (must be valid UTF-8;
 * invalid bytes become U+FFFD). */
int json_put(buf *out, const json_t *v);
int json_put_digits(buf *out, const json_t *v, int digits); /* significant ones, of real numbers [17] */
void json_put_number(buf *out, double v,
                     int digits); /* a real number, as json_put_digits writes it: 1.0, 1e-5 */
int json_put_string(buf *out, const char *s, size_t n);

#endif
