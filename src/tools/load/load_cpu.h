/* load_cpu.h: CPU time of a server on this machine, for those who measure it from outside.
 *
 *     int pid = load_cpu_find(&where);               who listens there; 0: nobody here that can be seen
 *     double before = load_cpu_seconds(pid);
 *     ... work ...
 *     used = load_cpu_seconds(pid) - before;
 *
 * From /proc: the process, all that came of it, and those of them that have ended. Other people's processes
 * can be read but not searched for sockets, so that a server of another user is found by its number only. */
#ifndef LOAD_LOAD_CPU_H
#define LOAD_LOAD_CPU_H

#include "client/http_client.h"

/* The process that listens at a loopback address and port; 0: the address is another machine's, a Unix
 * socket, or nobody's that this user may look into. */
int load_cpu_find(const http_where *where);
/* User and system time of `pid` and its descendants, ended ones that were waited for included; -1: there is
 * no such process. */
double load_cpu_seconds(int pid);

typedef struct load_cpu_process {
    int pid;
    char name
        [80]; /* the system's, and behind it what --name of its command line says: "shoal-worker home-intent" */
    double seconds;
} load_cpu_process;

/* The same of each that lives, up to `most` of them: their number. */
size_t load_cpu_each(int pid, load_cpu_process *ret, size_t most);

#endif
