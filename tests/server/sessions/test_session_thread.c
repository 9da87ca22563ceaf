/* Conversations through the session thread: kept in order, bounded, forgotten when their time is over, encrypted, and
 * there after kill -9. */
#define _GNU_SOURCE
#include "check.h"

#include <signal.h>
#include <sqlite3.h>
#include <sys/wait.h>

#include "sessions/session_thread.h"
#include "sessions/keyring.h"
#include "time/env_sim.h"

typedef struct bench {
    uv_loop_t loop;
    session_thread *c;
    char dir[64], path[128], keys[128];
} bench;

static const session_bounds WIDE = {.turns = 100, .bytes = 1 << 20, .all_bytes = 1 << 24, .ttl_s = 3600};

/* The date stands still. */
static const env *today(void)
{
    static env_sim *sim;
    if (!sim) sim = env_sim_new(1);
    return env_sim_env(sim);
}

static void open_bench(bench *b, const session_bounds *bounds)
{
    assert_int_equal(uv_loop_init(&b->loop), 0);
    session_thread_options o = {.path = b->path, .key_file = b->keys, .bounds = *bounds, .time = today()};
    assert_ok(session_thread_new(&b->c, &b->loop, &o, &err_));
}

static void start(bench *b, const session_bounds *bounds)
{
    make_folder(b->dir);
    snprintf(b->path, sizeof b->path, "%s/state/sessions.db", b->dir);
    snprintf(b->keys, sizeof b->keys, "%s/state/sessions.key", b->dir);
    open_bench(b, bounds);
}

static void stop(bench *b)
{
    session_thread_free(b->c);
    uv_run(&b->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&b->loop), 0);
}

static void finish(bench *b)
{
    stop(b);
    remove_folder(b->dir);
}

static void was_done(session_job *j)
{
    ++*(int *)j->user;
}

static void run_job(bench *b, session_job *j)
{
    int n = 0;
    j->user = &n;
    j->done = was_done;
    session_thread_submit(b->c, j);
    uv_run(&b->loop, UV_RUN_DEFAULT);
    assert_int_equal(n, 1);
}

static int append_rc(bench *b, const char *name, const char *text)
{
    session_job j = {.what = SESSION_APPEND, .id = session_id_of("", "session", name)};
    buf_puts(&j.text, text);
    run_job(b, &j);
    session_job_done(&j);
    return j.rc;
}

/* The turns, joined by a bar; "!" and the code when that fails. */
static const char *load(bench *b, const char *name)
{
    static char all[4096];
    session_job j = {.what = SESSION_LOAD, .id = session_id_of("", "session", name)};
    run_job(b, &j);
    snprintf(all, sizeof all, "!%d", j.rc);
    if (j.rc == 0) *all = '\0';
    const char *at = j.text.data;
    for (size_t i = 0; j.rc == 0 && i < j.n_turns; i++, at += strlen(at) + 1)
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s|", at);
    session_job_done(&j);
    return all;
}

static bool drop(bench *b, const char *name)
{
    session_job j = {.what = SESSION_DROP, .id = session_id_of("", "session", name)};
    run_job(b, &j);
    assert_int_equal(j.rc, 0);
    return j.found;
}

static void turns_come_back_in_order_and_from_the_file(void **state)
{
    (void)state;
    bench b;
    start(&b, &WIDE);
    assert_string_equal(load(&b, "kitchen"), "");
    assert_int_equal(append_rc(&b, "kitchen", "one"), 0);
    assert_int_equal(append_rc(&b, "office", "other"), 0);
    assert_int_equal(append_rc(&b, "kitchen", "two"), 0);
    assert_string_equal(load(&b, "kitchen"), "one|two|");
    stop(&b);
    open_bench(&b, &WIDE);
    assert_string_equal(load(&b, "kitchen"), "one|two|");
    assert_true(drop(&b, "kitchen"));
    assert_false(drop(&b, "kitchen"));
    assert_string_equal(load(&b, "kitchen"), "");
    assert_string_equal(load(&b, "office"), "other|");
    finish(&b);
}

