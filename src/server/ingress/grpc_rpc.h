/* grpc_rpc.h: which endpoint answers which call of shoal.v1.Shoal and inference.GRPCInferenceService, what it
 * is asked, and what its answer says.
 *
 * A message becomes the JSON body of our own endpoint (messages/json_proto.h), so a call is a request like any
 * other:
 *
 *     grpc_rpc_ask(&ask, rpc, method->input, msg, n, &e);          // ask.path, ask.query, ask.body, ask.type
 *     grpc_rpc_answer(&out, rpc, method->output, &answer, &err);   // its body as a message
 *
 * Pure. */
#ifndef INGRESS_GRPC_RPC_H
#define INGRESS_GRPC_RPC_H

#include "messages/api_error.h"
#include "messages/proto_schema.h"
#include "base/buf.h"

enum {
    RPC_STREAMS = 1, /* answered by events: "stream": true is added */
    RPC_FORM = 2,    /* the endpoint takes a file in a form */
    RPC_PIECES = 4,  /* a stream of requests, whose files are one; the other fields go into the query */
    RPC_TENSORS = 8, /* asked and answered in tensors (dialects/kserve_proto.h) */
    RPC_READY = 16,  /* "ready": false comes with an error's status, and is an answer */
    RPC_LOADS = 32,  /* the answer says that it is done: isLoaded, isUnloaded */
    RPC_UNLOADS = 64,
    RPC_MANY = 128,    /* a stream of requests, each answered by itself (grpc_infer_stream.h) */
    RPC_CONFIG = 256,  /* the answer is a ModelConfig */
    RPC_SETTINGS = 512 /* the request is a map of settings, and so is the answer */
};

typedef struct grpc_rpc {
    const char *path;            /* "/shoal.v1.Shoal/Chat" */
    const char *method, *target; /* "POST", "/v1/collections/{collection}/search": a member of the request;
                                    what is in [] is left out where it has none */
    unsigned how;                /* RPC_... */
} grpc_rpc;

extern const grpc_rpc GRPC_RPCS[];
extern const size_t N_GRPC_RPCS;

typedef struct grpc_ask {
    buf path, query, body;
    const char *type; /* content type of the body */
    char form[64];    /* memory for that of a form */
    char n_json[24];  /* the header inference-header-content-length, "": none */
} grpc_ask;

typedef struct grpc_answer { /* of an endpoint, borrowed */
    int status;
    const char *bytes;
    size_t n, n_json; /* bytes of JSON; the others are tensors */
} grpc_answer;

/* 0, or the HTTP status of *e; grpc_ask_done is due in either case. Of RPC_PIECES the body stays empty. */
int grpc_rpc_ask(grpc_ask *ret, const grpc_rpc *rpc, const proto_message *m, const uint8_t *msg, size_t n,
                 api_error *e);
/* The same for whom the gateway will not let in: what is asked is not looked at. */
int grpc_rpc_ask_nothing(grpc_ask *ret, const grpc_rpc *rpc, api_error *e);
void grpc_ask_done(grpc_ask *a);

/* Is this an answer, or an error? */
bool grpc_rpc_is_answer(const grpc_rpc *rpc, const grpc_answer *a);
/* Append the message. 0, SHOAL_ENOMEM, or what json_proto_write says, with a sentence in *err. */
int grpc_rpc_answer(buf *out, const grpc_rpc *rpc, const proto_message *m, const grpc_answer *a,
                    shoal_err *err);

/* The file in a message of RPC_PIECES, borrowed; *ret_n 0: there is none. False: the message is malformed. */
bool grpc_rpc_piece(const proto_message *m, const uint8_t *msg, size_t n, const uint8_t **ret, size_t *ret_n);

#endif
