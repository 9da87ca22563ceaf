/* /metrics is valid Prometheus text; errors have the OpenAI form. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "messages/api_error.h"
#include "../../cluster/cluster/sim_workers.h"
#include "base/file.h"
#include "request/confidence_watch.h"
#include "request/metrics.h"
#include "request/metrics_vllm.h"

static void metrics_name_each_family_once(void **state)
{
    metrics *m = metrics_new();
    buf out = {0};
    metrics_put(&out, m, METRICS_PROMETHEUS);
#define FAMILY_CHECK(e, name, type, labels, help)        \
    {                                                    \
        char *at = strstr(out.data, "# TYPE " name " "); \
        assert_non_null(at);                             \
        assert_null(strstr(at + 1, "# TYPE " name " ")); \
    }
    METRIC_TABLE(FAMILY_CHECK)
#undef FAMILY_CHECK
    assert_non_null(strstr(out.data, "shoal_build_info{version=\"" SHOAL_VERSION "\"} 1\n"));
    buf_done(&out);
    metrics_free(m);
}

static void metrics_count_by_labels(void **state)
{
    metrics *m = metrics_new();
    buf out = {0};
    metrics_add(m, METRIC_REQUESTS, 1, "chat", "a", "200");
    metrics_add(m, METRIC_REQUESTS, 2, "chat", "a", "200");
    metrics_add(m, METRIC_REQUESTS, 1, "chat", "b", "500");
    assert_true(metrics_get(m, METRIC_REQUESTS, "chat", "a", "200") == 3);
    metrics_put(&out, m, METRICS_PROMETHEUS);
    assert_non_null(strstr(out.data, "shoal_requests_total{endpoint=\"chat\",model=\"a\",code=\"200\"} 3\n"));
    assert_non_null(strstr(out.data, "shoal_requests_total{endpoint=\"chat\",model=\"b\",code=\"500\"} 1\n"));
    buf_done(&out);
    metrics_free(m);
}

static void metrics_escape_label_values(void **state)
{
    metrics *m = metrics_new();
    buf out = {0};
    metrics_add(m, METRIC_GONE, 1, "a\"b\\c\nd", NULL, NULL);
    metrics_put(&out, m, METRICS_PROMETHEUS);
    assert_non_null(strstr(out.data, "shoal_client_gone_total{endpoint=\"a\\\"b\\\\c\\nd\"} 1\n"));
    buf_done(&out);
    metrics_free(m);
}

static size_t count(const char *text, const char *what)
{
    size_t n = 0;
    for (; (text = strstr(text, what)); text += strlen(what)) n++;
    return n;
}

/* Machines that come and go for ever leave nothing behind; what is left keeps its series. */
static void metrics_show_the_work_of_the_loops_turns(void **state)
{
    metrics *m = metrics_new();
    buf out = {0};
    loop_work_reset();
    loop_work_add(100);
    loop_work_end_turn();
    loop_work_end_turn(); /* of no work: no turn */
    loop_work_add_message(100000);
    loop_work_end_turn();
    assert_int_equal(loop_work_get()->max_bytes, 104096);
    metrics_set_work(m, METRIC_LOOP_WORK, loop_work_get());
    metrics_put(&out, m, METRICS_PROMETHEUS);
    assert_non_null(strstr(out.data, "shoal_loop_turn_work_bytes_bucket{le=\"16384\"} 1\n"));
    assert_non_null(strstr(out.data, "shoal_loop_turn_work_bytes_bucket{le=\"65536\"} 1\n"));
    assert_non_null(strstr(out.data, "shoal_loop_turn_work_bytes_bucket{le=\"262144\"} 2\n"));
    assert_non_null(strstr(out.data, "shoal_loop_turn_work_bytes_bucket{le=\"+Inf\"} 2\n"));
    assert_non_null(strstr(out.data, "shoal_loop_turn_work_bytes_sum 104196\n"));
    buf_done(&out);
    metrics_free(m);
}

