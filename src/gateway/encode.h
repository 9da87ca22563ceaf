/* encode.h: POST /v1/embeddings, /v1/classify, /v1/rerank, /v1/tag and /v1/fill-mask: one unary model
 * call each. */
#ifndef GATEWAY_ENCODE_H
#define GATEWAY_ENCODE_H

#include "gateway/request.h"

/* Each answers rq now or later; it is not to be touched afterwards. Loop thread. */
void encode_embeddings(gateway_request *rq);
void encode_classify(gateway_request *rq);
void encode_rerank(gateway_request *rq);
void encode_tag(gateway_request *rq);
void encode_fill_mask(gateway_request *rq);

#endif
