/* Random pipelines with random answers, failures and clients that leave: every run comes to its end, every
 * stage settles with a reason, bounds hold, nothing is left open, and what was shown is what was answered. A
 * failure prints its seed: SEED=n build/tests/rules_test_pipeline_random repeats it. */
#include "../../server/stages/fake_calls.h"
#include "../../server/stages/fake_hosts.h"

#include "json/json.h"
#include "process/process_events.h"
#include "rules/home.h"

enum { RUNS = 3000, STAGES_MOST = 9 };

typedef struct world {
    uint64_t draw;
    unsigned seed;
    buf yaml;
    fake_calls b;
    fake_hosts h;
    gateway_config *config;
    process_input in;
    process_run *run;
    process_watch watch;
    int n_done;
    bool failed, over;
    unsigned told[STAGES_MOST];
    buf text;
    json_t *answer;
} world;

static unsigned draw(world *w, unsigned n)
{
    w->draw = w->draw * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(w->draw >> 33) % n;
}

static bool one_in(world *w, unsigned n)
{
    return draw(w, n) == 0;
}

/* ---- a pipeline ---------------------------------------------------------------------------------------- */

static const char *const kinds[] = {"classify", "tag",    "generate", "seq2seq",
                                    "embed",    "rerank", "http",     "line"};
enum { N_KINDS = 8, LABELS = 1 << 0 | 1 << 4, TEXTS = 1 << 2 | 1 << 3 | 1 << 6 | 1 << 7 };

typedef struct made { /* a stage of the pipeline in the making */
    unsigned kind;
    bool lists;
} made;

/* An earlier stage of these kinds, not going through a list unless that may be; -1: none. */
static int earlier(world *w, const made *m, unsigned n, unsigned of, bool lists)
{
    for (int tries = 0; n && tries < 6; tries++) {
        unsigned i = draw(w, n);
        if (of >> m[i].kind & 1 && (lists || !m[i].lists)) return (int)i;
    }
    return -1;
}

static void put_conditions(world *w, const made *m, unsigned n, const char *key)
{
    int about = earlier(w, m, n, LABELS, false), sure = earlier(w, m, n, 1 << 2 | 1 << 3, false);
    if (about >= 0 && one_in(w, 3))
        buf_printf(&w->yaml, ", %s: [{stage: s%d, label: [a]}]", key, about);
    else if (sure >= 0 && one_in(w, 3))
        buf_printf(&w->yaml, ", %s: [{stage: s%d, mean_prob_below: 0.5}]", key, sure);
    else if (one_in(w, 8))
        buf_printf(&w->yaml, ", %s: [{text_prefix: a}]", key);
}

/* A template of this stage; %s is the field's name. */
static void put_template(world *w, const made *m, unsigned n, const char *key)
{
    int text = earlier(w, m, n, TEXTS, true), any = earlier(w, m, n, ~0u, true);
    buf_printf(&w->yaml, ", %s: '", key);
    if (text >= 0) buf_printf(&w->yaml, "{text.s%d | first:9} ", text);
    if (any >= 0) buf_printf(&w->yaml, "{json.s%d} ", any);
    buf_printf(&w->yaml, "%s'", m[n].lists ? "{item}" : "{input | upper}");
}

static void put_each(world *w, made *m, unsigned n)
{
    static const char *const sources[] = {"input", "devices", "input, by: sentences"};
    int list = earlier(w, m, n, 1 << 1, false), values = earlier(w, m, n, ~0u, true);
    bool reduces = (m[n].kind == 2 || m[n].kind == 3) && one_in(w, 2);
    m[n].lists = true;
    buf_printf(&w->yaml, ", %s: {of: ", reduces ? "reduce" : "foreach");
    if (list >= 0 && one_in(w, 2))
        buf_printf(&w->yaml, "s%d", list);
    else if (values >= 0 && one_in(w, 2))
        buf_printf(&w->yaml, "json.s%d", values);
    else
        buf_puts(&w->yaml, sources[draw(w, 3)]);
    buf_printf(&w->yaml, ", parallel: %u, max: %u, most: %u}", 1 + draw(w, 3), 2 + draw(w, 8),
               64 + draw(w, 64));
}

