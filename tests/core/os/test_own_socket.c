/* The folder of the socket for a user's own commands: made private, and not used where it is not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "os/own_socket.h"

static char top[] = "/tmp/shoal-own-XXXXXX";

static int bind_at(const char *path)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    snprintf(a.sun_path, sizeof a.sun_path, "%s", path);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof a), 0);
    return fd;
}

static int listen_at(const char *path)
{
    int fd = bind_at(path);
    assert_int_equal(listen(fd, 1), 0);
    return fd;
}

static void socket_is_found_where_it_was_made(void **state)
{
    char made[OWN_SOCKET_PATH_BYTES], found[OWN_SOCKET_PATH_BYTES], folder[OWN_SOCKET_PATH_BYTES],
        again[OWN_SOCKET_PATH_BYTES];
    struct stat st;
    shoal_err err;
    assert_int_equal(own_socket_make(made, "3", &err), 0);
    assert_int_equal(strncmp(made, top, strlen(top)), 0);
    assert_false(own_socket_find(found, "3")); /* nobody listens */
    int fd = listen_at(made);
    assert_true(own_socket_find(found, "3"));
    assert_string_equal(found, made);
    assert_false(own_socket_find(again, "4"));
    snprintf(folder, sizeof folder, "%s", made);
    *strrchr(folder, '/') = '\0';
    assert_int_equal(stat(folder, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    close(fd);
    assert_false(own_socket_find(again, "3")); /* its server was killed */
    own_socket_unmake(made);
    assert_int_equal(stat(folder, &st), 0); /* it is not empty */
    assert_int_equal(own_socket_make(made, "3", &err), 0);
    assert_false(own_socket_find(again, "3")); /* nobody listens there, so it was left by somebody */
    fd = listen_at(made);
    assert_int_equal(chmod(folder, 0755), 0);
    assert_false(own_socket_find(again, "3")); /* others could have put it there */
    assert_int_equal(own_socket_make(made, "5", &err), SHOAL_EAUTH);
    assert_int_equal(chmod(folder, 0700), 0);
    close(fd);
    assert_int_equal(unlink(found), 0);
    own_socket_unmake(made);
    assert_int_equal(stat(folder, &st), -1);
}

static void folder_of_another_name_or_kind_is_refused(void **state)
{
    char made[OWN_SOCKET_PATH_BYTES], folder[OWN_SOCKET_PATH_BYTES], found[OWN_SOCKET_PATH_BYTES];
    shoal_err err;
    snprintf(folder, sizeof folder, "%s/shoal.%lu", top, (unsigned long)geteuid());
    assert_int_equal(symlink("/tmp", folder), 0);
    assert_int_equal(own_socket_make(made, "3", &err), SHOAL_EAUTH);
    assert_false(own_socket_find(found, "3"));
    assert_int_equal(unlink(folder), 0);
    assert_int_equal(own_socket_make(made, "3", &err), 0);
    FILE *f = fopen(made, "w"); /* no socket */
    assert_non_null(f);
    fclose(f);
    assert_false(own_socket_find(found, "3"));
    assert_int_equal(unlink(made), 0);
    own_socket_unmake(made);
}

/* A server of a service and the shell of its user do not have the same variables. */
static void socket_is_found_by_another_environment(void **state)
{
    char made[OWN_SOCKET_PATH_BYTES], found[OWN_SOCKET_PATH_BYTES], at[sizeof top + 8];
    shoal_err err;
    assert_int_equal(own_socket_make(made, "3", &err), 0);
    int fd = listen_at(made);
    snprintf(at, sizeof at, "%s/other", top);
    assert_int_equal(mkdir(at, 0700), 0);
    assert_int_equal(setenv("XDG_RUNTIME_DIR", at, 1) | setenv("RUNTIME_DIRECTORY", top, 1), 0);
    assert_true(own_socket_find(found, "3"));
    assert_string_equal(found, made);
    assert_int_equal(setenv("XDG_RUNTIME_DIR", top, 1) | unsetenv("RUNTIME_DIRECTORY"), 0);
    close(fd);
    assert_int_equal(unlink(made) | rmdir(at), 0);
    own_socket_unmake(made);
}

/* By any way to it. */
static void socket_of_a_path_has_one_name(void **state)
{
    char a[80], link[80], names[3][OWN_SOCKET_NAME_BYTES];
    snprintf(a, sizeof a, "%s/a.sock", top);
    snprintf(link, sizeof link, "%s/link", top);
    assert_false(own_socket_name(names[0], 0, a)); /* it is not there */
    int fd = listen_at(a);
    assert_int_equal(symlink(top, link), 0);
    strcat(link, "/a.sock");
    assert_true(own_socket_name(names[0], 0, a) && own_socket_name(names[1], 0, link));
    assert_string_equal(names[0], names[1]);
    assert_int_equal(strlen(names[0]), 16);
    assert_true(own_socket_name(names[2], 65535, NULL));
    assert_string_equal(names[2], "65535");
    *strrchr(link, '/') = '\0';
    close(fd);
    assert_int_equal(unlink(a) | unlink(link), 0);
}

static int open_top(void **state)
{
    return mkdtemp(top) && setenv("XDG_RUNTIME_DIR", top, 1) == 0 ? 0 : -1;
}

static int close_top(void **state)
{
    return rmdir(top);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(socket_is_found_where_it_was_made),
        cmocka_unit_test(folder_of_another_name_or_kind_is_refused),
        cmocka_unit_test(socket_of_a_path_has_one_name),
        cmocka_unit_test(socket_is_found_by_another_environment),
    };
    return cmocka_run_group_tests(tests, open_top, close_top);
}
