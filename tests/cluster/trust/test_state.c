/* What root makes for another account: folders and files go to it, and nobody's link or file with two names. */
#include <fcntl.h>
#include <unistd.h>

#include "base/file.h"
#include "trust/state.h"
#include "trust_fixture.h"

enum { OTHER = 4321 };

typedef struct bench {
    char dir[40], path[80];
    struct stat owner;
    shoal_err err;
} bench;

static int setup(void **state)
{
    bench *b = calloc(1, sizeof *b);
    strcpy(b->dir, "/tmp/shoal-state-XXXXXX");
    assert_non_null(mkdtemp(b->dir));
    b->owner = (struct stat){.st_uid = OTHER, .st_gid = OTHER};
    *state = b;
    return 0;
}

static int teardown(void **state)
{
    bench *b = *state;
    char line[80];
    snprintf(line, sizeof line, "rm -rf %s", b->dir);
    assert_int_equal(system(line), 0);
    free(b);
    return 0;
}

static const char *at(bench *b, const char *name)
{
    snprintf(b->path, sizeof b->path, "%s/%s", b->dir, name);
    return b->path;
}

static uid_t owner_of(bench *b, const char *name)
{
    struct stat st;
    assert_int_equal(lstat(at(b, name), &st), 0);
    return st.st_uid;
}

static void make(bench *b, const char *name)
{
    int fd = open(at(b, name), O_CREAT | O_EXCL | O_WRONLY, 0600);
    assert_true(fd >= 0);
    close(fd);
}

static void folders_that_root_makes_are_given(void **state)
{
    bench *b = *state;
    if (geteuid() != 0) skip();
    assert_int_equal(mkdir(at(b, "there"), 0700), 0);
    assert_int_equal(state_make_folders(at(b, "there/new/newer/file"), &b->owner, &b->err), 0);
    assert_int_equal(owner_of(b, "there"), 0); /* was there */
    assert_int_equal(owner_of(b, "there/new"), OTHER);
    assert_int_equal(owner_of(b, "there/new/newer"), OTHER);
    assert_false(file_exists(at(b, "there/new/newer/file")));
    /* without an owner: as the folder that it is made in */
    assert_int_equal(state_make_folders(at(b, "there/new/x/y/file"), NULL, &b->err), 0);
    assert_int_equal(owner_of(b, "there/new/x/y"), OTHER);
    assert_int_equal(state_make_folders(at(b, "there/x/file"), NULL, &b->err), 0);
    assert_int_equal(owner_of(b, "there/x"), 0);
    make(b, "file");
    assert_int_equal(state_make_folders(at(b, "file/x/y"), &b->owner, &b->err), SHOAL_EIO);
    assert_true(says(&b->err, "the folder cannot be made"));
}

static void links_and_files_of_two_names_are_not_given(void **state)
{
    bench *b = *state;
    char other[80];
    if (geteuid() != 0) skip();
    make(b, "file");
    assert_int_equal(symlink("file", at(b, "link")), 0);
    assert_int_equal(state_give(at(b, "link"), &b->owner, &b->err), SHOAL_EIO);
    assert_true(says(&b->err, "link: Too many levels of symbolic links"));
    strcpy(other, at(b, "file"));
    assert_int_equal(link(other, at(b, "name")), 0);
    assert_int_equal(state_give(at(b, "name"), &b->owner, &b->err), 0);
    assert_int_equal(owner_of(b, "file"), 0);
    assert_int_equal(unlink(at(b, "name")), 0);
    assert_int_equal(state_give(at(b, "file"), &b->owner, &b->err), 0);
    assert_int_equal(owner_of(b, "file"), OTHER);
    b->owner.st_uid = OTHER + 1; /* it is not root's any more */
    assert_int_equal(state_give(at(b, "file"), &b->owner, &b->err), 0);
    assert_int_equal(owner_of(b, "file"), OTHER);
}

static void a_claim_gives_what_it_makes(void **state)
{
    bench *b = *state;
    int fd;
    if (geteuid() != 0) skip();
    assert_int_equal(mkdir(at(b, "home"), 0700), 0);
    assert_int_equal(chown(at(b, "home"), OTHER, OTHER), 0);
    assert_int_equal(state_claim(&fd, at(b, "home/state/shoal"), &b->err), 0);
    close(fd);
    assert_int_equal(owner_of(b, "home/state"), OTHER);
    assert_int_equal(owner_of(b, "home/state/shoal/" STATE_LOCK), OTHER);
    assert_int_equal(state_claim_file(&fd, at(b, "data/s.db"), &b->owner, &b->err), 0);
    close(fd);
    assert_int_equal(owner_of(b, "data"), OTHER);
    assert_int_equal(owner_of(b, "data/s.db" STATE_FILE_LOCK), OTHER);
}

static void sharing_makes_nothing_and_keeps_claims_out(void **state)
{
    bench *b = *state;
    int fd, claim;
    const struct stat self = {.st_uid = geteuid(), .st_gid = getegid()};
    assert_int_equal(state_share(&fd, at(b, "state"), &b->err), 0);
    assert_int_equal(fd, -1);
    assert_int_equal(state_share_file(&fd, at(b, "data/s.db"), &b->err), 0);
    assert_int_equal(fd, -1);
    assert_false(file_exists(at(b, "state")) || file_exists(at(b, "data")));
    assert_int_equal(state_claim(&claim, at(b, "state"), &b->err), 0);
    assert_int_equal(state_share(&fd, at(b, "state"), &b->err), SHOAL_EUNAVAILABLE);
    close(claim);
    assert_int_equal(state_share(&fd, at(b, "state"), &b->err), 0);
    assert_int_equal(state_claim(&claim, at(b, "state"), &b->err), SHOAL_EUNAVAILABLE);
    assert_int_equal(claim, -1);
    close(fd);
    assert_int_equal(state_claim_file(&claim, at(b, "data/s.db"), &self, &b->err), 0);
    assert_int_equal(state_share_file(&fd, at(b, "data/s.db"), &b->err), SHOAL_EUNAVAILABLE);
    close(claim);
    assert_int_equal(state_share_file(&fd, at(b, "data/s.db"), &b->err), 0);
    assert_int_equal(state_claim_file(&claim, at(b, "data/s.db"), &self, &b->err), SHOAL_EUNAVAILABLE);
    close(fd);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(folders_that_root_makes_are_given),
        TEST(links_and_files_of_two_names_are_not_given),
        TEST(a_claim_gives_what_it_makes),
        TEST(sharing_makes_nothing_and_keeps_claims_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
