/* kserve_proto.h: the Open Inference Protocol's messages of gRPC as its REST bodies, and back.
 *
 * Both say the same in other forms. A message, as json_proto.h reads it, becomes the JSON of POST .../infer
 * with its tensors in binary behind it, whatever the form in which they came. The answer's tensors come in
 * binary, too, unless the request says "binary_data": false of an output, or "binary_data_output": false:
 *
 *     kserve_proto_ask(&body, &n_json, message, &e)       body: n_json bytes of JSON, then tensors
 *     kserve_proto_answer(&message, body, n, n_json)      what json_proto_write is given
 *
 * Pure. */
#ifndef DIALECTS_KSERVE_PROTO_H
#define DIALECTS_KSERVE_PROTO_H

#include <jansson.h>

#include "messages/api_error.h"

/* A ModelInferRequest, which is changed. 0 or the status of *e. */
int kserve_proto_ask(buf *out, size_t *ret_n_json, json_t *message, api_error *e);
/* A ModelInferResponse: the caller's. 0, SHOAL_EPROTOCOL (it is no answer) or SHOAL_ENOMEM. */
int kserve_proto_answer(json_t **ret, const char *body, size_t n, size_t n_json);
/* An event of a streamed answer, whose tensors have "data", becomes a ModelInferResponse in place. The same codes. */
int kserve_proto_event(json_t *answer);
/* Its "parameters", an object, become InferParameters: {"a": true} is {"a": {"bool_param": true}}. 0 or SHOAL_ENOMEM. */
int kserve_proto_params(json_t *answer);
/* A ModelConfig as /v2/models/NAME/config has it: names of enums become their numbers. 0 or SHOAL_ENOMEM. */
int kserve_proto_config(json_t *config);

#endif
