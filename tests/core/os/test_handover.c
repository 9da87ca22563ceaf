/* What a supervised process leaves with its supervisor and finds again; the supervisor is this test, the
 * process a fork. */
#define _GNU_SOURCE
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "os/handover.h"

static int memory(const char *text)
{
    int fd = memfd_create("test", MFD_CLOEXEC);
    assert_true(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    return fd;
}

static bool holds(int fd, const char *text)
{
    char got[64] = "";
    return pread(fd, got, sizeof got - 1, 0) == (ssize_t)strlen(text) && strcmp(got, text) == 0;
}

static void pair(int ends[2])
{
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
}

static void give(int sock, uint32_t id, const char *name, const char *text)
{
    handover_msg m = {.what = HANDOVER_FD, .id = id};
    int fd = memory(text);
    strcpy(m.name, name);
    assert_int_equal(handover_send(sock, &m, fd), 0);
    close(fd);
}

/* The supervised process: fn's value is its exit status, 0 for right. */
static int supervised(int ends[2], int (*fn)(void))
{
    pid_t pid = fork();
    if (pid == 0) {
        char number[16];
        snprintf(number, sizeof number, "%d", ends[1]);
        setenv(HANDOVER_ENV, number, 1);
        _exit(fn());
    }
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

static void a_message_carries_a_descriptor(void **state)
{
    int ends[2], fd;
    handover_msg m = {.what = HANDOVER_KEEP, .id = 7, .name = "listen :80"}, got;
    pair(ends);
    int text = memory("kept");
    assert_int_equal(handover_send(ends[0], &m, text), 0);
    assert_int_equal(handover_recv(ends[1], &got, &fd), 1);
    assert_true(got.what == HANDOVER_KEEP && got.id == 7 && strcmp(got.name, "listen :80") == 0);
    assert_true(holds(fd, "kept"));
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    close(fd);
    assert_int_equal(handover_recv(ends[1], &got, &fd), -1);
    assert_int_equal(errno, EAGAIN);
    close(ends[0]);
    assert_int_equal(handover_recv(ends[1], &got, &fd), 0);
    close(ends[1]);
    close(text);
}

/* Foreign bytes: fewer than a message, and a name without an end. */
static void a_short_message_has_zeros_and_every_name_ends(void **state)
{
    int ends[2], fd;
    handover_msg got;
    pair(ends);
    assert_int_equal(send(ends[0], "\1\0\0\0", 4, 0), 4);
    assert_int_equal(handover_recv(ends[1], &got, &fd), 1);
    assert_true(got.what == HANDOVER_HELLO && got.id == 0 && !*got.name && fd == -1);
    memset(&got, 'x', sizeof got);
    assert_int_equal(send(ends[0], &got, sizeof got, 0), (int)sizeof got);
    assert_int_equal(handover_recv(ends[1], &got, &fd), 1);
    assert_int_equal(strlen(got.name), HANDOVER_NAME);
    close(ends[0]);
    close(ends[1]);
}

static int takes_what_was_kept(void)
{
    char name[HANDOVER_NAME + 1];
    if (!handover_open() || getenv(HANDOVER_ENV)) return 1;
    if (handover_restarts() != 3 || handover_supervisor() != getppid()) return 2;
    if (!holds(handover_take("listen :0"), "first") || !holds(handover_take("listen :0"), "second")) return 3;
    if (handover_take("listen :0") != -1 || handover_take("nothing") != -1) return 4;
    if (!holds(handover_take_prefix("rundir ", name), "dir") || strcmp(name, "rundir /tmp/x") != 0) return 5;
    int fd = memory("new");
    handover_keep("new", fd); /* id 5: above those that came */
    handover_forget(fd);
    handover_forget(fd); /* no second message */
    handover_discard();  /* of "left", which nobody took */
    return 0;
}

static void kept_descriptors_come_back_in_order_by_name(void **state)
{
    int ends[2], fd;
    pair(ends);
    handover_msg m = {.what = HANDOVER_HELLO, .a = 3, .b = 4};
    assert_int_equal(handover_send(ends[0], &m, -1), 0);
    give(ends[0], 1, "listen :0", "first");
    give(ends[0], 2, "left", "left");
    give(ends[0], 3, "rundir /tmp/x", "dir");
    give(ends[0], 4, "listen :0", "second");
    assert_int_equal(supervised(ends, takes_what_was_kept), 0);
    close(ends[1]);
    assert_int_equal(handover_recv(ends[0], &m, &fd), 1);
    assert_true(m.what == HANDOVER_KEEP && m.id == 5 && strcmp(m.name, "new") == 0 && holds(fd, "new"));
    close(fd);
    assert_int_equal(handover_recv(ends[0], &m, &fd), 1);
    assert_true(m.what == HANDOVER_FORGET && m.id == 5 && fd == -1);
    assert_int_equal(handover_recv(ends[0], &m, &fd), 1);
    assert_true(m.what == HANDOVER_FORGET && m.id == 2);
    assert_int_equal(handover_recv(ends[0], &m, &fd), 0);
    close(ends[0]);
}

static int has_another_end(void)
{
    int ends[2];
    char number[16];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) != 0) return 1;
    snprintf(number, sizeof number, "%d", ends[1]); /* its own pair: whoever made it is not the parent */
    setenv(HANDOVER_ENV, number, 1);
    if (handover_open() || handover_is_open()) return 2;
    setenv(HANDOVER_ENV, "999", 1);
    if (handover_open()) return 3;
    setenv(HANDOVER_ENV, "what", 1);
    if (handover_open()) return 4;
    handover_keep("x", 0);
    handover_discard();
    return handover_take("x") == -1 && handover_fd() == -1 ? 0 : 5;
}

static void only_the_parent_supervises(void **state)
{
    int ends[2];
    pair(ends);
    assert_int_equal(supervised(ends, has_another_end), 0);
    close(ends[0]);
    close(ends[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_message_carries_a_descriptor),
        cmocka_unit_test(a_short_message_has_zeros_and_every_name_ends),
        cmocka_unit_test(kept_descriptors_come_back_in_order_by_name),
        cmocka_unit_test(only_the_parent_supervises),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
