/* vad_model.h: does somebody speak now? The network of Silero VAD for 16 kHz, window by window.
 *
 * A window is 512 new samples behind the last 64 of the one before. Four overlapping frames of 256 go through
 * a learned Fourier transform; its magnitudes through four convolutions that end in one vector of 128; an
 * LSTM remembers what came before; one number comes out, a probability. signal/vad.h makes stretches of
 * these.
 *
 *     vad_model *v;
 *     vad_model_open(&v, "silero_vad_16k_op15.onnx", &err);  
 *     vad_model_state s = {0};
 *     p = vad_model_push(v, &s, samples);                        // samples[VAD_MODEL_WINDOW], as they arrive
 *     vad_model_all(v, sound, &p, &n_windows, &err);             // or a whole sound
 *
 * Products and sums are the numerics contract's: the same bits on every machine. Source: snakers4/silero-vad,
 * version 5, as its weights are named in PyTorch. */
#ifndef SPEECH_VAD_MODEL_H
#define SPEECH_VAD_MODEL_H

#include <stddef.h>

#include "base/err.h"
#include "signal/sound.h"

enum { VAD_MODEL_RATE = 16000, VAD_MODEL_WINDOW = 512, VAD_MODEL_CONTEXT = 64, VAD_MODEL_WIDTH = 128 };

/* Weights: immutable, any thread. */
typedef struct vad_model vad_model;

/* silero_vad_16k_op15.onnx, a safetensors file, or a folder with model.safetensors. SHOAL_EUNSUPPORTED
 * when its tensors are those of another network. */
int vad_model_open(vad_model **ret, const char *path, shoal_err *err);
/* The same from the bytes of a file, which are not needed afterwards. */
int vad_model_parse(vad_model **ret, const void *data, size_t n, const char *what, shoal_err *err);
void vad_model_free(vad_model *v); /* NULL is fine */

/* What is remembered of one sound; zeros in front of its first window. */
typedef struct vad_model_state {
    float hidden[VAD_MODEL_WIDTH], cell[VAD_MODEL_WIDTH];
    float context[VAD_MODEL_CONTEXT]; /* the end of the last window */
} vad_model_state;

/* The probability that somebody speaks in x[VAD_MODEL_WINDOW]. */
float vad_model_push(const vad_model *v, vad_model_state *s, const float *x);

/* One probability a window of the sound, silence behind the last; *ret[*ret_n] is the caller's to free(),
 * never NULL. The sound is measured when it is done. Decoder's errors, SHOAL_ENOMEM. */
int vad_model_all(const vad_model *v, sound *s, float **ret, size_t *ret_n, shoal_err *err);

#endif
