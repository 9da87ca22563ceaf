/* Files that are opened for another user: the decision by mode bits, and the way to the file. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/file_user.h"

enum { N = FILE_USER_UNMAPPED };

/* ---- the decision ---- */

static const file_user alice = {.uid = 1001, .gid = 1001, .n_groups = 2, .groups = {100, 27}};

typedef struct row {
    const char *what;
    file_rights of;
    unsigned wishes;
    file_verdict want;
} row;

static const row rows[] = {
    {"her own file", {1001, 5, 0400, false}, FILE_READ, FILE_GRANTED},
    {"her own, which she may not read though others may", {1001, 5, 0044, false}, FILE_READ, FILE_DENIED},
    {"her own, with a list: its entry for the owner is the mode's",
     {1001, 5, 0400, true},
     FILE_READ,
     FILE_GRANTED},
    {"of her group", {0, 1001, 0040, false}, FILE_READ, FILE_GRANTED},
    {"of a supplementary group", {0, 27, 0040, false}, FILE_READ, FILE_GRANTED},
    {"of another group", {0, 28, 0040, false}, FILE_READ, FILE_DENIED},
    {"refused to her group alone", {0, 100, 0604, false}, FILE_READ, FILE_DENIED},
    {"of everybody", {0, 0, 0004, false}, FILE_READ, FILE_GRANTED},
    {"of nobody else", {0, 0, 0600, false}, FILE_READ, FILE_DENIED},
    {"root's own, which is not hers", {0, 0, 0700, false}, FILE_SEARCH, FILE_DENIED},
    {"everybody's, with a list that may name her", {0, 0, 0644, true}, FILE_READ, FILE_UNDECIDED},
    {"a group's bits that are the mask of a list", {0, 27, 0640, true}, FILE_READ, FILE_UNDECIDED},
    {"a folder to enter", {0, 0, 0711, false}, FILE_SEARCH, FILE_GRANTED},
    {"a folder to enter and not to list", {0, 0, 0711, false}, FILE_SEARCH | FILE_READ, FILE_DENIED},
    {"a folder to list and not to enter", {0, 0, 0744, false}, FILE_SEARCH | FILE_READ, FILE_DENIED},
    {"a folder that her group may not enter", {0, 27, 0701, false}, FILE_SEARCH, FILE_DENIED},
};

static void first_class_alone_decides(void **state)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (file_user_may(&alice, &rows[i].of, rows[i].wishes) != rows[i].want) fail_msg("%s", rows[i].what);
}

/* Two groups that this namespace does not know have one number. */
static void unknown_group_gives_no_more_than_both(void **state)
{
    const file_user u = {.uid = 7, .gid = 7, .n_groups = 1, .groups = {N}};
    assert_int_equal(file_user_may(&u, &(file_rights){0, N, 0040, false}, FILE_READ), FILE_DENIED);
    assert_int_equal(file_user_may(&u, &(file_rights){0, N, 0004, false}, FILE_READ), FILE_DENIED);
    assert_int_equal(file_user_may(&u, &(file_rights){0, N, 0044, false}, FILE_READ), FILE_GRANTED);
}

static void text_gives_the_user_again(void **state)
{
    static const char *const bad[] = {"",
                                      "1",
                                      "1:",
                                      "1:2",
                                      ":2:",
                                      "1:2:,",
                                      "1:2:3,",
                                      "1:2:3,,4",
                                      "1:2 :",
                                      "-1:2:",
                                      "4294967296:2:",
                                      "1:2:3:",
                                      "1:2:x",
                                      "1:2:3 ",
                                      "99999999999999999999:1:"};
    char text[FILE_USER_TEXT_BYTES + 2];
    file_user u, most = {.uid = UINT32_MAX, .gid = UINT32_MAX, .n_groups = FILE_USER_GROUPS_MAX};
    for (size_t i = 0; i < FILE_USER_GROUPS_MAX; i++) most.groups[i] = UINT32_MAX - (uint32_t)i;
    file_user_format(&most, text);
    assert_true(file_user_parse(&u, text));
    assert_memory_equal(&u, &most, sizeof u);
    strcat(text, ",1"); /* one group more */
    assert_false(file_user_parse(&u, text));
    assert_true(file_user_parse(&u, "1001:1001:100,27"));
    assert_memory_equal(&u, &alice, sizeof u);
    assert_true(file_user_parse(&u, "0:5:"));
    assert_true(u.uid == 0 && u.gid == 5 && u.n_groups == 0);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (file_user_parse(&u, bad[i])) fail_msg("\"%s\" is a user", bad[i]);
}

/* ---- the way ---- */

static char top[] = "/tmp/shoal-user-XXXXXX";
static file_user other; /* neither this process's user nor of its group: the bits of others count */

static char *at(const char *name)
{
    static char path[4][200];
    static unsigned turn;
    char *ret = path[turn++ % 4];
    snprintf(ret, sizeof path[0], "%s/%s", top, name);
    return ret;
}

