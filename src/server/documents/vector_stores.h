/* vector_stores.h: collections in OpenAI's words: /v1/vector_stores and /v1/files, for its clients.
 *
 * A vector store is a collection; its id is the collection's name, "vs_..." of one that was made here. A file
 * is what was uploaded; put into a vector store it becomes a document with its name as the source, in place
 * of one with the same name, and is "completed" when the answer comes. Instead of "file_id" a file may come
 * inline: "filename" and "content". */
#ifndef DOCUMENTS_VECTOR_STORES_H
#define DOCUMENTS_VECTOR_STORES_H

#include "request/request.h"

/* Each answers rq now or later; it is not to be touched afterwards. Loop thread. */
void vector_stores_list(gateway_request *rq);
void vector_stores_create(gateway_request *rq);
void vector_stores_get(gateway_request *rq);
void vector_stores_delete(gateway_request *rq);
void vector_stores_files(gateway_request *rq);
void vector_stores_add(gateway_request *rq);
void vector_stores_file(gateway_request *rq);
void vector_stores_file_content(gateway_request *rq);
void vector_stores_update(gateway_request *rq);      /* name and metadata */
void vector_stores_file_update(gateway_request *rq); /* attributes */
void vector_stores_file_delete(gateway_request *rq);
void vector_stores_search(gateway_request *rq);
void files_list(gateway_request *rq);
void files_upload(gateway_request *rq);
void files_get(gateway_request *rq);
void files_content(gateway_request *rq);
void files_delete(gateway_request *rq);

#endif
