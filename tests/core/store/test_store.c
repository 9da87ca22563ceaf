/* store: files that arrive in pieces, and folders of which the least recently used files go. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file.h"
#include "base/sha256.h"
#include "store/lru_folder.h"
#include "store/partial.h"

static char place[64], part[96], whole[96];

static int begin(void **state)
{
    snprintf(place, sizeof place, "/tmp/shoal_store_XXXXXX");
    if (!mkdtemp(place)) return -1;
    snprintf(part, sizeof part, "%s/m.part", place);
    snprintf(whole, sizeof whole, "%s/m", place);
    return 0;
}

static int end(void **state)
{
    char command[96];
    snprintf(command, sizeof command, "rm -r %s", place);
    return system(command);
}

static void open_part(partial *p, uint64_t at)
{
    shoal_err err = {0};
    if (partial_open(p, part, 0644, &err) != 0) fail_msg("%s", err.message);
    assert_int_equal(p->at, at);
}

static void append(partial *p, const char *text)
{
    shoal_err err = {0};
    if (partial_append(p, text, strlen(text), &err) != 0) fail_msg("%s", err.message);
}

static void holds(const char *path, const char *text)
{
    buf b = {0};
    shoal_err err = {0};
    assert_int_equal(file_read(&b, path, 100, &err), 0);
    assert_int_equal(b.len, strlen(text));
    assert_memory_equal(b.data, text, b.len);
    buf_done(&b);
}

/* ---- parts --------------------------------------------------------------------------------------- */

static void a_part_is_continued_and_takes_its_name(void **state)
{
    partial p;
    content_found found;
    sha256_digest d;
    char hex[65];
    shoal_err err = {0};
    open_part(&p, 0);
    append(&p, "hel");
    partial_close(&p);
    open_part(&p, 3);
    append(&p, "lo\n");
    sha256_of("hello\n", 6, &d);
    sha256_hex(&d, hex);
    const content want = {.has_size = true, .size = 6, .sha256 = hex};
    assert_int_equal(partial_verify(&p, &want, &found, &err), 0);
    assert_int_equal(found.bytes, 6);
    assert_string_equal(found.sha256, hex);
    assert_int_equal(partial_publish(&p, whole, &err), 0);
    partial_close(&p);
    partial_close(&p);
    assert_false(file_exists(part));
    holds(whole, "hello\n");
}

static void another_content_is_told_by_each_of_its_marks(void **state)
{
    /* printf 'hello\n' | git hash-object --stdin */
    static const char BLOB[] = "CE013625030ba8dba906f756967f9e9ca394464a";
    static const char OTHER[] = "aa013625030ba8dba906f756967f9e9ca394464a";
    static const struct {
        content want;
        int rc;
    } CASES[] = {{{0}, 0},
                 {{.sha256 = "", .git_sha1 = ""}, 0},
                 {{.git_sha1 = BLOB}, 0},
                 {{.git_sha1 = OTHER}, SHOAL_EDIGEST},
                 {{.sha256 = OTHER, .git_sha1 = BLOB}, SHOAL_EDIGEST},
                 {{.has_size = true, .size = 6}, 0},
                 {{.has_size = true, .size = 5, .git_sha1 = BLOB}, SHOAL_EDIGEST}};
    partial p;
    content_found found;
    shoal_err err = {0};
    open_part(&p, 0);
    append(&p, "hello\n");
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        if (partial_verify(&p, &CASES[i].want, &found, &err) != CASES[i].rc) fail_msg("case %zu", i);
    assert_int_equal(partial_restart(&p, &err), 0);
    append(&p, "x");
    holds(part, "x");
    partial_remove(&p);
    partial_remove(&p);
    partial_close(&p);
    assert_int_equal(content_check(part, &CASES[0].want, &found, &err), SHOAL_EIO);
}

static void a_part_has_one_writer(void **state)
{
    partial p, q;
    shoal_err err = {0};
    open_part(&p, 0);
    assert_int_equal(partial_open(&q, part, 0644, &err), SHOAL_EFULL);
    assert_non_null(strstr(err.message, "m.part: another process writes it"));
    partial_close(&p);
    open_part(&q, 0);
    partial_close(&q);
}

static void what_is_no_file_is_no_part(void **state)
{
    partial p;
    shoal_err err = {0};
    assert_int_equal(symlink(whole, part), 0);
    assert_int_equal(partial_open(&p, part, 0644, &err), SHOAL_EIO);
    assert_int_equal(unlink(part), 0);
    assert_int_equal(mkfifo(part, 0600), 0);
    assert_int_equal(partial_open(&p, part, 0644, &err), SHOAL_EINVALID);
    assert_false(file_exists(whole));
    snprintf(part, sizeof part, "%s/none/m.part", place);
    assert_int_equal(partial_open(&p, part, 0644, &err), SHOAL_EIO);
}

static bool other_publishes;

/* In place of the C library's: before the lock is asked for, another process may finish the file. */
int flock(int fd, int how)
{
    if (other_publishes) assert_int_equal(rename(part, whole), 0);
    other_publishes = false;
    return (int)syscall(SYS_flock, fd, how);
}

