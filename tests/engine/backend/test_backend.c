/* Which backend serves which file, and what a model that cannot do something says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../speech/vad_model_file.h"
#include "backend/backend_tuning.h"
#include "base/file.h"
#include "logging/log.h"

#define DATA  SHOAL_SOURCE_DIR "/tests/data/"
#define LLAMA DATA "hf/llama-gqa"

static void open_ready(backend *b, const backend_options *o)
{
    shoal_err err;
    backend_env env = {0};
    log_setup(LOG_OFF, false);
    if (backend_open(b, o, &err) != 0) fail_msg("%s: %s", o->path, err.message);
    if (backend_start(b, o, &env, &err) != 0) fail_msg("%s: %s", o->path, err.message);
}

static void done(backend *b)
{
    backend_stop(b);
    backend_close(b);
    assert_null(b->ops);
}

static void each_kind_of_file_has_its_backend(void **state)
{
    char vad[] = "/tmp/shoal-test-XXXXXX.safetensors";
    buf weights = {0};
    int fd = mkstemps(vad, (int)strlen(".safetensors"));
    make_file(&weights, SIZE_MAX, NULL, NULL);
    assert_int_equal(write(fd, weights.data, weights.len), weights.len);
    close(fd);
    buf_done(&weights);
    const struct {
        const char *path;
        const backend_ops *ops;
        net_layers layers;
        model_task task;
    } rows[] = {
        {DATA "sensors/trees", &backend_trees, {0}, TASK_SCORE},
        {vad, &backend_vad, {0}, TASK_VAD},
        {LLAMA, &backend_stage, {1, 2}, TASK_GENERATE},
        {DATA "hf/whisper", &backend_speech, {0}, TASK_TRANSCRIBE},
        {LLAMA, &backend_net, {0}, TASK_GENERATE},
        {DATA "hf/bert-intent", &backend_net, {0}, TASK_CLASSIFY},
        {DATA "sensors/lstm", &backend_net, {0}, TASK_SCORE},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        backend b;
        open_ready(&b, &(backend_options){.name = "it",
                                          .path = rows[i].path,
                                          .layers = rows[i].layers,
                                          .engine = {.n_threads = 1}});
        assert_string_equal(b.ops->name, rows[i].ops->name);
        assert_int_equal(b.about.task, rows[i].task);
        if (!b.ops->stage) assert_int_equal(backend_admit(&b, rows[i].task, NULL), 0);
        done(&b);
    }
    unlink(vad);
}

static void expect_refusal(const backend *b, model_task task, const char *text)
{
    shoal_err err;
    assert_int_equal(backend_admit(b, task, &err), SHOAL_EUNSUPPORTED);
    assert_string_equal(err.message, text);
}

static void what_a_model_cannot_do_is_said_alike(void **state)
{
    backend b;
    const tokenizer *t;
    shoal_err err;
    open_ready(&b, &(backend_options){.name = "intent", .path = DATA "hf/bert-intent"});
    expect_refusal(&b, TASK_GENERATE, "intent is a model for the task classify, not generate");
    expect_refusal(&b, TASK_VAD, "intent is a model for the task classify, not vad");
    assert_int_equal(backend_tokenizer(&b, "", &t, &err), 0);
    done(&b);
    open_ready(&b, &(backend_options){.name = "fan", .path = DATA "sensors/trees"});
    expect_refusal(&b, TASK_EMBED, "fan is a model for the task score, not embed");
    assert_int_equal(backend_tokenizer(&b, "; send ids", &t, &err), SHOAL_EUNSUPPORTED);
    assert_string_equal(err.message, "fan: it is made of trees and reads no text; send ids");
    done(&b);
    open_ready(&b, &(backend_options){.name = "home", .path = LLAMA, .layers = {1, 2}});
    expect_refusal(&b, TASK_GENERATE, "this is one stage of home: ask its first stage");
    assert_int_equal(backend_tokenizer(&b, "", &t, &err), SHOAL_EUNSUPPORTED);
    assert_string_equal(err.message, "this is one stage of home: ask its first stage");
    done(&b);
}

static void what_does_not_open_leaves_nothing_behind(void **state)
{
    const struct {
        backend_options o;
        int rc;
    } rows[] = {
        {{.path = DATA "hf"}, SHOAL_ENOTFOUND},
        {{.path = DATA "sensors/trees", .sha256 = "00"}, SHOAL_EDIGEST},
        {{.path = LLAMA, .sha256 = "00"}, SHOAL_EDIGEST},
        {{.path = DATA "sensors/trees", .n_adapters = 1}, SHOAL_EUNSUPPORTED},
        {{.path = DATA "sensors/trees", .engine = {.kv_type = KV_F16}}, SHOAL_EUNSUPPORTED},
    };
    log_setup(LOG_OFF, false);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        backend b;
        shoal_err err;
        backend_options o = rows[i].o;
        o.name = "it";
        int rc = backend_open(&b, &o, &err);
        if (rc != rows[i].rc) fail_msg("%s: %d, not %d: %s", o.path, rc, rows[i].rc, err.message);
        assert_null(b.ops);
        backend_stop(&b);
        backend_close(&b);
    }
}

/* The words of the table are those of the engine. */
static void every_option_has_a_use(void **state)
{
    for (size_t i = 0; i < TUNING_N_ROWS; i++) {
        const char *const numbers[] = {"17", NULL}, *const *values = tuning_rows[i].words;
        for (values = values ? values + 1 : numbers; *values; values++) {
            tuning t = {0};
            backend_options o = {0}, zero = {0};
            shoal_err err;
            assert_int_equal(tuning_set(&t, tuning_rows[i].key, *values, NULL), 0);
            if (backend_tune(&o, &t, &err) != 0) fail_msg("%s", err.message);
            bool is_worker_s = strcmp(tuning_rows[i].key, "vad") == 0;
            assert_true(is_worker_s == (memcmp(&o, &zero, sizeof o) == 0));
        }
    }
    tuning t = {.kv_type = 3};
    backend_options o = {0};
    assert_int_equal(backend_tune(&o, &t, NULL), 0);
    assert_int_equal(o.engine.kv_type, KV_Q8_0);
}

/* ---- a kind that does not compute on cores ------------------------------------------------------- */

static int start_and_look(void *state, const backend_options *o, const backend_env *env, shoal_err *err)
{
    *(arbiter **)state = env->arbiter;
    return 0;
}

static void describe_nothing(const void *state, backend_about *ret) {}

static void who_computes_on_a_device_leases_no_cores(void **state)
{
    backend_ops ops = {.name = "test",
                       .engine = "test",
                       .start = start_and_look,
                       .describe = describe_nothing,
                       .device = "test"};
    arbiter *given = (arbiter *)&ops, *seen = given; /* it is only passed on */
    const backend_options o = {.name = "it"};
    const backend_env env = {.arbiter = given};
    backend b = {.ops = &ops, .state = &seen};
    assert_int_equal(backend_start(&b, &o, &env, NULL), 0);
    assert_null(seen);
    ops.device = NULL;
    assert_int_equal(backend_start(&b, &o, &env, NULL), 0);
    assert_ptr_equal(seen, given);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_computes_on_a_device_leases_no_cores),
        cmocka_unit_test(each_kind_of_file_has_its_backend),
        cmocka_unit_test(what_a_model_cannot_do_is_said_alike),
        cmocka_unit_test(what_does_not_open_leaves_nothing_behind),
        cmocka_unit_test(every_option_has_a_use),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
