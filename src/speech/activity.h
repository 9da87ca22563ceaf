/* activity.h: may somebody speak in this piece of sound, and where does it begin? By levels alone.
 *
 * Speech rises and falls with its syllables by far more than 10 dB. A frame of 30 ms of steady noise is
 * within 1.5 dB of any other, and of a tone within nothing. So a piece says nothing when its loudest frame is
 * below -57 dB of full scale, or when that frame is less than 6 dB over nine tenths of the others (of those
 * that are no pauses: within 25 dB of it).
 *
 * This is a gate in front of models that make words of anything, not a voice detector: music and steps pass.
 * voice.h tells these apart, with weights that a program brings. Pure. */
#ifndef SPEECH_ACTIVITY_H
#define SPEECH_ACTIVITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct activity {
    bool speech;  /* there may be some */
    size_t begin; /* with speech: the sample at which the first frame begins that is not silent */
} activity;

/* x[n] at `rate` samples a second; n is bounded by nothing. */
activity activity_of(const float *x, size_t n, uint32_t rate);

#endif
