/* Stages that read what a request brings beside its text: sound that becomes the input, silence that is not
 * answered, pictures, tables; forms; adapters. */
#include "fake_calls.h"

#include "json/json.h"
#include "json/json_memory.h"
#include "stages/stages.h"

#define MODELS                                                                                             \
    "models: [{name: ears, path: e}, {name: voice, path: v}, {name: eyes, path: i}, {name: rows, path: "   \
    "s},\n"                                                                                                \
    "  {name: c, path: c, adapters: [{name: x, path: x}]}, {name: g, path: g}]\npipelines:\n  - name: p\n" \
    "    devices: [{id: light.hall, name: Hall Light}]\n    stages:\n"
#define WORDS  "      - {name: words, kind: transcribe, model: ears, language: en, prompt: '{devices}'}\n"
#define INTENT "      - {name: intent, kind: classify, model: c, input: 'say: {input}'}\n"
#define REPLY  "      - {name: reply, kind: generate, model: g, prompt: 'You want {label.intent}.'}\n"
#define VOICE  "      - {name: voice, kind: vad, model: voice, threshold: 0.4}\n"
#define AWAKE \
    "      - {name: words, kind: transcribe, model: ears, when: [{stage: voice, label: [speech]}]}\n"
#define PICTURE "      - {name: picture, kind: image, model: eyes}\n"
#define TABLE   "      - {name: machine, kind: score, model: rows, alert: [fault, drift]}\n"
#define ALERT                                                                            \
    "      - {name: notice, kind: generate, model: g, prompt: 'Warn: {text.machine}',\n" \
    "         when: [{stage: machine, label: [fault], score_min: 0.9}]}\n"
#define HEATER                                                                 \
    "      - {name: machine, kind: score, model: rows, row: highest}\n"        \
    "      - {name: hot, kind: classify, model: c, input: '{text.machine}',\n" \
    "         when: [{stage: machine, number_min: 70.5}]}\n"

#define SOUND "{\"audio\":\"UklGRg==\"}" /* RIFF */

typedef struct bench {
    fake_calls b;
    gateway_config *config;
    process_input in;
    process_run *run;
    int n_done;
    char failed[64], message[256];
    int failure;
    json_t *answer;
} bench;

static void on_done(void *user, const process_outcome *o)
{
    bench *t = user;
    t->n_done++;
    if (!o->failed) t->answer = process_outcome_json(o);
    if (!o->failed) return;
    t->failure = o->failure->status;
    snprintf(t->failed, sizeof t->failed, "%s", o->failed->name);
    snprintf(t->message, sizeof t->message, "%s", o->failure->message);
}

static gateway_config *configure(const char *stages)
{
    char yaml[4096];
    gateway_config *c = NULL;
    shoal_err err = {0};
    snprintf(yaml, sizeof yaml, "%s%s", MODELS, stages);
    if (config_parse(&c, &SERVER_STAGES, yaml, strlen(yaml), "t.yaml", &err)) fail_msg("%s", err.message);
    return c;
}

static bench *start(const char *stages, const char *body)
{
    bench *t = calloc(1, sizeof *t);
    api_error e = {0};
    t->config = configure(stages);
    if (process_parse(&t->in, t->config, body, strlen(body), &e)) fail_msg("%s", e.message);
    call_context ctx = {.request_id = "r1"};
    t->in.time = fake_time();
    assert_int_equal(process_run_start(&t->run, &t->in, fake_calls_init(&t->b), &ctx, on_done, t, NULL), 0);
    fake_turns();
    return t;
}

static void stop(bench *t)
{
    fake_calls_done(&t->b);
    json_decref(t->answer);
    process_input_done(&t->in);
    config_free(t->config);
    free(t);
}

static const json_t *trace_at(const bench *t, size_t i)
{
    assert_int_equal(t->n_done, 1);
    return json_array_get(json_object_get(t->answer, "trace"), i);
}

static const char *str_at(const json_t *o, const char *key)
{
    return json_string_value(json_object_get(o, key));
}

static double num_at(const json_t *o, const char *key)
{
    return json_number_value(json_object_get(o, key));
}

