/* sys.c: what Linux says of this process and its machine; see sys.h. */
#define _GNU_SOURCE
#include "base/sys.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/clock.h"

#define SHORT_TURN_NS 1000000

/* The first line of a file of proc or sys, which are whole in one read. */
static bool read_line(const char *path, char *line, size_t n)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    ssize_t len = read(fd, line, n - 1);
    close(fd);
    line[len > 0 ? len : 0] = '\0';
    line[strcspn(line, "\n")] = '\0';
    return len > 0;
}

/* The least quota on the way from this process's cgroup up to the root; 0 when there is none. */
static int cgroup_v2_cores(void)
{
    FILE *f = fopen("/proc/self/cgroup", "re");
    if (!f) return 0;
    char line[PATH_MAX], path[PATH_MAX] = "";
    while (fgets(line, sizeof line, f))
        if (strncmp(line, "0::", 3) == 0) snprintf(path, sizeof path, "%s", line + 3);
    fclose(f);
    path[strcspn(path, "\n")] = '\0';
    int least = 0;
    for (;;) {
        char file[PATH_MAX + 64], text[64];
        snprintf(file, sizeof file, "/sys/fs/cgroup%s/cpu.max", path);
        long long quota, period;
        if (read_line(file, text, sizeof text) && sscanf(text, "%lld %lld", &quota, &period) == 2 &&
            period > 0) {
            int cores = (int)((quota + period - 1) / period);
            if (cores > 0 && (least == 0 || cores < least)) least = cores;
        }
        char *slash = strrchr(path, '/');
        if (!slash) return least;
        *slash = '\0';
    }
}

static int cgroup_v1_cores(void)
{
    char text[64];
    if (!read_line("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", text, sizeof text)) return 0;
    long long quota = atoll(text);
    if (quota <= 0 || !read_line("/sys/fs/cgroup/cpu/cpu.cfs_period_us", text, sizeof text)) return 0;
    long long period = atoll(text);
    return period > 0 ? (int)((quota + period - 1) / period) : 0;
}

int sys_core_count(void)
{
    const char *forced = getenv("SHOAL_CORES");
    if (forced && atoi(forced) > 0) return atoi(forced);
    cpu_set_t set;
    int cores = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    int quota = cgroup_v2_cores();
    if (quota == 0) quota = cgroup_v1_cores();
    if (quota > 0 && quota < cores) cores = quota;
    return cores < 1 ? 1 : cores;
}

/* "0.20 0.18 0.12 1/80 11206": the fourth number is of threads that run or could run. */
int sys_free_cores(void)
{
    char line[128];
    int n_running = 1, n_cores = (int)sysconf(_SC_NPROCESSORS_ONLN);
    if (read_line("/proc/loadavg", line, sizeof line)) (void)sscanf(line, "%*s %*s %*s %d/", &n_running);
    int n_free = n_cores - (n_running - 1);
    return n_free < 1 ? 1 : n_free;
}

size_t sys_rss_bytes(int pid)
{
    char path[64], line[128];
    snprintf(path, sizeof path, pid ? "/proc/%d/statm" : "/proc/self/statm", pid);
    unsigned long long size, resident;
    if (!read_line(path, line, sizeof line) || sscanf(line, "%llu %llu", &size, &resident) != 2) return 0;
    return (size_t)resident * (size_t)sysconf(_SC_PAGESIZE);
}

/* "12345 678 9": nanoseconds on a core, nanoseconds waiting for one, turns (sched-stats.rst). */
static uint64_t run_delay_of(const char *thread)
{
    char path[300], line[128];
    unsigned long long ran, waited;
    snprintf(path, sizeof path, "/proc/%s/schedstat", thread);
    return read_line(path, line, sizeof line) && sscanf(line, "%llu %llu", &ran, &waited) == 2 ? waited : 0;
}

typedef struct run_delays {
    uint64_t most, sum;
} run_delays;

static run_delays read_run_delays(void)
{
    run_delays of = {0};
    DIR *d = opendir("/proc/self/task");
    for (struct dirent *e; d && (e = readdir(d));) {
        char thread[280];
        if (*e->d_name == '.') continue;
        snprintf(thread, sizeof thread, "self/task/%s", e->d_name);
        uint64_t ns = run_delay_of(thread);
        if (ns > of.most) of.most = ns;
        of.sum += ns;
    }
    if (d) closedir(d);
    return of;
}

uint64_t sys_run_delay_ns(void)
{
    return read_run_delays().most;
}

uint64_t sys_run_delay_sum_ns(void)
{
    return read_run_delays().sum;
}

uint64_t sys_thread_run_delay_ns(void)
{
    return run_delay_of("thread-self");
}

/* struct sched_attr of sched_setattr(2), which not every libc declares; its first version. */
typedef struct turn_attr {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
} turn_attr;

static bool get_attr(turn_attr *ret)
{
    *ret = (turn_attr){0};
    return syscall(SYS_sched_getattr, 0, ret, sizeof *ret, 0) == 0;
}

void sys_short_turns(void)
{
    turn_attr a;
    if (!get_attr(&a) || a.policy != SCHED_OTHER || a.runtime <= SHORT_TURN_NS) return;
    a.size = sizeof a;
    a.runtime = SHORT_TURN_NS;
    syscall(SYS_sched_setattr, 0, &a, 0);
}

uint64_t sys_turn_ns(void)
{
    turn_attr a;
    return get_attr(&a) ? a.runtime : 0;
}

void rng_bytes(void *out, unsigned n)
{
    for (unsigned done = 0; done < n;) {
        ssize_t got = getrandom((char *)out + done, n - done, 0);
        if (got < 0 && errno != EINTR) abort();
        if (got > 0) done += (unsigned)got;
    }
}

static _Thread_local struct {
    uint8_t bytes[4096];
    size_t n_left; /* the first of bytes */
} ahead;

/* Only the thread that forks lives on in the child, so its store is the only one that two would draw from. */
static void forget_ahead(void)
{
    memset(&ahead, 0, sizeof ahead);
}

static void watch_forks(void)
{
    if (pthread_atfork(NULL, NULL, forget_ahead) != 0) abort();
}

void rng_draw(void *out, unsigned n)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    assert(n <= 64);
    if (ahead.n_left < n) {
        pthread_once(&once, watch_forks);
        rng_bytes(ahead.bytes, sizeof ahead.bytes);
        ahead.n_left = sizeof ahead.bytes;
    }
    ahead.n_left -= n;
    memcpy(out, ahead.bytes + ahead.n_left, n);
    memset(ahead.bytes + ahead.n_left, 0, n);
}

/* Linux tells x86 processors as "model name\t: ..."; AArch64 has numbers only, so the architecture stands in.
 */
void sys_cpu_name(char *ret, size_t size)
{
    struct utsname u;
    snprintf(ret, size, "%s", uname(&u) == 0 ? u.machine : "unknown");
    FILE *f = fopen("/proc/cpuinfo", "re");
    if (!f) return;
    char line[512];
    while (fgets(line, sizeof line, f)) {
        char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || !colon) continue;
        line[strcspn(line, "\n")] = '\0';
        snprintf(ret, size, "%s", colon + 1 + strspn(colon + 1, " "));
        break;
    }
    fclose(f);
}

size_t sys_memory_bytes(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), bytes = sysconf(_SC_PAGESIZE);
    return pages > 0 && bytes > 0 ? (size_t)pages * (size_t)bytes : 0;
}
