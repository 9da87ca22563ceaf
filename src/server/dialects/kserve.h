/* kserve.h: tensors of the Open Inference Protocol, version 2 (KServe, Triton), and what they ask of our
 * models and what these tell in them.
 *
 * A tensor is kept as the protocol's binary form has it, little-endian, row by row: numbers one behind the
 * other, texts (BYTES) each behind its length in four bytes. Where it came from (JSON, the binary part of a
 * body, gRPC) makes no difference from then on:
 *
 *     kserve_tensors in = {0}, out = {0};
 *     kserve_tensor *t = kserve_add(&in, "text", KSERVE_BYTES);              // NULL: no memory
 *     t->shape[0] = 2, t->n_dims = 1;
 *     kserve_add_text(t, "hello", 5);
 *     kserve_add_text(t, "good night", 10);
 *     kserve_check(t, &e);                                                   // shape and bytes agree
 *
 *     kserve_ask_ours(&in, params, "home-embed", info, &path, &body, &e);    // POST path with body, and then
 *     kserve_take_ours(&out, &in, info, answer);                             // tensors of the answer
 *
 * What a model takes and gives follows from its task (kserve_task.c). Pure: no I/O. */
#ifndef DIALECTS_KSERVE_H
#define DIALECTS_KSERVE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "messages/api_error.h"
#include "base/buf.h"
#include "shoal/v1/worker.pb-c.h"

/* X(enum, name, bytes an element; 0: each has a length) */
#define KSERVE_TYPES(X)           \
    X(KSERVE_BOOL, "BOOL", 1)     \
    X(KSERVE_UINT8, "UINT8", 1)   \
    X(KSERVE_UINT16, "UINT16", 2) \
    X(KSERVE_UINT32, "UINT32", 4) \
    X(KSERVE_UINT64, "UINT64", 8) \
    X(KSERVE_INT8, "INT8", 1)     \
    X(KSERVE_INT16, "INT16", 2)   \
    X(KSERVE_INT32, "INT32", 4)   \
    X(KSERVE_INT64, "INT64", 8)   \
    X(KSERVE_FP32, "FP32", 4)     \
    X(KSERVE_FP64, "FP64", 8)     \
    X(KSERVE_BYTES, "BYTES", 0)
typedef enum kserve_type {
#define KSERVE_TYPE_ENUM(e, name, size) e,
    KSERVE_TYPES(KSERVE_TYPE_ENUM)
#undef KSERVE_TYPE_ENUM
        KSERVE_N_TYPES
} kserve_type;

const char *kserve_type_name(kserve_type t);
size_t kserve_type_bytes(kserve_type t);
bool kserve_type_of(const char *name, kserve_type *ret);

enum { KSERVE_DIMS_MAX = 8, KSERVE_TENSORS_MAX = 1024 };

typedef struct kserve_tensor {
    const char *name; /* borrowed */
    kserve_type type;
    int64_t shape[KSERVE_DIMS_MAX];
    size_t n_dims;
    size_t n; /* elements, once kserve_check has agreed */
    buf raw;
} kserve_tensor;

typedef struct kserve_tensors {
    kserve_tensor *items;
    size_t n, cap;
} kserve_tensors;

/* One more, of no shape; NULL: no memory. Moves the others. */
kserve_tensor *kserve_add(kserve_tensors *t, const char *name, kserve_type type);
void kserve_done(kserve_tensors *t);                                         /* accepts a zeroed one */
const kserve_tensor *kserve_find(const kserve_tensors *t, const char *name); /* NULL: none */