static void refused(const char *stages, const char *body, const char *param, const char *sentence)
{
    process_input in = {0};
    api_error e = {0};
    gateway_config *c = configure(stages);
    assert_int_equal(process_parse(&in, c, body, strlen(body), &e), 400);
    if (!strstr(e.message, sentence)) fail_msg("%s\n%s", body, e.message);
    assert_string_equal(e.param, param);
    config_free(c);
}

/* ---- answers of models ------------------------------------------------------------------------------ */

/* Two segments, of four tokens and of one. */
static void hear(noted *c, const char *first, const char *second)
{
    Shoal__V1__TranscriptSegment g = SHOAL__V1__TRANSCRIPT_SEGMENT__INIT;
    Shoal__V1__TranscribeDone d = SHOAL__V1__TRANSCRIBE_DONE__INIT;
    Shoal__V1__TranscribeEvent ev = SHOAL__V1__TRANSCRIBE_EVENT__INIT;
    int32_t ids[4] = {0};
    const char *const texts[] = {first, second};
    g.ids = ids;
    for (size_t i = 0; i < 2; i++) {
        g.text = (char *)texts[i];
        g.n_ids = i ? 1 : 4;
        g.avg_logprob = i ? -2 : 0;
        ev.segment = &g;
        c->ev.event(&c->ev, &ev.base);
    }
    d.language = "en";
    d.duration_ms = 1250;
    d.n_generated = 5;
    ev.segment = NULL;
    ev.done = &d;
    c->ev.event(&c->ev, &ev.base);
    end_call(c, 0, "", NULL);
}

static void detect(noted *c, size_t n)
{
    Shoal__V1__SpeechSegment g = SHOAL__V1__SPEECH_SEGMENT__INIT, *list[] = {&g};
    Shoal__V1__DetectSpeechReply reply = SHOAL__V1__DETECT_SPEECH_REPLY__INIT;
    g.start_ms = 500;
    g.end_ms = 1000;
    reply.segments = list;
    reply.n_segments = n;
    reply.duration_ms = 2000;
    end_call(c, 0, "", &reply.base);
}

enum { ROWS_MAX = 64 };
/* labels NULL: the model gives numbers. */
static void score_rows(noted *c, const char *const *labels, const double *scores, size_t n)
{
    static char *names[] = {"normal", "drift", "fault"};
    Shoal__V1__ScoredRow rows[ROWS_MAX], *list[ROWS_MAX];
    Shoal__V1__ScoreReply reply = SHOAL__V1__SCORE_REPLY__INIT;
    double values[ROWS_MAX][3];
    for (size_t i = 0; i < n; i++) {
        rows[i] = (Shoal__V1__ScoredRow)SHOAL__V1__SCORED_ROW__INIT;
        rows[i].sensor = i % 2 ? "m2" : "m1";
        rows[i].time = labels ? "noon" : "";
        rows[i].line = (uint32_t)i + 2;
        rows[i].label = labels ? (char *)labels[i] : "";
        rows[i].n_scores = labels ? 3 : 1;
        rows[i].scores = values[i];
        for (size_t k = 0; k < rows[i].n_scores; k++)
            values[i][k] = !labels || strcmp(labels[i], names[k]) == 0 ? scores[i] : 0;
        list[i] = &rows[i];
    }
    reply.rows = list;
    reply.n_rows = n;
    reply.n_read = n;
    reply.labels = names;
    reply.n_labels = labels ? 3 : 0;
    end_call(c, 0, "", &reply.base);
}

/* ---- sound ------------------------------------------------------------------------------------------ */

static void what_is_heard_is_what_later_stages_read(void **state)
{
    bench *t = start(WORDS INTENT, SOUND);
    assert_int_equal(t->b.n, 1); /* the classifier waits for the words */
    assert_string_equal(t->b.calls[0].text, "RIFF");
    assert_string_equal(t->b.calls[0].language, "en");
    assert_string_equal(t->b.calls[0].prompt, "light.hall 'Hall Light' = ");
    hear(&t->b.calls[0], " lights", " on\n");
    assert_int_equal(t->b.n, 2);
    assert_string_equal(t->b.calls[1].text, "say: lights on");
    answer_label(&t->b.calls[1], "lights_on", 1);
    assert_string_equal(str_at(t->answer, "heard"), "lights on");
    assert_string_equal(str_at(t->answer, "text"), "lights on");
    const json_t *e = trace_at(t, 0);
    assert_string_equal(str_at(e, "language"), "en");
    assert_true(num_at(e, "duration") == 1.25 && num_at(e, "completion_tokens") == 5);
    assert_true(num_at(e, "mean_prob") == 0.67032); /* exp((4 * 0 - 2) / 5) */
    stop(t);
}

