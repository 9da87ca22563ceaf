/* model_voice.c: a bare safetensors or ONNX file -> model. Only Silero's voice detector comes so: it is known
 * by the names of its tensors, and speech/vad_model.h computes it. */
#include <stdlib.h>
#include <string.h>

#include "kinds/model_kind.h"
#include "model/model_adopt.h"
#include "model/model_build.h"
#include "model/model_priv.h"
#include "model/voice_weights.h"

static const tensor_rule no_rules[] = {{0}};

static const arch_def arch_silero = {
    .name = "silero-vad", .task = TASK_VAD, .tasks = CAN(TASK_VAD), .tensors = {no_rules}};

static bool has(const st_list *list, const char *name)
{
    for (size_t i = 0; i < list->n; i++)
        if (strcmp(list->items[i].t.name, name) == 0) return true;
    return false;
}

static const char BARE_UNKNOWN[] =
    "%s: weights without a configuration: give the folder with its config.json (only Silero's voice detector "
    "for 16 kHz is known by its tensors alone)";
static const char ONNX_UNKNOWN[] =
    "%s: of ONNX files only Silero's voice detector for 16 kHz can be read, silero_vad_16k_op15.onnx of the "
    "package silero-vad; for other models give the original folder with config.json and model.safetensors";

static int adopt(model *m, const st_list *list, shoal_err *err)
{
    if (!has(list, "stft_conv.weight") || !has(list, "lstm_cell.weight_ih") ||
        !has(list, "final_conv.weight"))
        return err_set(err, SHOAL_EUNSUPPORTED,
                       model_name_ends(m->path, ".onnx") ? ONNX_UNKNOWN : BARE_UNKNOWN, m->path);
    m->tensors = arena_alloc(m->mem, (list->n + 1) * sizeof *m->tensors);
    if (!m->tensors) return err_nomem(err);
    for (size_t i = 0; i < list->n; i++) {
        tensor *t = &m->tensors[m->n_tensors++];
        *t = list->items[i].t;
        t->name = arena_strdup(m->mem, t->name);
        if (!t->name) return err_nomem(err);
    }
    m->config = (model_config){.arch = &arch_silero, .task = TASK_VAD};
    return 0;
}

int model_load_voice(model *m, const model_options *opts, shoal_err *err)
{
    st_list list = {0};
    m->weights = arena_new(0); /* of ONNX, whose values are copied */
    int rc = m->weights ? model_build_maps(m, 1, err) : err_nomem(err);
    if (rc == 0) rc = model_build_map_file(m, m->path, err);
    if (rc == 0) rc = voice_weights_parse(&list, m->weights, m->maps[0].data, m->maps[0].len, m->path, err);
    if (rc == 0) rc = adopt(m, &list, err);
    safetensors_list_done(&list);
    if (rc == 0) rc = model_build_tokenizer(m, err_set(err, SHOAL_ENOTFOUND, "it reads no text"), err);
    return rc;
}