/* What is confirmed after the file was removed, or moved away by a person, is in the file that is there then.
 */
static void a_file_that_is_gone_is_made_anew(void **state)
{
    static const char *const ends[] = {"", "-wal", "-shm"};
    bench b;
    char path[160];
    start(&b, &WIDE);
    assert_int_equal(append_rc(&b, "kitchen", "one"), 0);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        snprintf(path, sizeof path, "%s%s", b.path, ends[i]);
        assert_int_equal(unlink(path), 0);
    }
    assert_int_equal(append_rc(&b, "kitchen", "two"), 0);
    assert_string_equal(load(&b, "kitchen"), "two|");
    stop(&b);
    open_bench(&b, &WIDE);
    assert_string_equal(load(&b, "kitchen"), "two|");
    finish(&b);
}

static void owners_and_kinds_do_not_meet(void **state)
{
    (void)state;
    session_id a = session_id_of("", "session", "x"), b = session_id_of("k", "session", "x"),
               c = session_id_of("", "response", "x"), d = session_id_of("", "sessionx", ""),
               e = session_id_of("", "session", "x");
    assert_memory_not_equal(&a, &b, sizeof a);
    assert_memory_not_equal(&a, &c, sizeof a);
    assert_memory_not_equal(&a, &d, sizeof a);
    assert_memory_equal(&a, &e, sizeof a);
}

static void the_oldest_turns_go_over_the_bounds(void **state)
{
    (void)state;
    bench b;
    session_bounds few = {.turns = 2, .bytes = 200, .all_bytes = 1 << 20, .ttl_s = 3600};
    char text[101] = {0};
    start(&b, &few);
    for (int i = 0; i < 5; i++) assert_int_equal(append_rc(&b, "s", (char[]){(char)('a' + i), 0}), 0);
    assert_string_equal(load(&b, "s"), "d|e|");
    memset(text, 'x', 100);
    assert_int_equal(append_rc(&b, "s", text), 0); /* e and this one have 176 sealed bytes */
    assert_int_equal(strncmp(load(&b, "s"), "e|x", 3), 0);
    assert_int_equal(append_rc(&b, "s", text), 0);
    assert_int_equal(strlen(load(&b, "s")), 101);
    char huge[300];
    memset(huge, 'x', sizeof huge - 1);
    huge[sizeof huge - 1] = '\0';
    assert_int_equal(append_rc(&b, "s", huge), SHOAL_ELIMIT);
    assert_int_equal(strlen(load(&b, "s")), 101);
    finish(&b);
}

static void over_all_bounds_the_longest_unused_goes(void **state)
{
    (void)state;
    bench b;
    session_bounds few = {.turns = 10, .bytes = 500, .all_bytes = 500, .ttl_s = 3600};
    char text[151] = {0}, name[8];
    memset(text, 'x', 150);
    start(&b, &few);
    for (int i = 0; i < 6; i++) {
        snprintf(name, sizeof name, "s%d", i);
        assert_int_equal(append_rc(&b, name, text), 0);
    }
    int there = 0;
    for (int i = 0; i < 6; i++) {
        snprintf(name, sizeof name, "s%d", i);
        there += *load(&b, name) != '\0';
    }
    assert_int_equal(there, 2); /* of 187 bytes each */
    assert_string_not_equal(load(&b, "s5"), "");
    finish(&b);
}

static void execute(bench *b, const char *sql)
{
    sqlite3 *db;
    assert_int_equal(sqlite3_open(b->path, &db), SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK) fail_msg("%s", sqlite3_errmsg(db));
    sqlite3_close(db);
}

