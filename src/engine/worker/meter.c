/* meter.c: see meter.h. */
#include "worker/meter.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define FOLDER "/sys/class/powercap"

static bool meter_read_number(const char *path, uint64_t *ret)
{
    FILE *f = fopen(path, "re");
    unsigned long long v = 0;
    bool ok = f && fscanf(f, "%20llu", &v) == 1;
    if (f) fclose(f);
    *ret = v;
    return ok;
}

/* "intel-rapl:0" is a package; "intel-rapl:0:1" is a part of it, "intel-rapl-mmio:0" the same once more. */
static bool is_package(const char *name)
{
    static const char BEGINS[] = "intel-rapl:";
    size_t n = sizeof BEGINS - 1;
    return strncmp(name, BEGINS, n) == 0 && name[n] && !strchr(name + n, ':');
}

static void add_package(meter *m, const char *folder, const char *name)
{
    struct meter_package *p = &m->packages[m->n_packages];
    char range[METER_PATH_BYTES];
    int n = snprintf(range, sizeof range, "%s/%s/max_energy_range_uj", folder, name);
    if (n < 0 || (size_t)n >= sizeof range) return;
    snprintf(p->path, sizeof p->path, "%s/%s/energy_uj", folder, name);
    if (meter_read_number(range, &p->range_uj) && p->range_uj > 0 && meter_read_number(p->path, &p->last_uj))
        m->n_packages++;
}

void meter_open(meter *m)
{
    const char *folder = getenv("SHOAL_POWERCAP");
    if (!folder || !*folder) folder = FOLDER;
    *m = (meter){0};
    DIR *d = opendir(folder);
    for (struct dirent *e; d && m->n_packages < METER_PACKAGES && (e = readdir(d));)
        if (is_package(e->d_name)) add_package(m, folder, e->d_name);
    if (d) closedir(d);
}

bool meter_counts(const meter *m)
{
    return m->n_packages > 0;
}

/* Seconds that all cores together did something, since the machine began. */
static double busy_now(void)
{
    FILE *f = fopen("/proc/stat", "re");
    unsigned long long user = 0, nice = 0, system = 0, irq = 0, softirq = 0, steal = 0;
    bool ok = f && fscanf(f, "cpu %llu %llu %llu %*u %*u %llu %llu %llu", &user, &nice, &system, &irq,
                          &softirq, &steal) == 6;
    long hz = sysconf(_SC_CLK_TCK);
    if (f) fclose(f);
    return ok && hz > 0 ? (double)(user + nice + system + irq + softirq) / (double)hz : 0;
}

static double own_now(void)
{
    struct rusage u;
    if (getrusage(RUSAGE_SELF, &u) != 0) return 0;
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

double meter_share(double package_j, double busy_s, double own_s)
{
    if (own_s <= 0 || package_j <= 0) return 0;
    return busy_s > own_s ? package_j * own_s / busy_s : package_j;
}

uint64_t meter_moved(uint64_t from_uj, uint64_t to_uj, uint64_t range_uj)
{
    if (to_uj >= from_uj) return to_uj - from_uj;
    return from_uj <= range_uj ? range_uj - from_uj + to_uj : 0;
}

static double packages_moved(meter *m)
{
    double j = 0;
    for (size_t i = 0; i < m->n_packages; i++) {
        struct meter_package *p = &m->packages[i];
        uint64_t now;
        if (!meter_read_number(p->path, &now)) continue;
        j += (double)meter_moved(p->last_uj, now, p->range_uj) / 1e6;
        p->last_uj = now;
    }
    return j;
}

void meter_read(meter *m, uint64_t now_ns)
{
    if (m->read_ns && now_ns - m->read_ns < 1000000000u) return;
    double own = own_now(), busy = m->n_packages ? busy_now() : 0, moved = packages_moved(m);
    if (m->read_ns) m->joules += meter_share(moved, busy - m->busy_s, own - m->cpu_s);
    m->read_ns = now_ns;
    m->cpu_s = own;
    m->busy_s = busy;
}
