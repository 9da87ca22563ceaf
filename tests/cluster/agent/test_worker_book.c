/* The list of workers that outlives an agent: what is believed of it. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/worker_book.h"

static worker_book *book;
static int book_fd;

static int open_book(void **state)
{
    return worker_book_new(&book, &book_fd, NULL);
}

static int close_book(void **state)
{
    worker_book_free(book);
    close(book_fd);
    return 0;
}

static worker_entry *written(void)
{
    worker_entry e = {.generation = 12, .n_crashes = 2, .id = "home-chat/0", .pid = 99, .leaving = 1};
    worker_book_write(book, 3, &e);
    worker_entry *at = worker_book_at(book, 3);
    assert_true(at->pid == 0 && at->leaving == 0 && at->used == 1); /* those begin at 0 */
    at->pid = 99;
    return at;
}

static void the_next_agent_reads_what_was_written(void **state)
{
    worker_book *other;
    written();
    assert_int_equal(worker_book_open(&other, book_fd, NULL), 0);
    const worker_entry *e = worker_book_at(other, 3);
    assert_true(e->generation == 12 && e->n_crashes == 2 && strcmp(e->id, "home-chat/0") == 0 &&
                e->pid == 99);
    assert_int_equal(worker_book_claim(e, true), CLAIM_ADOPT);
    worker_book_free(other);
}

static void a_live_worker_alone_is_adopted(void **state)
{
    worker_entry *e = written();
    assert_int_equal(worker_book_claim(e, true), CLAIM_ADOPT);
    assert_int_equal(worker_book_claim(e, false), CLAIM_NOTHING);
    e->leaving = 1; /* it was dismissed: what it finished was for clients that are gone */
    assert_int_equal(worker_book_claim(e, true), CLAIM_KILL);
    e = written();
    e->pid = 0;
    assert_int_equal(worker_book_claim(e, true), CLAIM_NOTHING);
    worker_book_clear(book, 3);
    assert_int_equal(worker_book_claim(e, true), CLAIM_NOTHING);
}

/* Whoever crashed may have written anything: no byte of what is compared can change unseen. */
static void a_scribbled_entry_is_never_adopted(void **state)
{
    for (size_t at = offsetof(worker_entry, check); at < sizeof(worker_entry); at++) {
        worker_entry *e = written();
        ((uint8_t *)e)[at] ^= 0x41;
        assert_int_equal(worker_book_claim(e, true), CLAIM_KILL);
        assert_int_equal(worker_book_claim(e, false), CLAIM_NOTHING);
    }
    worker_entry *e = written();
    e->used = 0; /* it crashed while it wrote */
    assert_int_equal(worker_book_claim(e, true), CLAIM_KILL);
}

static void a_file_of_another_kind_is_refused(void **state)
{
    worker_book *other = NULL;
    shoal_err err;
    int fd = memfd_create("test", MFD_CLOEXEC);
    assert_int_equal(ftruncate(fd, 64), 0);
    assert_int_equal(worker_book_open(&other, fd, &err), SHOAL_EFORMAT);
    assert_int_equal(ftruncate(fd, lseek(book_fd, 0, SEEK_END)), 0);
    assert_int_equal(worker_book_open(&other, fd, &err), SHOAL_EFORMAT); /* of no version */
    assert_null(other);
    close(fd);
    assert_int_not_equal(ftruncate(book_fd, 0), 0); /* sealed: nobody cuts it off under the mapping */
}

static void children_are_told_from_others(void **state)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        char c;
        close(ends[1]);
        _exit(read(ends[0], &c, 1) == 0 ? 0 : 1);
    }
    assert_true(worker_is_child(pid, getpid()));
    assert_false(worker_is_child(pid, getppid()));
    assert_false(worker_is_child(getppid(), getpid()));
    assert_false(worker_is_child(0, getpid()) || worker_is_child(-1, getpid()));
    close(ends[1]);
    siginfo_t si;
    assert_int_equal(waitid(P_PID, (id_t)pid, &si, WEXITED | WNOWAIT), 0);
    assert_true(worker_is_child(pid, getpid())); /* a zombie: its end is still to be told */
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_false(worker_is_child(pid, getpid()));
    close(ends[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_next_agent_reads_what_was_written, open_book, close_book),
        cmocka_unit_test_setup_teardown(a_live_worker_alone_is_adopted, open_book, close_book),
        cmocka_unit_test_setup_teardown(a_scribbled_entry_is_never_adopted, open_book, close_book),
        cmocka_unit_test_setup_teardown(a_file_of_another_kind_is_refused, open_book, close_book),
        cmocka_unit_test(children_are_told_from_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
