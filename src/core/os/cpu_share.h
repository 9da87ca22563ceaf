/* cpu_share.h: how much of the processor this process takes beside other programs.
 *
 *     cpu_share_apply(&(cpu_share){.reserve = 1, .nice = 5}, "serve");    before the first thread
 *
 * Linux keeps nice level and policy for each thread, and threads and processes inherit both from the thread that
 * starts them (sched(7)). So one call in the first thread holds for all that follow, workers included. */
#ifndef OS_CPU_SHARE_H
#define OS_CPU_SHARE_H

enum { CPU_RESERVE_MAX = 63, CPU_NICE_MIN = -20, CPU_NICE_MAX = 19 };

/* X(enum, name) */
#define CPU_SCHED_TABLE(X) \
    X(CPU_FAIR, "fair")    \
    X(CPU_BATCH, "batch")  \
    X(CPU_RR, "rr")        \
    X(CPU_FIFO, "fifo")
#define CPU_SCHED_ENUM(e, n) e,
typedef enum cpu_sched { CPU_SCHED_TABLE(CPU_SCHED_ENUM) } cpu_sched;
#undef CPU_SCHED_ENUM
extern const char *const cpu_sched_words[]; /* by cpu_sched; ends with NULL */

typedef struct cpu_share {
    unsigned reserve; /* cores that are left to other programs */
    int nice;         /* 0: as the process was started */
    cpu_sched sched;  /* CPU_FAIR: as the process was started */
} cpu_share;

/* Of the calling thread, and of threads and processes that it starts from now on. Once in a process, before others
 * read the environment: `reserve` lowers SHOAL_CORES, which sys_core_count follows, and keeps one core. What the system
 * refuses stays as it was, and one warning of `component` says what was refused and what to do. */
void cpu_share_apply(const cpu_share *s, const char *component);

#endif