static void long_hints_are_cut_at_a_whole_letter(void **state)
{
    char stages[256], body[40000], text[9003];
    memset(text, 'a', 8191);
    text[8191] = '\0';
    strcat(text, "\xc3\xa4zz"); /* the cut falls into the ae */
    snprintf(stages, sizeof stages,
             "      - {name: w, kind: transcribe, model: ears, prompt: '{context}'}\n");
    snprintf(body, sizeof body, "{\"audio\":\"UklGRg==\",\"context\":\"%s\"}", text);
    bench *t = start(stages, body);
    assert_int_equal(strlen(t->b.calls[0].prompt), 8191);
    process_run_cancel(t->run);
    stop(t);
}

static void rules_and_conditions_look_at_what_was_heard(void **state)
{
    bench *t = start(WORDS "      - {name: a, kind: classify, model: c, when: [{mentions_device: true}]}\n"
                           "      - {name: b, kind: classify, model: c, when: [{text_prefix: light}]}\n",
                     SOUND);
    assert_int_equal(t->b.n, 1);
    hear(&t->b.calls[0], " the hall", " light");
    assert_int_equal(t->b.n, 2);
    answer_label(&t->b.calls[1], "x", 1);
    assert_string_equal(str_at(trace_at(t, 1), "why"), "input mentions Hall Light");
    assert_string_equal(str_at(trace_at(t, 2), "why"), "input does not start with 'light'");
    stop(t);
}

static void silence_is_not_answered(void **state)
{
    /* The reply's own prompt would go out with an empty label in it. */
    bench *t = start(WORDS INTENT REPLY, SOUND);
    hear(&t->b.calls[0], " ", "\n");
    assert_int_equal(t->b.n, 1);
    assert_true(json_is_null(json_object_get(t->answer, "text")));
    assert_true(json_is_null(json_object_get(t->answer, "heard")));
    assert_string_equal(str_at(trace_at(t, 1), "why"), "nothing was heard");
    assert_string_equal(str_at(trace_at(t, 2), "why"), "nothing was heard");
    stop(t);
}

static void nobody_listens_to_silence(void **state)
{
    bench *t = start(VOICE AWAKE INTENT REPLY, SOUND);
    assert_int_equal(t->b.n, 1);
    detect(&t->b.calls[0], 0);
    assert_int_equal(t->b.n, 1);
    assert_string_equal(str_at(trace_at(t, 0), "label"), "silence");
    assert_string_equal(str_at(trace_at(t, 1), "why"), "voice is silence");
    assert_string_equal(str_at(trace_at(t, 3), "why"), "nothing was heard");
    assert_true(json_is_null(json_object_get(t->answer, "text")));
    stop(t);
    t = start(VOICE AWAKE INTENT REPLY, SOUND);
    detect(&t->b.calls[0], 1);
    hear(&t->b.calls[1], " lights", " on");
    answer_label(&t->b.calls[2], "lights_on", 1);
    assert_non_null(strstr(t->b.calls[3].text, "You want lights_on."));
    end_reply(&t->b.calls[3], 1);
    const json_t *e = trace_at(t, 0), *stretch = json_array_get(json_object_get(e, "results"), 0);
    assert_true(num_at(e, "score") == 0.25 && num_at(stretch, "start") == 0.5 && num_at(stretch, "end") == 1);
    stop(t);
}

