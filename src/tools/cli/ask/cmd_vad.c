/* shoal vad FILE: where in a sound file somebody speaks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "cli/commands.h"
#include "command/cli_model.h"
#include "signal/vad.h"
#include "speech/vad_model.h"

#define FILE_MAX ((size_t)1 << 30)

/* The samples are decoded as they are looked at; *ret_samples is how many there were. */
static int hear(const vad_model *v, const buf *file, float **ret, size_t *ret_n, size_t *ret_samples,
                shoal_err *err)
{
    audio_options o = {.rate = VAD_MODEL_RATE, .max_bytes = FILE_MAX, .max_seconds = 24 * 3600};
    sound *s = NULL;
    int rc = sound_open(&s, file->data ? file->data : "", file->len, &o, err);
    if (rc == 0) rc = vad_model_all(v, s, ret, ret_n, err);
    if (rc == 0) *ret_samples = sound_length(s);
    sound_free(s);
    return rc;
}

static int cmd_vad_find(const char *model, const char *path, const vad_options *o, vad_segment **ret,
                        size_t *ret_n, size_t *ret_samples, shoal_err *err)
{
    vad_model *v = NULL;
    buf file = {0};
    float *p = NULL;
    size_t n = 0;
    int rc = vad_model_open(&v, model, err);
    if (rc == 0) rc = file_read(&file, strcmp(path, "-") == 0 ? "/dev/stdin" : path, FILE_MAX, err);
    if (rc == 0 && (rc = hear(v, &file, &p, &n, ret_samples, err)) != 0) err_prefix(err, rc, "%s", path);
    if (rc == 0 && !(*ret = calloc(n / 2 + 1, sizeof **ret))) rc = err_nomem(err);
    if (rc == 0) rc = vad_segments(p, n, *ret_samples, o, *ret, n / 2 + 1, ret_n, err);
    free(p);
    buf_done(&file);
    vad_model_free(v);
    return rc;
}

static int print(const vad_segment *s, size_t n, size_t n_samples, bool json)
{
    buf out = {0};
    if (json) buf_printf(&out, "{\"duration\":%.3f,\"segments\":[", (double)n_samples / VAD_MODEL_RATE);
    for (size_t i = 0; i < n; i++)
        buf_printf(&out, json ? "%s{\"start\":%.3f,\"end\":%.3f}" : "%s%.3f %.3f",
                   i == 0 ? ""
                   : json ? ","
                          : "\n",
                   (double)s[i].start / VAD_MODEL_RATE, (double)s[i].end / VAD_MODEL_RATE);
    if (json) buf_puts(&out, "]}");
    int rc = json || n > 0 ? cli_print(&out) : CLI_OK;
    buf_done(&out);
    return rc;
}

static int cmd_vad_run(int argc, char **argv)
{
    const char *model = getenv("SHOAL_VAD");
    double threshold = 0, silence = 0, speech = 0;
    bool json = false;
    const cli_option options[] = {
        CLI_STRING('m', "model", "PATH", "Silero's silero_vad_16k_op15.onnx or .safetensors [$SHOAL_VAD]",
                   &model),
        CLI_NUM(0, "threshold", "P", "speech begins at this probability [0.5]", &threshold),
        CLI_NUM(0, "min-silence", "MS", "it takes so much silence to end a stretch [100]", &silence),
        CLI_NUM(0, "min-speech", "MS", "shorter stretches are dropped [250]", &speech),
        CLI_JSON(&json),
        CLI_END,
    };
    cli_args a;
    int rc = cli_parse(&a, &cmd_vad, options, 1, 1, argc, argv);
    if (rc != CLI_GO) return rc;
    shoal_err err = {0};
    vad_segment *s = NULL;
    size_t n = 0, n_samples = 0;
    vad_options o = {.threshold = threshold, .min_silence_ms = silence, .min_speech_ms = speech};
    if (!model || !*model)
        rc =
            err_set(&err, SHOAL_EINVALID,
                    "no voice detector is given: --model silero_vad_16k_op15.onnx (or $SHOAL_VAD) names one");
    else
        rc = cmd_vad_find(model, a.v[0], &o, &s, &n, &n_samples, &err);
    rc = rc ? cli_fail(&cmd_vad, &err) : print(s, n, n_samples, json);
    free(s);
    return rc;
}

const cli_command cmd_vad = {"vad", "say where in a sound file somebody speaks", "FILE|-", cmd_vad_run,
                             false};