/* Whoever opened the part before it took its name, and locks it afterwards, has the finished file. */
static void a_finished_file_is_not_taken_for_a_part(void **state)
{
    partial p;
    shoal_err err = {0};
    open_part(&p, 0);
    append(&p, "hello");
    partial_close(&p);
    other_publishes = true;
    open_part(&p, 0);
    assert_false(other_publishes);
    append(&p, "x");
    assert_int_equal(partial_restart(&p, &err), 0);
    partial_close(&p);
    holds(whole, "hello");
    holds(part, "");
}

static void a_nameless_part_leaves_nothing(void **state)
{
    partial p;
    char text[8] = "";
    shoal_err err = {0};
    assert_int_equal(partial_open_nameless(&p, place, "the upload", &err), 0);
    append(&p, "ab");
    append(&p, "cd");
    assert_int_equal(pread(p.fd, text, sizeof text, 0), 4);
    assert_string_equal(text, "abcd");
    assert_int_equal(rmdir(place), 0);
    partial_close(&p);
    assert_int_equal(partial_open_nameless(&p, place, "the upload", &err), SHOAL_EIO);
    assert_int_equal(mkdir(place, 0700), 0);
}

static void a_full_disk_is_said_and_leaves_what_was_there(void **state)
{
    partial p;
    shoal_err err = {0};
    open_part(&p, 0);
    append(&p, "abc");
    int fd = p.fd;
    p.fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
    assert_int_equal(partial_append(&p, "d", 1, &err), SHOAL_EIO);
    assert_non_null(strstr(err.message, "m.part cannot be written: No space left on device"));
    assert_int_equal(p.at, 3);
    close(fd);
    partial_close(&p);
    holds(part, "abc");
}

/* ---- folders ------------------------------------------------------------------------------------- */

static void put_file(const char *name, size_t bytes, time_t used)
{
    static const char zeros[100];
    char path[128];
    const struct timespec times[2] = {{.tv_sec = used}, {.tv_sec = used}};
    snprintf(path, sizeof path, "%s/%s", place, name);
    FILE *f = fopen(path, "we");
    assert_non_null(f);
    assert_int_equal(fwrite(zeros, 1, bytes, f), bytes);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static bool is_there(const char *name)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", place, name);
    return file_exists(path);
}

static lru_class classify(const void *user, const char *name, const struct stat *st)
{
    assert_ptr_equal(user, place);
    return *name == 'o' ? LRU_OTHER : *name == 's' ? LRU_STAYS : *name == 'l' ? LRU_LEFTOVER : LRU_MAY_GO;
}

static void list_place(lru_folder *l)
{
    shoal_err err = {0};
    int fd = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(lru_folder_list(l, fd, classify, place, &err), 0);
    close(fd);
}

static void the_least_recently_used_go_first(void **state)
{
    char path[128];
    lru_folder l;
    put_file("a", 10, 3000);
    put_file("b", 20, 1000);
    put_file("c", 30, 2000);
    put_file("d", 30, 2000);
    put_file("s", 40, 1);
    put_file("o", 50, 1);
    put_file("leftover", 60, 1);
    snprintf(path, sizeof path, "%s/b", place);
    lru_folder_touch(path);
    list_place(&l);
    assert_int_equal(l.n, 5);
    assert_int_equal(l.bytes, 130);
    assert_false(is_there("leftover"));
    assert_string_equal(lru_folder_evict(&l)->name, "c");
    assert_string_equal(lru_folder_evict(&l)->name, "d");
    assert_int_equal(l.bytes, 70);
    assert_int_equal(l.n_left, 3);
    snprintf(path, sizeof path, "%s/a", place);
    assert_int_equal(unlink(path), 0); /* somebody else was faster */
    assert_string_equal(lru_folder_evict(&l)->name, "b");
    assert_null(lru_folder_evict(&l));
    lru_folder_done(&l);
    lru_folder_done(&l);
    assert_true(is_there("s") && is_there("o"));
}

static void a_long_folder_is_listed_whole(void **state)
{
    lru_folder l;
    char name[16];
    for (int i = 0; i < 300; i++) {
        snprintf(name, sizeof name, "f%d", i);
        put_file(name, 1, 1000 + i);
    }
    list_place(&l);
    assert_int_equal(l.n, 300);
    assert_string_equal(l.files[299].name, "f299");
    while (l.n_left > 1) assert_non_null(lru_folder_evict(&l));
    lru_folder_done(&l);
    assert_true(is_there("f299"));
    assert_false(is_there("f298"));
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_part_is_continued_and_takes_its_name),
        CASE(another_content_is_told_by_each_of_its_marks),
        CASE(a_part_has_one_writer),
        CASE(what_is_no_file_is_no_part),
        CASE(a_finished_file_is_not_taken_for_a_part),
        CASE(a_nameless_part_leaves_nothing),
        CASE(a_full_disk_is_said_and_leaves_what_was_there),
        CASE(the_least_recently_used_go_first),
        CASE(a_long_folder_is_listed_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
