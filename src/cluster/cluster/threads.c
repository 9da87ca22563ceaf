/* threads.c: two lines of text for each thread. */
#include "cluster/threads.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FIELD_STATE = 3, FIELD_MAJFLT = 12, FIELD_UTIME = 14, FIELD_STIME = 15, PATH_BYTES = 512 };

/* The start of field n of "1 (name) S 4 5 ...", where a name may hold spaces and parentheses itself. */
static const char *field(const char *line, int n)
{
    const char *p = strrchr(line, ')');
    for (int i = 2; p && i < n; i++) p = strchr(p + 1, ' ');
    return p && *p ? p + 1 : NULL;
}

static uint64_t threads_number(const char *line, int n)
{
    const char *p = field(line, n);
    return p ? strtoull(p, NULL, 10) : 0;
}

static bool read_line(const char *path, char *out, size_t cap)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    ssize_t n = read(fd, out, cap - 1);
    close(fd);
    out[n > 0 ? n : 0] = '\0';
    return n > 0;
}

static uint64_t ns_of_ticks(uint64_t ticks)
{
    long per_s = sysconf(_SC_CLK_TCK);
    return ticks * (1000000000u / (uint64_t)(per_s > 0 ? per_s : 100));
}

static bool read_thread(thread_facts *ret, const char *tasks, int tid)
{
    char path[PATH_BYTES + 40], line[1024], *rest;
    snprintf(path, sizeof path, "%s/%d/stat", tasks, tid);
    const char *state = read_line(path, line, sizeof line) ? field(line, FIELD_STATE) : NULL;
    if (!state || !*state) return false;
    *ret = (thread_facts){
        .tid = tid,
        .state = *state,
        .cpu_ns = ns_of_ticks(threads_number(line, FIELD_UTIME) + threads_number(line, FIELD_STIME)),
        .major_faults = threads_number(line, FIELD_MAJFLT)};
    snprintf(path, sizeof path, "%s/%d/schedstat", tasks, tid);
    if (!read_line(path, line, sizeof line)) return true;
    uint64_t ran_ns = strtoull(line, &rest, 10);
    if (ran_ns > 0) ret->cpu_ns = ran_ns;
    ret->delay_ns = strtoull(rest, NULL, 10);
    return true;
}

bool threads_read(threads *ret, const char *root, int pid)
{
    char tasks[PATH_BYTES];
    snprintf(tasks, sizeof tasks, "%s/proc/%d/task", root, pid);
    DIR *d = pid > 0 ? opendir(tasks) : NULL;
    if (!d) return false;
    ret->pid = pid;
    ret->n = 0;
    for (struct dirent *e; ret->n < THREADS_MAX && (e = readdir(d));) {
        int tid = atoi(e->d_name);
        if (tid > 0) ret->n += read_thread(&ret->at[ret->n], tasks, tid);
    }
    closedir(d);
    return ret->n > 0;
}

static const thread_facts *threads_find(const threads *t, int tid)
{
    for (size_t i = 0; t && i < t->n; i++)
        if (t->at[i].tid == tid) return &t->at[i];
    return NULL;
}

static uint64_t grown(uint64_t before, uint64_t now)
{
    return now > before ? now - before : 0;
}

static void add_thread(liveness_sample *s, const thread_facts *before, const thread_facts *now)
{
    uint64_t cpu_ns = before ? grown(before->cpu_ns, now->cpu_ns) : 0;
    uint64_t delay_ns = before ? grown(before->delay_ns, now->delay_ns) : 0;
    if (cpu_ns > s->cpu_ns) s->cpu_ns = cpu_ns;
    if (delay_ns > s->delay_ns) s->delay_ns = delay_ns;
    s->runnable |= now->state == 'R';
    s->stopped |= now->state == 'T' || now->state == 't';
    s->on_disk |= now->state == 'D' || (before && now->major_faults != before->major_faults);
}

void threads_compare(liveness_sample *ret, const threads *before, const threads *now, threads_group g)
{
    liveness_sample others = {0};
    ret->known = before && before->pid == now->pid;
    if (!ret->known) before = NULL;
    for (size_t i = 0; i < now->n; i++) {
        const thread_facts *t = &now->at[i];
        bool first = t->tid == now->pid;
        bool mine = g == THREADS_ALL || first == (g == THREADS_FIRST);
        add_thread(mine ? ret : &others, threads_find(before, t->tid), t);
    }
    ret->others_ns = others.cpu_ns > others.delay_ns ? others.cpu_ns : others.delay_ns;
    ret->others_run = others.runnable || others.on_disk;
}
