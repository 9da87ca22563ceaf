/* What the kernel tells of a machine, on machines made of files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cluster/machine.h"

static char root[64];

static void put(const char *path, const char *text)
{
    char file[256];
    snprintf(file, sizeof file, "%s%s", root, path);
    for (char *slash = strchr(file + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(file, 0700);
        *slash = '/';
    }
    FILE *f = fopen(file, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static int open_root(void **state)
{
    strcpy(root, "/tmp/machine-test-XXXXXX");
    return mkdtemp(root) ? 0 : -1;
}

static int close_root(void **state)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", root);
    return system(command);
}

static void a_laptop_on_its_battery(void **state)
{
    machine m;
    put("/proc/meminfo", "MemTotal:       16318480 kB\nMemFree:  1000 kB\nMemAvailable:    8159240 kB\n");
    put("/proc/loadavg", "2.48 2.41 2.33 3/700 12345\n");
    put("/sys/class/power_supply/AC/type", "Mains\n");
    put("/sys/class/power_supply/BAT0/type", "Battery\n");
    put("/sys/class/power_supply/BAT0/capacity", "57\n");
    put("/sys/class/power_supply/BAT0/status", "Discharging\n");
    put("/sys/class/power_supply/hid-mouse/type", "Battery\n");
    put("/sys/class/power_supply/hid-mouse/scope", "Device\n");
    put("/sys/class/power_supply/hid-mouse/capacity", "99\n");
    put("/sys/class/thermal/thermal_zone0/temp", "41000\n");
    put("/sys/class/thermal/thermal_zone1/temp", "63500\n");
    put("/sys/class/thermal/thermal_zone2/temp", "-274000\n");
    put("/sys/class/thermal/thermal_zone3/temp", "999000\n");
    put("/sys/class/thermal/cooling_device0/temp", "70000\n");
    machine_read(&m, root);
    assert_int_equal(m.memory_bytes, UINT64_C(16318480) * 1024);
    assert_int_equal(m.memory_free_bytes, UINT64_C(8159240) * 1024);
    assert_true(m.load_1m == 2.48);
    assert_true(m.on_battery);
    assert_int_equal(m.battery_percent, 57);
    assert_true(m.celsius == 63.5);
}

static void a_laptop_on_the_mains(void **state)
{
    machine m;
    put("/sys/class/power_supply/BAT0/type", "Battery\n");
    put("/sys/class/power_supply/BAT0/capacity", "100");
    put("/sys/class/power_supply/BAT0/status", "Full\n");
    machine_read(&m, root);
    assert_false(m.on_battery);
    assert_int_equal(m.battery_percent, 100);
}

static void what_is_not_there_or_makes_no_sense_is_zero(void **state)
{
    static const machine nothing;
    machine m;
    machine_read(&m, root);
    assert_memory_equal(&m, &nothing, sizeof m);
    put("/proc/meminfo", "MemTotal: lots kB\nMemAvailable: -5 kB");
    put("/proc/loadavg", "nan\n");
    put("/sys/class/power_supply/BAT0/type", "Battery");
    put("/sys/class/power_supply/BAT0/capacity", "300");
    put("/sys/class/thermal/thermal_zone0/temp", "hot");
    machine_read(&m, root);
    assert_int_equal(m.memory_bytes, 0);
    assert_true(m.load_1m == 0);
    assert_int_equal(m.battery_percent, 0);
    assert_true(m.celsius == 0);
}

static void this_machine_has_memory(void **state)
{
    machine m;
    machine_read(&m, "");
    assert_true(m.memory_bytes > 0);
    assert_true(m.memory_free_bytes <= m.memory_bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_laptop_on_its_battery, open_root, close_root),
        cmocka_unit_test_setup_teardown(a_laptop_on_the_mains, open_root, close_root),
        cmocka_unit_test_setup_teardown(what_is_not_there_or_makes_no_sense_is_zero, open_root, close_root),
        cmocka_unit_test(this_machine_has_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
