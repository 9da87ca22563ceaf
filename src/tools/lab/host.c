/* host.c: namespaces, an interface, a small disk, and processes found by their namespace. */
#define _GNU_SOURCE
#include "lab/host.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PROCESSES_MAX = 512, FLOWS_MAX = 4096, TCP_STATE_LISTENS = 10, RELAY_NET_BITS = 10 << 16 | 77 << 8 };

/* ---- network ------------------------------------------------------------------------------------------- */

static int set_flags_up(int s, const char *name)
{
    struct ifreq r = {0};
    snprintf(r.ifr_name, sizeof r.ifr_name, "%s", name);
    if (ioctl(s, SIOCGIFFLAGS, &r) != 0) return -1;
    r.ifr_flags |= IFF_UP | IFF_RUNNING;
    return ioctl(s, SIOCSIFFLAGS, &r);
}

static int set_address(int s, const char *name, unsigned long what, const char *address)
{
    struct ifreq r = {0};
    struct sockaddr_in a = {.sin_family = AF_INET};
    snprintf(r.ifr_name, sizeof r.ifr_name, "%s", name);
    inet_pton(AF_INET, address, &a.sin_addr);
    memcpy(&r.ifr_addr, &a, sizeof a);
    return ioctl(s, what, &r);
}

/* In the namespace that the thread is in. */
static int set_up_links(host *n)
{
    struct ifreq r = {.ifr_flags = IFF_TUN | IFF_NO_PI};
    snprintf(r.ifr_name, sizeof r.ifr_name, "lab0");
    n->tun_fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC);
    if (n->tun_fd < 0 || ioctl(n->tun_fd, TUNSETIFF, &r) != 0) return -1;
    int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (s < 0) return -1;
    int rc = set_flags_up(s, "lo");
    if (rc == 0) rc = set_address(s, "lab0", SIOCSIFADDR, n->ip);
    if (rc == 0) rc = set_address(s, "lab0", SIOCSIFNETMASK, "255.255.255.0");
    if (rc == 0) rc = set_flags_up(s, "lab0");
    close(s);
    return rc;
}

static int open_network(host *n, shoal_err *err)
{
    struct stat st;
    int home = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    if (home < 0 || unshare(CLONE_NEWNET) != 0) {
        int why = errno;
        if (home >= 0) close(home);
        return err_set(err, SHOAL_EAUTH, "no network namespace for node %s: %s", n->name, strerror(why));
    }
    int rc = set_up_links(n);
    if (rc != 0)
        rc = err_set(err, SHOAL_EIO, "node %s: no network interface (/dev/net/tun): %s%s", n->name,
                     strerror(errno), errno == ENOENT || errno == ENODEV ? "; try: modprobe tun" : "");
    n->net_fd = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    if (rc == 0 && (n->net_fd < 0 || fstat(n->net_fd, &st) != 0))
        rc = err_set(err, SHOAL_EIO, "node %s: %s", n->name, strerror(errno));
    if (rc == 0) n->net_inode = st.st_ino;
    if (setns(home, CLONE_NEWNET) != 0 && rc == 0)
        rc = err_set(err, SHOAL_EIO, "node %s: no way back from its network: %s", n->name, strerror(errno));
    close(home);
    return rc;
}

int host_enter(const host *n, shoal_err *err)
{
    if (setns(n->net_fd, CLONE_NEWNET) == 0) return 0;
    return err_set(err, SHOAL_EAUTH, "node %s: cannot go into its network: %s", n->name, strerror(errno));
}

/* ---- disk ---------------------------------------------------------------------------------------------- */

static int open_disk(host *n, unsigned disk_mb, shoal_err *err)
{
    char size[64], run[300];
    snprintf(size, sizeof size, "size=%um,mode=0700", disk_mb);
    snprintf(run, sizeof run, "%s/run", n->folder);
    if (mkdir(n->folder, 0700) == 0 && mount("lab", n->folder, "tmpfs", MS_NOSUID | MS_NODEV, size) == 0 &&
        mkdir(run, 0700) == 0)
        return 0;
    return err_set(err, SHOAL_EIO, "node %s: no disk at %s: %s", n->name, n->folder, strerror(errno));
}