static void a_larger_model_listens_again(void **state)
{
    static const char stages[] = WORDS "      - {name: again, kind: transcribe, model: ears, when: [{stage: "
                                       "words, mean_prob_below: 0.9}]}\n" INTENT;
    bench *t = start(stages, SOUND);
    hear(&t->b.calls[0], "light", " son");
    assert_int_equal(t->b.n, 2);
    hear(&t->b.calls[1], "lights", " on");
    assert_string_equal(t->b.calls[2].text, "say: lights on");
    answer_label(&t->b.calls[2], "x", 1);
    assert_string_equal(str_at(t->answer, "heard"), "lights on");
    stop(t);
    t = start(stages, SOUND); /* it hears no more than the small one: then that one's words stand */
    hear(&t->b.calls[0], "light", " son");
    hear(&t->b.calls[1], "", "");
    assert_string_equal(t->b.calls[2].text, "say: light son");
    process_run_cancel(t->run);
    stop(t);
}

static void typed_requests_pass_by_what_listens(void **state)
{
    static const char stages[] =
        "      - {name: words, kind: transcribe, model: ears, when: [{brings: audio}]}\n" INTENT;
    bench *t = start(stages, "{\"input\":\"lights on\"}");
    assert_string_equal(t->b.calls[0].text, "say: lights on");
    answer_label(&t->b.calls[0], "x", 1);
    assert_string_equal(str_at(trace_at(t, 0), "why"), "the request brings no audio");
    stop(t);
    t = start(stages, SOUND);
    hear(&t->b.calls[0], "lights", " off");
    assert_string_equal(t->b.calls[1].text, "say: lights off");
    process_run_cancel(t->run);
    stop(t);
}

static void ears_that_fail_fail_the_request_or_leave_silence(void **state)
{
    bench *t = start(WORDS INTENT, SOUND);
    break_call(&t->b.calls[0]);
    assert_string_equal(t->failed, "words");
    stop(t);
    t = start("      - {name: words, kind: transcribe, model: ears, optional: true}\n" INTENT, SOUND);
    break_call(&t->b.calls[0]);
    assert_int_equal(t->b.n, 1);
    assert_string_equal(str_at(trace_at(t, 0), "error"), "the worker died");
    assert_string_equal(str_at(trace_at(t, 1), "why"), "nothing was heard");
    stop(t);
    t = start(WORDS INTENT, SOUND); /* a stream that ends without its last event */
    end_call(&t->b.calls[0], 0, "", NULL);
    assert_non_null(strstr(t->message, "without a result"));
    stop(t);
}

static void a_speech_is_no_request(void **state)
{
    bench *t = start(WORDS INTENT, SOUND);
    char *long_one = calloc(1, PIPELINE_INPUT_MAX_BYTES + 2);
    memset(long_one, 'a', PIPELINE_INPUT_MAX_BYTES + 1);
    hear(&t->b.calls[0], long_one, "");
    assert_non_null(strstr(t->message, "16385 bytes of text were heard"));
    free(long_one);
    stop(t);
}

/* ---- pictures and tables ---------------------------------------------------------------------------- */

static void a_picture_is_a_label(void **state)
{
    bench *t =
        start(PICTURE "      - {name: reply, kind: generate, model: g, prompt: 'I see a {label.picture}.',\n"
                      "         when: [{stage: picture, label: [cat], score_min: 0.5}]}\n",
              "{\"image\":\"data:image/png;base64,iVBORw==\"}");
    assert_int_equal(t->b.n, 1);
    answer_label(&t->b.calls[0], "cat", 0.75f);
    assert_non_null(strstr(t->b.calls[1].text, "I see a cat."));
    end_reply(&t->b.calls[1], 1);
    assert_string_equal(str_at(trace_at(t, 0), "label"), "cat");
    assert_int_equal(json_array_size(json_object_get(trace_at(t, 0), "results")), 1);
    assert_null(json_object_get(t->answer, "heard"));
    stop(t);
}

static void the_gravest_row_is_the_alert(void **state)
{
    static const char *const labels[] = {"drift", "fault", "normal", "fault", "normal"};
    static const double scores[] = {0.99, 0.5, 0.9, 0.95, 0.8};
    bench *t = start(TABLE ALERT, "{\"csv\":\"a,b\\n1,2\\n\"}");
    assert_string_equal(t->b.calls[0].text, "a,b\n1,2\n");
    score_rows(&t->b.calls[0], labels, scores, 5);
    assert_non_null(strstr(t->b.calls[1].text, "Warn: m2 at noon: fault 0.500\\nm2 at noon: fault 0.950"));
    end_reply(&t->b.calls[1], 1);
    const json_t *e = trace_at(t, 0);
    assert_string_equal(str_at(e, "label"), "fault");
    assert_true(num_at(e, "score") == 0.95 && num_at(e, "found") == 2 && num_at(e, "scored") == 5);
    assert_int_equal(num_at(json_array_get(json_object_get(e, "results"), 1), "line"), 5);
    stop(t);
}

