/* voice_weights.c: Silero's tensors by one set of names; see voice_weights.h. */
#include "model/voice_weights.h"

#include <string.h>

#include "model/files/onnx.h"

static const struct {
    const char *onnx, *name;
} names[] = {
    {"model.stft.forward_basis_buffer", "stft_conv.weight"},
    {"model.encoder.0.reparam_conv.weight", "conv1.weight"},
    {"model.encoder.0.reparam_conv.bias", "conv1.bias"},
    {"model.encoder.1.reparam_conv.weight", "conv2.weight"},
    {"model.encoder.1.reparam_conv.bias", "conv2.bias"},
    {"model.encoder.2.reparam_conv.weight", "conv3.weight"},
    {"model.encoder.2.reparam_conv.bias", "conv3.bias"},
    {"model.encoder.3.reparam_conv.weight", "conv4.weight"},
    {"model.encoder.3.reparam_conv.bias", "conv4.bias"},
    {"model.decoder.rnn.weight_ih", "lstm_cell.weight_ih"},
    {"model.decoder.rnn.weight_hh", "lstm_cell.weight_hh"},
    {"model.decoder.rnn.bias_ih", "lstm_cell.bias_ih"},
    {"model.decoder.rnn.bias_hh", "lstm_cell.bias_hh"},
    {"model.decoder.decoder.2.weight", "final_conv.weight"},
    {"model.decoder.decoder.2.bias", "final_conv.bias"},
};

static void rename_tensor(tensor *t)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(t->name, names[i].onnx) == 0) t->name = names[i].name;
}

int voice_weights_parse(st_list *out, arena *mem, const void *data, size_t len, const char *what,
                        shoal_err *err)
{
    if (!onnx_is(data, len)) return safetensors_parse(out, mem, data, len, what, err);
    int rc = onnx_parse(out, mem, data, len, what, err);
    for (size_t i = 0; rc == 0 && i < out->n; i++) rename_tensor(&out->items[i].t);
    return rc;
}
