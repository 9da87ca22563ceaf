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
 * Strict: lines end in CRLF, every part has one Content-Disposition of form-data with a name, nothing nests,
 * and no transfer encoding is undone. In front of the first boundary and behind the last nothing is read.
 * Pure; what parts point to is the body's. */
#ifndef GATEWAY_MULTIPART_H
#define GATEWAY_MULTIPART_H

#include <stdbool.h>
#include <stddef.h>

#include "gateway/api_error.h"

#define MULTIPART_PARTS_MAX    64
#define MULTIPART_BOUNDARY_MAX 70   /* RFC 2046 */
#define MULTIPART_HEAD_MAX     4096 /* bytes of a part's headers */

typedef struct multipart_part {
    char name[64], filename[128]; /* filename: cut when longer; "" when there is none */
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
/* The first part of that name; NULL: none. */
const multipart_part *multipart_find(const multipart *m, const char *name);

#endif