static int64_t count(bench *b, const char *sql)
{
    sqlite3 *db;
    sqlite3_stmt *st;
    assert_int_equal(sqlite3_open(b->path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &st, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(st), SQLITE_ROW);
    int64_t n = sqlite3_column_int64(st, 0);
    sqlite3_finalize(st);
    sqlite3_close(db);
    return n;
}

/* What is over its time is not there, though nobody has swept yet; and the next start sweeps it away. */
static void what_is_over_its_time_is_gone(void **state)
{
    (void)state;
    bench b;
    start(&b, &WIDE);
    append_rc(&b, "old", "one");
    append_rc(&b, "new", "two");
    session_id id = session_id_of("", "session", "old");
    char sql[256] = "UPDATE talks SET ends = 1 WHERE id = x'";
    for (int i = 0; i < SESSION_ID_BYTES; i++) sprintf(sql + strlen(sql), "%02x", id.bytes[i]);
    execute(&b, strcat(sql, "'"));
    assert_string_equal(load(&b, "old"), "");
    assert_int_equal(count(&b, "SELECT count(*) FROM turns"), 2);
    append_rc(&b, "old", "three");
    assert_string_equal(load(&b, "old"), "three|");
    execute(&b, sql);
    stop(&b);
    open_bench(&b, &WIDE);
    assert_string_equal(load(&b, "new"), "two|");
    assert_int_equal(count(&b, "SELECT count(*) FROM turns"), 1);
    assert_int_equal(count(&b, "SELECT n_bytes = (SELECT sum(length(sealed)) FROM turns) FROM total"), 1);
    finish(&b);
}

static void the_file_holds_no_text_and_no_name(void **state)
{
    (void)state;
    bench b;
    start(&b, &WIDE);
    append_rc(&b, "grandmother", "the key is under the flowerpot");
    char command[512];
    snprintf(command, sizeof command, "! grep -qaE 'flowerpot|grandmother' %s/state/*", b.dir);
    assert_int_equal(system(command), 0);
    finish(&b);
}

static void write_keys(bench *b, const char *text)
{
    FILE *f = fopen(b->keys, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

#define A "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\n"
#define B "ffeeddccbbaa99887766554433221100ffeeddccbbaa99887766554433221100\n"

/* A second key encrypts from then on; what is read is renewed, and the first may go. */
static void keys_are_changed_while_it_runs(void **state)
{
    (void)state;
    bench b;
    start(&b, &WIDE);
    append_rc(&b, "a", "zero"); /* makes the folder */
    drop(&b, "a");
    write_keys(&b, A);
    append_rc(&b, "a", "one");
    append_rc(&b, "b", "unread");
    write_keys(&b, A B);
    append_rc(&b, "a", "two");
    assert_string_equal(load(&b, "a"), "one|two|");
    write_keys(&b, "#\n" B);
    assert_string_equal(load(&b, "a"), "one|two|");
    char refused[16];
    snprintf(refused, sizeof refused, "!%d", SHOAL_EAUTH);
    assert_string_equal(load(&b, "b"), refused);
    write_keys(&b, "no key\n"); /* what was read stays */
    assert_string_equal(load(&b, "a"), "one|two|");
    finish(&b);
}

static void a_damaged_turn_is_an_error_and_can_be_deleted(void **state)
{
    (void)state;
    bench b;
    start(&b, &WIDE);
    append_rc(&b, "a", "one");
    append_rc(&b, "b", "two");
    execute(&b, "UPDATE turns SET sealed = x'0102' WHERE rowid = 1");
    char refused[16];
    snprintf(refused, sizeof refused, "!%d", SHOAL_EFORMAT);
    assert_string_equal(load(&b, "a"), refused);
    assert_string_equal(load(&b, "b"), "two|");
    assert_true(drop(&b, "a"));
    assert_string_equal(load(&b, "a"), "");
    finish(&b);
}

/* A batch in which one fails does the others. */
static void one_failure_is_its_own(void **state)
{
    (void)state;
    bench b;
    session_job jobs[5];
    int n = 0;
    start(&b, &(session_bounds){.turns = 10, .bytes = 150, .all_bytes = 1000, .ttl_s = 60});
    for (int i = 0; i < 5; i++) {
        jobs[i] = (session_job){
            .what = SESSION_APPEND, .id = session_id_of("", "session", "a"), .done = was_done, .user = &n};
        buf_printf(&jobs[i].text, i == 2 ? "%0120d" : "%d", i);
        session_thread_submit(b.c, &jobs[i]);
    }
    uv_run(&b.loop, UV_RUN_DEFAULT);
    assert_int_equal(n, 5);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(jobs[i].rc, i == 2 ? SHOAL_ELIMIT : 0);
        session_job_done(&jobs[i]);
    }
    assert_string_equal(load(&b, "a"), "1|3|4|"); /* 38 bytes each */
    finish(&b);
}

static void what_waits_when_it_ends_hears_so(void **state)
{
    (void)state;
    bench b;
    session_job jobs[3];
    int n = 0;
    start(&b, &WIDE);
    for (int i = 0; i < 3; i++) {
        jobs[i] = (session_job){
            .what = SESSION_APPEND, .id = session_id_of("", "session", "a"), .done = was_done, .user = &n};
        buf_puts(&jobs[i].text, "x");
        session_thread_submit(b.c, &jobs[i]);
    }
    session_thread_free(b.c);
    assert_int_equal(n, 2);
    uv_run(&b.loop, UV_RUN_DEFAULT);
    assert_int_equal(n, 3);
    assert_int_equal(jobs[0].rc, 0);
    assert_int_equal(jobs[1].rc, SHOAL_ECANCELLED);
    for (int i = 0; i < 3; i++) session_job_done(&jobs[i]);
    assert_int_equal(uv_loop_close(&b.loop), 0);
    remove_folder(b.dir);
}

static void nowhere_to_keep_it_is_said(void **state)
{
    (void)state;
    bench b = {.c = NULL};
    session_thread_options o = {.bounds = WIDE, .time = today()};
    assert_int_equal(uv_loop_init(&b.loop), 0);
    assert_ok(session_thread_new(&b.c, &b.loop, &o, &err_));
    assert_int_equal(append_rc(&b, "a", "x"), SHOAL_EUNAVAILABLE);
    stop(&b);
}

/* A child appends and says so; it is killed in the middle of it. Everything that it said is there. */
static void killed_it_loses_nothing_acknowledged(void **state)
{
    (void)state;
    for (int round = 0; round < 5; round++) {
        bench b;
        int ends[2], said = 0;
        char c;
        make_folder(b.dir);
        snprintf(b.path, sizeof b.path, "%s/s.db", b.dir);
        snprintf(b.keys, sizeof b.keys, "%s/s.key", b.dir);
        assert_int_equal(pipe(ends), 0);
        pid_t child = fork();
        if (child == 0) {
            open_bench(
                &b, &(session_bounds){.turns = 1000000, .bytes = 1 << 24, .all_bytes = 1 << 24, .ttl_s = 60});
            for (;;)
                if (append_rc(&b, "a", "x") != 0 || write(ends[1], "x", 1) != 1) _exit(1);
        }
        close(ends[1]);
        while (said < 20 + 7 * round && read(ends[0], &c, 1) == 1) said++;
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        while (read(ends[0], &c, 1) == 1) said++;
        close(ends[0]);
        open_bench(&b, &WIDE);
        assert_true(said >= 20);
        size_t kept = strlen(load(&b, "a")) / 2;
        assert_true(kept == (size_t)said || kept == (size_t)said + 1); /* committed, and not said yet */
        finish(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(killed_it_loses_nothing_acknowledged),
                                       cmocka_unit_test(turns_come_back_in_order_and_from_the_file),
                                       cmocka_unit_test(owners_and_kinds_do_not_meet),
                                       cmocka_unit_test(a_file_that_is_gone_is_made_anew),
                                       cmocka_unit_test(the_oldest_turns_go_over_the_bounds),
                                       cmocka_unit_test(over_all_bounds_the_longest_unused_goes),
                                       cmocka_unit_test(what_is_over_its_time_is_gone),
                                       cmocka_unit_test(the_file_holds_no_text_and_no_name),
                                       cmocka_unit_test(keys_are_changed_while_it_runs),
                                       cmocka_unit_test(a_damaged_turn_is_an_error_and_can_be_deleted),
                                       cmocka_unit_test(one_failure_is_its_own),
                                       cmocka_unit_test(what_waits_when_it_ends_hears_so),
                                       cmocka_unit_test(nowhere_to_keep_it_is_said)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
