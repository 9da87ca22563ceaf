/* encode.h: POST /v1/embeddings, /v1/classify, /v1/moderations, /v1/rerank, /v1/tag, /v1/fill-mask, /v1/score
 * and /v1/images/classify: one unary model call each. */
#ifndef INFERENCE_ENCODE_H
#define INFERENCE_ENCODE_H

#include "request/request.h"

/* Each answers rq now or later; it is not to be touched afterwards. Loop thread. */
void encode_embeddings(gateway_request *rq);
void encode_classify(gateway_request *rq);
void encode_moderations(gateway_request *rq);
void encode_rerank(gateway_request *rq);
void encode_tag(gateway_request *rq);
void encode_score(gateway_request *rq);
void encode_image(gateway_request *rq);
void encode_fill_mask(gateway_request *rq);

#endif
