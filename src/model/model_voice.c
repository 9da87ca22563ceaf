/* model_voice.c: a bare safetensors file -> model. Only Silero's voice detector comes so: it is known by the
 * names of its tensors, and speech/voice.h computes it. */
#include <stdlib.h>
#include <string.h>

#include "model/model_adopt.h"
#include "model/model_build.h"
#include "model/model_priv.h"
#include "model/safetensors.h"

static const tensor_rule no_rules[] = {{0}};

static const arch_def arch_silero = {
    .name = "silero-vad", .task = TASK_VAD, .tasks = CAN(TASK_VAD), .tensors = {no_rules}};

bool model_is_bare(const char *path)
{
    static const char suffix[] = ".safetensors";
    size_t n = strlen(path), n_suffix = sizeof suffix - 1;
    return n > n_suffix && strcmp(path + n - n_suffix, suffix) == 0;
}

static bool has(const st_list *list, const char *name)
{
    for (size_t i = 0; i < list->n; i++)
        if (strcmp(list->items[i].t.name, name) == 0) return true;
    return false;
}

static int adopt(model *m, const st_list *list, shoal_err *err)
{
    if (!has(list, "stft_conv.weight") || !has(list, "lstm_cell.weight_ih") ||
        !has(list, "final_conv.weight"))
        return err_set(err, SHOAL_EUNSUPPORTED,
                       "%s: weights without a configuration: give the folder with its config.json (only "
                       "Silero's voice detector for 16 kHz is known by its tensors alone)",
                       m->path);
    m->tensors = arena_alloc(m->mem, (list->n + 1) * sizeof *m->tensors);
    if (!m->tensors) return err_nomem(err);
    for (size_t i = 0; i < list->n; i++) m->tensors[m->n_tensors++] = list->items[i].t;
    m->config = (model_config){.arch = &arch_silero, .task = TASK_VAD};
    return 0;
}

int model_load_voice(model *m, shoal_err *err)
{
    st_list list = {0};
    int rc = model_build_maps(m, 1, err);
    if (rc == 0) rc = model_build_map_file(m, m->path, err);
    if (rc == 0) rc = safetensors_parse(&list, m->mem, m->maps[0].data, m->maps[0].len, m->path, err);
    if (rc == 0) rc = adopt(m, &list, err);
    safetensors_list_done(&list);
    if (rc == 0) rc = model_build_tokenizer(m, err_set(err, SHOAL_ENOTFOUND, "it reads no text"), err);
    return rc;
}
