/* home agreement: the bundled, quantised models against the reference's float answers.
 *
 * The bounds are what quantisation was allowed to cost: 99 % of intents and of slot lists the same, 28
 * of 29 replies with the same tool call. docs/quantisation.md has the table. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json/json.h"
#include "shoal.h"

static shoal_model *open_model(const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/models/%s.gguf", SHOAL_SOURCE_DIR, name);
    shoal_model *m = NULL;
    shoal_err err = {0};
    if (shoal_model_open(&m, path, NULL, &err) != 0) fail_msg("%s", err.message);
    return m;
}

static json_t *open_cases(const char *name, json_t **ret_cases)
{
    char path[512];
    snprintf(path, sizeof path, "%s/tests/data/home/%s.json", SHOAL_SOURCE_DIR, name);
    json_t *root = NULL;
    shoal_err err = {0};
    if (json_parse_file(&root, path, 1 << 20, &err) != 0) fail_msg("%s", err.message);
    *ret_cases = json_object_get(root, "cases");
    assert_true(json_array_size(*ret_cases) > 0);
    return root;
}

static const char *str(const json_t *o, const char *key)
{
    return json_string_value(json_object_get(o, key));
}

static void intents_agree_with_the_reference(void **state)
{
    shoal_model *m = open_model("home-intent");
    json_t *cases, *root = open_cases("intent", &cases);
    size_t n = json_array_size(cases), same = 0;
    double worst = 0;
    for (size_t i = 0; i < n; i++) {
        const json_t *c = json_array_get(cases, i);
        shoal_classification r = {0};
        assert_int_equal(shoal_classify(m, str(c, "text"), NULL, &r, NULL), 0);
        same += strcmp(r.labels[0].name, str(c, "pred")) == 0;
        worst = fmax(worst, fabs((double)r.labels[0].score - json_number_value(json_object_get(c, "score"))));
        shoal_classification_done(&r);
    }
    printf("home-intent: %zu of %zu the same, worst score difference %.4f\n", same, n, worst);
    assert_true(same * 100 >= n * 99);
    json_decref(root);
    shoal_model_close(m);
}

static bool same_spans(const shoal_tagging *t, const json_t *want)
{
    if (t->n_spans != json_array_size(want)) return false;
    for (size_t i = 0; i < t->n_spans; i++) {
        const json_t *w = json_array_get(want, i);
        if ((json_int_t)t->spans[i].start != json_integer_value(json_array_get(w, 0)) ||
            (json_int_t)t->spans[i].end != json_integer_value(json_array_get(w, 1)) ||
            strcmp(t->spans[i].label, json_string_value(json_array_get(w, 2))) != 0)
            return false;
    }
    return true;
}

static void slots_agree_with_the_reference(void **state)
{
    shoal_model *m = open_model("home-slots");
    json_t *cases, *root = open_cases("slots", &cases);
    size_t n = json_array_size(cases), same = 0;
    for (size_t i = 0; i < n; i++) {
        const json_t *c = json_array_get(cases, i);
        shoal_tagging t = {0};
        assert_int_equal(shoal_tag(m, str(c, "text"), &t, NULL), 0);
        same += same_spans(&t, json_object_get(c, "pred"));
        shoal_tagging_done(&t);
    }
    printf("home-slots: %zu of %zu the same\n", same, n);
    assert_true(same * 100 >= n * 99);
    json_decref(root);
    shoal_model_close(m);
}

static void embeddings_agree_with_the_reference(void **state)
{
    shoal_model *m = open_model("home-embed");
    json_t *cases, *root = open_cases("embed", &cases);
    double worst = 1;
    for (size_t i = 0; i < json_array_size(cases); i++) {
        const json_t *c = json_array_get(cases, i), *want = json_object_get(c, "vector");
        shoal_embedding e = {0};
        assert_int_equal(shoal_embed(m, str(c, "text"), &e, NULL), 0);
        assert_int_equal(e.n, json_array_size(want));
        double dot = 0, norm = 0;
        for (size_t k = 0; k < e.n; k++) {
            double w = json_number_value(json_array_get(want, k));
            dot += w * (double)e.values[k];
            norm += w * w;
        }
        worst = fmin(worst, dot / sqrt(norm));
        shoal_embedding_done(&e);
    }
    printf("home-embed: worst cosine %.5f\n", worst);
    assert_true(worst > 0.999);
    json_decref(root);
    shoal_model_close(m);
}

/* The first tool call and all behind it; "" when there is none. */
static const char *call_of(const char *text)
{
    const char *call = strstr(text, "<tool_call>");
    return call ? call : "";
}

static void replies_call_the_same_tools(void **state)
{
    shoal_model *m = open_model("home-chat-s");
    json_t *cases, *root = open_cases("chat-s", &cases);
    size_t n = json_array_size(cases), same_call = 0, same_text = 0;
    for (size_t i = 0; i < n; i++) {
        const json_t *c = json_array_get(cases, i);
        const shoal_message messages[] = {{"system", str(c, "system")}, {"user", str(c, "user")}};
        shoal_generation g = {0};
        shoal_generate_options o = {.max_tokens = 128};
        assert_int_equal(shoal_chat(m, messages, 2, &o, NULL, NULL, &g, NULL), 0);
        assert_int_equal(g.n_prompt, json_array_size(json_object_get(c, "prompt_ids")));
        same_call += strcmp(call_of(g.text), call_of(str(c, "text"))) == 0;
        same_text += strcmp(g.text, str(c, "text")) == 0;
        shoal_generation_done(&g);
    }
    printf("home-chat-s: %zu of %zu calls the same, %zu whole replies\n", same_call, n, same_text);
    assert_true(same_call + 1 >= n);
    json_decref(root);
    shoal_model_close(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(intents_agree_with_the_reference),
        cmocka_unit_test(slots_agree_with_the_reference),
        cmocka_unit_test(embeddings_agree_with_the_reference),
        cmocka_unit_test(replies_call_the_same_tools),
    };
    return cmocka_run_group_tests_name("infer_home_agreement", tests, NULL, NULL);
}
