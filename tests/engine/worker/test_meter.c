/* What a worker has used, by files that look like the kernel's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants the four above first. */
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "worker/meter.h"

static char folder[] = "/tmp/shoal-meter-XXXXXX";

static void put(const char *name, const char *file, unsigned long long v)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/%s/%s", folder, name, file);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fprintf(f, "%llu\n", v);
    fclose(f);
}

static int make_folder(void **state)
{
    setenv("SHOAL_POWERCAP", mkdtemp(folder), 1);
    put("intel-rapl:0", "energy_uj", 900000000);
    put("intel-rapl:0", "max_energy_range_uj", 1000000000);
    put("intel-rapl:0:1", "energy_uj", 7); /* a part of the package, which is counted in it */
    put("intel-rapl:0:1", "max_energy_range_uj", 1000000000);
    put("intel-rapl-mmio:0", "energy_uj", 900000000);
    put("intel-rapl-mmio:0", "max_energy_range_uj", 1000000000);
    put("intel-rapl:1", "energy_uj", 5); /* without a range */
    return 0;
}

static int drop_folder(void **state)
{
    char command[300];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

static void work_a_while(void)
{
    volatile double x = 1;
    for (int i = 0; i < 20000000; i++) x = x * 1.0000001;
}

static void packages_are_counted_once_and_others_not(void **state)
{
    meter m;
    meter_open(&m);
    assert_true(meter_counts(&m));
    assert_int_equal(m.n_packages, 1);
}

static void what_the_package_took_is_shared_by_time(void **state)
{
    meter m;
    meter_open(&m);
    meter_read(&m, 5000000000u);
    assert_true(m.joules == 0);
    put("intel-rapl:0", "energy_uj", 40000000); /* it began anew: 140 J */
    work_a_while();
    meter_read(&m, 5500000000u); /* too soon: nothing is looked at */
    assert_true(m.joules == 0);
    meter_read(&m, 6000000000u);
    assert_true(m.joules > 0 && m.joules <= 140.0001);
    assert_true(m.cpu_s > 0);
    double before = m.joules;
    meter_read(&m, 7000000000u); /* it took nothing */
    assert_true(m.joules == before);
}

static void shares_and_counters_that_begin_anew(void **state)
{
    assert_true(meter_share(100, 4, 1) == 25);
    assert_true(meter_share(100, 0.5, 1) == 100); /* the ticks of /proc/stat are coarse */
    assert_true(meter_share(100, 4, 0) == 0);
    assert_true(meter_share(-1, 4, 1) == 0);
    assert_int_equal(meter_moved(10, 30, 100), 20);
    assert_int_equal(meter_moved(90, 5, 100), 15);
    assert_int_equal(meter_moved(190, 5, 100), 0); /* nonsense is nothing */
}

static void a_machine_without_counters_tells_time_alone(void **state)
{
    meter m;
    setenv("SHOAL_POWERCAP", "/nowhere", 1);
    meter_open(&m);
    assert_false(meter_counts(&m));
    meter_read(&m, 1000000000u);
    work_a_while();
    meter_read(&m, 3000000000u);
    assert_true(m.cpu_s > 0 && m.joules == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packages_are_counted_once_and_others_not),
        cmocka_unit_test(what_the_package_took_is_shared_by_time),
        cmocka_unit_test(shares_and_counters_that_begin_anew),
        cmocka_unit_test(a_machine_without_counters_tells_time_alone),
    };
    return cmocka_run_group_tests_name("worker_meter", tests, make_folder, drop_folder);
}
