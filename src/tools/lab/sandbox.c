/* sandbox.c: process 1 of a lab, and what is left of labs that were killed. */
#define _GNU_SOURCE
#include "lab/sandbox.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define PLACE  "/tmp"
#define PREFIX "shoal-lab-"

int sandbox_check(shoal_err *err)
{
    if (geteuid() != 0)
        return err_set(err, SHOAL_EAUTH,
                       "the lab builds networks and disks, which needs root; try: sudo shoal lab run ...");
    if (access("/dev/net/tun", R_OK | W_OK) != 0)
        return err_set(err, SHOAL_EUNSUPPORTED,
                       "the lab's links need /dev/net/tun, which is not there; try: modprobe tun (in a "
                       "container: --device /dev/net/tun --cap-add NET_ADMIN --cap-add SYS_ADMIN)");
    return 0;
}

/* ---- process 1 ----------------------------------------------------------------------------------------- */

static int own_mounts(void)
{
    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) return -1;
    return mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
}

static volatile sig_atomic_t forward_to;

static void forward(int signum)
{
    if (forward_to > 0) kill((pid_t)forward_to, signum);
}

static void on_signals(void (*handler)(int))
{
    static const int all[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction a = {.sa_handler = handler, .sa_flags = SA_RESTART};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) sigaction(all[i], &a, NULL);
}

static int await(pid_t pid)
{
    int status;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR) return 1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int run_inside(int (*main)(void *user, const char *root), void *user, const char *root)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setpgid(0, 0); /* a terminal's Ctrl-C comes once, through the parent */
    if (own_mounts() != 0) {
        fprintf(stderr, "shoal lab: no mounts of its own: %s\n", strerror(errno));
        return 1;
    }
    int status = main(user, root);
    fflush(NULL);
    return status;
}

/* The lock is the parent's; what process 1 starts must not keep it. */
static int open_root(char root[64], int *ret_lock, shoal_err *err)
{
    snprintf(root, 64, PLACE "/" PREFIX "%d", (int)getpid());
    if (mkdir(root, 0700) != 0 && errno != EEXIST)
        return err_set(err, SHOAL_EIO, "%s: %s", root, strerror(errno));
    struct stat st;
    int fd = open(root, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    bool ours = fd >= 0 && fstat(fd, &st) == 0 && st.st_uid == geteuid();
    if (!ours || flock(fd, LOCK_EX | LOCK_NB) != 0) {
        int why = ours || fd < 0 ? errno : EPERM;
        if (fd >= 0) close(fd);
        return err_set(err, SHOAL_EIO, "%s: %s", root, strerror(why));
    }
    *ret_lock = fd;
    return 0;
}

/* Folders of nodes are empty here: what was in them was mounted by process 1 alone. */
static void remove_root(const char *root)
{
    DIR *d = opendir(root);
    for (struct dirent *e; d && (e = readdir(d));)
        if (e->d_name[0] != '.') unlinkat(dirfd(d), e->d_name, AT_REMOVEDIR);
    if (d) closedir(d);
    rmdir(root);
}

int sandbox_run(int (*main)(void *user, const char *root), void *user, int *ret_status, shoal_err *err)
{
    char root[64];
    int lock = -1, rc = sandbox_check(err);
    if (rc == 0) rc = open_root(root, &lock, err);
    if (rc != 0) return rc;
    int home = open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC);
    if (home < 0 || unshare(CLONE_NEWPID) != 0)
        rc = err_set(err, SHOAL_EAUTH,
                     "no namespace of processes: %s; in a container the lab needs --cap-add SYS_ADMIN",
                     strerror(errno));
    fflush(NULL);
    pid_t pid = rc == 0 ? fork() : -1;
    if (pid == 0) {
        close(lock);
        _exit(run_inside(main, user, root));
    }
    /* What the parent starts from now on is its own again: nothing can be born where process 1 is dead. */
    if (home >= 0 && setns(home, CLONE_NEWPID) != 0)
        fputs("shoal lab: no way back to the processes\n", stderr);
    if (home >= 0) close(home);
    if (rc == 0 && pid < 0) rc = err_set(err, SHOAL_ENOMEM, "no process for the lab: %s", strerror(errno));
    if (rc == 0) {
        forward_to = pid;
        on_signals(forward);
        *ret_status = await(pid);
        on_signals(SIG_DFL);
    }
    remove_root(root);
    close(lock);
    return rc;
}

size_t sandbox_clean(void (*say)(const char *path))
{
    size_t n = 0;
    DIR *d = opendir(PLACE);
    for (struct dirent *e; d && (e = readdir(d));) {
        char path[300];
        if (strncmp(e->d_name, PREFIX, sizeof PREFIX - 1) != 0) continue;
        snprintf(path, sizeof path, PLACE "/%s", e->d_name);
        int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0) {
            remove_root(path);
            if (say) say(path);
            n++;
        }
        if (fd >= 0) close(fd);
    }
    if (d) closedir(d);
    return n;
}