static void without_an_alert_there_is_nothing_to_say(void **state)
{
    static const char *const labels[] = {"normal", "normal"};
    static const double scores[] = {0.99, 0.75};
    bench *t = start(TABLE ALERT, "{\"csv\":\"x\"}");
    score_rows(&t->b.calls[0], labels, scores, 2);
    assert_true(json_is_null(json_object_get(t->answer, "text")));
    assert_string_equal(str_at(trace_at(t, 0), "label"), "normal");
    assert_true(num_at(trace_at(t, 0), "score") == 0.75);
    stop(t);
}

static void many_alerts_are_counted(void **state)
{
    const char *labels[ROWS_MAX];
    double scores[ROWS_MAX];
    for (size_t i = 0; i < 40; i++) labels[i] = "drift", scores[i] = 0.5;
    bench *t = start(TABLE ALERT, "{\"csv\":\"x\"}");
    score_rows(&t->b.calls[0], labels, scores, 40);
    assert_non_null(strstr(str_at(t->answer, "text"), "\nand 8 more"));
    assert_int_equal(json_array_size(json_object_get(trace_at(t, 0), "results")), 32);
    stop(t);
}

static void numbers_have_bounds_of_their_own(void **state)
{
    static const double scores[] = {21.5, 71, 0.0 / 0.0, 20};
    bench *t = start(HEATER, "{\"csv\":\"x\"}");
    score_rows(&t->b.calls[0], NULL, scores, 4);
    assert_string_equal(t->b.calls[1].text, "m2: 71");
    answer_label(&t->b.calls[1], "x", 1);
    assert_string_equal(str_at(trace_at(t, 1), "why"), "machine is without a label (71)");
    stop(t);
    t = start(HEATER, "{\"csv\":\"x\"}");
    score_rows(&t->b.calls[0], NULL, scores, 1);
    assert_int_equal(t->b.n, 1);
    assert_string_equal(str_at(t->answer, "text"), "m1: 21.5");
    stop(t);
    t = start(HEATER, "{\"csv\":\"x\"}"); /* no number is no number, not nought */
    score_rows(&t->b.calls[0], NULL, scores + 2, 1);
    assert_non_null(strstr(t->message, "not a number"));
    stop(t);
    t = start(HEATER, "{\"csv\":\"x\"}");
    score_rows(&t->b.calls[0], NULL, scores, 0);
    assert_non_null(strstr(t->message, "too few rows"));
    stop(t);
}

/* ---- requests --------------------------------------------------------------------------------------- */

static void what_is_missing_is_said_before_anything_runs(void **state)
{
    refused(WORDS INTENT, "{\"input\":\"x\"}", "audio", "stage 'words' (transcribe) needs a sound file");
    refused(WORDS INTENT, "{}", "audio", "\"audio\" in base64");
    refused(INTENT, SOUND, "audio", "has no transcribe or vad stage");
    refused(VOICE INTENT, SOUND, "input", "stage 'intent' (classify) needs a text");
    refused(WORDS INTENT, "{\"input\":\"x\",\"audio\":\"UklGRg==\"}", "input", "not both");
    refused(WORDS, "{\"audio\":\"%%\"}", "audio", "is no base64");
    refused(WORDS, "{\"audio\":\"\"}", "audio", "must be a sound file");
    refused(WORDS, "{\"audio\":\"http://x/y.wav\"}", "audio", "not fetched");
    refused(WORDS, "{\"audio\":[1]}", "audio", "must be a sound file");
    refused(PICTURE, "{\"image\":\"data:,x\"}", "image", "must be in base64");
    refused(PICTURE, "{\"csv\":\"x\"}", "csv", "has no score stage");
    refused(TABLE, "{\"csv\":\"\"}", "csv", "must be a text");
    refused(TABLE, "{\"csv\":\"a\\u0000\"}", "csv", "NUL");
    refused(TABLE PICTURE, "{\"csv\":\"x\"}", "image", "stage 'picture' (image) needs a picture");
}