static void filler_path(const host *n, char *out, size_t cap)
{
    snprintf(out, cap, "%s/.filler", n->folder);
}

void host_fill(const host *n)
{
    static const char zeros[65536];
    char path[300];
    filler_path(n, path, sizeof path);
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0) return; /* it is full already */
    for (size_t piece = sizeof zeros; piece > 0;)
        if (write(fd, zeros, piece) <= 0) piece /= 2;
    close(fd);
}

void host_unfill(const host *n)
{
    char path[300];
    filler_path(n, path, sizeof path);
    unlink(path);
}

/* ---- the whole ----------------------------------------------------------------------------------------- */

int host_open(host *ret, const char *root, const char *name, size_t index, unsigned disk_mb, shoal_err *err)
{
    host n = {.net_fd = -1, .tun_fd = -1};
    snprintf(n.name, sizeof n.name, "%s", name);
    snprintf(n.ip, sizeof n.ip, RELAY_NET "%zu", index + 1);
    snprintf(n.folder, sizeof n.folder, "%s/%s", root, name);
    int rc = open_disk(&n, disk_mb, err);
    if (rc == 0) rc = open_network(&n, err);
    if (rc == 0)
        *ret = n;
    else
        host_close(&n);
    return rc;
}

void host_close(host *n)
{
    if (n->tun_fd >= 0) close(n->tun_fd);
    if (n->net_fd >= 0) close(n->net_fd);
    n->tun_fd = n->net_fd = -1;
    umount2(n->folder, MNT_DETACH);
    rmdir(n->folder);
}

/* ---- processes ----------------------------------------------------------------------------------------- */

/* Between fork and exec: nothing but system calls. */
static void become(const host *n, char *const argv[], char *const env[], int out_fd, int err_fd)
{
    sigset_t none;
    sigemptyset(&none);
    int null = open("/dev/null", O_RDONLY);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setsid();
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    bool ok = setns(n->net_fd, CLONE_NEWNET) == 0 && unshare(CLONE_NEWUTS) == 0 &&
              sethostname(n->name, strlen(n->name)) == 0 && chdir(n->folder) == 0 && dup2(null, 0) == 0 &&
              dup2(out_fd, 1) == 1 && dup2(err_fd, 2) == 2;
    if (ok) execvpe(argv[0], argv, env);
    dprintf(err_fd, "cannot start %s: %s\n", argv[0], strerror(errno));
    _exit(127);
}

pid_t host_spawn(const host *n, char *const argv[], char *const env[], int out_fd, int err_fd, shoal_err *err)
{
    pid_t pid = fork();
    if (pid == 0) become(n, argv, env, out_fd, err_fd);
    if (pid < 0) return err_set(err, SHOAL_ENOMEM, "node %s: cannot start %s", n->name, argv[0]);
    return pid;
}

static bool read_line(pid_t pid, char *out, size_t cap)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/cmdline", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, out, cap - 1);
    if (fd >= 0) close(fd);
    if (got <= 0) return false; /* gone, or dead and not yet buried */
    for (ssize_t i = 0; i < got; i++)
        if (!out[i]) out[i] = ' ';
    while (got > 0 && out[got - 1] == ' ') got--;
    out[got] = '\0';
    return true;
}

static int by_line(const void *x, const void *y)
{
    const host_process *a = x, *b = y;
    int d = strcmp(a->line, b->line);
    return d ? d : a->pid < b->pid ? -1 : a->pid > b->pid;
}

size_t host_processes(const host *n, host_process *ret, size_t max)
{
    DIR *proc = opendir("/proc");
    size_t found = 0;
    for (struct dirent *d; proc && found < max && (d = readdir(proc));) {
        char path[300];
        struct stat st;
        if (!isdigit((unsigned char)d->d_name[0])) continue;
        snprintf(path, sizeof path, "/proc/%s/ns/net", d->d_name);
        if (stat(path, &st) != 0 || st.st_ino != n->net_inode) continue;
        ret[found].pid = (pid_t)atoi(d->d_name);
        if (ret[found].pid == getpid() || !read_line(ret[found].pid, ret[found].line, sizeof ret->line))
            continue;
        found++;
    }
    if (proc) closedir(proc);
    qsort(ret, found, sizeof *ret, by_line);
    return found;
}

