/* sounds.h: recordings in which nobody speaks, computed: noise, hum, tones, sweeps, clicks, music. The same
 * samples at every run. Include once a test file, behind helper.h. */
#ifndef TESTS_SPEECH_SOUNDS_H
#define TESTS_SPEECH_SOUNDS_H

#define TURN 6.283185307179586

enum { SOUND_RATE = 16000 };

static inline float noise_at(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (float)(*seed >> 8) / 8388608.0f - 1;
}

/* 0..1, and one of the whole numbers below n. */
static inline double chance(uint32_t *seed)
{
    return ((double)noise_at(seed) + 1) / 2;
}

static inline size_t chosen(uint32_t *seed, size_t n)
{
    return (size_t)(chance(seed) * (double)n * 0.9999);
}

/* Brings x to so many dB of full scale (root mean square). */
static inline void set_level(float *x, size_t n, double db)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += (double)x[i] * (double)x[i];
    float scale = (float)(pow(10, db / 20) / sqrt(sum / (double)n + 1e-20));
    for (size_t i = 0; i < n; i++) x[i] *= scale;
}

/* P. Kellet's filter gives -3 dB an octave; a leaky sum gives -6. */
static inline void add_noise(float *x, size_t n, char colour, double db, uint32_t seed)
{
    double a = 0, b = 0, c = 0;
    float *y = malloc((n + 1) * sizeof *y);
    for (size_t i = 0; i < n; i++) {
        double w = (double)noise_at(&seed);
        a = 0.99765 * a + w * 0.0990460;
        b = 0.96300 * b + w * 0.2965164;
        c = 0.57000 * c + w * 1.0526913;
        y[i] = (float)(colour == 'p' ? a + b + c + w * 0.1848 : w);
    }
    for (size_t i = 1; colour == 'b' && i < n; i++) y[i] += 0.998f * y[i - 1];
    set_level(y, n, db);
    for (size_t i = 0; i < n; i++) x[i] += y[i];
    free(y);
}

static inline void add_tone(float *x, size_t n, double hz, double peak)
{
    for (size_t i = 0; i < n; i++) x[i] += (float)(peak * sin(TURN * hz * (double)i / SOUND_RATE));
}

/* n_partials of 1/k, from `from` on, falling by half in half_s. */
static inline void add_note(float *x, size_t n, size_t from, size_t len, double hz, double peak,
                            double half_s)
{
    for (size_t i = 0; i < len && from + i < n; i++) {
        double t = (double)i / SOUND_RATE, turn = TURN * hz * t, twice = 2 * cos(turn), y = 0;
        double below = 0, here = sin(turn); /* sin((k + 1) a) = 2 cos(a) sin(k a) - sin((k - 1) a) */
        for (int k = 1; k <= 8 && hz * k < 7000; k++) {
            double above = twice * here - below;
            y += here / k;
            below = here, here = above;
        }
        double attack = t < 0.008 ? t / 0.008 : 1, left = (double)(len - i) / SOUND_RATE;
        double release = left < 0.02 ? left / 0.02 : 1;
        x[from + i] += (float)(peak * y * attack * release * pow(0.5, t / half_s));
    }
}

static inline void add_burst(float *x, size_t n, size_t from, double peak, double fall_s, double hz,
                             uint32_t *seed)
{
    for (size_t i = 0; i < SOUND_RATE / 5 && from + i < n; i++) {
        double t = (double)i / SOUND_RATE, carrier = hz > 0 ? sin(TURN * hz * t) : (double)noise_at(seed);
        x[from + i] += (float)(peak * carrier * exp(-t / fall_s));
    }
}

static inline void add_sweep(float *x, size_t n, double from_hz, double to_hz, bool by_octaves)
{
    double phase = 0;
    for (size_t i = 0; i < n; i++) {
        double part = (double)i / (double)n;
        phase += (by_octaves ? from_hz * pow(to_hz / from_hz, part) : from_hz + (to_hz - from_hz) * part) /
                 SOUND_RATE;
        x[i] += (float)(0.4 * sin(TURN * phase));
    }
}

static inline void add_bursts(float *x, size_t n, double a_second, double peak, double fall_s, double hz)
{
    uint32_t seed = 11;
    for (size_t at = chosen(&seed, 4000); at < n;
         at += (size_t)((0.3 + 1.4 * chance(&seed)) * SOUND_RATE / a_second))
        add_burst(x, n, at, peak * (0.4 + 0.6 * chance(&seed)), fall_s, hz, &seed);
}

static const double SCALE_HZ[] = {130.8, 146.8, 164.8, 174.6, 196.0, 220.0, 246.9, 261.6};

/* Chords of three notes, seconds apart. */
static inline void add_chords(float *x, size_t n, double note_s, double half_s, double octave)
{
    uint32_t seed = 5;
    size_t len = (size_t)(note_s * SOUND_RATE);
    for (size_t at = 0; at < n; at += len) {
        double root = SCALE_HZ[chosen(&seed, 8)] * octave;
        const double third = chosen(&seed, 2) ? 1.26 : 1.189;
        add_note(x, n, at, len, root, 0.12, half_s);
        add_note(x, n, at, len, root * third, 0.1, half_s);
        add_note(x, n, at, len, root * 1.498, 0.1, half_s);
    }
}

static inline void add_melody(float *x, size_t n, double note_s, double octave)
{
    uint32_t seed = 9;
    size_t len = (size_t)(note_s * SOUND_RATE);
    for (size_t at = 0; at < n; at += len)
        add_note(x, n, at, len, SCALE_HZ[chosen(&seed, 8)] * octave, 0.3, note_s);
}

