/* The bundled models, when they are there: each does its job on one sentence, alone and in a crowd. */
#include "helper.h"

#include "base/file.h"
#include "net/tagging.h"

#define MODELS SHOAL_SOURCE_DIR "/models/"

/* False, with the skip named, when the bundled file is not there. */
static bool open_home(rig *r, const char *file)
{
    char path[512];
    snprintf(path, sizeof path, MODELS "%s.gguf", file);
    if (!file_exists(path)) {
        fprintf(stderr, "SKIP %s: models/%s.gguf is not there\n", file, file);
        return false;
    }
    rig_open(r, path, (engine_options){0});
    return true;
}

static void encode_text(const rig *r, const char *text, encoding *enc, vectors *v)
{
    *enc = (encoding){0};
    vectors_init(v);
    must(tokenizer_encode(model_tokenizer(r->m), text, strlen(text), NULL, 0, TOK_ADD_SPECIAL, 0, enc, &err));
    must(engine_encode(r->e, &(enc_request){.ids = enc->ids, .n_ids = enc->n}, on_vectors, v, NULL, &err));
    vectors_wait(v);
    assert_int_equal(v->status, 0);
}

static void home_intent_knows_a_light(void **state)
{
    rig r;
    encoding enc;
    vectors v;
    if (!open_home(&r, "home-intent")) skip();
    const model_config *c = model_get_config(r.m);
    encode_text(&r, "turn on the lights in the kitchen", &enc, &v);
    float *scores = malloc(c->head.n_labels * sizeof *scores), total = 0;
    size_t best = 0;
    engine_scores(r.e, v.values, scores);
    for (size_t i = 0; i < c->head.n_labels; i++) {
        total += scores[i];
        if (scores[i] > scores[best]) best = i;
    }
    assert_string_equal(c->head.labels[best], "iot_hue_lighton");
    assert_true(fabsf(total - 1) < 1e-4f);
    free(scores);
    encoding_done(&enc);
    vectors_done(&v);
    rig_close(&r);
}

static void home_slots_finds_the_date(void **state)
{
    static const char text[] = "event reminder mona tuesday";
    rig r;
    encoding enc;
    vectors v;
    entity *found;
    size_t n;
    if (!open_home(&r, "home-slots")) skip();
    encode_text(&r, text, &enc, &v);
    must(tagging_entities(model_get_config(r.m), &enc, v.values, &found, &n, &err));
    assert_int_equal(n, 2);
    assert_string_equal(found[0].label, "event_name");
    assert_string_equal(found[1].label, "date");
    assert_int_equal(found[1].span.begin, 20);
    assert_int_equal(found[1].span.end, 27);
    free(found);
    encoding_done(&enc);
    vectors_done(&v);
    rig_close(&r);
}

static void home_embed_gives_unit_vectors(void **state)
{
    rig r;
    encoding enc;
    vectors v;
    double sum = 0;
    if (!open_home(&r, "home-embed")) skip();
    encode_text(&r, "good morning", &enc, &v);
    for (size_t i = 0; i < v.cols; i++) sum += (double)v.values[i] * (double)v.values[i];
    assert_true(fabs(sum - 1) < 1e-5);
    encoding_done(&enc);
    vectors_done(&v);
    rig_close(&r);
}

static void home_chat_calls_a_tool(void **state)
{
    static const char *const files[] = {"home-chat-s", "home-chat-m"};
    static const char text[] = "<|im_start|>system\nYou are Shoal, a helper that runs this home. Devices:\n"
                               "switch.den_copper 'Den Copper Relay' = on<|im_end|>\n<|im_start|>user\n"
                               "Turn off the den copper relay.<|im_end|>\n<|im_start|>assistant\n";
    rig r;
    for (size_t i = 0; i < 2; i++) {
        encoding enc = {0};
        if (!open_home(&r, files[i])) skip();
        must(tokenizer_encode(model_tokenizer(r.m), text, strlen(text), NULL, 0, TOK_PARSE_SPECIAL, 0, &enc,
                              &err));
        reply *got = generate(r.e, &(gen_request){.ids = enc.ids, .n_ids = enc.n, .max_tokens = 80});
        assert_int_equal(got->finish, FINISH_STOP);
        if (!strstr(got->text, "switch.den_copper")) fail_msg("%s said: %s", files[i], got->text);
        assert_true(got->timings.mean_prob > 0.5);
        reply_free(got);
        encoding_done(&enc);
        rig_close(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(home_intent_knows_a_light),
        cmocka_unit_test(home_slots_finds_the_date),
        cmocka_unit_test(home_embed_gives_unit_vectors),
        cmocka_unit_test(home_chat_calls_a_tool),
    };
    return cmocka_run_group_tests_name("infer_home", tests, NULL, NULL);
}
