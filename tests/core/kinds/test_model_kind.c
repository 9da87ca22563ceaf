/* Which kind a file or folder is, and which of a folder's files belong to the model. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "kinds/model_kind.h"

#define DATA SHOAL_SOURCE_DIR "/tests/data/"

static void each_path_is_of_a_kind(void **state)
{
    static const struct {
        const char *path, *kind, *task;
    } ROWS[] = {
        {DATA "hf/llama-gqa", "huggingface", "generate"},
        {DATA "hf/bert-intent", "huggingface", "classify"},
        {DATA "sensors/lstm", "huggingface", "score"},
        {DATA "hf/whisper", "huggingface", NULL},
        {DATA "hf/lstm-anomaly", "huggingface", "score"},
        {DATA "ct2/float16", "ctranslate2", "transcribe"},
        {DATA "sensors/trees", "trees", "score"},
        {DATA "sensors/trees/model.xgb.json.gz", "trees", "score"},
        {DATA "hf/llama-gqa/model.safetensors", "bare", "vad"},
        {DATA "absent", "gguf", NULL}, /* its loader says that it is not there */
        {DATA "absent/silero.onnx", "bare", "vad"},
        {DATA "hf", "huggingface", NULL},
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        const char *kind = model_kind_of(ROWS[i].path)->name, *task = model_kind_task(ROWS[i].path);
        if (strcmp(kind, ROWS[i].kind) != 0) fail_msg("%s: %s", ROWS[i].path, kind);
        if (!task != !ROWS[i].task || (task && strcmp(task, ROWS[i].task) != 0))
            fail_msg("%s: %s", ROWS[i].path, task ? task : "no task");
    }
}

static void a_name_alone_tells_some_kinds(void **state)
{
    assert_ptr_equal(model_kind_named("tiny-Q8_0.GGUF"), &model_kind_gguf);
    assert_ptr_equal(model_kind_named("vad.onnx"), &model_kind_bare);
    assert_null(model_kind_named("home-intent"));
    assert_null(model_kind_named(".gguf"));
}

static void the_first_bytes_count_more_than_the_name(void **state)
{
    char path[] = "/tmp/shoal-kind-XXXXXX.gguf";
    int fd = mkstemps(path, (int)strlen(".gguf"));
    assert_ptr_equal(model_kind_of(path), &model_kind_gguf); /* empty */
    assert_int_equal(write(fd, "tree\nversion=v4\n", 16), 16);
    assert_ptr_equal(model_kind_of(path), &model_kind_trees);
    close(fd);
    unlink(path);
}

static void files_of_models_are_known_by_their_beginning(void **state)
{
#define BYTES(s)                            \
    {                                       \
        (const uint8_t *)(s), sizeof(s) - 1 \
    }
    static const struct {
        const uint8_t *bytes;
        size_t n;
    } MODELS[] = {BYTES("GGUF\3\0\0\0"),
                  BYTES("\x10\2\0\0\0\0\0\0{\"a\":1}"),
                  BYTES(" \n{\"learner\":"),
                  BYTES("tree\nversion=v4"),
                  BYTES("\x1f\x8b\x08\0"),
                  BYTES("24ka\1\0\0\0"),
                  BYTES("\x20\1\0\0\0\3\0\0\6\0\0\0\6\0\0\0\6\0\0\0")},
      OTHERS[] = {BYTES(""),
                  BYTES("G"),
                  BYTES("<html>"),
                  BYTES("log in first, please, and then come back"),
                  BYTES("\x7f"
                        "ELF\2\1\1\0\0\0\0\0\0\0\0\0\3\0\x3e\0\1\0\0\0"),
                  BYTES("PK\3\4\x14\0\0\0\x08\0")};
#undef BYTES
    for (size_t i = 0; i < sizeof MODELS / sizeof *MODELS; i++)
        if (!model_kind_begins(MODELS[i].bytes, MODELS[i].n)) fail_msg("model %zu", i);
    for (size_t i = 0; i < sizeof OTHERS / sizeof *OTHERS; i++)
        if (model_kind_begins(OTHERS[i].bytes, OTHERS[i].n)) fail_msg("other %zu", i);
}

static void what_a_hub_lists_is_of_a_kind(void **state)
{
    const char *const whisper[] = {"README.md", "config.json", "model.bin", "vocabulary.txt"};
    const char *const fasttext[] = {"README.md", "config.json", "model.bin"};
    assert_ptr_equal(model_kind_listed(whisper, 4), &model_kind_ct2);
    assert_null(model_kind_listed(fasttext, 3));
    assert_null(model_kind_listed(NULL, 0));
}

static void files_of_a_folder_have_roles(void **state)
{
    static const struct {
        const model_kind *kind;
        const char *name;
        model_file_role role;
    } ROWS[] = {
        {&model_kind_hf, "model-00001-of-00002.safetensors", MODEL_FILE_WEIGHTS},
        {&model_kind_hf, "1_Pooling/config.json", MODEL_FILE_SIDE},
        {&model_kind_hf, "README.md", MODEL_FILE_OTHER},
        {&model_kind_hf, "pytorch_model.bin", MODEL_FILE_FOREIGN},
        {&model_kind_hf, "onnx/model.onnx", MODEL_FILE_FOREIGN},
        {&model_kind_ct2, "model.bin", MODEL_FILE_WEIGHTS},
        {&model_kind_ct2, "tokenizer.json", MODEL_FILE_SIDE},
        {&model_kind_ct2, "model.onnx", MODEL_FILE_FOREIGN},
        {&model_kind_trees, "model.bin", MODEL_FILE_OTHER}, /* config.json may name it */
        {&model_kind_gguf, "model.bin", MODEL_FILE_OTHER},
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++)
        if (model_kind_file(ROWS[i].kind, ROWS[i].name) != ROWS[i].role)
            fail_msg("%s: %s", ROWS[i].kind->name, ROWS[i].name);
}

static void weights_of_others_do_not_count(void **state)
{
    static const char *const NAMES[] = {"config.json", "model.safetensors", "pytorch_model.bin"};
    char folder[] = "/tmp/shoal-kind-XXXXXX", at[64];
    assert_non_null(mkdtemp(folder));
    for (size_t i = 0; i < 3; i++) {
        snprintf(at, sizeof at, "%s/%s", folder, NAMES[i]);
        FILE *f = fopen(at, "w");
        fprintf(f, "%*s", 1 << i, "");
        fclose(f);
    }
    assert_int_equal(model_kind_measure(folder).bytes, 1 + 2);
    assert_int_equal(model_kind_measure(at).bytes, 4); /* a file is what was asked for */
    assert_int_equal(model_kind_measure(DATA "absent").bytes, 0);
    for (size_t i = 0; i < 3; i++) {
        snprintf(at, sizeof at, "%s/%s", folder, NAMES[i]);
        unlink(at);
    }
    rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_path_is_of_a_kind),
        cmocka_unit_test(a_name_alone_tells_some_kinds),
        cmocka_unit_test(the_first_bytes_count_more_than_the_name),
        cmocka_unit_test(files_of_models_are_known_by_their_beginning),
        cmocka_unit_test(what_a_hub_lists_is_of_a_kind),
        cmocka_unit_test(files_of_a_folder_have_roles),
        cmocka_unit_test(weights_of_others_do_not_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