/* `on` and `off` in milliseconds, by turns at two pitches. */
static inline void add_beeps(float *x, size_t n, double hz, double other_hz, size_t on, size_t off)
{
    size_t period = (on + off) * 16;
    for (size_t i = 0; i < n; i++) {
        double f = i / period % 2 ? other_hz : hz;
        if (i % period < on * 16) x[i] += (float)(0.3 * sin(TURN * f * (double)i / SOUND_RATE));
    }
}

static inline void swell(float *x, size_t n, double hz, double depth)
{
    for (size_t i = 0; i < n; i++)
        x[i] *= (float)(1 - depth / 2 + depth / 2 * sin(TURN * hz * (double)i / SOUND_RATE));
}

static inline void add_hum(float *x, size_t n, double hz)
{
    for (int k = 1; k <= 11; k++) add_tone(x, n, hz * k, 0.15 / k);
}

static inline void add_wave(float *x, size_t n, double hz, bool square)
{
    for (size_t i = 0; i < n; i++) {
        double part = fmod(hz * (double)i / SOUND_RATE, 1);
        x[i] += (float)(square ? (part < 0.5 ? 0.2 : -0.2) : 0.4 * part - 0.2);
    }
}

static inline void add_clicks(float *x, size_t n, size_t from, size_t every)
{
    for (size_t i = from; i < n; i += every) x[i] = 0.8f;
}

#define SOUNDS(X)                                                                     \
    X("zeros", (void)x)                                                               \
    X("a constant", add_wave(x, n, 0, true))                                          \
    X("white noise, -60 dB", add_noise(x, n, 'w', -60, 1))                            \
    X("pink noise, -60 dB", add_noise(x, n, 'p', -60, 2))                             \
    X("brown noise, -60 dB", add_noise(x, n, 'b', -60, 3))                            \
    X("white noise, -80 dB", add_noise(x, n, 'w', -80, 4))                            \
    X("white noise, -30 dB", add_noise(x, n, 'w', -30, 5))                            \
    X("white noise, -10 dB", add_noise(x, n, 'w', -10, 6))                            \
    X("pink noise, -30 dB", add_noise(x, n, 'p', -30, 7))                             \
    X("pink noise, -12 dB", add_noise(x, n, 'p', -12, 8))                             \
    X("brown noise, -30 dB", add_noise(x, n, 'b', -30, 9))                            \
    X("brown noise, -12 dB", add_noise(x, n, 'b', -12, 10))                           \
    X("hum of 50 Hz", add_hum(x, n, 50))                                              \
    X("hum of 60 Hz", add_hum(x, n, 60))                                              \
    X("hum and hiss", add_hum(x, n, 50); add_noise(x, n, 'p', -40, 11))               \
    X("a tone of 100 Hz", add_tone(x, n, 100, 0.5))                                   \
    X("a tone of 440 Hz", add_tone(x, n, 440, 0.5))                                   \
    X("a tone of 1,000 Hz", add_tone(x, n, 1000, 0.05))                               \
    X("a tone of 3,000 Hz", add_tone(x, n, 3000, 0.5))                                \
    X("a dialling tone", add_tone(x, n, 350, 0.2); add_tone(x, n, 440, 0.2))          \
    X("a square wave of 200 Hz", add_wave(x, n, 200, true))                           \
    X("a sawtooth of 120 Hz", add_wave(x, n, 120, false))                             \
    X("a sweep up", add_sweep(x, n, 100, 7000, false))                                \
    X("a sweep down", add_sweep(x, n, 4000, 80, false))                               \
    X("a sweep by octaves", add_sweep(x, n, 60, 7500, true))                          \
    X("one click", x[n / 2] = 0.9f)                                                   \
    X("clicks", add_clicks(x, n, 3000, 8000))                                         \
    X("a hundred clicks a second", add_clicks(x, n, 0, 160))                          \
    X("keys", add_bursts(x, n, 6, 0.3, 0.004, 0))                                     \
    X("claps", add_bursts(x, n, 2, 0.8, 0.02, 0))                                     \
    X("knocks", add_bursts(x, n, 3, 0.6, 0.03, 180))                                  \
    X("drops", add_bursts(x, n, 9, 0.3, 0.02, 1400))                                  \
    X("wind", add_noise(x, n, 'b', -25, 12); swell(x, n, 0.3, 0.9))                   \
    X("a fan", add_noise(x, n, 'p', -35, 13); add_hum(x, n, 37); swell(x, n, 5, 0.2)) \
    X("beeps", add_beeps(x, n, 1000, 1000, 200, 300))                                 \
    X("an alarm", add_beeps(x, n, 800, 1100, 400, 0))                                 \
    X("chords of a piano", add_chords(x, n, 0.8, 0.3, 1))                             \
    X("chords of an organ", add_chords(x, n, 1.5, 60, 2))                             \
    X("a melody", add_melody(x, n, 0.25, 2))                                          \
    X("chords over noise", add_chords(x, n, 0.5, 0.4, 1); add_noise(x, n, 'p', -40, 14))

#define SOUND_NAME(name, make) name,
static const char *const SOUND_NAMES[] = {SOUNDS(SOUND_NAME)};
enum { N_SOUNDS = sizeof SOUND_NAMES / sizeof *SOUND_NAMES };

/* n samples of the sound of that index, malloc'd. */
static inline float *make_sound(size_t which, size_t n)
{
    float *x = calloc(n + 1, sizeof *x);
    size_t i = 0;
#define SOUND_MAKE(name, make) \
    if (i++ == which) {        \
        make;                  \
        return x;              \
    }
    SOUNDS(SOUND_MAKE)
    return x;
}

#endif
