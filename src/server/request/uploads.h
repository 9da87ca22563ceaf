/* uploads.h: bodies that come in pieces, before they are whole.
 *
 * Such a request counts against limits.max_requests when its body is there, not while it comes: a client that
 * sends slowly, or stops, takes no place from others. Until then it is one of limits.max_uploads, and its bytes,
 * in memory or in a spool file, are of limits.max_upload_mb. One API key may have a quarter of each;
 * without keys one connection may have a quarter of the uploads.
 *
 *     if (uploads_begin(rq, &e) != 0) request_error(rq, &e);    at its head
 *     why = uploads_add(rq, n);                                  for each piece; NULL: go on
 *     status = uploads_whole(rq, &e);                            at its end; 0: it has its place
 *
 * Loop thread. */
#ifndef REQUEST_UPLOADS_H
#define REQUEST_UPLOADS_H

#include "request/request.h"

/* 0, or 429 with *e filled. */
int uploads_begin(gateway_request *rq, api_error *e);
/* n more bytes of its body have come. NULL, or why no more is taken (a 429). */
const char *uploads_add(gateway_request *rq, size_t n);
/* 0, or 429 with *e filled: as many requests are being answered as may be (capacity.h). */
int uploads_whole(gateway_request *rq, api_error *e);
/* It is over, whole or not. Does nothing for one that was no upload. */
void uploads_end(gateway_request *rq);

#endif
