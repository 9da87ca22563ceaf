/* voice.h: does somebody speak now? The network of Silero VAD for 16 kHz, window by window.
 *
 * A window is 512 new samples behind the last 64 of the one before. Four overlapping frames of 256 go through
 * a learned Fourier transform; its magnitudes through four convolutions that end in one vector of 128; an
 * LSTM remembers what came before; one number comes out, a probability. signal/vad.h makes stretches of
 * these.
 *
 *     voice *v;
 *     voice_open(&v, "silero_vad_16k_op15.onnx", &err);  
 *     voice_state s = {0};
 *     p = voice_push(v, &s, samples);                        // samples[VOICE_WINDOW], as they arrive
 *     voice_all(v, sound, &p, &n_windows, &err);             // or a whole sound
 *
 * Products and sums are the numerics contract's: the same bits on every machine. Source: snakers4/silero-vad,
 * version 5, as its weights are named in PyTorch. */
#ifndef SPEECH_VOICE_H
#define SPEECH_VOICE_H

#include <stddef.h>

#include "base/err.h"
#include "signal/sound.h"

enum { VOICE_RATE = 16000, VOICE_WINDOW = 512, VOICE_CONTEXT = 64, VOICE_WIDTH = 128 };

/* Weights: immutable, any thread. */
typedef struct voice voice;

/* silero_vad_16k_op15.onnx, a safetensors file, or a folder with model.safetensors. SHOAL_EUNSUPPORTED
 * when its tensors are those of another network. */
int voice_open(voice **ret, const char *path, shoal_err *err);
/* The same from the bytes of a file, which are not needed afterwards. */
int voice_parse(voice **ret, const void *data, size_t n, const char *what, shoal_err *err);
void voice_free(voice *v); /* NULL is fine */

/* What is remembered of one sound; zeros in front of its first window. */
typedef struct voice_state {
    float hidden[VOICE_WIDTH], cell[VOICE_WIDTH];
    float context[VOICE_CONTEXT]; /* the end of the last window */
} voice_state;

/* The probability that somebody speaks in x[VOICE_WINDOW]. */
float voice_push(const voice *v, voice_state *s, const float *x);

/* One probability a window of the sound, silence behind the last; *ret[*ret_n] is the caller's to free(),
 * never NULL. The sound is measured when it is done. Decoder's errors, SHOAL_ENOMEM. */
int voice_all(const voice *v, sound *s, float **ret, size_t *ret_n, shoal_err *err);

#endif
