/* passes.h: the passes that net_ops_for chooses from. Inside infer/ only. */
#ifndef INFER_PASSES_H
#define INFER_PASSES_H

#include "infer/net.h"

extern const net_ops decoder_ops, encoder_ops;

#endif
