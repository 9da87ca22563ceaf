/* upload.h: a request that brings a file, as it comes: a form with fields, or the file as the whole body with
 * the fields in the URL's query.
 *
 *     upload_open(&u, content_type, query, NAMES, &(upload_events){.user = j, .file = f, .data = d}, &e);
 *     upload_push(&u, bytes, n, &e);    // file once, where it begins; data for each piece of it
 *     upload_close(&u, &e);
 *     const multipart *fields = upload_fields(&u);    // at any time: those that have come whole
 *
 * Fields are kept, the file is not: memory is bounded by MULTIPART_PARTS_MAX fields of UPLOAD_FIELD_MAX
 * bytes. Loop thread. */
#ifndef MESSAGES_UPLOAD_H
#define MESSAGES_UPLOAD_H

#include "base/buf.h"
#include "messages/multipart.h"

#define UPLOAD_FIELD_MAX 8192 /* of a longer field one byte more is kept, for its reader to refuse */

typedef struct upload_events { /* return 0, or an HTTP status with *e filled */
    void *user;
    int (*file)(void *user, api_error *e);
    int (*data)(void *user, const char *bytes, size_t n, api_error *e); /* n > 0; borrowed */
} upload_events;

typedef struct upload {
    upload_events ev;
    const char *const *names; /* of the fields that are kept, then NULL */
    bool is_form, has_file;
    bool in_file, in_field; /* what the reader is in; neither: a field that nobody knows */
    multipart_reader reader;
    multipart fields;
    buf text; /* the fields' bytes, one behind the other */
} upload;

/* 0, or the HTTP status with *e filled, as the next two; a failed one needs upload_done all the same. names
 * must outlive it; what the query says is read here, and the file of a raw body begins. */
int upload_open(upload *ret, const char *content_type, const char *query, const char *const *names,
                const upload_events *ev, api_error *e);
int upload_push(upload *u, const char *bytes, size_t n, api_error *e);
int upload_close(const upload *u, api_error *e);
/* Points into u until the next push. */
const multipart *upload_fields(upload *u);
void upload_done(upload *u); /* accepts a zeroed one */

#endif