static void metrics_of_a_replica_go_with_it(void **state)
{
    sim_world world;
    registry *g;
    source *s;
    buf out = {0};
    metrics *m = metrics_new();
    sim_world_open(&world, 1);
    connector how = sim_connector(&world);
    assert_int_equal(registry_new_with(&g, world.e, &how, NULL), 0);
    assert_int_equal(source_open(&s, g, "nodes", NULL), 0);
    sim_worker_at(&world, "sim:a");
    assert_int_equal(
        source_put(s, &(member){.id = "m/0", .generation = 1, .model = "m", .address = "sim:a"}, NULL), 0);
    metrics_add(m, METRIC_MOVES, 3, "lost", NULL, NULL);
    for (int round = 0; round < 5; round++) {
        char id[32];
        snprintf(id, sizeof id, "node%d/m/0", round);
        member x = {.id = id, .generation = 1, .model = "m", .address = "sim:a"};
        assert_int_equal(source_put(s, &x, NULL), 0);
        env_sim_run(world.time, 2000);
        metrics_scrape(m, g, NULL);
        buf_clear(&out);
        metrics_put(&out, m, METRICS_PROMETHEUS);
        assert_int_equal(count(out.data, "shoal_worker_up{"), 2);
        assert_int_equal(count(out.data, id), count(out.data, "\"m/0\""));
        assert_true(count(out.data, id) >= 12);
        assert_true(metrics_get(m, METRIC_UP, "m", id, NULL) == 1);
        source_drop(s, id, 1);
    }
    metrics_scrape(m, g, NULL);
    buf_clear(&out);
    metrics_put(&out, m, METRICS_PROMETHEUS);
    assert_null(strstr(out.data, "replica=\"node"));
    assert_non_null(strstr(out.data, "shoal_worker_up{model=\"m\",replica=\"m/0\"} 1\n"));
    assert_non_null(strstr(out.data, "shoal_moves_total{cause=\"lost\"} 3\n"));
    source_close(s);
    metrics_scrape(m, g, NULL);
    buf_clear(&out);
    metrics_put(&out, m, METRICS_PROMETHEUS);
    assert_null(strstr(out.data, "shoal_source_up{"));
    assert_null(strstr(out.data, "{model=\"m\""));
    buf_done(&out);
    metrics_free(m);
    registry_free(g);
    sim_world_close(&world);
}

static void metrics_histogram_is_cumulative(void **state)
{
    metrics *m = metrics_new();
    buf out = {0};
    metrics_observe_s(m, METRIC_STAGE_S, 0.0004, "m", "queue");
    metrics_observe_s(m, METRIC_STAGE_S, 0.02, "m", "queue");
    metrics_observe_s(m, METRIC_STAGE_S, 200, "m", "queue");
    metrics_put(&out, m, METRICS_PROMETHEUS);
#define BUCKET(le, n) "shoal_stage_seconds_bucket{model=\"m\",stage=\"queue\",le=\"" le "\"} " n "\n"
    assert_non_null(strstr(out.data, BUCKET("0.00025", "0")));
    assert_non_null(strstr(out.data, BUCKET("0.0004", "1")));
    assert_non_null(strstr(out.data, BUCKET("0.025", "2")));
    assert_non_null(strstr(out.data, BUCKET("63", "2")));
    assert_non_null(strstr(out.data, BUCKET("+Inf", "3")));
    assert_non_null(strstr(out.data, "shoal_stage_seconds_sum{model=\"m\",stage=\"queue\"} 200.0204\n"));
    assert_non_null(strstr(out.data, "shoal_stage_seconds_count{model=\"m\",stage=\"queue\"} 3\n"));
    buf_done(&out);
    metrics_free(m);
}

