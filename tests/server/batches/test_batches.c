/* Batches in their store: each line is answered once, whatever is killed, full or out of memory. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "batches/batch_check.h"
#include "batches/batch_put.h"
#include "batches/batch_window.h"
#include "json/json.h"
#include "retrieve/store_impl.h"

#define assert_ok(call)                                                    \
    do {                                                                   \
        int rc_ = (call);                                                  \
        if (rc_ != 0) fail_msg("%s gave %d: %s", #call, rc_, err.message); \
    } while (0)

typedef struct bench {
    char folder[64], path[96];
    store *s;
    arena *mem;
} bench;

static void open_bench(bench *b)
{
    shoal_err err = {0};
    *b = (bench){.mem = arena_new(0)};
    snprintf(b->folder, sizeof b->folder, "/tmp/shoal-batches-XXXXXX");
    assert_non_null(mkdtemp(b->folder));
    snprintf(b->path, sizeof b->path, "%s/collections.db", b->folder);
    assert_ok(store_open(&b->s, b->path, &err));
    store_act_for(b->s, "alice");
}

static void close_bench(bench *b)
{
    char command[128];
    store_close(b->s);
    arena_free(b->mem);
    snprintf(command, sizeof command, "rm -rf '%s'", b->folder);
    assert_int_equal(system(command), 0);
}

static int64_t put_file(bench *b, const char *text)
{
    shoal_err err = {0};
    store_file f = {.name = "in.jsonl", .purpose = "batch", .created = 5};
    assert_ok(store_begin(b->s, true, &err));
    assert_ok(store_file_put_bytes(b->s, &f, text, strlen(text), &err));
    assert_ok(store_commit(b->s, &err));
    return f.id;
}

static int64_t make(bench *b, int64_t input, batch_dialect d)
{
    shoal_err err = {0};
    store_batch made = {.dialect = d,
                        .key = "",
                        .endpoint = "/v1/embeddings",
                        .window = "24h",
                        .metadata = "null",
                        .errors = "",
                        .input = input,
                        .expires = 1000,
                        .at = {10}};
    assert_ok(store_batch_create(b->s, &made, 0, &err));
    return made.id;
}

static void a_stored_item_is_no_input(void **state)
{
    static const struct {
        const char *item;
        int rc;
    } cases[] = {
        {"\"text\"", 0},
        {"{\"role\":\"user\",\"content\":\"x\",\"id\":\"msg_1\"}", 0},
        {"{\"type\":\"message\",\"role\":\"user\",\"content\":\"x\"}", 0},
        {"{\"type\":\"item_reference\",\"id\":\"msg_1\"}", SHOAL_EINVALID},
        {"{\"type\":null,\"role\":null,\"id\":\"msg_1\"}", SHOAL_EINVALID},
        {"{\"id\":\"msg_1\"}", SHOAL_EINVALID},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[256];
        batch_line line = {0};
        batch_fault f = {0};
        snprintf(text, sizeof text,
                 "{\"custom_id\":\"a\",\"method\":\"POST\",\"url\":\"/v1/responses\",\"body\":{\"input\":"
                 "[\"text\",%s]}}",
                 cases[i].item);
        assert_int_equal(batch_line_parse(&line, text, strlen(text), "/v1/responses", &f), cases[i].rc);
        if (cases[i].rc != 0) assert_non_null(strstr(f.message, "input[1]"));
        json_drop(line.root);
    }
}

static void check(bench *b, int64_t id, int64_t input)
{
    shoal_err err = {0};
    steps count = {0};
    batch_check c = {.id = id,
                     .input = input,
                     .now = 20,
                     .endpoint = "/v1/embeddings",
                     .most_line_bytes = 200,
                     .most_lines = 4};
    assert_ok(batch_check_run(&c, b->s, &count, &err));
}

static store_batch look(bench *b, int64_t id, batch_dialect d)
{
    store_batch got;
    shoal_err err = {0};
    assert_ok(store_batch_get(b->s, id, d, b->mem, &got, &err));
    return got;
}

#define LINE(id) "{\"custom_id\":\"" id "\",\"method\":\"POST\",\"url\":\"/v1/embeddings\",\"body\":{}}\n"

static void say(buf *out, const char *text)
{
    buf_clear(out);
    buf_puts(out, text);
}

static void missing(void *user, const store_batch *b, batch_status ends, const store_batch_line *l, buf *out)
{
    batch_put_missing(out, b->dialect, 1, l, ends);
}

static batch_status finish(bench *b, int64_t id)
{
    shoal_err err = {0};
    batch_status ended = BATCH_VALIDATING;
    store_batch_end e = {30, "out", "err", missing, NULL};
    assert_ok(store_batch_finish(b->s, id, &e, &ended, &err));
    return ended;
}

static const char *text_of(bench *b, int64_t file)
{
    store_file f;
    const char *text = NULL;
    shoal_err err = {0};
    assert_ok(store_file_get(b->s, file, b->mem, &f, &text, &err));
    assert_string_equal(f.purpose, "batch_output");
    return text;
}

static void each_line_is_answered_once(void **state)
{
    bench b;
    buf a = {0};
    shoal_err err = {0};
    store_batch_line l;
    open_bench(&b);
    int64_t input = put_file(&b, LINE("a") "  \n" LINE("b") LINE("c")), id = make(&b, input, BATCH_OPENAI);
    check(&b, id, input);
    check(&b, id, input); /* as after a crash: nothing is there twice */
    store_batch got = look(&b, id, BATCH_OPENAI);
    assert_int_equal(got.status, BATCH_IN_PROGRESS);
    assert_int_equal(got.n_lines, 3);
    assert_int_equal(store_batch_next(b.s, id, 0, b.mem, &l, &err), 1);
    assert_int_equal(l.n, 1);
    say(&a, "first");
    assert_ok(store_batch_answer(b.s, id, 1, true, &a, 0, &err));
    say(&a, "again");
    assert_ok(store_batch_answer(b.s, id, 1, false, &a, 0, &err)); /* changes nothing */
    assert_int_equal(store_batch_next(b.s, id, 0, b.mem, &l, &err), 1);
    assert_int_equal(l.n, 3); /* lines are counted as in the file */
    assert_string_equal(l.custom_id, "b");
    say(&a, "failed");
    assert_ok(store_batch_answer(b.s, id, 4, false, &a, 0, &err));
    store_act_for(b.s, "bob");
    assert_int_equal(store_batch_get(b.s, id, BATCH_OPENAI, b.mem, &got, &err), SHOAL_ENOTFOUND);
    assert_int_equal(store_batch_cancel(b.s, id, BATCH_OPENAI, 25, &err), SHOAL_ENOTFOUND);
    store_act_for(b.s, "alice");
    assert_int_equal(store_file_delete(b.s, input, &err), SHOAL_EINVALID);
    assert_int_equal(finish(&b, id), BATCH_EXPIRED);
    assert_int_equal(finish(&b, id), BATCH_EXPIRED); /* again: nothing changes */
    got = look(&b, id, BATCH_OPENAI);
    assert_int_equal(got.n_completed, 1);
    assert_int_equal(got.n_failed, 2);
    assert_int_equal(got.n_missing, 1);
    assert_string_equal(text_of(&b, got.output), "first\n");
    assert_string_equal(
        text_of(&b, got.error),
        "{\"id\":\"batch_req_1_3\",\"custom_id\":\"b\",\"response\":null,\"error\":{\"code\":"
        "\"batch_expired\",\"message\":\"This request could not be executed before the completion "
        "window expired.\"}}\nfailed\n");
    assert_ok(store_file_delete(b.s, input, &err));
    buf_done(&a);
    close_bench(&b);
}

