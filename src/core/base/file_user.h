/* file_user.h: open a file for another user of this machine, who may read it himself.
 *
 * A server that opens a file because another user asks for it would lend out its own permissions: the kernel checks
 * the server's user and knows nothing of the other. Here both are checked. The kernel checks the process as always; what
 * it would check of the other user is checked by the owner, group and mode of every folder on the way, and of the file.
 *
 *     file_user alice = {.uid = 1001, .gid = 1001, .n_groups = 1, .groups = {100}};
 *     rc = file_user_open(&opened, &alice, "/home/alice/my.gguf", &err);
 *
 * What is checked is what is opened. The path is followed one component at a time from the root, each relative to the
 * descriptor of the folder before (openat with O_PATH and O_NOFOLLOW), and symbolic links are read and followed
 * here. The file is then opened through the descriptor that was checked. So it does not matter whether the other user
 * exchanges a component meanwhile, in a folder that he may write: what he puts there is checked in its turn, and what
 * he cannot read is not opened. For the same reason nobody has to remember what a path led to: whoever opens it again
 * later checks it again.
 *
 * Where mode bits do not decide, the answer is no:
 *  - an access control list (system.posix_acl_access) of an object that the user does not own;
 *  - a file system outside the list in file_user.c: that of a network or of FUSE decides elsewhere, and what lies in /proc
 *    depends on who looks;
 *  - everything but regular files and folders: to open a device or a pipe may do something.
 * Capabilities of the user do not count. Neither does what hides files without taking their mode bits: a mount namespace, a
 * security module. A path means what it means in this process.
 *
 * Any thread. */
#ifndef BASE_FILE_USER_H
#define BASE_FILE_USER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/err.h"

/* Who has more is no user here: with a part of his groups, he would count among the others where his group is refused. */
#define FILE_USER_GROUPS_MAX 256
/* What the kernel shows in place of a number that this user namespace does not have (/proc/sys/kernel/overflowuid). */
#define FILE_USER_UNMAPPED 65534

typedef struct file_user {
    uint32_t uid, gid;
    size_t n_groups; /* all of the supplementary ones */
    uint32_t groups[FILE_USER_GROUPS_MAX];
} file_user;

/* "UID:GID:GROUP,GROUP", the groups as they stand, "1001:1001:" without any. */
#define FILE_USER_TEXT_BYTES (11 * (FILE_USER_GROUPS_MAX + 2) + 1)
void file_user_format(const file_user *u, char ret[FILE_USER_TEXT_BYTES]);
bool file_user_parse(file_user *ret, const char *text);

/* ---- the decision, pure ---- */

typedef struct file_rights { /* of a file or folder, as stat says */
    uint32_t uid, gid, mode;
    bool has_acl;
} file_rights;

typedef enum file_wish { FILE_READ = 4, FILE_SEARCH = 1 } file_wish; /* as in mode bits */
typedef enum file_verdict { FILE_GRANTED, FILE_DENIED, FILE_UNDECIDED } file_verdict;

/* wishes: a sum of file_wish. The first of owner, group and others that the user belongs to counts alone, as POSIX says.
 * FILE_UNDECIDED: an access control list decides. */
file_verdict file_user_may(const file_user *u, const file_rights *r, unsigned wishes);

/* ---- files ---- */

typedef struct file_opened {
    int fd; /* O_RDONLY, of a file or a folder; the caller's to close */
    struct stat st;
    char *path; /* without links; malloc'd */
} file_opened;

/* A regular file that both may read, or a folder that both may list and enter. path is absolute. SHOAL_EAUTH: the sentence
 * names who lacks what and where; SHOAL_ENOTFOUND; SHOAL_EINVALID: a relative path, a device, a pipe, more
 * links than the kernel follows (40), too long a path. */
int file_user_open(file_opened *ret, const file_user *u, const char *path, shoal_err *err);
/* What is there, if both may get to it; the codes of file_user_open. */
int file_user_stat(struct stat *ret, const file_user *u, const char *path, shoal_err *err);

#endif
