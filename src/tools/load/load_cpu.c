/* load_cpu.c: processes and their time by /proc (proc(5)). */
#define _GNU_SOURCE
#include "load/load_cpu.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PIDS_MOST = 65536, LISTENING = 0x0A };

/* ---- who listens -------------------------------------------------------------------------------------- */

/* The socket that listens on a port, by its inode in /proc/net/tcp or tcp6; 0: none. */
static unsigned long listening_inode(const char *table, int port)
{
    FILE *f = fopen(table, "re");
    char line[512];
    unsigned long found = 0;
    while (f && !found && fgets(line, sizeof line, f)) {
        unsigned at, state;
        unsigned long inode;
        if (sscanf(line, " %*d: %*[0-9A-Fa-f]:%X %*[0-9A-Fa-f:] %X %*s %*s %*s %*s %*s %lu", &at, &state,
                   &inode) == 3 &&
            (int)at == port && state == LISTENING)
            found = inode;
    }
    if (f) fclose(f);
    return found;
}

static bool has_socket(const char *pid, unsigned long inode)
{
    char path[320], wanted[64], is[64];
    struct dirent *e;
    bool found = false;
    snprintf(wanted, sizeof wanted, "socket:[%lu]", inode);
    snprintf(path, sizeof path, "/proc/%s/fd", pid);
    DIR *d = opendir(path);
    while (d && !found && (e = readdir(d))) {
        ssize_t n = readlinkat(dirfd(d), e->d_name, is, sizeof is - 1);
        if (n <= 0) continue;
        is[n] = '\0';
        found = strcmp(is, wanted) == 0;
    }
    if (d) closedir(d);
    return found;
}

/* Of several that hold it, such as a server and a child that it started, the lowest number. */
static int owner_of(unsigned long inode)
{
    DIR *d = opendir("/proc");
    struct dirent *e;
    int owner = 0;
    while (d && (e = readdir(d))) {
        int pid = atoi(e->d_name);
        if (pid > 0 && (!owner || pid < owner) && has_socket(e->d_name, inode)) owner = pid;
    }
    if (d) closedir(d);
    return owner;
}

static bool is_here(const char *host)
{
    return strncmp(host, "127.", 4) == 0 || strcmp(host, "localhost") == 0 || strcmp(host, "::1") == 0;
}

int load_cpu_find(const http_where *where)
{
    if (!where->port || !is_here(where->host)) return 0;
    unsigned long inode = listening_inode("/proc/net/tcp", where->port);
    if (!inode) inode = listening_inode("/proc/net/tcp6", where->port);
    return inode ? owner_of(inode) : 0;
}

/* ---- time --------------------------------------------------------------------------------------------- */

typedef struct process {
    int pid, parent;
    char name[17];
    double ticks; /* its own and those of ended children */
    bool counted;
} process;

/* The name stands in brackets and may hold anything, brackets too. */
static bool read_process(int pid, process *ret)
{
    char path[64], line[1024];
    unsigned long long own, system, ended, ended_system;
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *f = fopen(path, "re");
    size_t n = f ? fread(line, 1, sizeof line - 1, f) : 0;
    if (f) fclose(f);
    line[n] = '\0';
    const char *behind = strrchr(line, ')');
    *ret = (process){.pid = pid};
    if (!behind || sscanf(behind + 1, " %*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %llu %llu",
                          &ret->parent, &own, &system, &ended, &ended_system) != 5)
        return false;
    ret->ticks = (double)(own + system + ended + ended_system);
    const char *name = strchr(line, '(');
    if (name && name < behind)
        snprintf(ret->name, sizeof ret->name, "%.*s", (int)(behind - name - 1), name + 1);
    return true;
}

static size_t load_cpu_read_all(process *all)
{
    DIR *d = opendir("/proc");
    struct dirent *e;
    size_t n = 0;
    while (d && n < PIDS_MOST && (e = readdir(d)))
        if (atoi(e->d_name) > 0 && read_process(atoi(e->d_name), &all[n])) n++;
    if (d) closedir(d);
    return n;
}

/* Until no more are found whose parents count. */
static double count_family(process *all, size_t n, int root)
{
    double ticks = -1;
    for (bool more = true; more;) {
        more = false;
        for (size_t i = 0; i < n; i++) {
            process *p = &all[i];
            bool belongs = p->pid == root;
            for (size_t k = 0; k < n && !belongs; k++) belongs = all[k].counted && all[k].pid == p->parent;
            if (p->counted || !belongs) continue;
            p->counted = more = true;
            ticks = (ticks < 0 ? 0 : ticks) + p->ticks;
        }
    }
    return ticks;
}

double load_cpu_seconds(int pid)
{
    process *all = calloc(PIDS_MOST, sizeof *all);
    if (!all) return -1;
    double ticks = count_family(all, load_cpu_read_all(all), pid);
    free(all);
    return ticks < 0 ? -1 : ticks / (double)sysconf(_SC_CLK_TCK);
}

/* ---- each process --------------------------------------------------------------------------------------- */

/* What follows "--name" in its command line; "" without one. */
static void read_name_option(int pid, char *ret, size_t size)
{
    char path[64], args[4096];
    snprintf(path, sizeof path, "/proc/%d/cmdline", pid);
    FILE *f = fopen(path, "re");
    size_t n = f ? fread(args, 1, sizeof args - 1, f) : 0;
    if (f) fclose(f);
    args[n] = '\0';
    ret[0] = '\0';
    for (size_t at = 0; at < n; at += strlen(args + at) + 1) {
        size_t next = at + strlen(args + at) + 1;
        if (strcmp(args + at, "--name") == 0 && next < n) snprintf(ret, size, "%s", args + next);
    }
}

size_t load_cpu_each(int pid, load_cpu_process *ret, size_t most)
{
    process *all = calloc(PIDS_MOST, sizeof *all);
    size_t n = 0, n_all = all ? load_cpu_read_all(all) : 0;
    char option[60];
    if (n_all) count_family(all, n_all, pid);
    for (size_t i = 0; i < n_all && n < most; i++) {
        if (!all[i].counted) continue;
        read_name_option(all[i].pid, option, sizeof option);
        ret[n] =
            (load_cpu_process){.pid = all[i].pid, .seconds = all[i].ticks / (double)sysconf(_SC_CLK_TCK)};
        snprintf(ret[n++].name, sizeof ret->name, "%s%s%s", all[i].name, option[0] ? " " : "", option);
    }
    free(all);
    return n;
}