/* What may not run at all is asked for when its turn comes. */
static void what_is_missing_later_fails_its_stage(void **state)
{
    static const char unless[] =
        "      - {name: intent, kind: classify, model: c}\n"
        "      - {name: picture, kind: image, model: eyes, when: [{stage: intent, label: [look]}]}\n";
    bench *t = start(unless, "{\"input\":\"x\"}");
    answer_label(&t->b.calls[0], "look", 1);
    assert_string_equal(t->failed, "picture");
    assert_non_null(strstr(t->message, "brings no picture"));
    stop(t);
    t = start("      - {name: picture, kind: image, model: eyes, optional: true}\n" INTENT,
              "{\"input\":\"x\"}");
    answer_label(&t->b.calls[0], "x", 1);
    assert_non_null(strstr(str_at(trace_at(t, 0), "error"), "brings no picture"));
    stop(t);
}

#define TYPE       "multipart/form-data; boundary=B"
#define PART(n, v) "--B\r\nContent-Disposition: form-data; name=\"" n "\"\r\n\r\n" v "\r\n"
#define END        "--B--\r\n"

static void forms_bring_files_as_they_are(void **state)
{
    static const char body[] = PART("file", "RIFF\0WAVE") PART("pipeline", "p")
        PART("devices", "[{\"id\":\"fan.a\",\"name\":\"Fan\"}]") END;
    process_input in = {0};
    api_error e = {0};
    gateway_config *c = configure(WORDS INTENT);
    if (process_parse_form(&in, c, TYPE, body, sizeof body - 1, &e)) fail_msg("%s", e.message);
    const process_file *f = &in.files[MEDIUM_AUDIO];
    assert_int_equal(f->len, 9);
    assert_memory_equal(f->data, "RIFF\0WAVE", 9);
    assert_true((const char *)f->data > body && (const char *)f->data < body + sizeof body);
    assert_string_equal(in.text, "");
    assert_string_equal(in.devices[0].id, "fan.a");
    process_input_done(&in);
    config_free(c);
}

