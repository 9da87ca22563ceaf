/* encode.h: POST /v1/embeddings, /v1/classify, /v1/moderations, /v1/rerank, /v1/tag, /v1/fill-mask, /v1/score
 * and /v1/images/classify: one unary model call each. */
#ifndef INFERENCE_ENCODE_H
#define INFERENCE_ENCODE_H

#include "request/request.h"

/* X(handler, what is asked) */
#define ENCODE_TABLE(X)                 \
    X(encode_embeddings, ASK_EMBED)     \
    X(encode_classify, ASK_CLASSIFY)    \
    X(encode_moderations, ASK_MODERATE) \
    X(encode_rerank, ASK_RERANK)        \
    X(encode_tag, ASK_TAG)              \
    X(encode_fill_mask, ASK_FILL_MASK)  \
    X(encode_score, ASK_SCORE)          \
    X(encode_image, ASK_IMAGE)

/* Each answers rq now or later; it is not to be touched afterwards. Loop thread. */
#define ENCODE_DECLARE(handler, kind) void handler(gateway_request *rq);
ENCODE_TABLE(ENCODE_DECLARE)
#undef ENCODE_DECLARE

#endif