static void put_stage(world *w, made *m, unsigned n)
{
    unsigned kind = m[n].kind = draw(w, N_KINDS);
    buf_printf(&w->yaml, "      - {name: s%u, kind: %s", n, kinds[kind]);
    if (kind < 6) buf_puts(&w->yaml, ", model: m");
    if (kind == 4) buf_puts(&w->yaml, ", candidates: [a, b]");
    if (kind == 5) buf_puts(&w->yaml, ", documents: [a, b]");
    if (kind == 6) buf_puts(&w->yaml, ", host: h");
    if (kind == 7) buf_puts(&w->yaml, ", forms: " SHOAL_SOURCE_DIR "/lexicons/sensors.yaml");
    if (one_in(w, 3)) put_each(w, m, n);
    if (kind == 2 && one_in(w, 2)) put_template(w, m, n, "prompt");
    if (kind != 2 && kind < 6 && one_in(w, 2)) put_template(w, m, n, "input");
    if (one_in(w, 2)) put_conditions(w, m, n, "when");
    if (one_in(w, 3)) put_conditions(w, m, n, "unless");
    if (one_in(w, 2)) buf_puts(&w->yaml, ", optional: true");
    if (kind != 7 && one_in(w, 4)) buf_puts(&w->yaml, ", timeout_ms: 100000");
    buf_puts(&w->yaml, "}\n");
}

static void make_pipeline(world *w)
{
    made m[STAGES_MOST] = {{0}};
    unsigned n = 1 + draw(w, STAGES_MOST);
    buf_puts(&w->yaml,
             "models: [{name: m, path: m.gguf}]\nhosts: [{name: h, url: 'http://h'}]\npipelines:\n"
             "  - name: p\n    devices: [{id: a.b, name: Lamp}, {id: a.c, name: Fan}]\n    stages:\n");
    for (unsigned i = 0; i < n; i++) put_stage(w, m, i);
}

/* ---- what it is told -------------------------------------------------------------------------------- */

static void on_done(void *user, const process_outcome *o)
{
    world *w = user;
    w->n_done++;
    w->over = true;
    w->failed = o->failed != NULL;
    w->answer = process_outcome_json(o);
    if (o->failed && !*o->failure->message) fail_msg("seed %u: failed without a reason", w->seed);
}

static void on_stage(void *user, const char *text)
{
    world *w = user;
    json_t *entry = json_loads(text, 0, NULL);
    unsigned i = (unsigned)strtoul(json_string_value(json_object_get(entry, "stage")) + 1, NULL, 10);
    assert_false(w->over);
    w->told[i]++;
    json_decref(entry);
}

static void on_text(void *user, const char *text, size_t n)
{
    buf_append(&((world *)user)->text, text, n);
}

static const char *some_text(world *w)
{
    static const char *const texts[] = {
        "a",
        "b c. D! e\nf",
        "{\"a\": [1, null]}",
        "[1, {\"text\": \"x\"}, \"y\"]",
        "{input}",
        "  ",
        "",
        "sensor x temperature 1 C",
        "a text that is a good deal longer than half of what a reduce stage may read"};
    return texts[draw(w, 9)];
}

static void answer_call(world *w, noted *c)
{
    float scores[2] = {0.5f, 0.25f}, vectors[3][2] = {{1, 0}, {1, 0}, {0, 1}};
    if (one_in(w, 8)) {
        break_call(c);
    } else if (c->task == CALL_GENERATE) {
        say_call(c, some_text(w), NULL, NULL, 0);
        if (one_in(w, 2)) say_call(c, some_text(w), NULL, NULL, 0);
        if (one_in(w, 8)) {
            break_call(c);
            return;
        }
        end_reply(c, one_in(w, 2) ? 0.9 : 0.1);
    } else if (c->task == CALL_TAG) {
        answer_spans(c, one_in(w, 2));
    } else if (c->task == CALL_EMBED) {
        answer_vectors(c, vectors, 3);
    } else if (c->n_texts) {
        answer_scores(c, "yes", scores, 2);
    } else {
        answer_label(c, one_in(w, 2) ? "a" : "b", 0.75f);
    }
}

static void answer_asked(world *w, asked *a)
{
    if (one_in(w, 6))
        end_host(a, SHOAL_EUNAVAILABLE, "'h' answers 500", 500, "", "", 0);
    else
        answer_host(a, one_in(w, 2) ? "application/json" : "text/plain", some_text(w));
}

/* ---- what must hold --------------------------------------------------------------------------------- */

static size_t n_open(const world *w)
{
    size_t n = 0;
    for (size_t i = 0; i < w->b.n; i++) n += w->b.calls[i].open;
    for (size_t i = 0; i < w->h.n; i++) n += w->h.asked[i].open;
    return n;
}