static void wrong_forms_are_refused(void **state)
{
    static const struct {
        const char *stages, *body, *param, *sentence;
    } CASES[] = {
        {WORDS, PART("file", "") END, "audio", "is empty"},
        {WORDS, PART("file", "x") PART("audio", "y") END, "audio", "two parts"},
        {WORDS, PART("file", "x") PART("home", "y") END, "home", "not known"},
        {WORDS, PART("file", "x") PART("input", "y") END, "input", "not both"},
        {WORDS, PART("file", "x") PART("devices", "[{") END, "devices", "devices"},
        {WORDS, PART("file", "x") PART("pipeline", "p") PART("pipeline", "p") END, "pipeline", "two parts"},
        {WORDS PICTURE, PART("file", "x") END, "file", "several kinds"},
        {INTENT, PART("file", "x") END, "file", "reads no files"},
        {INTENT, PART("input", "\xff") END, "input", "must be text"},
        {INTENT, PART("\xff", "x") END, "", "not UTF-8"},
        {INTENT, PART("input", "") END, "input", "must not be empty"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        process_input in = {0};
        api_error e = {0};
        gateway_config *c = configure(CASES[i].stages);
        int rc = process_parse_form(&in, c, TYPE, CASES[i].body, strlen(CASES[i].body), &e);
        if (rc != 400 || strcmp(e.param, CASES[i].param) != 0 || !strstr(e.message, CASES[i].sentence))
            fail_msg("case %zu: %d %s: %s", i, rc, e.param, e.message);
        config_free(c);
    }
}

/* ---- configurations --------------------------------------------------------------------------------- */

static void a_stage_asks_its_adapter(void **state)
{
    bench *t = start("      - {name: intent, kind: classify, model: c, adapter: x}\n", "{\"input\":\"y\"}");
    assert_string_equal(t->b.calls[0].adapter, "x");
    answer_label(&t->b.calls[0], "l", 1);
    assert_string_equal(str_at(trace_at(t, 0), "adapter"), "x");
    stop(t);
}

static void what_cannot_work_is_refused_at_the_start(void **state)
{
    static const struct {
        const char *stages, *sentence;
    } CASES[] = {
        {"      - {name: a, kind: classify, model: c, adapter: y}\n",
         "the model 'c' has no adapter 'y'; it has x"},
        {"      - {name: a, kind: classify, model: eyes, adapter: y}\n",
         "list it under the model's 'adapters'"},
        {"      - {name: a, kind: classify, model: 'c:x'}\n", "a key of its own"},
        {"      - {name: a, kind: vad, model: voice, adapter: x}\n", "adapter: only a classify"},
        {"      - {name: a, kind: transcribe, model: ears, prompt: '{input}'}\n",
         "what a transcribe stage writes"},
        {"      - {name: a, kind: transcribe, model: ears, max_tokens: 3}\n", "max_tokens: only a generate"},
        {"      - {name: a, kind: classify, model: c, language: en}\n", "only a transcribe stage has it"},
        {"      - {name: a, kind: image, model: eyes, threshold: 0.5}\n", "only a vad stage has it"},
        {"      - {name: a, kind: classify, model: c, alert: [x]}\n", "only a score stage has it"},
        {TABLE
         "      - {name: a, kind: classify, model: c, when: [{stage: machine, mean_prob_below: 0.5}]}\n",
         "seq2seq or transcribe stage is needed"},
        {INTENT "      - {name: a, kind: classify, model: c, when: [{stage: intent, number_min: 3}]}\n",
         "a score stage is needed"},
        {VOICE "      - {name: a, kind: classify, model: c, when: [{stage: voice, label: [loud]}]}\n",
         "a vad stage never comes to 'loud'"},
        {"      - {name: a, kind: classify, model: c, when: [{brings: video}]}\n", "is none of text, audio"},
        {"      - {name: a, kind: score, model: rows, row: first}\n", "is none of last"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        char yaml[4096];
        gateway_config *c = NULL;
        shoal_err err = {0};
        snprintf(yaml, sizeof yaml, "%s%s", MODELS, CASES[i].stages);
        assert_int_equal(config_parse(&c, &SERVER_STAGES, yaml, strlen(yaml), "t.yaml", &err),
                         SHOAL_EINVALID);
        if (!strstr(err.message, CASES[i].sentence)) fail_msg("%s\n%s", CASES[i].stages, err.message);
    }
}

static void dead_workers_fail_the_run(void **state)
{
    static const struct {
        const char *stages, *body;
    } CASES[] = {
        {WORDS, SOUND}, {VOICE, SOUND}, {PICTURE, "{\"image\":\"aaaa\"}"}, {TABLE, "{\"csv\":\"x\"}"}};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        bench *t = start(CASES[i].stages, CASES[i].body);
        break_call(&t->b.calls[0]);
        assert_string_equal(t->message, "the worker died");
        stop(t);
        t = start(CASES[i].stages, CASES[i].body);
        process_run_cancel(t->run);
        assert_true(t->b.calls[0].cancelled);
        stop(t);
    }
}

/* ---- no memory -------------------------------------------------------------------------------------- */

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
/* Allocation number `countdown` finds no memory; negative: all do. Sanitizers bring their own allocator. */
static long countdown = -1;

extern void *__libc_malloc(size_t n);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t n);

static bool refuses(void)
{
    return countdown >= 0 && countdown-- == 0;
}

void *malloc(size_t n)
{
    return refuses() ? NULL : __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
    return refuses() ? NULL : __libc_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
    return refuses() ? NULL : __libc_realloc(p, n);
}

static void reply_to(noted *c)
{
    static const char *const labels[] = {"drift", "fault"};
    static const double scores[] = {0.99, 0.5};
    if (c->task == CALL_TRANSCRIBE)
        hear(c, " lights", " on");
    else if (c->task == CALL_DETECT)
        detect(c, 1);
    else if (c->task == CALL_SCORE)
        score_rows(c, labels, scores, 2);
    else
        answer_label(c, "cat", 0.75f);
}

