/* activity.c: levels of frames and how they are spread; see activity.h. */
#include "speech/activity.h"

#include <math.h>

#define FRAME_MS  30
#define LOUD_DB   (-57) /* a loudest frame below it is silence */
#define SILENT_DB (-65) /* so quiet is a frame before the first sound, */
#define PAUSE_DB  25    /* if it is also so far below the loudest */
#define STEADY_DB 6     /* spread below it is no speech */

/* Frames by whole decibels below full scale; the last holds all that is quieter. */
enum { N_LEVELS = 128 };
typedef struct levels {
    size_t n[N_LEVELS];
} levels;

static size_t frame_samples(uint32_t rate)
{
    size_t n = (size_t)rate * FRAME_MS / 1000;
    return n ? n : 1;
}

/* In dB of full scale, of a root mean square. */
static double level(const float *x, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += (double)x[i] * (double)x[i];
    return 10 * log10(sum / (double)n + 1e-20);
}

/* The decibel of the last tenth of those at most PAUSE_DB below the loudest; without frames the loudest. */
static double steady_level(const levels *v, double loudest)
{
    size_t first = loudest < 0 ? (size_t)-loudest : 0, end = first + PAUSE_DB + 1, all = 0, below = 0;
    if (end > N_LEVELS) end = N_LEVELS;
    for (size_t i = first; i < end; i++) all += v->n[i];
    for (size_t i = end; i-- > first;)
        if ((below += v->n[i]) > all / 10) return -(double)i;
    return loudest;
}

static size_t level_index(double db)
{
    return db >= 0 ? 0 : db <= -N_LEVELS + 1 ? N_LEVELS - 1 : (size_t)-db;
}

/* The first frame that is not silent. A tail shorter than a frame is a frame if it is all there is. */
static size_t first_sound(const float *x, size_t n, size_t frame, double loudest)
{
    for (size_t at = 0; at + frame <= n; at += frame) {
        double db = level(x + at, frame);
        if (db >= SILENT_DB || db >= loudest - PAUSE_DB) return at;
    }
    return 0;
}

activity activity_of(const float *x, size_t n, uint32_t rate)
{
    size_t frame = frame_samples(rate);
    levels v = {{0}};
    double loudest = -N_LEVELS;
    if (n == 0) return (activity){0};
    if (n < frame) frame = n;
    for (size_t at = 0; at + frame <= n; at += frame) {
        double db = level(x + at, frame);
        if (db > loudest) loudest = db;
        v.n[level_index(db)]++;
    }
    if (loudest < LOUD_DB || loudest - steady_level(&v, loudest) < STEADY_DB) return (activity){0};
    return (activity){true, first_sound(x, n, frame, loudest)};
}
