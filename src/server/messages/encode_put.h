/* encode_put.h: worker replies of the encoder endpoints as JSON bodies. Each appends the whole object,
 * and gives the tokens read. Pure. */
#ifndef MESSAGES_ENCODE_PUT_H
#define MESSAGES_ENCODE_PUT_H

#include "base/buf.h"
#include "messages/encode_parse.h"

void encode_put_embeddings(buf *out, const encode_spec *s, const Shoal__V1__EmbedReply *r,
                           uint64_t *ret_tokens);
void encode_put_classes(buf *out, const encode_spec *s, const Shoal__V1__ClassifyReply *r,
                        uint64_t *ret_tokens);
/* OpenAI's moderations: labels as categories, less the safe ones. */
void encode_put_moderations(buf *out, const encode_spec *s, const Shoal__V1__ClassifyReply *r,
                            uint64_t *ret_tokens);
/* Documents by relevance, best first, in the form that Cohere and Jina made usual. */
void encode_put_ranking(buf *out, const encode_spec *s, const Shoal__V1__ClassifyReply *r,
                        uint64_t *ret_tokens);
void encode_put_spans(buf *out, const encode_spec *s, const Shoal__V1__TagReply *r, uint64_t *ret_tokens);
/* Scored rows; "usage" has the rows that were read. */
void encode_put_scores(buf *out, const encode_spec *s, const Shoal__V1__ScoreReply *r);
/* Of each text the gaps, of each gap the words, best first. */
void encode_put_gaps(buf *out, const encode_spec *s, const Shoal__V1__FillMaskReply *r, uint64_t *ret_tokens);

#endif
