/* The share of the processor: what threads and programs started later have, and what happens where the system refuses
 * it. Each case runs in a child, which keeps what it was given. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/sys.h"
#include "logging/log.h"
#include "os/cpu_share.h"

enum { NOBODY = 65534 };

/* What a thread or program has. */
typedef struct has {
    int nice, policy, priority, cores;
    uint64_t turn_ns;
} has;

static has look(void)
{
    struct sched_param p = {0};
    sched_getparam(0, &p);
    return (has){.nice = getpriority(PRIO_PROCESS, 0),
                 .policy = sched_getscheduler(0),
                 .priority = p.sched_priority,
                 .cores = sys_core_count(),
                 .turn_ns = sys_turn_ns()};
}

static void *look_in_thread(void *to)
{
    *(has *)to = look();
    return NULL;
}

typedef struct tried {
    has here, thread, child;
    bool made; /* a thread and a child */
} tried;

static tried try(const cpu_share *s)
{
    tried t = {0};
    pthread_t thread;
    int p[2], status = 1;
    sys_short_turns();
    cpu_share_apply(s, "test");
    t.here = look();
    if (pthread_create(&thread, NULL, look_in_thread, &t.thread) != 0 || pipe(p) != 0) return t;
    pthread_join(thread, NULL);
    pid_t pid = fork();
    if (pid == 0) {
        t.child = look();
        _exit(write(p[1], &t.child, sizeof t.child) == (ssize_t)sizeof t.child ? 0 : 1);
    }
    t.made = pid > 0 && read(p[0], &t.child, sizeof t.child) == (ssize_t)sizeof t.child &&
             waitpid(pid, &status, 0) == pid && status == 0;
    return t;
}

/* As a user without privileges: `nice` and `rtprio` are the limits that it gets (getrlimit(2)). */
static bool become_nobody(rlim_t nice, rlim_t rtprio)
{
    return setrlimit(RLIMIT_NICE, &(struct rlimit){nice, nice}) == 0 &&
           setrlimit(RLIMIT_RTPRIO, &(struct rlimit){rtprio, rtprio}) == 0 &&
           (getuid() != 0 ||
            (setresgid(NOBODY, NOBODY, NOBODY) == 0 && setresuid(NOBODY, NOBODY, NOBODY) == 0));
}

/* In a child: what comes of it, and what it wrote to its standard error. */
static tried in_child(const cpu_share *s, bool as_nobody, rlim_t nice, rlim_t rtprio, char log[4096])
{
    int out[2], err[2], status = 1;
    tried t = {0};
    assert_int_equal(pipe(out), 0);
    assert_int_equal(pipe(err), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        dup2(err[1], STDERR_FILENO);
        log_setup(LOG_INFO, false);
        if (as_nobody && !become_nobody(nice, rtprio)) _exit(1);
        t = try(s);
        _exit(t.made && write(out[1], &t, sizeof t) == (ssize_t)sizeof t ? 0 : 1);
    }
    close(out[1]);
    close(err[1]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(read(out[0], &t, sizeof t), sizeof t);
    ssize_t n = read(err[0], log, 4095);
    log[n > 0 ? n : 0] = '\0';
    close(out[0]);
    close(err[0]);
    return t;
}

static void expect_same(const tried *t)
{
    assert_memory_equal(&t->here, &t->thread, sizeof t->here);
    assert_memory_equal(&t->here, &t->child, sizeof t->here);
}

static void threads_and_programs_have_the_share(void **state)
{
    char log[4096];
    sys_short_turns();
    const has before = look();
    tried t = in_child(&(cpu_share){.nice = before.nice + 5, .sched = CPU_BATCH}, false, 0, 0, log);
    assert_string_equal(log, "");
    expect_same(&t);
    assert_int_equal(t.here.nice, before.nice + 5);
    assert_int_equal(t.here.policy, SCHED_BATCH);
    assert_int_equal(t.here.cores, before.cores);
}

static void nice_keeps_short_turns(void **state)
{
    char log[4096];
    sys_short_turns();
    const has before = look();
    tried t = in_child(&(cpu_share){.nice = before.nice + 5}, false, 0, 0, log);
    expect_same(&t);
    assert_int_equal(t.here.nice, before.nice + 5);
    assert_int_equal(t.here.policy, before.policy);
    assert_true(t.here.turn_ns == before.turn_ns);
}

static void reserved_cores_are_not_counted(void **state)
{
    static const struct {
        const char *cores;
        unsigned reserve;
        int left;
    } CASES[] = {{"8", 0, 8}, {"8", 1, 7}, {"8", 7, 1}, {"8", 63, 1}, {"1", 1, 1}};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        char log[4096];
        setenv("SHOAL_CORES", CASES[i].cores, 1);
        tried t = in_child(&(cpu_share){.reserve = CASES[i].reserve}, false, 0, 0, log);
        expect_same(&t);
        assert_int_equal(t.here.cores, CASES[i].left);
        assert_string_equal(log, "");
    }
    unsetenv("SHOAL_CORES");
}

static size_t n_lines(const char *s)
{
    size_t n = 0;
    for (; (s = strchr(s, '\n')); s++) n++;
    return n;
}

/* The rest of the share holds. */
static void a_refusal_is_one_warning(void **state)
{
    static const struct {
        cpu_share s;
        const char *refused;
    } CASES[] = {{{.nice = -5}, " refused=nice "},
                 {{.sched = CPU_RR}, " refused=sched "},
                 {{.nice = 1, .sched = CPU_FIFO}, " refused=sched "},
                 {{.nice = -5, .sched = CPU_FIFO}, " refused=\"nice and sched\" "}};
    const has before = look();
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        char log[4096];
        const cpu_share *s = &CASES[i].s;
        tried t = in_child(s, true, 0, 0, log);
        expect_same(&t);
        assert_int_equal(t.here.nice, s->nice > 0 ? s->nice : before.nice);
        assert_int_equal(t.here.policy, before.policy);
        if (n_lines(log) != 1 || !strstr(log, "cpu_refused") || !strstr(log, CASES[i].refused) ||
            !strstr(log, "shoal-priority.conf"))
            fail_msg("%zu: %s", i, log);
    }
}

/* The limits of deploy/systemd/shoal-priority.conf: no capability is needed. */
static void limits_are_privilege_enough(void **state)
{
    static const struct {
        cpu_sched sched;
        int policy;
    } CASES[] = {{CPU_RR, SCHED_RR}, {CPU_FIFO, SCHED_FIFO}};
    if (setrlimit(RLIMIT_NICE, &(struct rlimit){25, 25}) != 0) skip(); /* CAP_SYS_RESOURCE alone raises it */
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        char log[4096];
        tried t = in_child(&(cpu_share){.nice = -5, .sched = CASES[i].sched}, true, 25, 1, log);
        assert_string_equal(log, "");
        expect_same(&t);
        assert_int_equal(t.here.nice, -5);
        assert_int_equal(t.here.policy, CASES[i].policy);
        assert_int_equal(t.here.priority, 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_and_programs_have_the_share), cmocka_unit_test(nice_keeps_short_turns),
        cmocka_unit_test(reserved_cores_are_not_counted),      cmocka_unit_test(a_refusal_is_one_warning),
        cmocka_unit_test(limits_are_privilege_enough),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