/* Do the bytes hold as many elements as the shape says? Sets n. 0 or the status of *e. */
int kserve_check(kserve_tensor *t, api_error *e);
/* Append an element; failures stick in t->raw. */
void kserve_add_text(kserve_tensor *t, const char *s, size_t n);
void kserve_add_f32(kserve_tensor *t, float v);
void kserve_add_f64(kserve_tensor *t, double v);
void kserve_add_i64(kserve_tensor *t, int64_t v);
/* Of a checked one, by its bytes from *at on, which begins at 0: */
const char *kserve_next_text(const kserve_tensor *t, size_t *at, size_t *ret_n); /* not NUL-terminated */
double kserve_next_number(const kserve_tensor *t, size_t *at); /* int64 over 2^53 are rounded */
bool kserve_is_number(kserve_type t);                          /* not BYTES */

/* ---- as JSON (kserve_json.c) --------------------------------------------------------------------- */

/* Elements of "data", flat or nested, in rows. */
int kserve_read_data(kserve_tensor *t, const json_t *data, api_error *e);
/* "data" of a checked one: a flat list. What is no finite number is null; bytes that are no UTF-8 become
 * U+FFFD. */
void kserve_put_data(buf *out, const kserve_tensor *t);

/* The JSON object of a POST .../infer, and what is behind it in the body. */
typedef struct kserve_ask {
    json_t *root; /* owned */
    const char *id;
    const json_t *params;     /* NULL: none */
    const json_t *outputs;    /* that are asked for; NULL: all */
    bool binary;              /* outputs are told in binary unless they say otherwise */
    bool no_binary;           /* the answer has no binary part, whatever the request says */
    const char *reply_params; /* JSON of the answer's "parameters"; NULL: none. Static */
    kserve_tensors in;
} kserve_ask;

/* n_json: how much of the body is JSON (Inference-Header-Content-Length). 0 or the status of *e;
 * kserve_ask_done is due in either case. */
int kserve_ask_read(kserve_ask *ret, const char *body, size_t n, size_t n_json, api_error *e);
void kserve_ask_done(kserve_ask *a);
/* The answer: JSON into out, and into *tail what is told in binary behind it. 0 or the status of *e: an
 * output is asked for that there is not. */
int kserve_put_answer(buf *out, buf *tail, const kserve_ask *a, const kserve_tensors *t, const char *model,
                      const char *version, api_error *e);

/* ---- by task (kserve_task.c) --------------------------------------------------------------------- */

/* What is told of an input or output: -1 is any number. */
typedef struct kserve_slot {
    const char *name;
    kserve_type type;
    int64_t shape[2];
    size_t n_dims;
} kserve_slot;
enum { KSERVE_SLOTS_MAX = 6 };
typedef struct kserve_face {
    kserve_slot in[KSERVE_SLOTS_MAX], out[KSERVE_SLOTS_MAX];
    size_t n_in, n_out;
} kserve_face;

/* info NULL: an ensemble or a route, which generate. False: models of its task are not served in tensors. */
bool kserve_face_of(const Shoal__V1__ModelInfo *info, kserve_face *ret);

/* Our request: *ret_path is static, the body is appended. params may be NULL. 0 or the status of *e. */
int kserve_ask_ours(const kserve_tensors *in, const json_t *params, const char *model,
                    const Shoal__V1__ModelInfo *info, const char **ret_path, buf *ret_body, api_error *e);
/* Do models of its task stream text? */
bool kserve_streams(const Shoal__V1__ModelInfo *info);
/* Of a request that may be answered piece by piece: is it to be? The input "stream", a BOOL, may say no. 0 or
 * the status of *e. */
int kserve_wants_stream(const kserve_tensors *in, const Shoal__V1__ModelInfo *info, bool *ret, api_error *e);
/* A chunk of a streamed completion as tensors; *ret_last: it has the reason of the end. The codes are those
 * below. */
int kserve_take_chunk(kserve_tensors *out, const json_t *chunk, bool *ret_last);
/* Our answer as tensors. 0, SHOAL_EPROTOCOL (it is no answer to that) or SHOAL_ENOMEM. */
int kserve_take_ours(kserve_tensors *out, const kserve_tensors *in, const Shoal__V1__ModelInfo *info,
                     const json_t *ours);

#endif
