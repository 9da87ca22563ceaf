/* meter.h: what a worker has used: time of cores, and joules where the machine counts them.
 *
 * Linux shows Intel's and AMD's counters (RAPL: running average power limit) as files:
 *
 *     /sys/class/powercap/intel-rapl:0/name              package-0
 *     /sys/class/powercap/intel-rapl:0/energy_uj         microjoules, which begin anew after
 *     /sys/class/powercap/intel-rapl:0/max_energy_range_uj
 *
 * They count a whole package. Of what it took between two looks, a process has the share that it had of the
 * time in which any core was busy (/proc/stat); what the package takes at rest is so shared among those who
 * work. Most systems let only root read them; who cannot is told so by meter_counts. SHOAL_POWERCAP=DIR names
 * another folder than /sys/class/powercap. Source: Linux, Documentation/power/powercap/powercap.rst.
 *
 *     meter m;
 *     meter_open(&m);
 *     meter_read(&m, now_ns);  // now and then: counters that went around twice are not noticed
 *     m.joules, m.cpu_s
 *
 * Loop thread. */
#ifndef WORKER_METER_H
#define WORKER_METER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { METER_PACKAGES = 8, METER_PATH_BYTES = 320 };

typedef struct meter {
    struct meter_package {
        char path[METER_PATH_BYTES]; /* of energy_uj */
        uint64_t last_uj, range_uj;
    } packages[METER_PACKAGES];
    size_t n_packages;
    uint64_t read_ns; /* the last look; 0: none yet */
    double busy_s;    /* of all cores, by then */
    double cpu_s;     /* of this process, since it began */
    double joules;    /* since meter_open */
} meter;

void meter_open(meter *m);
bool meter_counts(const meter *m);
/* Not more often than once a second. */
void meter_read(meter *m, uint64_t now_ns);

/* One look: the packages took so much, all cores were busy so long, we so long. Joules that are ours. */
double meter_share(double package_j, double busy_s, double own_s);
/* From one value of a counter to the next, that may have begun anew once. */
uint64_t meter_moved(uint64_t from_uj, uint64_t to_uj, uint64_t range_uj);

#endif
