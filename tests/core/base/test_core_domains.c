/* Cores that share a cache, from folders as the kernel's and from what lies about them. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants the four above first. */
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/core_domains.h"
#include "base/sys.h"

static char root[] = "/tmp/shoal-domains-XXXXXX";

static void write_cpu(int cpu, const char *text)
{
    static const char *const parts[] = {"", "/cache", "/cache/index3"};
    char path[128];
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/cpu%d%s", root, cpu, parts[i]);
        mkdir(path, S_IRWXU);
    }
    snprintf(path, sizeof path, "%s/cpu%d/cache/index3/shared_cpu_list", root, cpu);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

/* Each core that we may use gets `text` with its number in it. */
static int write_all(const char *text)
{
    cpu_set_t all;
    int n = 0;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        char line[64];
        if (!CPU_ISSET(cpu, &all)) continue;
        snprintf(line, sizeof line, text, cpu, cpu);
        write_cpu(cpu, line);
        n++;
    }
    return n;
}

static void assert_one(const core_domains *d)
{
    assert_int_equal(d->n, 1);
    assert_true(CPU_EQUAL(&d->of[0].cpus, &d->all));
}

static void cores_with_caches_of_their_own_are_domains(void **state)
{
    core_domains d;
    int n = write_all("%d\n");
    core_domains_read(&d, root);
    if (n > CORE_DOMAINS_MAX || n != sys_core_count()) {
        assert_one(&d);
        return;
    }
    assert_int_equal(d.n, n);
    for (int i = 0; i < n; i++) {
        assert_int_equal(d.of[i].n_cpus, 1);
        assert_true(CPU_ISSET(i, &d.all) == CPU_ISSET(i, &d.of[i].cpus));
    }
}

static void one_cache_is_one_domain(void **state)
{
    core_domains d;
    write_all("0-1023\n");
    core_domains_read(&d, root);
    assert_one(&d);
    core_domains_read(&d, "/tmp/shoal-no-such-folder");
    assert_one(&d);
}

static void what_is_no_list_is_one_domain(void **state)
{
    static const char *const odd[] = {"",    "\n",     "x",    "%d-",   "%d,",
                                      "-%d", "%d-%d-", "%d 0", "99999", "%d,99999999999999999999"};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        core_domains d;
        write_all(odd[i]);
        core_domains_read(&d, root);
        assert_one(&d);
    }
}

static void the_environment_overrides_the_machine(void **state)
{
    static const char *const wrong[] = {
        "", ";", "0-3;", "0-3;;4", "3-0", "0-3:4", "a", "0;1024", "0;1;2;3;4;5;6;7;8;9;10;11;12;13;14;15;16"};
    core_domains d;
    setenv("SHOAL_CORE_DOMAINS", "0-3,8;4-7", 1);
    core_domains_read(&d, root);
    assert_int_equal(d.n, 2);
    assert_int_equal(d.of[0].n_cpus, 5);
    assert_int_equal(d.of[1].n_cpus, 4);
    assert_true(CPU_ISSET(8, &d.of[0].cpus) && CPU_ISSET(7, &d.of[1].cpus) && !CPU_ISSET(4, &d.of[0].cpus));
    write_all("0-1023\n");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        setenv("SHOAL_CORE_DOMAINS", wrong[i], 1);
        core_domains_read(&d, root);
        assert_one(&d);
    }
    unsetenv("SHOAL_CORE_DOMAINS");
    setenv("SHOAL_CORES", "64", 1); /* nobody knows which */
    write_all("%d\n");
    core_domains_read(&d, root);
    assert_one(&d);
    unsetenv("SHOAL_CORES");
}

static int remove_root(void **state)
{
    char cmd[64];
    snprintf(cmd, sizeof cmd, "rm -rf %s", root);
    return system(cmd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cores_with_caches_of_their_own_are_domains),
        cmocka_unit_test(one_cache_is_one_domain),
        cmocka_unit_test(what_is_no_list_is_one_domain),
        cmocka_unit_test(the_environment_overrides_the_machine),
    };
    if (!mkdtemp(root)) return 1;
    return cmocka_run_group_tests_name("base_core_domains", tests, NULL, remove_root);
}
