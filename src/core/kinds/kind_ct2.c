/* kind_ct2.c: a folder of CTranslate2, as faster-whisper uses it. */
#include <string.h>

#include "kinds/model_kind.h"

/* Other programs call their weights model.bin, too. A folder is taken at its word, and its loader says what it
 * is; what a hub lists needs the vocabulary's name as well. */
static bool ct2_recognises(const model_view *v)
{
    bool vocabulary = model_view_has(v, "vocabulary.json") || model_view_has(v, "vocabulary.txt");
    return v->is_folder && model_view_has(v, "model.bin") && !model_view_has(v, "model.safetensors") &&
           !model_view_has(v, "model.safetensors.index.json") && (v->path || vocabulary);
}

static const char *ct2_describe(const model_view *v)
{
    return "transcribe";
}

static model_file_role ct2_file(const char *name)
{
    return strcmp(name, "model.bin") == 0 ? MODEL_FILE_WEIGHTS : model_kind_hf.file(name);
}

const model_kind model_kind_ct2 = {
    .name = "ctranslate2", .recognise = ct2_recognises, .describe = ct2_describe, .file = ct2_file};
