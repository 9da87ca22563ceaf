/* vad_model_file.h: a voice detector of random weights, as a safetensors file or as ONNX. Include once a test
 * file. */
#ifndef TESTS_SPEECH_VOICE_FILE_H
#define TESTS_SPEECH_VOICE_FILE_H

#include <stdlib.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/proto_wire.h"

enum { N_TENSORS = 15 };
static const struct {
    const char *name, *shape;
    size_t n;
} TENSORS[N_TENSORS] = {
    {"stft_conv.weight", "258,1,256", 258 * 256},
    {"conv1.weight", "128,129,3", 128 * 129 * 3},
    {"conv1.bias", "128", 128},
    {"conv2.weight", "64,128,3", 64 * 128 * 3},
    {"conv2.bias", "64", 64},
    {"conv3.weight", "64,64,3", 64 * 64 * 3},
    {"conv3.bias", "64", 64},
    {"conv4.weight", "128,64,3", 128 * 64 * 3},
    {"conv4.bias", "128", 128},
    {"lstm_cell.weight_ih", "512,128", 512 * 128},
    {"lstm_cell.weight_hh", "512,128", 512 * 128},
    {"lstm_cell.bias_ih", "512", 512},
    {"lstm_cell.bias_hh", "512", 512},
    {"final_conv.weight", "1,128,1", 128},
    {"final_conv.bias", "1", 1},
};

static inline float number(size_t i)
{
    return (float)((double)(rng_mix(i + 1) >> 11) / 9007199254740992.0 - 0.5) * 0.2f;
}

/* skip: this tensor is left out; shape: the first has this one instead. */
static inline void make_file(buf *out, size_t skip, const char *shape, float *w[N_TENSORS])
{
    buf head = {0}, data = {0};
    size_t at = 0;
    buf_putc(&head, '{');
    for (size_t i = 0; i < N_TENSORS; i++) {
        if (i == skip) continue;
        if (w) w[i] = malloc(TENSORS[i].n * sizeof(float));
        for (size_t k = 0; k < TENSORS[i].n; k++) {
            float x = number(1000000 * i + k);
            if (w) w[i][k] = x;
            buf_append(&data, &x, sizeof x);
        }
        buf_printf(&head, "%s\"%s\":{\"dtype\":\"F32\",\"shape\":[%s],\"data_offsets\":[%zu,%zu]}",
                   head.len > 1 ? "," : "", TENSORS[i].name, i == 0 && shape ? shape : TENSORS[i].shape, at,
                   data.len);
        at = data.len;
    }
    buf_putc(&head, '}');
    while (head.len % 8) buf_putc(&head, ' ');
    uint64_t n = head.len;
    buf_append(out, &n, 8);
    buf_join(out, &head);
    buf_join(out, &data);
    buf_done(&head);
    buf_done(&data);
}

static const char *const ONNX_NAMES[N_TENSORS] = {
    "model.stft.forward_basis_buffer",   "model.encoder.0.reparam_conv.weight",
    "model.encoder.0.reparam_conv.bias", "model.encoder.1.reparam_conv.weight",
    "model.encoder.1.reparam_conv.bias", "model.encoder.2.reparam_conv.weight",
    "model.encoder.2.reparam_conv.bias", "model.encoder.3.reparam_conv.weight",
    "model.encoder.3.reparam_conv.bias", "model.decoder.rnn.weight_ih",
    "model.decoder.rnn.weight_hh",       "model.decoder.rnn.bias_ih",
    "model.decoder.rnn.bias_hh",         "model.decoder.decoder.2.weight",
    "model.decoder.decoder.2.bias",
};

/* TensorProto: dims 1, data_type 2 (1 is float), name 8, raw_data 9. */
static inline void put_onnx_tensor(buf *graph, size_t i)
{
    buf t = {0}, raw = {0};
    for (const char *d = TENSORS[i].shape; d; d = strchr(d, ',') ? strchr(d, ',') + 1 : NULL)
        proto_put_number(&t, 1, strtoull(d, NULL, 10));
    proto_put_number(&t, 2, 1);
    proto_put_text(&t, 8, ONNX_NAMES[i]);
    for (size_t k = 0; k < TENSORS[i].n; k++) {
        float x = number(1000000 * i + k);
        buf_append(&raw, &x, sizeof x);
    }
    proto_put_bytes(&t, 9, raw.data, raw.len);
    proto_put_bytes(graph, 5, t.data, t.len);
    buf_done(&raw);
    buf_done(&t);
}

/* The weights of make_file(out, skip, NULL, NULL). */
static inline void make_onnx(buf *out, size_t skip)
{
    buf graph = {0};
    for (size_t i = 0; i < N_TENSORS; i++)
        if (i != skip) put_onnx_tensor(&graph, i);
    proto_put_number(out, 1, 8);
    proto_put_bytes(out, 7, graph.data, graph.len);
    buf_done(&graph);
}

#endif
