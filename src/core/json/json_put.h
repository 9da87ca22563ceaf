/* json_put.h: JSON written member by member into a buf.
 *
 *     buf_putc(out, '{');
 *     json_put_text(out, "model", name);           // {"model":"home-chat-s"
 *     buf_printf(out, ",\"n\":%zu", n);            // ,"n":2
 *     json_put_texts(out, "files", files, n);      // ,"files":["a","b"]
 *     buf_putc(out, '}');
 *
 * A member is preceded by a comma unless it follows one of "{[:,", a space, a newline, or nothing. So the state is
 * in the bytes, and buf_printf can write between the calls. key NULL: an entry of a list. Keys are our own
 * words, which need no escape. Failures stick to the buf. */
#ifndef JSON_JSON_PUT_H
#define JSON_JSON_PUT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

void json_put_key(buf *out, const char *key);                 /* the comma and "key": */
void json_put_open(buf *out, const char *key, char bracket);  /* the same, and '{' or '[' */
void json_put_text(buf *out, const char *key, const char *s); /* NULL is "" */
void json_put_text_n(buf *out, const char *key, const char *s, size_t n);
void json_put_filled(buf *out, const char *key, const char *s); /* nothing where s is NULL or "" */
void json_put_buf(buf *out, const char *key, const buf *text);  /* takes over its failure */
void json_put_texts(buf *out, const char *key, const char *const *list, size_t n);
void json_put_bool(buf *out, const char *key, bool v);
void json_put_integer(buf *out, const char *key, int64_t v);
void json_put_real(buf *out, const char *key, double v,
                   int digits); /* as json_put_digits; null: no finite number */
void json_put_json(buf *out, const char *key, const json_t *v, int digits);

#endif