static void open_metrics_name_traces(void **state)
{
    static const char TRACE[] = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
                      NOT_SAMPLED[] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";
    metrics *m = metrics_new();
    buf out = {0};
    metrics_observe_traced_s(m, METRIC_STAGE_S, 0.02, "m", "queue", TRACE, 1520879607789000000u);
    metrics_observe_traced_s(m, METRIC_STAGE_S, 0.0004, "m", "queue", NOT_SAMPLED, 1);
    metrics_observe_traced_s(m, METRIC_STAGE_S, 0.0004, "m", "queue", "", 1);
    metrics_add(m, METRIC_MOVES, 3, "lost", NULL, NULL);
    metrics_put(&out, m, METRICS_OPEN);
    metrics_put_end(&out, METRICS_OPEN);
    assert_non_null(strstr(out.data, "le=\"0.025\"} 3 # {trace_id=\"4bf92f3577b34da6a3ce929d0e0e4736\","
                                     "span_id=\"00f067aa0ba902b7\"} 0.02 1520879607.789\n"));
    assert_int_equal(count(out.data, "trace_id"), 1);
    assert_non_null(strstr(out.data, "# TYPE shoal_moves counter\n"));
    assert_non_null(strstr(out.data, "shoal_moves_total{cause=\"lost\"} 3\n"));
    assert_non_null(strstr(out.data, ",le=\"1.0\"} 3\n"));
    assert_non_null(strstr(out.data, "_count{model=\"m\",stage=\"queue\"} 3\n"));
    assert_string_equal(out.data + out.len - 6, "# EOF\n");
    buf_clear(&out);
    metrics_put(&out, m, METRICS_PROMETHEUS);
    metrics_put_end(&out, METRICS_PROMETHEUS);
    assert_null(strstr(out.data, "trace_id"));
    assert_null(strstr(out.data, "# EOF"));
    buf_done(&out);
    metrics_free(m);
}

/* One world for both: our names and vLLM's. */
static void metrics_have_the_names_of_vllm_too(void **state)
{
    metrics *m = metrics_new();
    buf out = {0};
    metrics_add(m, METRIC_TOKENS, 7, "m", "prompt", NULL);
    metrics_add(m, METRIC_TOKENS, 3, "m", "generated", NULL);
    metrics_add(m, METRIC_FINISHED, 2, "m", "length", NULL);
    metrics_observe_s(m, METRIC_STAGE_S, 0.02, "m", "first_token");
    metrics_observe_s(m, METRIC_STAGE_S, 0.5, "m", "total");
    metrics_observe_many_s(m, METRIC_TOKEN_GAP, 0.01, 4, "m", NULL);
    metrics_put_vllm(&out, m, METRICS_PROMETHEUS);
#define HAS(line) assert_non_null(strstr(out.data, line "\n"))
    HAS("# TYPE vllm:num_requests_waiting gauge");
    HAS("vllm:prompt_tokens_total{model_name=\"m\"} 7");
    HAS("vllm:generation_tokens_total{model_name=\"m\"} 3");
    HAS("vllm:request_success_total{model_name=\"m\",finished_reason=\"length\"} 2");
    HAS("vllm:time_to_first_token_seconds_count{model_name=\"m\"} 1");
    HAS("vllm:e2e_request_latency_seconds_sum{model_name=\"m\"} 0.5");
    HAS("vllm:inter_token_latency_seconds_bucket{model_name=\"m\",le=\"0.0063\"} 0");
    HAS("vllm:inter_token_latency_seconds_bucket{model_name=\"m\",le=\"0.01\"} 4");
    HAS("vllm:inter_token_latency_seconds_sum{model_name=\"m\"} 0.04");
#undef HAS
    assert_null(strstr(out.data, "shoal_"));
    buf_done(&out);
    metrics_free(m);
}

/* A model that nothing runs yet has a queue: what scales from nothing looks at it. */
static void a_model_without_a_replica_has_a_queue(void **state)
{
    sim_world world;
    registry *g;
    metrics *m = metrics_new();
    sim_world_open(&world, 1);
    connector how = sim_connector(&world);
    assert_int_equal(registry_new_with(&g, world.e, &how, NULL), 0);
    assert_int_equal(registry_declare(g, "m", NULL), 0);
    metrics_add(m, METRIC_HELD, 2, "m", NULL, NULL);
    metrics_scrape(m, g, NULL);
    assert_non_null(metrics_labels(m, METRIC_MODEL_READY, 0));
    assert_true(metrics_get(m, METRIC_MODEL_READY, "m", NULL, NULL) == 0);
    assert_true(metrics_get(m, METRIC_MODEL_WAITING, "m", NULL, NULL) == 2);
    metrics_add(m, METRIC_HELD, -2, "m", NULL, NULL);
    metrics_scrape(m, g, NULL);
    assert_non_null(metrics_labels(m, METRIC_MODEL_WAITING, 0));
    assert_true(metrics_get(m, METRIC_MODEL_WAITING, "m", NULL, NULL) == 0);
    metrics_free(m);
    registry_free(g);
    sim_world_close(&world);
}