static void a_cancelled_batch_of_messages_has_one_file(void **state)
{
    bench b;
    buf a = {0};
    shoal_err err = {0};
    open_bench(&b);
    int64_t input = put_file(&b, LINE("a") LINE("b")), id = make(&b, input, BATCH_ANTHROPIC);
    check(&b, id, input);
    say(&a, "{}");
    assert_ok(store_batch_answer(b.s, id, 2, true, &a, 0, &err));
    assert_int_equal(store_batch_delete(b.s, id, BATCH_ANTHROPIC, &err), SHOAL_EINVALID);
    assert_ok(store_batch_cancel(b.s, id, BATCH_ANTHROPIC, 25, &err));
    assert_int_equal(finish(&b, id), BATCH_CANCELLED);
    store_batch got = look(&b, id, BATCH_ANTHROPIC);
    assert_string_equal(text_of(&b, got.output),
                        "{\"custom_id\":\"a\",\"result\":{\"type\":\"canceled\"}}\n{}\n");
    assert_int_equal(got.error, 0);
    buf_clear(&a);
    batch_put(&a, &got);
    assert_non_null(
        strstr(a.data, "\"processing_status\":\"ended\",\"request_counts\":{\"processing\":0,\"succeeded\":1,"
                       "\"errored\":0,\"canceled\":1,\"expired\":0}"));
    assert_int_equal(store_batch_cancel(b.s, id, BATCH_ANTHROPIC, 25, &err), SHOAL_EINVALID);
    assert_ok(store_batch_delete(b.s, id, BATCH_ANTHROPIC, &err));
    assert_int_equal(store_file_delete(b.s, input, &err), SHOAL_ENOTFOUND); /* it was the batch's own */
    buf_done(&a);
    close_bench(&b);
}

