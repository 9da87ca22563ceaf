/* What is said of a model file: a voice detector, an encoder, and mixtures of types by the names users know.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants the four above first. */
#include <cmocka.h>
#include <string.h>
#include <unistd.h>

#include "../../engine/speech/vad_model_file.h"
#include "base/file.h"
#include "inspect/inspect.h"

#define DATA SHOAL_SOURCE_DIR "/tests/data/"

/* The words for the file, malloc'd in a buf. */
static void describe(buf *out, const char *path)
{
    model *m;
    inspect_report r;
    shoal_err err = {0};
    if (model_open(&m, path, NULL, &err) != 0) fail_msg("%s", err.message);
    assert_int_equal(inspect_model(&r, m, false, &err), 0);
    inspect_put(out, &r, m, path);
    model_free(m);
}

static void has(const buf *b, const char *text)
{
    if (!strstr(b->data, text)) fail_msg("\"%s\" is missing from:\n%s", text, b->data);
}

static void has_not(const buf *b, const char *text)
{
    if (strstr(b->data, text)) fail_msg("\"%s\" stands in:\n%s", text, b->data);
}

static void a_voice_detector_runs_here(void **state)
{
    (void)state;
    char path[2][64] = {"/tmp/shoal-inspect-XXXXXX.onnx", "/tmp/shoal-inspect-XXXXXX.safetensors"};
    for (size_t i = 0; i < 2; i++) {
        buf file = {0}, said = {0};
        int fd = mkstemps(path[i], i == 0 ? 5 : 12);
        assert_true(fd >= 0);
        if (i == 0)
            make_onnx(&file, SIZE_MAX);
        else
            make_file(&file, SIZE_MAX, NULL, NULL);
        assert_int_equal(write(fd, file.data, file.len), file.len);
        close(fd);
        describe(&said, path[i]);
        unlink(path[i]);
        has(&said, "verdict       it runs here: shoal vad");
        has(&said, "16 kHz");
        has_not(&said, "layers");
        has_not(&said, "vocabulary");
        has_not(&said, "tokenizer");
        buf_done(&file);
        buf_done(&said);
    }
}

static void an_encoder_shares_no_output(void **state)
{
    (void)state;
    buf encoder = {0}, decoder = {0};
    describe(&encoder, DATA "hf/minilm-embed");
    describe(&decoder, DATA "hf/gemma3");
    has(&encoder, "vocabulary");
    has_not(&encoder, "shared with the output");
    has(&decoder, "shared with the output");
    buf_done(&encoder);
    buf_done(&decoder);
}

/* Most bytes may be of another type, as those of a large vocabulary. */
static void a_mixture_has_its_own_name(void **state)
{
    (void)state;
    char path[] = "/tmp/shoal-inspect-XXXXXX.gguf";
    int fd = mkstemps(path, 5);
    model *m;
    quantize_report report;
    shoal_err err = {0};
    const char *const others[] = {"token_embd=f32", "ffn=f32"};
    quantize_options opts = {.type = DT_Q4_0, .overrides = others, .n_overrides = 2};
    buf said = {0};
    assert_true(fd >= 0);
    close(fd);
    if (quantize_model(DATA "hf/llama-gqa", path, &opts, &report, &err) != 0) fail_msg("%s", err.message);
    assert_int_equal(model_open(&m, path, NULL, &err), 0);
    assert_string_equal(model_quantisation(m), "F32");
    assert_string_equal(model_file_type(m), "Q4_0");
    model_free(m);
    describe(&said, path);
    has(&said, "types         Q4_0: ");
    unlink(path);
    buf_done(&said);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_voice_detector_runs_here),
        cmocka_unit_test(an_encoder_shares_no_output),
        cmocka_unit_test(a_mixture_has_its_own_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
