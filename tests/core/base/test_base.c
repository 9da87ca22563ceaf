/* base: cursors, buffers, UTF-8, files, draws. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <float.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/cur.h"
#include "base/edits.h"
#include "base/err.h"
#include "base/number.h"
#include "base/file.h"
#include "base/list.h"
#include "base/sha256.h"
#include "base/sys.h"
#include "base/utf8.h"

static void cursor_never_reads_past_the_end(void **state)
{
    uint8_t bytes[] = {1, 2, 3, 4, 5};
    cur c = cur_over(bytes, sizeof bytes);
    assert_int_equal(cur_u32(&c), 0x04030201);
    assert_int_equal(cur_u32(&c), 0);
    assert_true(c.failed);
    assert_int_equal(cur_u8(&c), 0);
    assert_null(cur_take(&c, 0));
    c = cur_over(bytes, sizeof bytes);
    assert_null(cur_take(&c, SIZE_MAX));
}

static void sentences_lose_the_folders_of_files(void **state)
{
    static const struct {
        const char *path, *sentence, *left;
    } CASES[] = {{"/a/b/m.gguf", "/a/b/m.gguf: line 1: /a/b/m.gguf", "m.gguf: line 1: m.gguf"},
                 {"/a/b", "/a/b/c/d.json: no", "b/c/d.json: no"},
                 {"/a/b/m", "/a/bc/m and /a/b: no", "/a/bc/m and /a/b: no"},
                 {"m.gguf", "m.gguf: no", "m.gguf: no"},
                 {"/m.gguf", "/m.gguf: no", "/m.gguf: no"},
                 {"/a/m", "/a//a/m", "m"},
                 {NULL, "x", "x"}};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        char sentence[64];
        snprintf(sentence, sizeof sentence, "%s", CASES[i].sentence);
        file_name_alone(sentence, CASES[i].path);
        if (strcmp(sentence, CASES[i].left) != 0) fail_msg("%zu: %s", i, sentence);
    }
}

static void error_is_cut_at_a_character(void **state)
{
    char text[700];
    for (int i = 0; i < 600; i += 3) memcpy(text + i, "\xE2\x82\xAC", 3);
    text[600] = '\0';
    shoal_err err = {0};
    assert_int_equal(err_set(&err, SHOAL_EIO, "x%s", text), SHOAL_EIO);
    assert_true(utf8_valid(err.message, strlen(err.message), NULL));
    err_set(&err, SHOAL_EIO, "inner");
    assert_int_equal(err_prefix(&err, SHOAL_EIO, "outer %d", 1), SHOAL_EIO);
    assert_string_equal(err.message, "outer 1: inner");
    assert_string_equal(shoal_err_name(SHOAL_EFULL), "SHOAL_EFULL");
}

static void edits_are_counted_as_far_as_they_matter(void **state)
{
    char longer[EDITS_LETTERS_MAX + 2];
    (void)state;
    assert_int_equal(edits("", "", 0), 0);
    assert_int_equal(edits("", "abc", 9), 3);
    assert_int_equal(edits("kitten", "sitting", 9), 3);
    assert_int_equal(edits("kitten", "sitting", 2), 3);
    assert_int_equal(edits("kitten", "sitting", 1), 2);
    assert_int_equal(edits("hlep", "help", 3), 1);
    assert_int_equal(edits("xhlepy", "help", 3), 3);
    assert_int_equal(edits("badc", "abcd", 2), 2);
    assert_int_equal(edits("badcfe", "abcdef", 3), 3);
    assert_int_equal(edits("abcdefgh", "", 3), 4);
    memset(longer, 'a', sizeof longer);
    longer[sizeof longer - 1] = '\0';
    assert_int_equal(edits(longer, longer, 5), 6);
    longer[EDITS_LETTERS_MAX] = '\0';
    assert_int_equal(edits(longer, longer, 5), 0);
    assert_int_equal(edits(longer, "b", EDITS_LETTERS_MAX), EDITS_LETTERS_MAX);
}

static void utf8_refuses_what_rfc3629_refuses(void **state)
{
    static const char *const bad[] = {"\xC0\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80",
                                      "\xE2\x82", "\x80",         "\xF8\x88\x80\x80\x80"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(utf8_valid(bad[i], strlen(bad[i]), NULL));
    assert_true(utf8_valid("na\xC3\xAFve \xF0\x9F\x98\x80", 11, NULL));
    assert_int_equal(utf8_count("na\xC3\xAFve \xF0\x9F\x98\x80", 11), 7);
    assert_int_equal(utf8_incomplete_tail("ab\xF0\x9F\x98", 5), 3);
    assert_int_equal(utf8_incomplete_tail("ab\xC3", 3), 1);
    assert_int_equal(utf8_incomplete_tail("abc", 3), 0);
    for (uint32_t cp = 0; cp < 0x110000; cp += 97) {
        char s[4];
        uint32_t back;
        size_t n = utf8_encode(cp, s);
        if (n == 0) continue;
        assert_int_equal(utf8_decode(s, n, &back), n);
        assert_int_equal(back, cp);
    }
}

static void base64_and_hex_match_rfc4648(void **state)
{
    static const char *const cases[][2] = {
        {"", ""}, {"f", "Zg=="}, {"fo", "Zm8="}, {"foo", "Zm9v"}, {"foob", "Zm9vYg=="}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        buf b = {0};
        base64_encode(&b, cases[i][0], strlen(cases[i][0]));
        assert_string_equal(b.data, cases[i][1]);
        buf_done(&b);
    }
    uint8_t out[2];
    assert_true(hex_decode("0aFF", 4, out, 2));
    assert_int_equal(out[1], 255);
    assert_false(hex_decode("0x00", 4, out, 2));
}

static void percent_encoding_keeps_unreserved_characters(void **state)
{
    buf b = {0};
    percent_encode(&b, "aZ09-._~ /%\xc3\xa4\0?", 14, "");
    assert_string_equal(b.data, "aZ09-._~%20%2F%25%C3%A4%00");
    buf_clear(&b);
    percent_encode(&b, "a/b?c", 5, "/");
    assert_string_equal(b.data, "a/b%3Fc");
    buf_done(&b);
}

static void folders_above_a_file_are_made(void **state)
{
    char top[] = "/tmp/shoal_test_XXXXXX", path[64], plain[96];
    shoal_err err = {0};
    uint64_t left = 0;
    assert_non_null(mkdtemp(top));
    snprintf(path, sizeof path, "%s/a/b/file", top);
    for (int i = 0; i < 2; i++) assert_int_equal(file_make_folders(path, 0700, &err), 0);
    *strrchr(path, '/') = '\0';
    assert_true(file_is_dir(path));
    assert_int_equal(file_make_folders("file", 0700, &err), 0);
    assert_int_equal(file_free_bytes(&left, path, &err), 0);
    assert_true(left > 0);
    rmdir(path);
    close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600)); /* a file where a folder is wanted */
    snprintf(plain, sizeof plain, "%s/c/file", path);
    assert_int_equal(file_make_folders(plain, 0700, &err), SHOAL_EIO);
    assert_non_null(strstr(err.message, "/b/c: the folder cannot be made: "));
    assert_int_equal(file_free_bytes(&left, plain, &err), SHOAL_EIO);
    unlink(path);
    *strrchr(path, '/') = '\0';
    rmdir(path);
    rmdir(top);
}

