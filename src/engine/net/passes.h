/* passes.h: the passes that net_ops_for chooses from. Inside infer/ only. */
#ifndef NET_PASSES_H
#define NET_PASSES_H

#include "net/net.h"

extern const net_ops decoder_ops, encoder_ops, encdec_ops, recurrent_ops;

/* The two passes as halves of an encoder-decoder: with a configuration of their own, which lives as long as
 * they do, and a prefix of their tensors' names ("enc.", "dec."). They are run and freed by the ops above. */
int encoder_load_as(net **ret, const model *m, const model_config *c, const char *prefix, team *t,
                    const net_limits *limits, shoal_err *err);
int decoder_load_as(net **ret, const model *m, const model_config *c, const char *prefix, team *t,
                    const net_limits *limits, shoal_err *err);
kv_shape decoder_kv_as(const model *m, const model_config *c, const char *prefix);
size_t decoder_cross_bytes(const net *n, size_t rows); /* net.h: cross_bytes, cross */
void decoder_cross(net *n, team *t, const adapter *a, const float *values, size_t rows, void *out);

#endif
