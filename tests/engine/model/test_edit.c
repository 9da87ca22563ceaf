/* A GGUF file written again: other metadata, the same weights. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/sha256.h"
#include "model/model.h"

#define SOURCE SHOAL_GGUF_DIR "/llama-gqa.gguf"
#define HOME   SHOAL_SOURCE_DIR "/models/home-chat-s.gguf"

static char dir[64], out[96];

static int setup(void **state)
{
    strcpy(dir, "/tmp/shoal-edit-XXXXXX");
    if (!mkdtemp(dir)) return -1;
    snprintf(out, sizeof out, "%s/out.gguf", dir);
    return 0;
}

static int teardown(void **state)
{
    unlink(out);
    return rmdir(dir);
}

static void same_tensors(const char *a, const char *b)
{
    model *m = NULL, *n = NULL;
    shoal_err err;
    assert_int_equal(model_open(&m, a, NULL, &err), 0);
    assert_int_equal(model_open(&n, b, NULL, &err), 0);
    assert_int_equal(model_tensor_count(m), model_tensor_count(n));
    for (size_t i = 0; i < model_tensor_count(m); i++) {
        const tensor *s = model_tensor_at(m, i), *t = model_tensor_at(n, i);
        assert_string_equal(s->name, t->name);
        assert_int_equal(s->bytes, t->bytes);
        assert_memory_equal(s->data, t->data, s->bytes);
    }
    model_free(m);
    model_free(n);
}

static void settings_change_and_weights_do_not(void **state)
{
    static const gguf_setting set[] = {{"tokenizer.chat_template", "{{ messages[0].content }}"},
                                       {"general.version", "9"},
                                       {"shoal.tool_results", "quote"}};
    sha256_digest d, now;
    shoal_err err;
    assert_int_equal(gguf_edit_file(HOME, out, set, 3, &d, &err), 0);
    same_tensors(HOME, out);
    assert_int_equal(sha256_file(out, &now, &err), 0);
    assert_memory_equal(&d, &now, sizeof d);
    model *m = NULL;
    assert_int_equal(model_open(&m, out, NULL, &err), 0);
    assert_string_equal(chat_template_source(model_chat_template(m)), set[0].value);
    assert_string_equal(model_version(m), "9");
    assert_true(model_quotes_results(m));
    model_free(m);
    /* in place, and back: the first file again */
    static const gguf_setting back[] = {{"general.version", "10"}};
    assert_int_equal(gguf_edit_file(out, out, back, 1, &d, &err), 0);
    same_tensors(HOME, out);
}

static void bad_settings_leave_the_old_file(void **state)
{
    static const struct {
        gguf_setting set[2];
        size_t n;
        const char *words;
    } CASES[] = {
        {{{"llama.block_count", "3"}}, 1, "no text"},
        {{{"a", "1"}, {"a", "2"}}, 2, "set twice"},
        {{{"", "1"}}, 1, "empty"},
    };
    sha256_digest before, after, d;
    shoal_err err;
    assert_int_equal(gguf_edit_file(SOURCE, out, NULL, 0, &before, &err), 0);
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        assert_int_equal(gguf_edit_file(SOURCE, out, CASES[i].set, CASES[i].n, &d, &err), SHOAL_EINVALID);
        if (!strstr(err.message, CASES[i].words)) fail_msg("%s", err.message);
        assert_int_equal(sha256_file(out, &after, &err), 0);
        assert_memory_equal(&before, &after, sizeof before);
    }
}

/* The bundled files' template is the one that people can read beside them. */
static void home_models_hold_the_template_beside_them(void **state)
{
    static const char *const models[] = {HOME, SHOAL_SOURCE_DIR "/models/home-chat-m.gguf"};
    buf want = {0};
    shoal_err err;
    assert_int_equal(file_read(&want, SHOAL_SOURCE_DIR "/models/home-chat.jinja", 1 << 16, &err), 0);
    for (int i = 0; i < 2; i++) {
        model *m = NULL;
        assert_int_equal(model_open(&m, models[i], NULL, &err), 0);
        assert_string_equal(chat_template_source(model_chat_template(m)), want.data);
        assert_true(model_quotes_results(m));
        model_free(m);
    }
    buf_done(&want);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(settings_change_and_weights_do_not, setup, teardown),
        cmocka_unit_test_setup_teardown(bad_settings_leave_the_old_file, setup, teardown),
        cmocka_unit_test(home_models_hold_the_template_beside_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