static void what_is_wrong_is_said_by_line(void **state)
{
    static const struct {
        const char *text, *faults;
    } cases[] = {
        {"", "[(null)empty_file]"},
        {LINE("a") "{\n" LINE("a"), "[2 invalid_json_line][3 duplicate_custom_id]"},
        {LINE("a") LINE("b") LINE("c") LINE("d") LINE("e"), "[(null)too_many_requests]"},
        {LINE("a") "{\n{\n{\n{\n{\n{\n",
         "[2 invalid_json_line][3 invalid_json_line][4 invalid_json_line][5 invalid_json_line]"
         "[(null)too_many_requests]"},
        {"{\"custom_id\":\"x\",\"method\":\"POST\",\"url\":\"/v1/embeddings\",\"body\":{\"stream\":true}}",
         "[1 invalid_body]"},
        {LINE("1234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234"
              "567890"
              "1234567890123456789012345678901234567890123456789012345678901234567890"),
         "[1 line_too_long]"},
    };
    bench b;
    open_bench(&b);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        shoal_err err = {0};
        json_t *list, *f;
        size_t k;
        buf said = {0};
        int64_t input = put_file(&b, cases[i].text), id = make(&b, input, BATCH_OPENAI);
        check(&b, id, input);
        store_batch got = look(&b, id, BATCH_OPENAI);
        assert_int_equal(got.status, BATCH_FAILED);
        assert_ok(json_parse(&list, got.errors, strlen(got.errors), "errors", &err));
        json_array_foreach(list, k, f)
        {
            json_int_t line = json_integer_of(f, "line");
            if (line)
                buf_printf(&said, "[%lld %s]", (long long)line, json_text_of(f, "code"));
            else
                buf_printf(&said, "[(null)%s]", json_text_of(f, "code"));
        }
        assert_string_equal(said.data, cases[i].faults);
        buf_done(&said);
        json_decref(list);
    }
    close_bench(&b);
}

/* ---- what reading costs --------------------------------------------------------------------------------- */

/* Pages of the store that were looked at since the last call. */
static int64_t pages(bench *b)
{
    int hit = 0, miss = 0, unused = 0;
    sqlite3_db_status(b->s->file.db, SQLITE_DBSTATUS_CACHE_HIT, &hit, &unused, 1);
    sqlite3_db_status(b->s->file.db, SQLITE_DBSTATUS_CACHE_MISS, &miss, &unused, 1);
    return (int64_t)hit + miss;
}

enum { LONG_LINE = 8192 };

static int64_t put_long(bench *b, int n_lines)
{
    buf text = {0};
    for (int i = 1; i <= n_lines; i++) {
        size_t end = text.len + LONG_LINE;
        buf_printf(&text,
                   "{\"custom_id\":\"%d\",\"method\":\"POST\",\"url\":\"/v1/embeddings\",\"body\":{\"x\":\"",
                   i);
        while (text.len < end - 4) buf_putc(&text, 'x');
        buf_puts(&text, "\"}}\n");
    }
    int64_t id = put_file(b, text.data);
    buf_done(&text);
    return id;
}

static void answer_all(bench *b, int64_t id, int64_t input, int n_lines)
{
    shoal_err err = {0};
    store_batch_line l = {0};
    batch_window w = {0};
    buf a = {0};
    int64_t has;
    int n = 0;
    say(&a, "{}");
    while (store_batch_next(b->s, id, l.n, b->mem, &l, &err) == 1) {
        const char *text;
        batch_line line;
        batch_fault f;
        assert_ok(store_batch_bytes(b->s, &has, &err));
        assert_ok(batch_window_read(&w, b->s, input, l.start, l.n_bytes, &text, &err));
        assert_ok(batch_line_parse(&line, text, (size_t)l.n_bytes, "/v1/embeddings", &f));
        assert_string_equal(line.custom_id, l.custom_id);
        json_drop(line.root);
        assert_ok(store_batch_answer(b->s, id, l.n, true, &a, INT64_MAX, &err));
        n++;
    }
    assert_int_equal(n, n_lines);
    assert_int_equal(batch_window_read(&w, b->s, input, l.start, l.n_bytes + 2, &(const char *){0}, &err),
                     SHOAL_EFORMAT); /* behind its end */
    buf_done(&a);
    batch_window_done(&w);
}

