/* grpc_infer_stream.h: ModelStreamInfer, a stream of inference requests and of their answers.
 *
 * Each message is a request of its own, of which several run at the same time; "id" says which answer belongs to
 * which. Generated text comes in several answers, of which the last has the parameter triton_final_response. An error
 * is an answer with error_message, and the stream goes on. */
#ifndef INGRESS_GRPC_INFER_STREAM_H
#define INGRESS_GRPC_INFER_STREAM_H

#include "grpc/grpc.h"

/* The user of the method is the grpc_ingress. */
extern const grpc_stream_method GRPC_INFER_STREAM;

#endif
