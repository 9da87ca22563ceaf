/* multipart.h: a form with files, as browsers and HTTP clients send it (multipart/form-data, RFC 7578).
 *
 *     --B
 *     Content-Disposition: form-data; name="file"; filename="a.wav"
 *
 *     bytes--B--
 *
 *     multipart m;
 *     rc = multipart_parse(&m, "multipart/form-data; boundary=B", body, len, &e);
 *     const multipart_part *file = multipart_find(&m, "file");
 *
 * The same as it comes, in pieces of any size, whose parts need not fit into memory:
 *
 *     multipart_reader r;
 *     rc = multipart_open(&r, content_type, &(multipart_events){.user = j, .part = p, .data = d}, &e);
 *     rc = multipart_push(&r, bytes, n, &e);      // for each piece: part, data, data, part, data ...
 *     rc = multipart_close(&r, &e);               // was the last boundary there?
 *
 * Strict: lines end in CRLF, every part has one Content-Disposition of form-data with a name, nothing nests,
 * no transfer encoding is undone, and a name is there once, unless it ends in "[]", as those of lists do. In
 * front of the first boundary and behind the last nothing is read. Pure; what parts point to is the body's.
 */
#ifndef MESSAGES_MULTIPART_H
#define MESSAGES_MULTIPART_H

#include <stdbool.h>
#include <stddef.h>

#include "messages/api_error.h"

#define MULTIPART_PARTS_MAX    64
#define MULTIPART_BOUNDARY_MAX 70   /* RFC 2046 */
#define MULTIPART_HEAD_MAX     4096 /* bytes of a part's headers */
#define MULTIPART_NAME_MAX     64   /* with its NUL */

typedef struct multipart_part {
    char name[MULTIPART_NAME_MAX], filename[128]; /* filename: cut when longer; "" when there is none */
    bool has_filename;
    const char *data; /* len bytes, not terminated */
    size_t len;
} multipart_part;

typedef struct multipart {
    size_t n;
    multipart_part parts[MULTIPART_PARTS_MAX];
} multipart;

/* Is this Content-Type (NULL: none) one of multipart/form-data? */
bool multipart_is_form(const char *content_type);
/* 0, or the HTTP status with *e filled. */
int multipart_parse(multipart *ret, const char *content_type, const char *body, size_t len, api_error *e);
/* What comes of a form that is read in pieces. Each returns 0, or an HTTP status with *e filled, which ends
 * the reading. A part ends where the next begins, and the last at multipart_close. */
typedef struct multipart_events {
    void *user;
    int (*part)(void *user, const multipart_part *head, api_error *e);  /* without data; head is borrowed */
    int (*data)(void *user, const char *bytes, size_t n, api_error *e); /* n > 0; borrowed */
} multipart_events;

typedef struct multipart_reader {
    multipart_events ev;
    char boundary[4 + MULTIPART_BOUNDARY_MAX]; /* CRLF, two dashes and the boundary */
    size_t n_boundary;
    unsigned state;
    size_t n_matched; /* bytes of the boundary that ended what has come, */
    size_t n_implied; /* the first of which are no data when it is none: they ended the headers */
    size_t n_parts;
    char names[MULTIPART_PARTS_MAX][MULTIPART_NAME_MAX]; /* of the parts so far */
    char head[MULTIPART_HEAD_MAX + 2]; /* the lines of a part's headers, as far as they have come */
    size_t n_head, line_at;
} multipart_reader;

/* 0, or the HTTP status with *e filled, as the next two. *ev is copied. */
int multipart_open(multipart_reader *ret, const char *content_type, const multipart_events *ev, api_error *e);
/* After an error the reader is not to be used again. */
int multipart_push(multipart_reader *r, const char *bytes, size_t n, api_error *e);
int multipart_close(const multipart_reader *r, api_error *e);
/* The first part of that name; NULL: none. */
const multipart_part *multipart_find(const multipart *m, const char *name);

#endif
