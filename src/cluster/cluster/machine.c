/* machine.c: small files of the kernel, each a line or a few. */
#include "cluster/machine.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TEXT_MAX = 4096 };

/* The beginning of a file, NUL-terminated, without its last line end; "" when it cannot be read. */
static const char *slurp(char text[TEXT_MAX], const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t n = fd >= 0 ? read(fd, text, TEXT_MAX - 1) : 0;
    if (fd >= 0) close(fd);
    if (n < 0) n = 0;
    if (n > 0 && text[n - 1] == '\n') n--;
    text[n] = '\0';
    return text;
}

/* "MemTotal:       16318480 kB" */
static uint64_t meminfo(const char *text, const char *key)
{
    unsigned long long kib = 0;
    const char *at = strstr(text, key);
    if (!at || sscanf(at + strlen(key), ": %llu kB", &kib) != 1 || kib > UINT64_MAX / 1024) return 0;
    return kib * 1024;
}

static void read_memory(machine *m, const char *root)
{
    char path[512], text[TEXT_MAX];
    snprintf(path, sizeof path, "%s/proc/meminfo", root);
    slurp(text, path);
    m->memory_bytes = meminfo(text, "MemTotal");
    m->memory_free_bytes = meminfo(text, "MemAvailable");
    snprintf(path, sizeof path, "%s/proc/loadavg", root);
    double load = strtod(slurp(text, path), NULL);
    if (load >= 0 && load < 1e6) m->load_1m = load;
}

/* Each entry of a folder whose name begins so. */
static void each(machine *m, const char *root, const char *folder, const char *prefix,
                 void (*look)(machine *m, const char *path))
{
    char path[512];
    snprintf(path, sizeof path, "%s%s", root, folder);
    DIR *d = opendir(path);
    if (!d) return;
    for (struct dirent *e; (e = readdir(d));) {
        char entry[1024];
        if (e->d_name[0] == '.' || strncmp(e->d_name, prefix, strlen(prefix)) != 0) continue;
        snprintf(entry, sizeof entry, "%s/%s", path, e->d_name);
        look(m, entry);
    }
    closedir(d);
}

static const char *entry_text(char text[TEXT_MAX], const char *entry, const char *file)
{
    char path[1200];
    snprintf(path, sizeof path, "%s/%s", entry, file);
    return slurp(text, path);
}

/* Linux, Documentation/ABI/testing/sysfs-class-power. A mouse has a battery too, of the scope "Device". */
static void look_at_supply(machine *m, const char *entry)
{
    char text[TEXT_MAX];
    if (strcmp(entry_text(text, entry, "type"), "Battery") != 0) return;
    if (strcmp(entry_text(text, entry, "scope"), "Device") == 0) return;
    long percent = strtol(entry_text(text, entry, "capacity"), NULL, 10);
    if (percent > 0 && percent <= 100 && (unsigned)percent > m->battery_percent)
        m->battery_percent = (unsigned)percent;
    m->on_battery |= strcmp(entry_text(text, entry, "status"), "Discharging") == 0;
}

/* Documentation/driver-api/thermal/sysfs-api: thousandths of a degree. A broken sensor shows what cannot be.
 */
static void look_at_zone(machine *m, const char *entry)
{
    char text[TEXT_MAX];
    double celsius = (double)strtol(entry_text(text, entry, "temp"), NULL, 10) / 1000;
    if (celsius > m->celsius && celsius < 150) m->celsius = celsius;
}

void machine_read(machine *ret, const char *root)
{
    machine m = {0};
    read_memory(&m, root);
    each(&m, root, "/sys/class/power_supply", "", look_at_supply);
    each(&m, root, "/sys/class/thermal", "thermal_zone", look_at_zone);
    *ret = m;
}