static void a_lock_is_waited_for_as_long_as_is_said(void **state)
{
    char path[] = "/tmp/shoal_test_XXXXXX";
    shoal_err err = {0};
    atomic_bool stop = true;
    int first = -1, second = -1;
    assert_non_null(mkdtemp(path));
    assert_int_equal(file_lock_folder(&first, path, 0, &err), 0);
    assert_int_equal(file_lock_folder(&second, path, 20, &err), SHOAL_EFULL);
    assert_int_equal(second, -1);
    assert_int_equal(strncmp(err.message, path, strlen(path)), 0);
    second = open(path, O_RDONLY | O_CLOEXEC);
    assert_int_equal(file_lock(second, -1, &stop, &err), SHOAL_ECANCELLED);
    close(first);
    assert_int_equal(file_lock(second, 0, NULL, &err), 0);
    close(second);
    rmdir(path);
    assert_int_equal(file_lock_folder(&first, path, 0, &err), SHOAL_EIO);
}

typedef struct listed {
    int number;
    list_node link;
} listed;

static void orders(const list_node *list, const char *want)
{
    char got[16] = "";
    list_each (at, list, listed, link) snprintf(got + strlen(got), 4, "%d", at->number);
    assert_string_equal(got, want);
}

static void members_of_a_list_move_and_leave_without_a_search(void **state)
{
    listed members[3];
    list_node list, other;
    list_init(&list);
    list_init(&other);
    assert_null(list_first(&list, listed, link));
    for (int i = 0; i < 3; i++) {
        members[i].number = i;
        list_put(&list, &members[i].link);
    }
    orders(&list, "012");
    list_move(&list, &members[0].link);
    orders(&list, "120");
    list_move(&other, &members[2].link);
    orders(&list, "10");
    orders(&other, "2");
    for (int i = 0; i < 2; i++) list_take(&members[1].link); /* twice is once */
    orders(&list, "0");
    assert_ptr_equal(list_first(&list, listed, link), &members[0]);
    list_each (at, &list, listed, link) list_take(&at->link);
    orders(&list, "");
}

