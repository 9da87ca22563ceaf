/* core_domains.c: see core_domains.h. */
#define _GNU_SOURCE
#include "base/core_domains.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/sys.h"

/* "0-3,8", up to an end of line or a semicolon. Returns what follows; NULL: it is no such list. */
static const char *take_list(const char *at, cpu_set_t *ret)
{
    CPU_ZERO(ret);
    for (;;) {
        char *end;
        unsigned long first = strtoul(at, &end, 10), last = first;
        if (end == at || *at < '0' || *at > '9') return NULL;
        if (*end == '-') {
            at = end + 1;
            last = strtoul(at, &end, 10);
            if (end == at || *at < '0' || *at > '9') return NULL;
        }
        if (last < first || last >= CPU_SETSIZE) return NULL;
        for (unsigned long i = first; i <= last; i++) CPU_SET(i, ret);
        if (*end != ',') return end;
        at = end + 1;
    }
}

static bool add_domain(core_domains *d, const cpu_set_t *cpus)
{
    if (d->n == CORE_DOMAINS_MAX || CPU_COUNT(cpus) == 0) return false;
    d->of[d->n++] = (core_domain){.cpus = *cpus, .n_cpus = CPU_COUNT(cpus)};
    return true;
}

static bool read_text(const char *text, core_domains *d)
{
    cpu_set_t cpus;
    d->n = 0;
    for (const char *at = text; (at = take_list(at, &cpus)) != NULL; at++) {
        if (!add_domain(d, &cpus)) return false;
        if (*at == '\0') return true;
        if (*at != ';') return false;
    }
    return false;
}

static bool read_shared(const char *cpu_folder, int cpu, cpu_set_t *ret)
{
    char path[256], line[512];
    snprintf(path, sizeof path, "%s/cpu%d/cache/index3/shared_cpu_list", cpu_folder, cpu);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    ssize_t n = read(fd, line, sizeof line - 1);
    close(fd);
    line[n > 0 ? n : 0] = '\0';
    line[strcspn(line, "\n")] = '\0';
    const char *end = take_list(line, ret);
    return end && *end == '\0' && CPU_ISSET(cpu, ret);
}

/* False where one of the cores does not say whose cache it shares. */
static bool read_caches(const char *cpu_folder, core_domains *d)
{
    cpu_set_t left = d->all, cpus;
    d->n = 0;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &left)) continue;
        if (!read_shared(cpu_folder, cpu, &cpus)) return false;
        CPU_AND(&cpus, &cpus, &left);
        if (!add_domain(d, &cpus)) return false;
        CPU_XOR(&left, &left, &cpus);
    }
    return true;
}

void core_domains_read(core_domains *ret, const char *cpu_folder)
{
    const char *said = getenv("SHOAL_CORE_DOMAINS");
    *ret = (core_domains){0};
    bool known = sched_getaffinity(0, sizeof ret->all, &ret->all) == 0;
    if (said && read_text(said, ret)) return;
    int n_all = known ? CPU_COUNT(&ret->all) : 0;
    if (n_all == sys_core_count() && read_caches(cpu_folder, ret) && ret->n > 0) return;
    ret->n = 1;
    ret->of[0] = (core_domain){.cpus = ret->all, .n_cpus = n_all};
}
