/* bench_cpu.h: which processes of a server used how many cores during a load.
 *
 *     bench_cpu c;
 *     bench_cpu_begin(&c, pid);                      0: not known
 *     ... the load, r.seconds long ...
 *     bench_cpu_end(&c, r.seconds);
 *     bench_cpu_print(&c);       "cores: shoal-gateway 0.81, shoal-worker home-intent 2.40" */
#ifndef BENCH_BENCH_CPU_H
#define BENCH_BENCH_CPU_H

#include "base/buf.h"
#include "client/load_cpu.h"

enum { BENCH_CPU_MOST = 64 };

typedef struct bench_cpu {
    int pid;
    double seconds; /* of CPU time, of all; below 0: not known */
    double wall_s;
    load_cpu_process each[BENCH_CPU_MOST]; /* those that live at the end, once it is over */
    size_t n;
} bench_cpu;

void bench_cpu_begin(bench_cpu *c, int pid);
void bench_cpu_end(bench_cpu *c, double wall_s);
/* One indented line of those that used a hundredth of a core; nothing where it is not known. */
void bench_cpu_print(const bench_cpu *c);
/* The members "cpu_s" and "processes" with a comma in front. */
void bench_cpu_put_json(const bench_cpu *c, buf *out);

#endif
