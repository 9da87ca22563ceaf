/* sys.h: what this machine may use. */
#ifndef BASE_SYS_H
#define BASE_SYS_H

#include <stddef.h>
#include <stdint.h>

/* Cores this process may really use: the affinity mask, cut by the cgroup v2 or v1 CPU quota
 * (rounded up), at least 1. SHOAL_CORES overrides it. */
int sys_core_count(void);

/* Cores of the whole machine that run nothing now, and the calling thread's: at least 1. A hint, as it was some
 * microseconds ago; all cores where the kernel does not say (proc_loadavg(5)). Takes some microseconds. */
int sys_free_cores(void);

/* Resident bytes of process `pid` (0: this one); 0 when it cannot be read. */
size_t sys_rss_bytes(int pid);

/* How long the thread of this process that waited for a core longest did, in its life; 0 when the kernel does
 * not say. */
uint64_t sys_run_delay_ns(void);
/* How long all threads that there are did in their lives, together: it rises with each that waits, whichever waited
 * longest before, and falls by what one had waited that ends. */
uint64_t sys_run_delay_sum_ns(void);
/* How long the calling thread did. */
uint64_t sys_thread_run_delay_ns(void);

/* Let the calling thread, and the threads and processes that it starts from now on, have turns of a millisecond on a
 * core where the kernel's default is longer (1.4 to 3.5 on more than one core): one that wakes is then ahead of
 * programs that compute all the time, and none of our own threads cuts another's step short. The share of the core
 * stays the same. Needs no privilege; from Linux 6.12 on, before it does nothing (sched_setattr(2), sched_runtime of
 * SCHED_OTHER). Other policies than the default stay as they are. */
void sys_short_turns(void);
/* The turn of the calling thread in ns; 0: the kernel does not say. */
uint64_t sys_turn_ns(void);

/* The processor's name as the system tells it ("AMD EPYC"), its architecture where it tells none. */
void sys_cpu_name(char *ret, size_t size);
/* Bytes of memory that the machine has; 0 when that is not known. */
size_t sys_memory_bytes(void);

#endif