static void make_file(const char *name, const char *text, mode_t mode)
{
    FILE *f = fopen(at(name), "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(chmod(at(name), mode), 0);
}

static void make_folder(const char *name, mode_t mode)
{
    assert_int_equal(mkdir(at(name), 0700), 0);
    assert_int_equal(chmod(at(name), mode), 0);
}

static int set_up(void **state)
{
    other = (file_user){.uid = geteuid() + 5, .gid = getegid() + 5};
    assert_non_null(mkdtemp(top));
    assert_int_equal(chmod(top, 0755), 0);
    make_folder("open", 0711);
    make_folder("shut", 0700);
    make_file("open/all", "all", 0644);
    make_file("open/mine", "mine", 0600);
    make_file("shut/all", "shut", 0644);
    assert_int_equal(symlink("../shut/all", at("open/out")), 0);
    assert_int_equal(symlink("open/../open/./all", at("round")), 0);
    assert_int_equal(symlink(at("open"), at("whole")), 0);
    assert_int_equal(symlink("loop", at("loop")), 0);
    assert_int_equal(symlink("nowhere", at("dangling")), 0);
    assert_int_equal(mkfifo(at("pipe"), 0666), 0);
    return 0;
}

static int take_down(void **state)
{
    char command[200];
    snprintf(command, sizeof command, "rm -rf %s", top);
    return system(command);
}

static int try(const char *path, char *ret_text, shoal_err *err)
{
    file_opened f;
    *err = (shoal_err){0};
    int rc = file_user_open(&f, &other, path, err);
    if (rc != 0) return rc;
    ssize_t n = S_ISREG(f.st.st_mode) ? read(f.fd, ret_text, 99) : 0;
    ret_text[n > 0 ? n : 0] = '\0';
    close(f.fd);
    free(f.path);
    return 0;
}

static void reads(const char *path, const char *want)
{
    char text[100];
    shoal_err err;
    if (try(path, text, &err) != 0) fail_msg("%s: %s", path, err.message);
    assert_string_equal(text, want);
}

static void refuses(const char *path, int code, const char *part)
{
    char text[100];
    shoal_err err;
    int rc = try(path, text, &err);
    if (rc != code || !strstr(err.message, part)) fail_msg("%s: %d %s", path, rc, err.message);
}

/* Where /tmp is a file system of another kind, everything is refused. */
static bool is_decided_here(void)
{
    char text[100];
    shoal_err err;
    bool is = try(at("open/all"), text, &err) == 0 || !strstr(err.message, "file system");
    if (!is) skip();
    return is;
}

static void way_is_followed_for_both(void **state)
{
    char part[300];
    if (!is_decided_here()) return;
    reads(at("open/all"), "all");
    reads(at("round"), "all");
    reads(at("whole/all"), "all");
    reads(at("open//.//../open/all"), "all");
    snprintf(part, sizeof part, "calling user (uid %u) may not read the file '%s'", other.uid,
             at("open/mine"));
    refuses(at("open/mine"), SHOAL_EAUTH, part);
    snprintf(part, sizeof part, "calling user (uid %u) may not enter the folder '%s'", other.uid, at("shut"));
    refuses(at("shut/all"), SHOAL_EAUTH, part);
    refuses(at("shut/none"), SHOAL_EAUTH, part); /* nor is it told what is in there */
    refuses(at("open/out"), SHOAL_EAUTH, part);
    refuses(at("shut/../open/all"), SHOAL_EAUTH, part);
    refuses(at("open"), SHOAL_EAUTH, "may not list the folder");
    reads(top, "");
    refuses(at("open/none"), SHOAL_ENOTFOUND, "open/none");
    refuses(at("open/all/below"), SHOAL_ENOTFOUND, "below");
    refuses(at("dangling"), SHOAL_ENOTFOUND, "nowhere");
    refuses("open/all", SHOAL_EINVALID, "no absolute path");
    refuses("", SHOAL_EINVALID, "no absolute path");
}

static void odd_things_are_refused(void **state)
{
    char path[6000];
    if (!is_decided_here()) return;
    refuses(at("loop"), SHOAL_EINVALID, "symbolic links");
    refuses(at("pipe"), SHOAL_EINVALID, "neither a file nor a folder");
    refuses("/dev/null", SHOAL_EINVALID, "neither a file nor a folder");
    refuses("/proc/self/status", SHOAL_EAUTH, "file system");
    refuses("/proc/self/root/etc/passwd", SHOAL_EAUTH, "file system");
    memset(path, 'x', sizeof path);
    path[0] = '/';
    path[300] = '\0';
    refuses(path, SHOAL_ENOTFOUND, "xxx");
    path[300] = 'x';
    path[sizeof path - 1] = '\0';
    refuses(path, SHOAL_EINVALID, "too long a path");
    for (size_t i = 0; i < 4000; i++) path[i] = i % 2 ? '.' : '/';
    snprintf(path + 4000, 90, "/tmp/../%.60s/open/all", top + 1);
    reads(path, "all");
}

/* A list that names the user lets nobody but the owner in: it is not read. */
static void access_control_list_is_not_read(void **state)
{
    const struct __attribute__((packed)) {
        uint32_t version;
        struct __attribute__((packed)) {
            uint16_t tag, rights;
            uint32_t id;
        } entries[5];
    } list = {2, {{1, 6, -1u}, {2, 4, other.uid}, {4, 0, -1u}, {16, 4, -1u}, {32, 0, -1u}}};
    file_user owner = {.uid = geteuid(), .gid = getegid() + 5};
    file_opened f;
    if (!is_decided_here()) return;
    make_file("listed", "x", 0600);
    if (setxattr(at("listed"), "system.posix_acl_access", &list, sizeof list, 0) != 0) skip();
    refuses(at("listed"), SHOAL_EAUTH, "access control list");
    assert_int_equal(file_user_open(&f, &owner, at("listed"), NULL), 0);
    close(f.fd);
    free(f.path);
}

/* The chain is as long as the kernel's longest, and one longer. */
static void links_are_as_many_as_the_kernel_follows(void **state)
{
    char name[20], to[20];
    if (!is_decided_here()) return;
    for (int i = 1; i <= 41; i++) {
        snprintf(name, sizeof name, "chain%d", i);
        snprintf(to, sizeof to, i == 1 ? "open/all" : "chain%d", i - 1);
        assert_int_equal(symlink(to, at(name)), 0);
    }
    reads(at("chain40"), "all");
    refuses(at("chain41"), SHOAL_EINVALID, "more than 40 symbolic links");
}

/* A writer of the folder puts a link to what only this process may read in the file's place, and back, all the time. */
static void exchanged_component_opens_nothing_else(void **state)
{
    char text[100];
    shoal_err err;
    unsigned n_read = 0, n_refused = 0;
    if (!is_decided_here()) return;
    pid_t pid = fork();
    for (bool odd = false; pid == 0; odd = !odd) {
        if (symlink(odd ? "shut" : "open", at("tmp")) != 0 || rename(at("tmp"), at("way")) != 0) _exit(1);
        if (getppid() == 1) _exit(0);
    }
    for (int i = 0; i < 200000 && (n_read < 200 || n_refused < 200); i++) {
        int rc = try(at("way/all"), text, &err);
        if (rc == 0) assert_string_equal(text, "all");
        n_read += rc == 0;
        n_refused += rc == SHOAL_EAUTH;
    }
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    assert_true(n_read > 0 && n_refused > 0);
}

static void server_without_the_right_is_named(void **state)
{
    if (geteuid() == 0) skip(); /* whom nothing is refused */
    char part[200];
    snprintf(part, sizeof part, "server's user (uid %u) may not", geteuid());
    make_file("closed", "x", 0044);
    refuses(at("closed"), SHOAL_EAUTH, part);
    make_folder("walled", 0011);
    refuses(at("walled/x"), SHOAL_EAUTH, part);
}

/* ---- all of a process ---- */

static void confined(int *ret_status)
{
    file_map m = {0};
    buf text = {0};
    shoal_err err;
    bool ok = true;
    file_confine_to(&other);
    ok &= file_map_open(&m, at("open/all"), &err) == 0 && m.len == 3;
    file_map_close(&m);
    ok &= file_map_open(&m, at("open/mine"), &err) == SHOAL_EAUTH;
    ok &= file_map_open(&m, at("shut/all"), &err) == SHOAL_EAUTH;
    ok &= file_read(&text, at("open/all"), 10, &err) == 0 &&
          file_read(&text, at("open/out"), 10, &err) == SHOAL_EAUTH;
    ok &= file_read(&text, "/dev/stdin", 10, &err) != 0 && file_read(&text, "/proc/self/fd/0", 10, &err) != 0;
    ok &= file_read(&text, "/dev/null", 10, &err) == SHOAL_EINVALID &&
          file_map_open(&m, top, &err) == SHOAL_EINVALID;
    ok &= file_exists(at("open/mine")) && !file_exists(at("shut/all")) && !file_exists(at("open/out"));
    ok &= file_is_dir(at("open")) && file_is_dir(at("shut")) && !file_is_dir(at("shut/."));
    buf_done(&text);
    *ret_status = ok ? 0 : 1;
}

static void confined_process_reads_for_that_user(void **state)
{
    int status;
    if (!is_decided_here()) return;
    pid_t pid = fork();
    if (pid == 0) {
        confined(&status);
        _exit(status);
    }
    waitpid(pid, &status, 0);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_class_alone_decides),
        cmocka_unit_test(unknown_group_gives_no_more_than_both),
        cmocka_unit_test(text_gives_the_user_again),
        cmocka_unit_test(way_is_followed_for_both),
        cmocka_unit_test(odd_things_are_refused),
        cmocka_unit_test(access_control_list_is_not_read),
        cmocka_unit_test(links_are_as_many_as_the_kernel_follows),
        cmocka_unit_test(exchanged_component_opens_nothing_else),
        cmocka_unit_test(server_without_the_right_is_named),
        cmocka_unit_test(confined_process_reads_for_that_user),
    };
    return cmocka_run_group_tests(tests, set_up, take_down);
}
