/* core_domains.h: which cores share a last-level cache. A team of threads whose members meet at barriers dozens of
 * times in a millisecond is faster inside one of these domains: a cache line that travels between two takes several
 * times as long. NUMA nodes are made of whole domains. */
#ifndef BASE_CORE_DOMAINS_H
#define BASE_CORE_DOMAINS_H

#include <sched.h>

#define CORE_DOMAINS_MAX 16

typedef struct core_domain {
    cpu_set_t cpus;
    int n_cpus;
} core_domain;

typedef struct core_domains {
    core_domain of[CORE_DOMAINS_MAX];
    int n;         /* 1: the cores have one cache, or nothing is known of it */
    cpu_set_t all; /* cores that this process may use; without a quota */
} core_domains;

/* Of the cores that this process may use. cpu_folder: "/sys/devices/system/cpu", whose cpuN/cache/index3 tells it
 * (sysfs-devices-system-cpu). It is one domain, too, if there are more than CORE_DOMAINS_MAX, or if a quota or
 * SHOAL_CORES allows fewer cores than there are, since then nobody knows which. SHOAL_CORE_DOMAINS ("0-3,8;4-7")
 * replaces what the system tells. */
void core_domains_read(core_domains *ret, const char *cpu_folder);

#endif
