/* Bytes as a preprocessor_config.json of a vision or a speech model; what is accepted can be used. */
#include <stdint.h>

#include "json/json.h"
#include "memory.h"
#include "signal/image_prep.h"
#include "signal/mel.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void use_prep(const image_prep *p)
{
    static uint8_t rgb[3 * 5 * 4];
    image im = {rgb, 5, 4};
    uint32_t w = 0, h = 0;
    if (p->resize && (p->width > 64 || p->height > 64 || p->shortest > 64)) return; /* right, but slow */
    if (image_prep_shape(p, 5, 4, &w, &h, NULL) != 0 || (size_t)w * h > 1 << 16) return;
    float *out = malloc(3 * (size_t)w * h * sizeof *out);
    if (holds(out)) holds(image_prep_run(p, &im, out, NULL) == 0);
    free(out);
}

static void use_mel(const mel_options *o)
{
    mel *m = NULL;
    float x[64] = {0};
    if (o->n_fft > 2048 || mel_new(&m, o, NULL) != 0) return;
    size_t n = mel_frames(m, 64);
    float *out = malloc((n * o->n_mels + 1) * sizeof *out);
    if (holds(out)) mel_rows(m, x, 64, out);
    free(out);
    mel_free(m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t *j = NULL;
    image_prep p;
    mel_options o;
    size_t chunk;
    shoal_err err;
    if (json_parse(&j, (const char *)data, size, "fuzz", &err) != 0) return 0;
    if (image_prep_read(&p, j, &err) == 0) use_prep(&p);
    if (mel_read_config(&o, &chunk, j, &err) == 0) use_mel(&o);
    json_decref(j);
    return 0;
}
