/* sys.h: what this machine may use. */
#ifndef BASE_SYS_H
#define BASE_SYS_H

#include <stddef.h>
#include <stdint.h>

/* Cores this process may really use: the affinity mask, cut by the cgroup v2 or v1 CPU quota
 * (rounded up), at least 1. SHOAL_CORES overrides it. */
int sys_core_count(void);

/* Resident bytes of process `pid` (0: this one); 0 when it cannot be read. */
size_t sys_rss_bytes(int pid);

/* How long the thread of this process that waited for a core longest did, in its life; 0 when the kernel does
 * not say. */
uint64_t sys_run_delay_ns(void);

/* The processor's name as the system tells it ("AMD EPYC"), its architecture where it tells none. */
void sys_cpu_name(char *ret, size_t size);
/* Bytes of memory that the machine has; 0 when that is not known. */
size_t sys_memory_bytes(void);

#endif
