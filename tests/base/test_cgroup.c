/* What control groups leave of a machine, on machines made of files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cgroup.h"
#include "base/room.h"
#include "base/sys.h"

#define MIB     (UINT64_C(1) << 20)
#define ALL     UINT64_MAX
#define V2      "31 23 0:28 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
#define NONE_V1 "9223372036854771712\n"

typedef struct file {
    const char *path, *text;
} file;

typedef struct machine_of_files {
    const char *name;
    uint64_t memory, free;
    int n_cores;
    file files[16];
} machine_of_files;

static const machine_of_files MACHINES[] = {
    {"no control groups", ALL, ALL, 0, {{NULL}}},
    {"version 2 without limits",
     ALL,
     ALL,
     0,
     {{"proc/self/cgroup", "0::/user.slice\n"},
      {"proc/self/mountinfo", V2},
      {"sys/fs/cgroup/user.slice/memory.max", "max\n"},
      {"sys/fs/cgroup/user.slice/cpu.max", "max 100000\n"}}},
    {"version 2, a unit with limits",
     200 * MIB,
     150 * MIB,
     2,
     {{"proc/self/cgroup", "0::/system.slice/shoal.service\n"},
      {"proc/self/mountinfo", V2},
      {"sys/fs/cgroup/system.slice/shoal.service/memory.max", "209715200\n"},
      {"sys/fs/cgroup/system.slice/shoal.service/memory.current", "104857600\n"},
      {"sys/fs/cgroup/system.slice/shoal.service/memory.stat",
       "anon 1\nfile 99\ninactive_file 52428800\nactive_file 1\n"},
      {"sys/fs/cgroup/system.slice/shoal.service/cpu.max", "150000 100000\n"}}},
    {"version 2, the smallest of several levels",
     100 * MIB,
     20 * MIB,
     1,
     {{"proc/self/cgroup", "0::/a/b/c\n"},
      {"proc/self/mountinfo", V2},
      {"sys/fs/cgroup/a/b/c/memory.max", "1073741824\n"},
      {"sys/fs/cgroup/a/b/memory.max", "104857600\n"},
      {"sys/fs/cgroup/a/b/memory.current", "52428800\n"},
      {"sys/fs/cgroup/a/memory.max", "524288000\n"},
      {"sys/fs/cgroup/a/memory.current", "503316480\n"},
      {"sys/fs/cgroup/a/cpu.max", "50000 100000\n"},
      {"sys/fs/cgroup/a/b/cpu.max", "400000 100000\n"}}},
    {"version 2, memory.high below memory.max",
     64 * MIB,
     64 * MIB,
     0,
     {{"proc/self/cgroup", "0::/a\n"},
      {"proc/self/mountinfo", V2},
      {"sys/fs/cgroup/a/memory.max", "134217728\n"},
      {"sys/fs/cgroup/a/memory.high", "67108864\n"}}},
    {"version 2, used up",
     64 * MIB,
     0,
     0,
     {{"proc/self/cgroup", "0::/a\n"},
      {"proc/self/mountinfo", V2},
      {"sys/fs/cgroup/a/memory.max", "67108864\n"},
      {"sys/fs/cgroup/a/memory.current", "77108864\n"}}},
    {"version 2, a container whose group is the root",
     512 * MIB,
     512 * MIB,
     3,
     {{"proc/self/cgroup", "0::/\n"},
      {"proc/self/mountinfo", V2},
      {"sys/fs/cgroup/memory.max", "536870912\n"},
      {"sys/fs/cgroup/cpuset.cpus.effective", "1-2,7\n"}}},
    {"version 2, a group outside what the container sees",
     512 * MIB,
     512 * MIB,
     0,
     {{"proc/self/cgroup", "0::/../other\n"},
      {"proc/self/mountinfo", V2},
      {"sys/fs/cgroup/memory.max", "536870912\n"}}},
    {"version 2, a container without its own view",
     256 * MIB,
     256 * MIB,
     0,
     {{"proc/self/cgroup", "0::/docker/abc/child\n"},
      {"proc/self/mountinfo", "31 23 0:28 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw\n"},
      {"sys/fs/cgroup/memory.max", "536870912\n"},
      {"sys/fs/cgroup/child/memory.max", "268435456\n"}}},
    {"version 1",
     200 * MIB,
     180 * MIB,
     2,
     {{"proc/self/cgroup", "9:memory:/a/b\n4:cpu,cpuacct:/a\n3:cpuset:/a\n2:pids:/\n"},
      {"proc/self/mountinfo", "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n"
                              "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
                              "33 31 0:30 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
                              "34 31 0:31 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"},
      {"sys/fs/cgroup/memory/memory.limit_in_bytes", NONE_V1},
      {"sys/fs/cgroup/memory/a/memory.limit_in_bytes", "209715200\n"},
      {"sys/fs/cgroup/memory/a/memory.usage_in_bytes", "41943040\n"},
      {"sys/fs/cgroup/memory/a/memory.stat", "inactive_file 0\ntotal_inactive_file 20971520\n"},
      {"sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", NONE_V1},
      {"sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "200000\n"},
      {"sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us", "100000\n"},
      {"sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n"},
      {"sys/fs/cgroup/cpuset/a/cpuset.cpus", "0-3\n"}}},
    {"version 1, a container",
     64 * MIB,
     64 * MIB,
     0,
     {{"proc/self/cgroup", "9:memory:/docker/abc\n"},
      {"proc/self/mountinfo", "34 31 0:31 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n"},
      {"sys/fs/cgroup/memory/memory.limit_in_bytes", "67108864\n"}}},
    {"both versions at once",
     128 * MIB,
     128 * MIB,
     1,
     {{"proc/self/cgroup", "9:memory:/job\n1:name=systemd:/\n0::/job\n"},
      {"proc/self/mountinfo", "34 31 0:31 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
                              "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"},
      {"sys/fs/cgroup/memory/job/memory.limit_in_bytes", "134217728\n"},
      {"sys/fs/cgroup/unified/job/cpu.max", "30000 100000\n"}}},
    {"mounted elsewhere, in a folder with a blank",
     32 * MIB,
     32 * MIB,
     0,
     {{"proc/self/cgroup", "0::/a\n"},
      {"proc/self/mountinfo", "31 23 0:28 / /mnt/control\\040groups rw - cgroup2 none rw\n"},
      {"mnt/control groups/a/memory.max", "33554432\n"}}},
    {"mounts that are not told",
     32 * MIB,
     32 * MIB,
     0,
     {{"proc/self/cgroup", "9:memory:/a\n"}, {"sys/fs/cgroup/memory/a/memory.limit_in_bytes", "33554432\n"}}},
    {"nonsense",
     ALL,
     ALL,
     0,
     {{"proc/self/cgroup", "\n::\n0:\n0::/a\n"},
      {"proc/self/mountinfo", "x\n - \n31 23 0:28 / /sys/fs/cgroup rw - cgroup2\n" V2},
      {"sys/fs/cgroup/a/memory.max", "many\n"},
      {"sys/fs/cgroup/a/cpu.max", "0 0\n"},
      {"sys/fs/cgroup/a/cpuset.cpus.effective", "5-2\n"}}},
};

static char root[64];

static void put(const char *path, const char *text)
{
    char at[300];
    snprintf(at, sizeof at, "%s/%s", root, path);
    for (char *slash = strchr(at + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(at, 0700);
        *slash = '/';
    }
    FILE *f = fopen(at, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void open_machine(const machine_of_files *m)
{
    strcpy(root, "/tmp/cgroup-test-XXXXXX");
    assert_non_null(mkdtemp(root));
    for (const file *f = m->files; f < m->files + 16 && f->path; f++) put(f->path, f->text);
}

static void close_machine(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", root);
    assert_int_equal(system(command), 0);
}

static void limits_are_the_smallest_of_all_groups(void **state)
{
    for (size_t i = 0; i < sizeof MACHINES / sizeof *MACHINES; i++) {
        const machine_of_files *m = &MACHINES[i];
        cgroup_limits l;
        open_machine(m);
        cgroup_read(&l, root);
        close_machine();
        if (l.memory_bytes != m->memory || l.memory_free_bytes != m->free || l.n_cores != m->n_cores)
            fail_msg("%s: %llu bytes, %llu free, %d cores", m->name, (unsigned long long)l.memory_bytes,
                     (unsigned long long)l.memory_free_bytes, l.n_cores);
    }
}

static void room_is_the_least_of_machine_and_groups(void **state)
{
    open_machine(&MACHINES[2]); /* 200 MiB, 150 of them free */
    put("proc/meminfo", "MemTotal: 1048576 kB\nMemAvailable: 524288 kB\n");
    room r = room_read(root);
    assert_int_equal(r.all_bytes, 200 * MIB);
    assert_int_equal(r.free_bytes, 150 * MIB);
    assert_string_equal(r.by, "its cgroup");
    put("proc/meminfo", "MemTotal: 1048576 kB\nMemAvailable: 1024 kB\n");
    r = room_read(root);
    assert_int_equal(r.all_bytes, 200 * MIB);
    assert_int_equal(r.free_bytes, MIB);
    assert_string_equal(r.by, "this machine");
    put("proc/meminfo", "MemTotal: 102400 kB\nMemAvailable: 1024 kB\n");
    assert_int_equal(room_read(root).all_bytes, 100 * MIB);
    close_machine();
}

static void this_machine_has_memory_and_cores(void **state)
{
    room r = room_read("");
    assert_true(r.all_bytes > 0 && r.all_bytes != ALL && r.free_bytes <= r.all_bytes);
    assert_int_equal(sys_memory_bytes(), r.all_bytes);
    assert_true(sys_core_count() >= 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limits_are_the_smallest_of_all_groups),
        cmocka_unit_test(room_is_the_least_of_machine_and_groups),
        cmocka_unit_test(this_machine_has_memory_and_cores),
    };
    return cmocka_run_group_tests_name("cgroup", tests, NULL, NULL);
}
