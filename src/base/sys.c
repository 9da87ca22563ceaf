/* sys.c: what Linux says of this process and its machine; see sys.h. */
#define _GNU_SOURCE
#include "base/sys.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/cgroup.h"
#include "base/clock.h"
#include "base/room.h"

static bool read_line(const char *path, char *line, size_t n)
{
    FILE *f = fopen(path, "re");
    if (!f) return false;
    bool ok = fgets(line, (int)n, f) != NULL;
    fclose(f);
    if (ok) line[strcspn(line, "\n")] = '\0';
    return ok;
}

int sys_core_count(void)
{
    const char *forced = getenv("SHOAL_CORES");
    if (forced && atoi(forced) > 0) return atoi(forced);
    cpu_set_t set;
    cgroup_limits l;
    int cores = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    cgroup_read(&l, "");
    if (l.n_cores > 0 && l.n_cores < cores) cores = l.n_cores;
    return cores < 1 ? 1 : cores;
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
static uint64_t run_delay_of(const char *tid)
{
    char path[300], line[128];
    unsigned long long ran, waited;
    snprintf(path, sizeof path, "/proc/self/task/%s/schedstat", tid);
    return read_line(path, line, sizeof line) && sscanf(line, "%llu %llu", &ran, &waited) == 2 ? waited : 0;
}

uint64_t sys_run_delay_ns(void)
{
    uint64_t most = 0;
    DIR *d = opendir("/proc/self/task");
    for (struct dirent *e; d && (e = readdir(d));) {
        uint64_t ns = run_delay_of(e->d_name);
        if (ns > most) most = ns;
    }
    if (d) closedir(d);
    return most;
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
    uint64_t bytes = room_read("").all_bytes;
    return bytes < SIZE_MAX ? (size_t)bytes : 0;
}