static void a_quantile_is_of_the_values_that_came_since(void **state)
{
    metrics *m = metrics_new();
    uint64_t seen[METRICS_BUCKETS] = {0}, n;
    assert_true(metrics_quantile_s(m, METRIC_STAGE_S, "m", "queue", 0.95, seen, &n) == 0);
    assert_int_equal(n, 0);
    metrics_observe_many_s(m, METRIC_STAGE_S, 0.0007, 96, "m", "queue");
    metrics_observe_many_s(m, METRIC_STAGE_S, 5, 4, "m", "queue");
    assert_true(metrics_quantile_s(m, METRIC_STAGE_S, "m", "queue", 0.95, seen, &n) == 6.3e-4);
    assert_int_equal(n, 100);
    metrics_observe_many_s(m, METRIC_STAGE_S, 5, 1, "m", "queue");
    assert_true(metrics_quantile_s(m, METRIC_STAGE_S, "m", "queue", 0.95, seen, &n) == 4);
    assert_int_equal(n, 1);
    metrics_observe_s(m, METRIC_STAGE_S, 1000, "m", "queue"); /* behind the last bound */
    metrics_observe_s(m, METRIC_STAGE_S, 1e-6, "m", "queue");
    assert_true(metrics_quantile_s(m, METRIC_STAGE_S, "m", "queue", 0.95, seen, &n) == 100);
    assert_true(metrics_quantile_s(m, METRIC_STAGE_S, "m", "queue", 0.95, seen, &n) == 0);
    metrics_free(m);
}

static void answer(confidence_watch *w, const char *model, const char *identity, int n, float best)
{
    call_confidences c = {.n = CALL_CONFIDENCES_MAX};
    for (size_t i = 0; i < c.n; i++) c.best[i] = best;
    for (; n > 0; n--) confidence_watch_add(w, model, identity, &c);
}

/* 12 answers of 64 texts are 768: the reference and the window. */
static void confidences_are_known_by_model_and_begin_anew_with_another_file(void **state)
{
    metrics *m = metrics_new();
    confidence_watch *w = confidence_watch_new();
    answer(w, "m", "sha256:aa;engine=shoal", 11, 0.9f);
    answer(w, "other", "sha256:cc;engine=shoal", 1, 0.1f);
    confidence_watch_put(w, m);
    assert_null(metrics_labels(m, METRIC_CONFIDENCE_PSI, 0));
    answer(w, "m", "sha256:aa;engine=other", 1, 0.9f);
    confidence_watch_put(w, m);
    assert_string_equal(metrics_labels(m, METRIC_CONFIDENCE_PSI, 0)[0], "m");
    assert_true(metrics_get(m, METRIC_CONFIDENCE_PSI, "m", NULL, NULL) < 0.01);
    answer(w, "m", "sha256:aa;engine=shoal", 4, 0.2f);
    confidence_watch_put(w, m);
    assert_true(metrics_get(m, METRIC_CONFIDENCE_PSI, "m", NULL, NULL) > 1);
    assert_true(metrics_get(m, METRIC_CONFIDENCE_MEAN, "m", "reference", NULL) > 0.89);
    assert_true(metrics_get(m, METRIC_CONFIDENCE_MEAN, "m", "window", NULL) < 0.21);
    answer(w, "m", "sha256:bb;engine=shoal", 11, 0.2f);
    metrics *later = metrics_new();
    confidence_watch_put(w, later);
    assert_null(metrics_labels(later, METRIC_CONFIDENCE_PSI, 0));
    for (int i = 0; i < 2 * CONFIDENCE_MODELS; i++) {
        char name[16];
        snprintf(name, sizeof name, "n%d", i);
        answer(w, name, NULL, 1, 0.5f); /* more than are watched */
    }
    answer(w, "late", "sha256:dd;engine=shoal", 12,
           0.9f); /* in place of the one that was asked the longest ago */
    answer(w, "late", "sha256:ee;engine=shoal", 1, 0.1f);
    answer(w, "late", "sha256:dd;engine=shoal", 1, 0.9f); /* two files at a time do not disturb each other */
    confidence_watch_put(w, later);
    assert_true(metrics_get(later, METRIC_CONFIDENCE_MEAN, "late", "reference", NULL) > 0.89);
    confidence_watch_free(w);
    metrics_free(later);
    metrics_free(m);
}