void host_signal(const host *n, int signum)
{
    host_process *all = calloc(PROCESSES_MAX, sizeof *all);
    pid_t last = 0;
    for (int round = 0; all && round < 10; round++) {
        size_t found = host_processes(n, all, PROCESSES_MAX);
        pid_t newest = 0;
        for (size_t i = 0; i < found; i++) {
            kill(all[i].pid, signum);
            if (all[i].pid > newest) newest = all[i].pid;
        }
        if (found == 0 || (newest == last && signum != SIGKILL))
            break; /* a child born meanwhile gets it, too */
        last = newest;
    }
    free(all);
}

/* ---- power --------------------------------------------------------------------------------------------- */

void host_power_off(host *n)
{
    if (n->tun_fd >= 0) close(n->tun_fd);
    n->tun_fd = -1;
    host_signal(n, SIGKILL);
}

int host_power_on(host *n, shoal_err *err)
{
    if (n->net_fd >= 0) close(n->net_fd);
    n->net_fd = -1;
    return open_network(n, err);
}

/* ---- connections --------------------------------------------------------------------------------------- */

typedef struct inodes {
    unsigned long list[FLOWS_MAX];
    size_t n;
} inodes;

static void add_sockets(pid_t pid, inodes *ret)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    DIR *fds = opendir(path);
    for (struct dirent *d; fds && ret->n < FLOWS_MAX && (d = readdir(fds));) {
        char target[64] = "";
        if (readlinkat(dirfd(fds), d->d_name, target, sizeof target - 1) > 0 &&
            sscanf(target, "socket:[%lu]", &ret->list[ret->n]) == 1)
            ret->n++;
    }
    if (fds) closedir(fds);
}

/* A line of /proc/PID/net/tcp or tcp6, whose IPv4 addresses are the last of four words. */
static bool read_flow(const char *line, relay_flow *ret, unsigned long *ret_inode)
{
    char ends[2][33];
    unsigned ports[2], state;
    if (sscanf(line, " %*u: %32[0-9A-F]:%x %32[0-9A-F]:%x %x %*s %*s %*s %*u %*u %lu", ends[0], &ports[0],
               ends[1], &ports[1], &state, ret_inode) != 6)
        return false;
    for (int k = 0; k < 2; k++) {
        size_t n = strlen(ends[k]);
        ret->address[k] = ntohl((uint32_t)strtoul(ends[k] + (n > 8 ? n - 8 : 0), NULL, 16));
        ret->port[k] = (uint16_t)ports[k];
    }
    return state != TCP_STATE_LISTENS && ret->address[0] >> 8 == RELAY_NET_BITS &&
           ret->address[1] >> 8 == RELAY_NET_BITS;
}

static size_t add_flows(pid_t pid, const char *table, const inodes *of, relay_flow *ret, size_t n, size_t max)
{
    char path[64], line[512];
    snprintf(path, sizeof path, "/proc/%d/net/%s", (int)pid, table);
    FILE *f = fopen(path, "re");
    while (f && n < max && fgets(line, sizeof line, f)) {
        unsigned long inode = 0;
        bool ours = false, flows = read_flow(line, &ret[n], &inode);
        for (size_t i = 0; flows && !ours && i < of->n; i++) ours = of->list[i] == inode;
        n += ours;
    }
    if (f) fclose(f);
    return n;
}

size_t host_flows(const host *n, pid_t pid, relay_flow *ret, size_t max)
{
    host_process *all = calloc(PROCESSES_MAX, sizeof *all);
    inodes *sockets = calloc(1, sizeof *sockets);
    size_t found = all && sockets ? host_processes(n, all, PROCESSES_MAX) : 0, n_flows = 0;
    for (size_t i = 0; i < found; i++)
        if (all[i].pid == pid || getsid(all[i].pid) == pid) add_sockets(all[i].pid, sockets);
    if (found) n_flows = add_flows(pid, "tcp", sockets, ret, 0, max);
    if (found) n_flows = add_flows(pid, "tcp6", sockets, ret, n_flows, max);
    free(all);
    free(sockets);
    return n_flows;
}
