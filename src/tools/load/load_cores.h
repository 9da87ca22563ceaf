/* load_cores.h: which processes of a server used how many cores during a load.
 *
 *     load_cores c;
 *     load_cores_begin(&c, pid);                      0: not known
 *     ... the load, r.seconds long ...
 *     load_cores_end(&c, r.seconds);
 *     load_cores_print(&c);       "cores: shoal-gateway 0.81, shoal-worker home-intent 2.40" */
#ifndef LOAD_LOAD_CORES_H
#define LOAD_LOAD_CORES_H

#include "base/buf.h"
#include "load/load_cpu.h"

enum { LOAD_CORES_MOST = 64 };

typedef struct load_cores {
    int pid;
    double seconds; /* of CPU time, of all; below 0: not known */
    double wall_s;
    load_cpu_process each[LOAD_CORES_MOST]; /* those that live at the end, once it is over */
    size_t n;
} load_cores;

void load_cores_begin(load_cores *c, int pid);
void load_cores_end(load_cores *c, double wall_s);
/* One indented line of those that used a hundredth of a core; nothing where it is not known. */
void load_cores_print(const load_cores *c);
/* The members "cpu_s" and "processes" with a comma in front. */
void load_cores_put_json(const load_cores *c, buf *out);

#endif
