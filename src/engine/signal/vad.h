/* vad.h: from speech probabilities, one a window, to the stretches in which somebody speaks.
 *
 * Speech begins where the probability reaches the threshold and ends where it falls below a lower one and
 * stays there for a while. Too short stretches are dropped, too long ones are cut in their longest silence,
 * and what is left is widened a little, so that soft first and last sounds are kept. The rules are those of
 * Silero's get_speech_timestamps (snakers4/silero-vad, utils_vad.py) to the sample.
 *
 *     vad_segment seg[64];
 *     vad_segments(probabilities, n, n_samples, NULL, seg, 64, &n_seg, &err);
 *
 *     vad_tracker t;                                   // while sound arrives
 *     vad_tracker_init(&t, NULL, &err);
 *     switch (vad_tracker_push(&t, p, &sample)) ...
 *
 * Pure functions: no clock, no memory of their own. */
#ifndef SIGNAL_VAD_H
#define SIGNAL_VAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* Zero means the default in brackets; where none is a sensible wish, a negative number means none. */
typedef struct vad_options {
    uint32_t rate;         /* samples a second [16000] */
    uint32_t window;       /* samples a probability stands for [512] */
    double threshold;      /* speech begins at it [0.5] */
    double end_threshold;  /* speech may end below it [threshold - 0.15, at least 0.01] */
    double min_speech_ms;  /* shorter stretches are dropped [250] */
    double min_silence_ms; /* it takes that much silence to end a stretch [100] */
    double max_speech_ms;  /* longer stretches are cut [no limit] */
    double min_cut_ms;     /* least silence in which a long stretch is cut [98] */
    double pad_ms;         /* added before and behind [30] */
} vad_options;

typedef struct vad_segment {
    size_t start, end; /* samples: [start, end) */
} vad_segment;

/* The stretches of p[n], in order, none overlapping, none past n_samples (of which the last window may be a
 * part). SHOAL_EINVALID when an option is out of range. ret[cap]: SHOAL_EFULL when there are more, with
 * *ret_n as many as there are and ret full; a cap of n / 2 + 1 is always enough. options may be NULL. */
int vad_segments(const float *p, size_t n, size_t n_samples, const vad_options *options, vad_segment *ret,
                 size_t cap, size_t *ret_n, shoal_err *err);

/* ---- while sound arrives ---------------------------------------------------------------------------- */

typedef enum vad_event { VAD_NOTHING, VAD_START, VAD_END } vad_event;

/* Neither drops short stretches nor cuts long ones: what it said stays said. */
typedef struct vad_tracker {
    vad_options o;
    bool speaking;
    uint64_t heard;    /* samples */
    uint64_t quiet_at; /* end of the window in which the silence began; 0: none */
} vad_tracker;

int vad_tracker_init(vad_tracker *t, const vad_options *options, shoal_err *err);
/* The next window's probability. *ret_sample is where speech starts or ended, padding included. */
vad_event vad_tracker_push(vad_tracker *t, float p, uint64_t *ret_sample);

#endif