static void full_disk_leaves_the_old_file(void **state)
{
    char path[] = "/tmp/shoal_test_XXXXXX";
    int fd = mkstemp(path);
    assert_int_equal(write(fd, "old", 3), 3);
    close(fd);
    struct rlimit before, small = {.rlim_cur = 4096};
    getrlimit(RLIMIT_FSIZE, &before);
    small.rlim_max = before.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    file_writer *w = NULL;
    shoal_err err = {0};
    assert_int_equal(file_writer_open(&w, path, &err), 0);
    setrlimit(RLIMIT_FSIZE, &small);
    char block[1024] = {0};
    int rc = 0;
    for (int i = 0; i < 64 && rc == 0; i++) rc = file_writer_write(w, block, sizeof block, &err);
    if (rc == 0) rc = file_writer_commit(w, &err);
    setrlimit(RLIMIT_FSIZE, &before);
    assert_int_equal(rc, SHOAL_EIO);
    file_writer_close(w);
    buf text = {0};
    assert_int_equal(file_read(&text, path, 100, &err), 0);
    assert_string_equal(text.data, "old");
    buf_done(&text);
    unlink(path);
}

static void assert_written_as_printf(double v, int digits)
{
    char want[64], got[NUMBER_SIZE];
    snprintf(want, sizeof want, "%.*g", digits, v);
    size_t n = number_write(got, v, digits);
    assert_string_equal(got, want);
    assert_int_equal(n, strlen(want));
}

static void numbers_are_written_as_printf_writes_them(void **state)
{
    static const double odd[] = {
        0,        -0.0,         1,          9.5,     0.5,  2.5,   1e9,          999999999.5, 1e17,
        1e22,     0.1,          123456789,  1e-4,    9e-5, 1e-19, DBL_MIN,      5e-324,      1e300,
        INFINITY, -(double)NAN, 0.99999996, 1000000, 1e16, 1e-11, 0.0009765625, 8388608.5,   65535.5};
    for (int digits = 1; digits <= 17; digits++) {
        for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
            assert_written_as_printf(odd[i], digits);
            assert_written_as_printf(-odd[i], digits);
        }
        for (uint64_t i = 0; i < 20000; i++) {
            double u = rng_uniform(7, i) - 0.25, size = ldexp(1, (int)(rng_mix(i) % 200) - 120);
            assert_written_as_printf(u, digits);
            assert_written_as_printf((double)(float)(u * size), digits);
            assert_written_as_printf(u * size, digits);
            assert_written_as_printf(floor(u * 4096) / 64, digits); /* many that lie between two */
        }
    }
    buf b = {0};
    number_put_i64(&b, INT64_MIN);
    buf_putc(&b, ' ');
    number_put_i64(&b, 0);
    buf_putc(&b, ' ');
    number_put_u64(&b, UINT64_MAX);
    assert_string_equal(b.data, "-9223372036854775808 0 18446744073709551615");
    buf_done(&b);
}

/* What buf_printf writes at first may not fit: then it is written again, whole. */
static void printing_fits_whatever_room_there_is(void **state)
{
    for (int n = 0; n < 200; n++) {
        for (int k = 0; k < 200; k += 1 + k / 8) {
            char want[512];
            buf b = {0};
            snprintf(want, sizeof want, "%*s%*d", n, "", k, 7);
            buf_printf(&b, "%*s", n, "");
            buf_printf(&b, "%*d", k, 7);
            assert_string_equal(b.data, want);
            assert_int_equal(b.len, strlen(want));
            buf_done(&b);
        }
    }
}

static void text_is_copied_as_far_as_it_fits(void **state)
{
    char to[5] = "xxxx";
    buf_copy_str(to, sizeof to, "abcd");
    assert_string_equal(to, "abcd");
    buf_copy_str(to, sizeof to, "ABCDEFG");
    assert_string_equal(to, "ABCD");
    buf_copy_str(to, sizeof to, NULL);
    assert_string_equal(to, "");
}

