/* machine.h: what the kernel tells of this machine: memory, load, battery, heat.
 *
 * Read from /proc and /sys of Linux, which a container may show in part or not at all: what is not there
 * stays zero. `root` is put before the paths, so that a test brings a machine of its own. Some fifteen small
 * files, under a millisecond. */
#ifndef CLUSTER_MACHINE_H
#define CLUSTER_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct machine {
    uint64_t memory_bytes, memory_free_bytes; /* all, and what programs could still get */
    double load_1m;                           /* processes that want to run, a minute's mean */
    double celsius;                           /* of the hottest sensor; 0: there is none */
    bool on_battery;                          /* and nothing charges it */
    unsigned battery_percent;                 /* of the fullest; 0: there is none */
} machine;

void machine_read(machine *ret, const char *root); /* "" for this machine */

#endif
