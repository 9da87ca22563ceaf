/* confidence_shift.c: see confidence_shift.h. */
#include "ensemble/confidence_shift.h"

#include <math.h>

static float clamped(float x)
{
    return x < 0 ? 0 : x > 1 ? 1 : x;
}

static int bin_of(float x)
{
    int bin = (int)(x * CONFIDENCE_BINS);
    return bin < CONFIDENCE_BINS ? bin : CONFIDENCE_BINS - 1;
}

static void add_to_window(confidence_shift *s, float x)
{
    if (s->n_window == CONFIDENCE_WINDOW) {
        float oldest = s->last[s->at];
        s->window[bin_of(oldest)]--;
        s->window_sum -= oldest;
    } else {
        s->n_window++;
    }
    s->last[s->at] = x;
    s->at = (s->at + 1) % CONFIDENCE_WINDOW;
    s->window[bin_of(x)]++;
    s->window_sum += x;
}

void confidence_shift_add(confidence_shift *s, float confidence)
{
    if (isnan(confidence)) return;
    float x = clamped(confidence);
    if (s->n_reference < CONFIDENCE_REFERENCE) {
        s->reference[bin_of(x)]++;
        s->n_reference++;
        s->reference_sum += x;
    } else {
        add_to_window(s, x);
    }
}

bool confidence_shift_known(const confidence_shift *s)
{
    return s->n_reference == CONFIDENCE_REFERENCE && s->n_window == CONFIDENCE_WINDOW;
}

static double share(uint32_t n, uint32_t all)
{
    return (n + 0.5) / (all + 0.5 * CONFIDENCE_BINS);
}

double confidence_shift_psi(const confidence_shift *s)
{
    double psi = 0;
    for (int i = 0; i < CONFIDENCE_BINS; i++) {
        double r = share(s->reference[i], s->n_reference), w = share(s->window[i], s->n_window);
        psi += (w - r) * log(w / r);
    }
    return psi;
}

double confidence_shift_reference_mean(const confidence_shift *s)
{
    return s->n_reference ? s->reference_sum / s->n_reference : 0;
}

double confidence_shift_window_mean(const confidence_shift *s)
{
    return s->n_window ? s->window_sum / s->n_window : 0;
}