/* What a store read ahead must not do: give bytes twice, to one process or to two. */
static void drawn_names_are_all_different_in_children_too(void **state)
{
    enum { N = 2000 };
    static uint64_t drawn[2 * N];
    int ends[2];
    rng_draw(&drawn[0], sizeof drawn[0]);
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    for (size_t i = 1; i < N; i++) rng_draw(&drawn[i], sizeof drawn[i]);
    if (child == 0)
        _exit(write(ends[1], drawn + 1, (N - 1) * sizeof *drawn) == (N - 1) * sizeof *drawn ? 0 : 1);
    close(ends[1]);
    FILE *f = fdopen(ends[0], "r");
    assert_non_null(f);
    assert_int_equal(fread(drawn + N, sizeof *drawn, N, f), N - 1);
    fclose(f);
    assert_int_equal(waitpid(child, NULL, 0), child);
    for (size_t i = 0; i < 2 * N - 1; i++)
        for (size_t k = 0; k < i; k++) assert_true(drawn[i] != drawn[k]);
}

static void draws_depend_on_seed_and_position_alone(void **state)
{
    double sum = 0;
    for (uint64_t p = 0; p < 10000; p++) {
        double u = rng_uniform(42, p);
        assert_true(u >= 0 && u < 1);
        assert_true(u == rng_uniform(42, p));
        sum += u;
    }
    assert_true(sum > 4850 && sum < 5150);
    assert_true(rng_uniform(1, 5) != rng_uniform(2, 5));
}

typedef struct cutter {
    int fd;
    atomic_bool ends;
} cutter;

static void *cut_and_grow(void *arg)
{
    cutter *c = arg;
    for (bool cut = true; !atomic_load(&c->ends); cut = !cut) {
        if (ftruncate(c->fd, cut ? 0 : 4 << 20) != 0) return arg;
        nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
    }
    return NULL;
}

/* Somebody copies another model over the file while its digest is made. */
static void sha256_of_a_file_that_is_cut_off_meanwhile_ends(void **state)
{
    char path[] = "/tmp/shoal-sha256-XXXXXX", hex[65];
    sha256_digest d;
    pthread_t t;
    void *failed;
    cutter c = {.fd = mkstemp(path)};
    assert_true(c.fd >= 0);
    assert_int_equal(pthread_create(&t, NULL, cut_and_grow, &c), 0);
    for (int i = 0; i < 200; i++) assert_int_equal(sha256_file(path, &d, NULL), 0);
    atomic_store(&c.ends, true);
    pthread_join(t, &failed);
    assert_null(failed);
    assert_int_equal(ftruncate(c.fd, 0), 0);
    assert_int_equal(write(c.fd, "abc", 3), 3);
    close(c.fd);
    assert_int_equal(sha256_file(path, &d, NULL), 0);
    sha256_hex(&d, hex);
    assert_true(sha256_file_is(path, hex));
    assert_true(sha256_file_is(path, "BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD"));
    hex[0]++;
    assert_false(sha256_file_is(path, hex));
    unlink(path);
    assert_false(sha256_file_is(path, hex));
}