/* True: some allocation was refused. */
static bool answered_without(long n, const char *stages, const char *body, const char *want)
{
    bench *t = start(stages, body);
    countdown = n;
    reply_to(&t->b.calls[0]);
    bool refused = countdown < 0;
    countdown = -1;
    assert_int_equal(t->n_done, 1);
    assert_int_equal(t->failure, t->answer ? 0 : SHOAL_ENOMEM);
    char *text = t->answer ? json_dumps(t->answer, JSON_COMPACT) : NULL;
    if (text && !strstr(text, want)) fail_msg("allocation %ld: %s", n, text);
    free(text);
    stop(t);
    return refused;
}

static void what_models_say_is_whole_or_fails(void **state)
{
    static const struct {
        const char *stages, *body, *want;
    } CASES[] = {
        {WORDS, SOUND, "\"heard\":\"lights on\""},
        {VOICE, SOUND, "\"results\":[{\"start\":0.5,\"end\":1.0}]"},
        {PICTURE, "{\"image\":\"aaaa\"}", "\"results\":[{\"label\":\"cat\",\"score\":0.75}]"},
        {TABLE, "{\"csv\":\"x\"}", "\"text\":\"m2 at noon: fault 0.500\""},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        long n = 0;
        while (answered_without(n, CASES[i].stages, CASES[i].body, CASES[i].want)) n++;
        assert_true(n > 10);
    }
}

static bool parsed_without(long n, const gateway_config *c, const char *type, const char *body)
{
    process_input in = {0};
    api_error e = {0};
    countdown = n;
    int rc = type ? process_parse_form(&in, c, type, body, strlen(body), &e)
                  : process_parse(&in, c, body, strlen(body), &e);
    bool refused = countdown < 0;
    countdown = -1;
    if (rc && rc != 500) fail_msg("allocation %ld: %d %s", n, rc, e.message);
    if (rc) assert_null(in.memory);
    if (!rc) assert_memory_equal(in.files[MEDIUM_AUDIO].data, "RIFF", 4);
    process_input_done(&in);
    return refused;
}

static void requests_are_whole_or_fail(void **state)
{
    gateway_config *c = configure(WORDS);
    long n = 0, m = 0;
    while (parsed_without(n, c, NULL, SOUND)) n++;
    while (parsed_without(m, c, TYPE, PART("file", "RIFF") PART("devices", "[]") END)) m++;
    assert_true(n > 5 && m > 5);
    config_free(c);
}
#else
static void what_models_say_is_whole_or_fails(void **state)
{
    fprintf(stderr, "SKIP %s: a sanitizer brings its own allocator\n", __func__);
    skip();
}

static void requests_are_whole_or_fail(void **state)
{
    fprintf(stderr, "SKIP %s: a sanitizer brings its own allocator\n", __func__);
    skip();
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_heard_is_what_later_stages_read),
        cmocka_unit_test(long_hints_are_cut_at_a_whole_letter),
        cmocka_unit_test(rules_and_conditions_look_at_what_was_heard),
        cmocka_unit_test(silence_is_not_answered),
        cmocka_unit_test(nobody_listens_to_silence),
        cmocka_unit_test(a_larger_model_listens_again),
        cmocka_unit_test(typed_requests_pass_by_what_listens),
        cmocka_unit_test(ears_that_fail_fail_the_request_or_leave_silence),
        cmocka_unit_test(a_speech_is_no_request),
        cmocka_unit_test(a_picture_is_a_label),
        cmocka_unit_test(the_gravest_row_is_the_alert),
        cmocka_unit_test(without_an_alert_there_is_nothing_to_say),
        cmocka_unit_test(many_alerts_are_counted),
        cmocka_unit_test(numbers_have_bounds_of_their_own),
        cmocka_unit_test(what_is_missing_is_said_before_anything_runs),
        cmocka_unit_test(what_is_missing_later_fails_its_stage),
        cmocka_unit_test(forms_bring_files_as_they_are),
        cmocka_unit_test(wrong_forms_are_refused),
        cmocka_unit_test(a_stage_asks_its_adapter),
        cmocka_unit_test(what_cannot_work_is_refused_at_the_start),
        cmocka_unit_test(dead_workers_fail_the_run),
        cmocka_unit_test(what_models_say_is_whole_or_fails),
        cmocka_unit_test(requests_are_whole_or_fail),
    };
    json_memory_guard(); /* as the program does */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
