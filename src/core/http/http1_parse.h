/* http1_parse.h: the strict reading of HTTP/1.1 bytes (RFC 9112), without any I/O.
 *
 * What two parties read differently is what request smuggling is made of. So nothing is forgiven that the
 * grammar does not have: bare LF, folded lines, space before a colon, a second length, odd chunk lines. */
#ifndef HTTP_HTTP1_PARSE_H
#define HTTP_HTTP1_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

bool http1_is_token(const char *s, size_t n);       /* RFC 9110 5.6.2, not empty */
bool http1_is_field_value(const char *s, size_t n); /* no control characters but tab */

/* Slices of the line. The method is any token but CONNECT, which would make a proxy of the server: whether a
 * path has it is for the handler to say (405). */
typedef struct http1_request_line {
    const char *method, *target;
    size_t n_method, n_target;
    int version; /* 10 or 11 */
} http1_request_line;

typedef struct http1_field {
    const char *name, *value; /* the value without the blanks around it */
    size_t n_name, n_value;
} http1_field;

/* One line without its CRLF: 0 when well formed, else the status to refuse with (400, 501, 505);
 * *ret_why is a literal sentence. */
int http1_parse_request_line(const char *line, size_t n, http1_request_line *ret, const char **ret_why);
int http1_parse_field(const char *line, size_t n, http1_field *ret, const char **ret_why);
/* Is `word` one of the comma-separated list, in any letter case? */
bool http1_lists(const char *list, const char *word);

/* "host", "host:port", "[v6]:port" or empty, of the characters RFC 3986 allows there. */
bool http1_is_host(const char *s);
/* Digits only, at most 18 of them. */
bool http1_parse_length(const char *s, uint64_t *ret);

/* The find of the next line in data[0..n): its length without CRLF, and *ret_used with it. */
typedef enum { HTTP1_LINE, HTTP1_LINE_PARTIAL, HTTP1_LINE_BAD } http1_line;
http1_line http1_next_line(const char *data, size_t n, size_t *ret_len, size_t *ret_used);

/* A chunked body being taken apart. A zeroed one stands before the first chunk. */
typedef struct http1_chunks {
    enum { CHUNK_SIZE, CHUNK_DATA, CHUNK_DATA_END, CHUNK_TRAILERS, CHUNK_DONE } state;
    uint64_t left;        /* of the current chunk's data */
    size_t trailer_bytes; /* seen so far */
} http1_chunks;

/* Take what can be taken of data[0..n); body bytes go to `body`. Returns 0 (look at ret_used and state),
 * or a status: 400 malformed, 413 body over max_body, 431 trailers over max_trailers. */
int http1_chunks_feed(http1_chunks *c, const char *data, size_t n, size_t max_body, size_t max_trailers,
                      buf *body, size_t *ret_used, const char **ret_why);

#endif