/* Of checking a batch and answering its lines. */
static int64_t cost_of(int n_lines)
{
    bench b;
    shoal_err err = {0};
    steps count = {0};
    open_bench(&b);
    sqlite3_exec(b.s->file.db, "PRAGMA synchronous = OFF", NULL, NULL, NULL);
    int64_t input = put_long(&b, n_lines), id = make(&b, input, BATCH_OPENAI);
    const batch_check c = {.id = id,
                           .input = input,
                           .now = 20,
                           .endpoint = "/v1/embeddings",
                           .most_line_bytes = 2 * LONG_LINE,
                           .most_lines = n_lines};
    pages(&b);
    assert_ok(batch_check_run(&c, b.s, &count, &err));
    answer_all(&b, id, input, n_lines);
    int64_t n = pages(&b);
    close_bench(&b);
    return n;
}

/* SQLite walks over the pages of a row up to the place that is read. Four times as many lines took sixteen times as many
 * pages when each line was read by itself, and when all files were walked over to learn what they take. */
static void what_is_read_grows_with_the_input(void **state)
{
    int64_t few = cost_of(250), many = cost_of(1000);
    print_message("pages: %lld of 250 lines, %lld of 1000\n", (long long)few, (long long)many);
    assert_true(many < 6 * few);
}