/* Lists bound what is open; stages that run once have one call each. */
static void expect_bounds(const world *w)
{
    size_t most = 0;
    const config_pipeline *p = &w->config->pipelines[0];
    for (unsigned i = 0; i < p->n_stages; i++)
        most += pipeline_each(&p->stages[i]) ? pipeline_each(&p->stages[i])->parallel : 1;
    if (n_open(w) > most) fail_msg("seed %u: %zu calls are open, not %zu at most", w->seed, n_open(w), most);
}

/* Answer one open call, any of them. False: none is open. */
static bool answer_one(world *w)
{
    size_t n = n_open(w), pick = n ? draw(w, (unsigned)n) : 0;
    for (size_t i = 0; n && i < w->b.n; i++)
        if (w->b.calls[i].open && pick-- == 0) return answer_call(w, &w->b.calls[i]), true;
    for (size_t i = 0; n && i < w->h.n; i++)
        if (w->h.asked[i].open && pick-- == 0) return answer_asked(w, &w->h.asked[i]), true;
    return false;
}

static void expect_settled(const world *w)
{
    const json_t *trace = json_object_get(w->answer, "trace");
    const char *text = json_string_value(json_object_get(w->answer, "text"));
    const config_pipeline *p = &w->config->pipelines[0];
    if (json_array_size(trace) != p->n_stages) fail_msg("seed %u: the trace lacks stages", w->seed);
    for (unsigned i = 0; i < p->n_stages; i++) {
        const json_t *t = json_array_get(trace, i), *why = json_object_get(t, "why");
        if (!json_is_boolean(json_object_get(t, "ran")) || !json_string_length(why))
            fail_msg("seed %u: s%u has no reason", w->seed, i);
        if (w->told[i] != 1) fail_msg("seed %u: s%u was told %u times", w->seed, i, w->told[i]);
    }
    if (strcmp(w->text.data ? w->text.data : "", text ? text : "") != 0)
        fail_msg("seed %u: '%s' was shown, and '%s' answered", w->seed, w->text.data, text ? text : "");
}

static void run_one(unsigned seed)
{
    world *w = calloc(1, sizeof *w);
    shoal_err err = {0};
    api_error e = {0};
    *w = (world){.draw = seed * 2654435761u + 1, .seed = seed};
    make_pipeline(w);
    if (config_parse(&w->config, &HOME_STAGES, w->yaml.data, w->yaml.len, "t.yaml", &err) ||
        pipeline_open(&w->config->pipelines[0], "", &err))
        fail_msg("seed %u: %s\n%s", seed, err.message, w->yaml.data);
    const char *body =
        "{\"input\":\"a b. C d!\\n\\nsensor x temperature 1 C\\n{item} {{ é\",\"stream\":true}";
    if (process_parse(&w->in, w->config, body, strlen(body), &e)) fail_msg("seed %u: %s", seed, e.message);
    w->watch = (process_watch){.user = w, .stage = on_stage, .text = on_text};
    w->in.watch = &w->watch;
    w->in.hosts = fake_hosts_init(&w->h);
    w->in.time = fake_time();
    call_context ctx = {.request_id = "r1"};
    unsigned leaves = one_in(w, 5) ? draw(w, 12) : 1000;
    assert_int_equal(process_run_start(&w->run, &w->in, fake_calls_init(&w->b), &ctx, on_done, w, NULL), 0);
    fake_turns();
    for (unsigned step = 0; !w->n_done; step++) {
        expect_bounds(w);
        if (step == leaves) {
            process_run_cancel(w->run);
            break;
        }
        if (!answer_one(w) && !w->n_done) fail_msg("seed %u: the run hangs\n%s", seed, w->yaml.data);
    }
    if (n_open(w)) fail_msg("seed %u: %zu calls are left open\n%s", seed, n_open(w), w->yaml.data);
    assert_true(w->n_done <= 1);
    if (w->n_done && !w->failed) expect_settled(w);
    fake_calls_done(&w->b);
    fake_hosts_done(&w->h);
    json_decref(w->answer);
    process_input_done(&w->in);
    config_free(w->config);
    buf_done(&w->yaml);
    buf_done(&w->text);
    free(w);
}

static void every_run_comes_to_its_end(void **state)
{
    const char *one = getenv("SEED");
    if (one) {
        run_one((unsigned)strtoul(one, NULL, 10));
        return;
    }
    for (unsigned seed = 1; seed <= RUNS; seed++) run_one(seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_run_comes_to_its_end)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
