/* The folder of the sockets: it goes with its owner, and those of killed owners are swept. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "logging/log.h"
#include "base/file.h"
#include "agent/rundir.h"

static char base[64];

static int open_base(void **state)
{
    log_setup(LOG_OFF, false);
    strcpy(base, "/tmp/rundir-test-XXXXXX");
    return mkdtemp(base) && setenv("XDG_RUNTIME_DIR", base, 1) == 0 ? 0 : -1;
}

static int close_base(void **state)
{
    return rmdir(base); /* everything in it must be gone */
}

static void touch(const char *dir, const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    int fd = open(path, O_WRONLY | O_CREAT, 0600);
    assert_true(fd >= 0);
    close(fd);
}

static void drop(const char *dir, const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    assert_int_equal(unlink(path), 0);
}

/* A process that has a folder with a socket in it; killed: as by kill -9, later. */
static pid_t owner(char *ret_path, size_t cap)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        rundir d;
        if (rundir_open(&d, NULL, NULL) != 0) _exit(1);
        touch(d.path, "home-intent.0.sock");
        if (write(ends[1], d.path, strlen(d.path)) < 0) _exit(1);
        close(ends[1]);
        for (;;) pause();
    }
    close(ends[1]);
    ssize_t n = read(ends[0], ret_path, cap - 1);
    assert_true(n > 0);
    ret_path[n] = '\0';
    close(ends[0]);
    return pid;
}

static void end_owner(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static void the_folder_of_a_killed_owner_is_swept(void **state)
{
    char path[256];
    rundir d;
    end_owner(owner(path, sizeof path));
    assert_true(file_exists(path));
    assert_int_equal(rundir_open(&d, NULL, NULL), 0);
    assert_false(file_exists(path));
    assert_true(file_exists(d.path));
    rundir_close(&d);
}

static void the_folder_of_a_living_owner_stays(void **state)
{
    char path[256], copy[512];
    rundir d;
    pid_t pid = owner(path, sizeof path);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(rundir_open(&d, NULL, NULL), 0);
        snprintf(copy, sizeof copy, "%s/home-intent.0.sock", path);
        assert_true(file_exists(copy));
        rundir_close(&d);
    }
    end_owner(pid);
    assert_int_equal(rundir_open(&d, NULL, NULL), 0);
    assert_false(file_exists(path));
    rundir_close(&d);
}

static void what_is_not_a_gateways_stays(void **state)
{
    char unlocked[128], mixed[256], to[128], link[128];
    rundir d;
    snprintf(unlocked, sizeof unlocked, "%s/shoal-abcdef", base); /* no lock: who knows whose */
    mkdir(unlocked, 0700);
    touch(unlocked, "a.sock");
    end_owner(owner(mixed, sizeof mixed));
    touch(mixed, "letters");
    snprintf(to, sizeof to, "%s/elsewhere", base);
    snprintf(link, sizeof link, "%s/shoal-linked", base);
    mkdir(to, 0700);
    touch(to, "lock");
    assert_int_equal(symlink(to, link), 0);
    assert_int_equal(rundir_open(&d, NULL, NULL), 0);
    rundir_close(&d);
    drop(unlocked, "a.sock");
    drop(mixed, "letters");
    drop(to, "lock");
    assert_int_equal(rmdir(unlocked) | rmdir(mixed) | rmdir(to) | unlink(link), 0);
}

static void a_given_folder_is_used_as_it_is(void **state)
{
    char given[128];
    rundir d;
    snprintf(given, sizeof given, "%s/given", base);
    mkdir(given, 0700);
    assert_int_equal(rundir_open(&d, given, NULL), 0);
    rundir_close(&d);
    assert_true(file_exists(given));
    rmdir(given);
    assert_int_equal(rundir_open(&d, given, NULL), 0);
    rundir_close(&d);
    assert_false(file_exists(given));
    shoal_err err;
    assert_int_equal(rundir_open(&d, "/nowhere/at/all", &err), SHOAL_EIO);
    assert_non_null(strstr(err.message, "/nowhere/at/all"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_folder_of_a_killed_owner_is_swept),
        cmocka_unit_test(the_folder_of_a_living_owner_stays),
        cmocka_unit_test(what_is_not_a_gateways_stays),
        cmocka_unit_test(a_given_folder_is_used_as_it_is),
    };
    return cmocka_run_group_tests(tests, open_base, close_base);
}