static void sha256_matches_fips_180(void **state)
{
    sha256_digest d;
    char hex[65];
    sha256_of("abc", 3, &d);
    sha256_hex(&d, hex);
    assert_string_equal(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

static void arena_gives_aligned_zeroed_memory(void **state)
{
    arena *a = arena_new(64);
    for (size_t n = 1; n < 300; n += 13) {
        char *p = arena_alloc(a, n);
        assert_int_equal((uintptr_t)p % 16, 0);
        for (size_t i = 0; i < n; i++) assert_int_equal(p[i], 0);
        memset(p, 1, n);
    }
    assert_string_equal(arena_printf(a, "%d-%s", 5, "x"), "5-x");
    arena_free(a);
    size_t big;
    assert_true(size_mul(SIZE_MAX, 2, &big));
    assert_null(mem_calloc64(SIZE_MAX, 2));
}

static void core_count_can_be_forced(void **state)
{
    assert_true(sys_core_count() >= 1);
    setenv("SHOAL_CORES", "3", 1);
    assert_int_equal(sys_core_count(), 3);
    unsetenv("SHOAL_CORES");
    assert_true(sys_rss_bytes(0) > 100000);
    int n_free = sys_free_cores();
    assert_true(n_free >= 1 && n_free <= (int)sysconf(_SC_NPROCESSORS_ONLN));
}

/* Two threads on one core, which spin until both have waited for it, and then stay. */
typedef struct rivals {
    atomic_int n_waited, n_done;
    atomic_bool over;
    int core;
} rivals;

static void *wait_for_core(void *arg)
{
    rivals *x = arg;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(x->core, &one);
    if (sched_setaffinity(0, sizeof one, &one) != 0) abort();
    uint64_t begun_ns = sys_thread_run_delay_ns();
    while (sys_thread_run_delay_ns() == begun_ns) continue;
    atomic_fetch_add(&x->n_waited, 1);
    while (atomic_load(&x->n_waited) < 2) continue;
    uint64_t ns = sys_thread_run_delay_ns();
    atomic_fetch_add(&x->n_done, 1);
    while (!atomic_load(&x->over)) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    return (void *)(uintptr_t)ns;
}

static bool kernel_counts_waits(void)
{
    unsigned long long ran = 0;
    FILE *f = fopen("/proc/thread-self/schedstat", "re");
    bool counts = f && fscanf(f, "%llu", &ran) == 1 && ran > 0;
    if (f) fclose(f);
    return counts;
}

/* A thread that waits now is seen though another has waited longer in its life. */
static void waits_of_all_threads_for_a_core_are_added(void **state)
{
    rivals x = {.core = sched_getcpu()};
    pthread_t t[2];
    void *waited_ns[2];
    if (x.core < 0 || !kernel_counts_waits()) skip();
    for (int i = 0; i < 2; i++) assert_int_equal(pthread_create(&t[i], NULL, wait_for_core, &x), 0);
    while (atomic_load(&x.n_done) < 2) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    uint64_t own = sys_thread_run_delay_ns(), sum = sys_run_delay_sum_ns();
    atomic_store(&x.over, true);
    for (int i = 0; i < 2; i++) assert_int_equal(pthread_join(t[i], &waited_ns[i]), 0);
    assert_true((uintptr_t)waited_ns[0] > 0 && (uintptr_t)waited_ns[1] > 0);
    assert_true(sum >= own + (uintptr_t)waited_ns[0] + (uintptr_t)waited_ns[1]);
}

/* Short ones where the kernel has them, for this thread and those that it starts. */
static void *turn_of_thread(void *ret)
{
    *(uint64_t *)ret = sys_turn_ns();
    return NULL;
}

static void turns_on_a_core_can_be_short(void **state)
{
    struct utsname u;
    int major = 0, minor = 0;
    uint64_t of_thread = 0;
    pthread_t t;
    sys_short_turns();
    assert_int_equal(uname(&u), 0);
    assert_int_equal(sscanf(u.release, "%d.%d", &major, &minor), 2);
    assert_int_equal(pthread_create(&t, NULL, turn_of_thread, &of_thread), 0);
    assert_int_equal(pthread_join(t, NULL), 0);
    assert_true(of_thread == sys_turn_ns());
    if (major > 6 || (major == 6 && minor >= 12)) assert_true(of_thread > 0 && of_thread <= 1000000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cursor_never_reads_past_the_end),
        cmocka_unit_test(sentences_lose_the_folders_of_files),
        cmocka_unit_test(error_is_cut_at_a_character),
        cmocka_unit_test(edits_are_counted_as_far_as_they_matter),
        cmocka_unit_test(utf8_refuses_what_rfc3629_refuses),
        cmocka_unit_test(base64_and_hex_match_rfc4648),
        cmocka_unit_test(percent_encoding_keeps_unreserved_characters),
        cmocka_unit_test(folders_above_a_file_are_made),
        cmocka_unit_test(a_lock_is_waited_for_as_long_as_is_said),
        cmocka_unit_test(members_of_a_list_move_and_leave_without_a_search),
        cmocka_unit_test(full_disk_leaves_the_old_file),
        cmocka_unit_test(numbers_are_written_as_printf_writes_them),
        cmocka_unit_test(printing_fits_whatever_room_there_is),
        cmocka_unit_test(text_is_copied_as_far_as_it_fits),
        cmocka_unit_test(drawn_names_are_all_different_in_children_too),
        cmocka_unit_test(draws_depend_on_seed_and_position_alone),
        cmocka_unit_test(sha256_matches_fips_180),
        cmocka_unit_test(sha256_of_a_file_that_is_cut_off_meanwhile_ends),
        cmocka_unit_test(arena_gives_aligned_zeroed_memory),
        cmocka_unit_test(core_count_can_be_forced),
        cmocka_unit_test(waits_of_all_threads_for_a_core_are_added),
        cmocka_unit_test(turns_on_a_core_can_be_short),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
