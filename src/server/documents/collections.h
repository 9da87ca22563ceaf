/* collections.h: /v1/collections: documents that can be asked.
 *
 *     GET, POST          /v1/collections
 *     GET, DELETE        /v1/collections/NAME
 *     GET, POST, DELETE  /v1/collections/NAME/documents      DELETE: ?source=
 *     GET, DELETE        /v1/collections/NAME/documents/ID
 *     POST               /v1/collections/NAME/search
 *     POST               /v1/collections/NAME/answer         collections_answer.c
 *
 * What blocks runs on the gateway's executor (retrieve/executor.h); models are asked through the calls seam. */
#ifndef DOCUMENTS_COLLECTIONS_H
#define DOCUMENTS_COLLECTIONS_H

#include "request/request.h"

/* Each answers rq now or later; it is not to be touched afterwards. Loop thread. */
void collections_list(gateway_request *rq);
void collections_create(gateway_request *rq);
void collections_get(gateway_request *rq);
void collections_delete(gateway_request *rq);
void collections_documents(gateway_request *rq);
void collections_add(gateway_request *rq);
void collections_remove(gateway_request *rq);
void collections_document(gateway_request *rq);
void collections_document_delete(gateway_request *rq);
void collections_search(gateway_request *rq);
void collections_answer(gateway_request *rq);

#endif