/* ---- docs/metrics.md ----------------------------------------------------------------------------- */

static const char *const TYPES[] = {"counter", "gauge", "histogram", "histogram"};

static void docs_put_names(buf *out, const char *labels)
{
    while (*labels) {
        size_t n = strcspn(labels, ",");
        buf_printf(out, "`%.*s`%s", (int)n, labels, labels[n] ? ", " : "");
        labels += labels[n] ? n + 1 : n;
    }
}

static void docs_put_ours(buf *out)
{
    buf_puts(out, "| metric | type | labels | meaning |\n|---|---|---|---|\n");
    for (int i = 0; i < METRIC_COUNT; i++) {
        const metric_family *f = metrics_family((metric_id)i);
        buf_printf(out, "| `%s` | %s | ", f->name, TYPES[f->type]);
        docs_put_names(out, f->labels);
        buf_printf(out, " | %s |\n", f->help);
    }
}

static void docs_put_renamed(buf *out, const char *name, metric_id of, const char *second, const char *labels)
{
    buf_printf(out, "| `vllm:%s` | ", name);
    docs_put_names(out, labels);
    buf_printf(out, " | `%s`", metrics_family(of)->name);
    if (second) buf_printf(out, ", `%s`", second);
    buf_puts(out, " |\n");
}

static void docs_put_vllm(buf *out)
{
    buf_puts(out, "| metric | labels | from |\n|---|---|---|\n");
#define VLLM_DOC(n, id, second, labels) docs_put_renamed(out, n, id, second, labels);
    METRIC_VLLM_TABLE(VLLM_DOC)
#undef VLLM_DOC
}

/* What stands between the line `<!-- MARK -->` and `<!-- end -->` is replaced. */
static void docs_replace(buf *page, const char *mark, void (*put)(buf *out))
{
    char begin[64];
    buf new = {0};
    snprintf(begin, sizeof begin, "<!-- %s -->\n", mark);
    char *from = strstr(page->data, begin);
    assert_non_null(from);
    from += strlen(begin);
    char *to = strstr(from, "<!-- end -->");
    assert_non_null(to);
    buf_append(&new, page->data, (size_t)(from - page->data));
    put(&new);
    buf_puts(&new, to);
    buf_done(page);
    *page = new;
}

static void docs_list_each_metric(void **state)
{
    static const char PAGE[] = SHOAL_SOURCE_DIR "/docs/metrics.md";
    buf there = {0}, wanted = {0};
    assert_int_equal(file_read(&there, PAGE, 1 << 20, NULL), 0);
    buf_puts(&wanted, buf_text(&there));
    docs_replace(&wanted, "metrics", docs_put_ours);
    docs_replace(&wanted, "vllm", docs_put_vllm);
    bool same = there.len == wanted.len && memcmp(there.data, wanted.data, there.len) == 0;
    if (!same && getenv("SHOAL_WRITE_DOCS")) {
        FILE *f = fopen(PAGE, "w");
        assert_true(f && fwrite(wanted.data, 1, wanted.len, f) == wanted.len && fclose(f) == 0);
    } else if (!same) {
        fail_msg("docs/metrics.md is not what the tables say: SHOAL_WRITE_DOCS=1 "
                 "build/tests/request_test_metrics");
    }
    buf_done(&there);
    buf_done(&wanted);
}

static bool ends_in(const char *s, const char *end)
{
    size_t n = strlen(s), n_end = strlen(end);
    return n >= n_end && strcmp(s + n - n_end, end) == 0;
}

static void only_counters_end_in_total(void **state)
{
    for (int i = 0; i < METRIC_COUNT; i++) {
        const metric_family *f = metrics_family((metric_id)i);
        if (ends_in(f->name, "_total") != (f->type == METRIC_COUNTER)) fail_msg("%s", f->name);
    }
}