/* A write that fails leaves the line unanswered, and what follows answers it. */
static void a_full_disk_loses_no_answer(void **state)
{
    bench b;
    buf a = {0};
    shoal_err err = {0};
    struct rlimit was, small = {.rlim_max = RLIM_INFINITY};
    open_bench(&b);
    int64_t input = put_file(&b, LINE("a") LINE("b")), id = make(&b, input, BATCH_OPENAI);
    check(&b, id, input);
    buf_reserve(&a, 200000);
    for (int i = 0; i < 200000; i++) buf_putc(&a, 'x');
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
    small = (struct rlimit){150000, was.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    int rc = store_batch_answer(b.s, id, 1, true, &a, 0, &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
    assert_int_not_equal(rc, 0);
    assert_int_equal(look(&b, id, BATCH_OPENAI).n_completed, 0);
    assert_ok(store_batch_answer(b.s, id, 1, true, &a, 0, &err));
    assert_int_equal(store_batch_answer(b.s, id, 2, true, &a, 250000, &err), SHOAL_ELIMIT);
    assert_non_null(strstr(err.message, "batches.max_mb"));
    say(&a, "short");
    assert_ok(store_batch_answer(b.s, id, 2, false, &a, 0, &err));
    assert_int_equal(finish(&b, id), BATCH_COMPLETED);
    buf_done(&a);
    close_bench(&b);
}

/* Where an answer does not fit, that the batch has failed still does; its answers go, and none comes again. */
static void a_batch_is_given_up_on_a_full_disk(void **state)
{
    bench b;
    buf a = {0};
    shoal_err err = {0};
    struct rlimit was, small;
    store_batch_line l;
    int64_t has = 0;
    open_bench(&b);
    int64_t input = put_file(&b, LINE("a") LINE("b")), id = make(&b, input, BATCH_OPENAI);
    check(&b, id, input);
    say(&a, "short");
    assert_ok(store_batch_answer(b.s, id, 2, true, &a, 0, &err));
    say(&a, "");
    buf_reserve(&a, 200000);
    for (int i = 0; i < 200000; i++) buf_putc(&a, 'x');
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
    small = (struct rlimit){150000, was.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    int stored = store_batch_answer(b.s, id, 1, true, &a, 0, &err);
    int given_up = store_batch_give_up(b.s, id, "[{\"code\":\"x\"}]", 25, &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
    assert_int_not_equal(stored, 0);
    assert_int_equal(given_up, 0);
    store_batch got = look(&b, id, BATCH_OPENAI);
    assert_int_equal(got.status, BATCH_FAILED);
    assert_int_equal(got.at[BATCH_FAILED], 25);
    assert_string_equal(got.errors, "[{\"code\":\"x\"}]");
    assert_true(got.n_lines == 2 && got.n_completed == 0 && got.n_failed == 2);
    assert_int_equal(store_batch_next(b.s, id, 0, b.mem, &l, &err), 0);
    assert_ok(store_batch_answer(b.s, id, 1, true, &a, 0, &err)); /* changes nothing */
    assert_ok(store_batch_bytes(b.s, &has, &err));
    assert_int_equal(has, strlen(LINE("a") LINE("b")));
    assert_int_equal(finish(&b, id), BATCH_FAILED);
    assert_ok(store_batch_give_up(b.s, id, "[]", 26, &err)); /* it has ended */
    assert_string_equal(look(&b, id, BATCH_OPENAI).errors, "[{\"code\":\"x\"}]");
    buf_done(&a);
    close_bench(&b);
}

static void each_owner_has_room_and_files_of_his_own(void **state)
{
    bench b;
    int64_t n = 0;
    shoal_err err = {0};
    buf a = {0};
    store_file f;
    store_file other = {.name = "x", .purpose = "assistants", .created = 5};
    store_file gone = {.name = "x", .purpose = "batch", .created = 5, .expires = 6};
    open_bench(&b);
    int64_t input = put_file(&b, LINE("a")), id = make(&b, input, BATCH_OPENAI);
    check(&b, id, input);
    assert_ok(store_batch_bytes(b.s, &n, &err));
    assert_int_equal(n, strlen(LINE("a")));
    assert_ok(store_file_put_bytes(b.s, &other, "x", 1, &err));
    assert_ok(store_file_put_bytes(b.s, &gone, "x", 1, &err));
    assert_int_equal(store_file_get(b.s, gone.id, b.mem, &f, NULL, &err), SHOAL_ENOTFOUND);
    store_act_for(b.s, "");
    int64_t common = put_file(&b, LINE("a"));
    store_act_for(b.s, "bob");
    assert_ok(store_batch_bytes(b.s, &n, &err));
    assert_int_equal(n, 0);
    store_act_for(b.s, "alice");
    const int64_t inputs[] = {other.id, gone.id, common};
    const int wants[] = {SHOAL_EINVALID, SHOAL_ENOTFOUND, SHOAL_EINVALID};
    for (size_t i = 0; i < 3; i++) {
        store_batch made = {.key = "",
                            .endpoint = "/v1/embeddings",
                            .window = "24h",
                            .metadata = "null",
                            .errors = "",
                            .input = inputs[i],
                            .at = {10}};
        assert_int_equal(store_batch_create(b.s, &made, 0, &err), wants[i]);
    }
    say(&a, "answer");
    assert_int_equal(store_batch_answer(b.s, id, 1, true, &a, (int64_t)strlen(LINE("a")), &err),
                     SHOAL_ELIMIT);
    assert_int_equal(look(&b, id, BATCH_OPENAI).n_completed, 0); /* it still waits */
    buf_done(&a);
    close_bench(&b);
}

static void what_is_old_goes_with_its_files(void **state)
{
    bench b;
    int64_t n = 0;
    store_batch got;
    shoal_err err = {0};
    open_bench(&b);
    int64_t input = put_file(&b, LINE("a")), id = make(&b, input, BATCH_OPENAI),
            open = make(&b, input, BATCH_OPENAI);
    check(&b, id, input);
    finish(&b, id);
    assert_ok(store_batch_sweep(b.s, 129, 100, &n, &err)); /* it ended at 30 */
    assert_int_equal(look(&b, id, BATCH_OPENAI).status, BATCH_EXPIRED);
    assert_ok(store_batch_sweep(b.s, 130, 100, &n, &err));
    assert_int_equal(store_batch_get(b.s, id, BATCH_OPENAI, b.mem, &got, &err), SHOAL_ENOTFOUND);
    assert_int_equal(look(&b, open, BATCH_OPENAI).status, BATCH_VALIDATING); /* and so its input is there */
    check(&b, open, input);
    assert_int_equal(look(&b, open, BATCH_OPENAI).status, BATCH_IN_PROGRESS);
    close_bench(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_line_is_answered_once),
        cmocka_unit_test(a_cancelled_batch_of_messages_has_one_file),
        cmocka_unit_test(what_is_wrong_is_said_by_line),
        cmocka_unit_test(what_is_read_grows_with_the_input),
        cmocka_unit_test(a_full_disk_loses_no_answer),
        cmocka_unit_test(a_batch_is_given_up_on_a_full_disk),
        cmocka_unit_test(a_stored_item_is_no_input),
        cmocka_unit_test(each_owner_has_room_and_files_of_his_own),
        cmocka_unit_test(what_is_old_goes_with_its_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