static void error_body_has_the_openai_form(void **state)
{
    api_error e;
    buf out = {0};
    api_error_bad(&e, "messages", "say \"%s\"", "more");
    api_error_put(&out, &e);
    assert_string_equal(out.data,
                        "{\"error\":{\"message\":\"say \\\"more\\\"\",\"type\":\"invalid_request_error\","
                        "\"param\":\"messages\",\"code\":null}}");
    buf_done(&out);
}

static void error_of_a_model_call_has_its_status(void **state)
{
    static const struct {
        int code, status, retry;
        const char *name;
    } CASES[] = {
        {SHOAL_EINVALID, 400, 0, NULL},
        {SHOAL_ELIMIT, 400, 0, "context_length_exceeded"},
        {SHOAL_ENOTFOUND, 404, 0, "model_not_found"},
        {SHOAL_EFULL, 429, 1, "queue_full"},
        {SHOAL_EUNAVAILABLE, 503, 1, "worker_unavailable"},
        {SHOAL_EDEADLINE, 504, 0, "deadline_exceeded"},
        {SHOAL_EPROTOCOL, 500, 0, "internal_error"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        api_error e;
        call_result r = {.status = CASES[i].code, .message = "why"};
        assert_int_equal(api_error_from_call(&e, &r), CASES[i].status);
        assert_int_equal(e.retry_after_s, CASES[i].retry);
        if (CASES[i].name) assert_string_equal(e.code, CASES[i].name);
    }
}

typedef struct seen {
    size_t n;
    double value, last_bound;
    uint64_t counted;
    char label[16];
} seen;

static void see(void *user, const metric_point *p)
{
    seen *s = user;
    s->n++;
    s->value += p->value;
    for (size_t i = 0; p->counts && i <= p->n_bounds; i++) s->counted += p->counts[i];
    if (p->n_bounds) s->last_bound = metric_bound(p->family, p->n_bounds - 1);
    snprintf(s->label, sizeof s->label, "%s", p->labels[0]);
}

static void metrics_are_visited_series_by_series(void **state)
{
    metrics *m = metrics_new();
    assert_non_null(m);
    metrics_add(m, METRIC_ERRORS, 2, "chat", "a", NULL);
    metrics_add(m, METRIC_ERRORS, 3, "tag", "b", NULL);
    metrics_observe_s(m, METRIC_REQUEST_S, 0.5, "chat", NULL);
    metrics_observe_s(m, METRIC_REQUEST_S, 1000, "chat", NULL);
    seen errors = {0}, times = {0}, none = {0};
    metrics_each(m, METRIC_ERRORS, see, &errors);
    metrics_each(m, METRIC_REQUEST_S, see, &times);
    metrics_each(m, METRIC_GONE, see, &none);
    assert_int_equal(errors.n, 2);
    assert_true(errors.value == 5 && errors.counted == 0);
    assert_string_equal(errors.label, "tag");
    assert_int_equal(times.n, 1);
    assert_int_equal(times.counted, 2);
    assert_true(times.value == 1000.5 && times.last_bound == 100);
    assert_int_equal(none.n, 0);
    assert_string_equal(metrics_family(METRIC_ERRORS)->name, "shoal_errors_total");
    metrics_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(metrics_name_each_family_once),
        cmocka_unit_test(metrics_count_by_labels),
        cmocka_unit_test(metrics_escape_label_values),
        cmocka_unit_test(metrics_are_visited_series_by_series),
        cmocka_unit_test(metrics_histogram_is_cumulative),
        cmocka_unit_test(open_metrics_name_traces),
        cmocka_unit_test(metrics_show_the_work_of_the_loops_turns),
        cmocka_unit_test(metrics_of_a_replica_go_with_it),
        cmocka_unit_test(metrics_have_the_names_of_vllm_too),
        cmocka_unit_test(a_model_without_a_replica_has_a_queue),
        cmocka_unit_test(a_quantile_is_of_the_values_that_came_since),
        cmocka_unit_test(confidences_are_known_by_model_and_begin_anew_with_another_file),
        cmocka_unit_test(docs_list_each_metric),
        cmocka_unit_test(only_counters_end_in_total),
        cmocka_unit_test(error_body_has_the_openai_form),
        cmocka_unit_test(error_of_a_model_call_has_its_status),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
