/* The arbiter: one at a time, earliest deadline first, and the dead do not block the living. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

typedef struct stage {
    arbiter *agent;
    int fd;
    _Atomic int inside, n_done, overlaps, step;
    _Atomic unsigned n_turns[3]; /* by slot, of those that take them for ever */
    _Atomic uint64_t longest_ns; /* of what could have been quick */
    int order[8];
} stage;

/* Shared with forked children as well. */
static stage *new_stage(void)
{
    stage *s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(s != MAP_FAILED);
    shoal_err err;
    if (arbiter_create(&s->agent, &s->fd, &err) != 0) fail_msg("%s", err.message);
    return s;
}

static void free_stage(stage *s)
{
    arbiter_close(s->agent);
    close(s->fd);
    munmap(s, sizeof *s);
}

static arbiter *join(stage *s, int slot)
{
    arbiter *a = NULL;
    return arbiter_join(&a, s->fd, slot, NULL) == 0 ? a : NULL;
}

static void note_time_since(stage *s, uint64_t start_ns)
{
    uint64_t took = clock_ns() - start_ns, longest = atomic_load(&s->longest_ns);
    while (took > longest && !atomic_compare_exchange_weak(&s->longest_ns, &longest, took)) {
    }
}

/* Who stands still with the cores is passed by, and who does so inside the lock is not waited for. So what a
 * round finds wrong counts only if nobody did; else it is played again. */
static void play_rounds(bool (*is_right)(stage *s))
{
    for (int i = 0; i < 50; i++) {
        stage *s = new_stage();
        bool right = is_right(s), calm = atomic_load(&s->longest_ns) < 40000000u;
        free_stage(s);
        if (right) return;
        if (calm) fail_msg("round %d went wrong although nobody stood still", i + 1);
    }
    fail_msg("each of 50 rounds went wrong: this machine stands still all the time, or nobody is woken");
}

/* The critical section notes when somebody else is in it too. */
static void take_turns(stage *s, int slot, int n)
{
    arbiter *a = join(s, slot);
    for (int i = 0; i < n; i++) {
        uint64_t start = clock_ns();
        arbiter_acquire(a, rng_mix((uint64_t)(slot * 1000 + i)), 0);
        if (atomic_fetch_add(&s->inside, 1) != 0) atomic_fetch_add(&s->overlaps, 1);
        if (i % 16 == 0) sched_yield();
        atomic_fetch_sub(&s->inside, 1);
        arbiter_release(a);
        note_time_since(s, start);
    }
    atomic_fetch_add(&s->n_done, n);
    arbiter_close(a);
}

typedef struct player {
    stage *s;
    int slot;
    _Atomic pid_t tid; /* known once it has joined */
    uint64_t deadline_ns;
} player;

static void *play(void *arg)
{
    player *p = arg;
    take_turns(p->s, p->slot, 500);
    return NULL;
}

static bool threads_had_their_turns(stage *s, int n, int first_slot)
{
    pthread_t threads[6];
    player players[6];
    for (int i = 0; i < n; i++) {
        players[i] = (player){.s = s, .slot = first_slot + i};
        pthread_create(&threads[i], NULL, play, &players[i]);
    }
    for (int i = 0; i < n; i++) pthread_join(threads[i], NULL);
    assert_int_equal(atomic_load(&s->n_done), n * 500);
    return atomic_load(&s->overlaps) == 0;
}

static bool six_threads_had_their_turns(stage *s)
{
    return threads_had_their_turns(s, 6, 0);
}

static void threads_take_turns(void **state)
{
    play_rounds(six_threads_had_their_turns);
}

static bool processes_had_their_turns(stage *s)
{
    pid_t pids[5];
    for (int i = 0; i < 5; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            take_turns(s, 10 + i, 500);
            _exit(0);
        }
    }
    for (int i = 0; i < 5; i++) waitpid(pids[i], NULL, 0);
    assert_int_equal(atomic_load(&s->n_done), 2500);
    return atomic_load(&s->overlaps) == 0;
}

static void processes_take_turns(void **state)
{
    play_rounds(processes_had_their_turns);
}

static void *wait_once(void *arg)
{
    player *p = arg;
    arbiter *a = join(p->s, p->slot);
    atomic_store(&p->tid, (pid_t)syscall(SYS_gettid));
    arbiter_acquire(a, p->deadline_ns, 0);
    p->s->order[atomic_fetch_add(&p->s->step, 1)] = p->slot;
    arbiter_release(a);
    arbiter_close(a);
    return NULL;
}

/* It sleeps in the queue: nothing else of it calls futex once it has joined. */
static bool sleeps_in_queue(const player *p)
{
    char path[64], line[32] = "";
    pid_t tid = atomic_load(&p->tid);
    snprintf(path, sizeof path, "/proc/self/task/%d/syscall", (int)tid);
    FILE *f = tid != 0 ? fopen(path, "re") : NULL;
    if (!f) return false;
    bool known = fgets(line, sizeof line, f) != NULL;
    fclose(f);
    return known && strtol(line, NULL, 10) == SYS_futex;
}

static void await_queue(player *players, int n)
{
    uint64_t start = clock_ns();
    for (int i = 0; i < n; i++)
        while (!sleeps_in_queue(&players[i]) && clock_ms_since(start) < 200) usleep(1000);
}

static bool deadlines_order(stage *s)
{
    static const uint64_t deadlines[] = {400, 100, UINT64_MAX, 200, 300};
    static const int order[] = {1, 3, 4, 0, 2};
    arbiter *holder = join(s, 63);
    arbiter_acquire(holder, 0, 0);
    pthread_t threads[5];
    player players[5];
    for (int i = 0; i < 5; i++) {
        players[i] = (player){.s = s, .slot = i, .deadline_ns = deadlines[i]};
        pthread_create(&threads[i], NULL, wait_once, &players[i]);
    }
    uint64_t start = clock_ns();
    await_queue(players, 5);
    arbiter_release(holder);
    for (int i = 0; i < 5; i++) pthread_join(threads[i], NULL);
    note_time_since(s, start);
    arbiter_close(holder);
    return memcmp(s->order, order, sizeof order) == 0;
}

static void the_earliest_deadline_goes_first(void **state)
{
    play_rounds(deadlines_order);
}

/* Fork a child that acquires (and maybe waits for it); returns once it has said where it is. */
static pid_t child_in(stage *s, int slot, bool gets_it)
{
    atomic_store(&s->step, 0);
    pid_t pid = fork();
    if (pid == 0) {
        arbiter *a = join(s, slot);
        if (!gets_it) atomic_store(&s->step, 1);
        arbiter_acquire(a, 0, 0);
        atomic_store(&s->step, 2);
        for (;;) pause();
    }
    while (atomic_load(&s->step) != (gets_it ? 2 : 1)) usleep(1000);
    if (!gets_it) usleep(50000);
    return pid;
}

static void end_child(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static void a_killed_holder_is_reaped(void **state)
{
    stage *s = new_stage();
    pid_t pid = child_in(s, 1, true);
    pthread_t thread;
    player p = {.s = s, .slot = 2, .deadline_ns = 5};
    pthread_create(&thread, NULL, wait_once, &p);
    await_queue(&p, 1);
    assert_int_equal(atomic_load(&s->step), 2); /* the child's: it holds the cores */
    end_child(pid);
    arbiter_reap(s->agent, 1);
    pthread_join(thread, NULL);
    assert_true(s->step == 3 && s->order[2] == 2);
    free_stage(s);
}

/* Alive, so nobody reaps it; the others must not wait until it goes on. */
static void a_stopped_holder_loses_the_cores(void **state)
{
    stage *s = new_stage();
    pid_t pid = child_in(s, 1, true);
    kill(pid, SIGSTOP);
    arbiter *a = join(s, 2), *b = join(s, 3);
    arbiter_acquire(a, 5, 0);
    assert_int_equal(arbiter_crowd(a), 1); /* the stopped one does not count either */
    arbiter_release(a);
    arbiter_acquire(b, 5, 0); /* free again: the stopped one is not waiting */
    arbiter_release(b);
    end_child(pid);
    arbiter_close(a);
    arbiter_close(b);
    free_stage(s);
}

static void a_late_release_is_harmless(void **state)
{
    stage *s = new_stage();
    arbiter *late = join(s, 1), *a = join(s, 2);
    arbiter_acquire(late, 1, 0);
    arbiter_acquire(a, 1, 0); /* after the lease of the first */
    arbiter_release(late);
    arbiter_release(a);
    arbiter_release(late);
    arbiter_acquire(late, 1, 0);
    arbiter_release(late);
    arbiter_close(late);
    arbiter_close(a);
    free_stage(s);
}

static void a_killed_waiter_does_not_keep_the_turn(void **state)
{
    stage *s = new_stage();
    arbiter *a = join(s, 3);
    arbiter_acquire(a, 9, 0);
    pid_t pid = child_in(s, 4, false);
    end_child(pid);
    arbiter_release(a); /* goes to the dead waiter, nobody knows yet */
    arbiter_reap(s->agent, 4);
    arbiter_acquire(a, 9, 0);
    arbiter_release(a);
    arbiter_close(a);
    free_stage(s);
}

/* Who has the cores sees that somebody waits, and can give way in the middle of its work. */
static void a_holder_sees_that_the_cores_are_wanted(void **state)
{
    stage *s = new_stage();
    arbiter *a = join(s, 1);
    arbiter_acquire(a, 1, 0);
    assert_false(arbiter_is_wanted(a));
    pthread_t threads[2];
    player players[2] = {{.s = s, .slot = 2, .deadline_ns = 5}, {.s = s, .slot = 3, .deadline_ns = 9}};
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, wait_once, &players[i]);
    for (int n = 0; n < 2;) { /* as often as it takes: somebody may be slow to come */
        while (!arbiter_is_wanted(a) && atomic_load(&s->step) < 2) sched_yield();
        arbiter_release(a);
        arbiter_acquire(a, 3, 0);
        n = atomic_load(&s->step);
    }
    assert_false(arbiter_is_wanted(a));
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    arbiter_release(a);
    arbiter_close(a);
    free_stage(s);
}

/* One core, once. */
static void *wait_for_one(void *arg)
{
    player *p = arg;
    arbiter *a = join(p->s, p->slot);
    arbiter_acquire(a, p->deadline_ns, 1);
    atomic_fetch_add(&p->s->n_done, 1);
    arbiter_release(a);
    arbiter_close(a);
    return NULL;
}

typedef struct asker {
    stage *s;
    int slot, n_cores;
    uint64_t deadline_ns;
} asker;

/* Takes its cores, says so, and keeps them until `step` says enough. */
static void *have_cores(void *arg)
{
    const asker *k = arg;
    arbiter *a = join(k->s, k->slot);
    arbiter_acquire(a, k->deadline_ns, k->n_cores);
    atomic_fetch_add(&k->s->inside, k->n_cores);
    while (atomic_load(&k->s->step) == 0) usleep(1000);
    atomic_fetch_sub(&k->s->inside, k->n_cores);
    arbiter_release(a);
    arbiter_close(a);
    return NULL;
}

/* Three cores are three workers' at a time. */
static void those_who_want_one_core_run_side_by_side(void **state)
{
    setenv("SHOAL_CORES", "3", 1);
    stage *s = new_stage();
    asker askers[] = {{s, 1, 1, 5}, {s, 2, 1, 5}};
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, have_cores, &askers[i]);
    while (atomic_load(&s->inside) < 2) usleep(1000); /* at the same time, or never */
    arbiter *third = join(s, 3);
    arbiter_acquire(third, 5, 1);
    assert_int_equal(atomic_load(&s->inside), 2);
    assert_int_equal(arbiter_crowd(third), 3);
    arbiter_release(third);
    atomic_store(&s->step, 1);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    arbiter_acquire(third, 5, 3);
    usleep(20000);
    assert_int_equal(arbiter_crowd(third), 1); /* they were here too long ago */
    arbiter_release(third);
    arbiter_close(third);
    free_stage(s);
    unsetenv("SHOAL_CORES");
}

/* Four teams of four on sixteen cores of two caches: all at once, two in each; each gets its old place again. A team of
 * twelve has no domain to itself. */
static void teams_that_fit_have_domains_of_their_own(void **state)
{
    setenv("SHOAL_CORES", "16", 1);
    setenv("SHOAL_CORE_DOMAINS", "0-7;8-15", 1);
    stage *s = new_stage();
    arbiter *a[5];
    const cpu_set_t *where[4];
    int n_low = 0;
    for (int i = 0; i < 5; i++) a[i] = join(s, i + 1);
    for (int i = 0; i < 4; i++) {
        arbiter_acquire(a[i], 5, 4);
        where[i] = arbiter_cpus(a[i]);
        assert_int_equal(CPU_COUNT(where[i]), 8);
        n_low += CPU_ISSET(0, where[i]) != 0;
    }
    assert_int_equal(n_low, 2);
    for (int i = 0; i < 4; i++) arbiter_release(a[i]);
    for (int i = 3; i >= 0; i--) {
        arbiter_acquire(a[i], 5, 4);
        assert_ptr_equal(arbiter_cpus(a[i]), where[i]);
    }
    for (int i = 0; i < 3; i++) arbiter_release(a[i]);
    arbiter_acquire(a[4], 5, 12);
    assert_false(CPU_EQUAL(arbiter_cpus(a[4]), where[0]) || CPU_EQUAL(arbiter_cpus(a[4]), where[3]));
    arbiter_release(a[4]);
    arbiter_acquire(a[4], 5, 8); /* the other one has four left */
    assert_false(arbiter_cpus(a[4]) == where[3]);
    for (int i = 3; i < 5; i++) arbiter_release(a[i]);
    for (int i = 0; i < 5; i++) arbiter_close(a[i]);
    free_stage(s);
    unsetenv("SHOAL_CORE_DOMAINS");
    stage *one = new_stage();
    arbiter *b = join(one, 1);
    arbiter_acquire(b, 5, 4);
    assert_null(arbiter_cpus(b));
    arbiter_release(b);
    arbiter_close(b);
    free_stage(one);
    unsetenv("SHOAL_CORES");
}

static bool team_was_not_passed_by(stage *s)
{
    arbiter *one = join(s, 1);
    asker team = {s, 2, 2, 5};
    pthread_t threads[2];
    player last = {.s = s, .slot = 3, .deadline_ns = 9};
    uint64_t start = clock_ns();
    arbiter_acquire(one, 1, 1);
    pthread_create(&threads[0], NULL, have_cores, &team);
    while (!arbiter_is_wanted(one) && atomic_load(&s->inside) == 0) usleep(1000);
    pthread_create(&threads[1], NULL, wait_for_one, &last);
    usleep(20000);
    bool kept =
        atomic_load(&s->inside) == 0 && atomic_load(&s->n_done) == 0; /* one is free, and for neither */
    arbiter_release(one);
    while (atomic_load(&s->inside) < 2) usleep(1000);
    kept = kept && atomic_load(&s->n_done) == 0;
    note_time_since(s, start);
    atomic_store(&s->step, 1);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    assert_int_equal(atomic_load(&s->n_done), 1);
    arbiter_close(one);
    return kept;
}

/* Who wants more than are free waits for them, and those with later deadlines do not slip in before it. */
static void a_team_waits_for_all_its_cores_and_is_not_passed_by(void **state)
{
    setenv("SHOAL_CORES", "2", 1);
    play_rounds(team_was_not_passed_by);
    unsetenv("SHOAL_CORES");
}

/* The other one of two is somebody's all the while. */
static void a_dead_holder_of_one_core_gives_it_back(void **state)
{
    setenv("SHOAL_CORES", "2", 1);
    stage *s = new_stage();
    arbiter *beside = join(s, 2), *team = join(s, 3);
    arbiter_acquire(beside, 1, 1);
    pid_t pid = fork();
    if (pid == 0) {
        arbiter *a = join(s, 1);
        arbiter_acquire(a, 0, 1);
        atomic_store(&s->step, 2);
        for (;;) pause();
    }
    while (atomic_load(&s->step) != 2) usleep(1000);
    end_child(pid);
    arbiter_reap(s->agent, 1);
    arbiter_release(beside);
    arbiter_acquire(team, 5, 2); /* before any lease is over */
    arbiter_release(team);
    arbiter_close(beside);
    arbiter_close(team);
    free_stage(s);
    unsetenv("SHOAL_CORES");
}

static void a_restarted_worker_frees_what_its_slot_held(void **state)
{
    stage *s = new_stage();
    arbiter *before = join(s, 7);
    arbiter_acquire(before, 1, 0);
    arbiter_close(before); /* left without release, as a crash does */
    arbiter *after = join(s, 7);
    arbiter_acquire(after, 1, 0);
    arbiter_release(after);
    arbiter_close(after);
    free_stage(s);
}

/* Killed at random moments, inside the lock too; the others go on. */
static void death_at_any_moment_is_survived(void **state)
{
    stage *s = new_stage();
    for (int i = 0; i < 60; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            arbiter *a = join(s, 20);
            for (;;) {
                arbiter_acquire(a, 1, 0);
                arbiter_release(a);
            }
        }
        arbiter *a = join(s, 21);
        uint64_t until = clock_ns() + 500000 + rng_mix((uint64_t)i) % 1000000;
        while (clock_ns() < until) {
            arbiter_acquire(a, 2, 0);
            arbiter_release(a);
        }
        end_child(pid);
        arbiter_reap(s->agent, 20);
        arbiter_acquire(a, 2, 0);
        arbiter_release(a);
        arbiter_close(a);
    }
    free_stage(s);
}

/* Cutting the file off under the gateway's mapping would kill the gateway. */
static void the_page_cannot_change_its_size(void **state)
{
    stage *s = new_stage();
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", s->fd);
    int again = open(path, O_RDWR | O_CLOEXEC);
    assert_true(again >= 0);
    assert_int_equal(ftruncate(again, 0), -1);
    assert_int_equal(errno, EPERM);
    assert_int_equal(ftruncate(s->fd, 1 << 20), -1);
    assert_true(fcntl(s->fd, F_GETFD) & FD_CLOEXEC);
    close(again);
    free_stage(s);
}

/* In a process of its own, whose end comes with ours, should a test fail. */
static void take_turns_for_ever(stage *s, int slot)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    arbiter *a = join(s, slot);
    for (;; atomic_fetch_add(&s->n_turns[slot], 1)) {
        arbiter_acquire(a, 1, 0);
        arbiter_release(a);
    }
}

/* Is the one in `slot` inside the lock? It stays there while it is stopped. */
static bool is_inside(stage *s, int slot)
{
    uint64_t turn;
    return arbiter_inside(s->agent, &turn) == slot;
}

/* Stop the process until it happens to be inside the lock. */
static bool stop_inside(stage *s, pid_t pid, int slot)
{
    for (int i = 0; i < 20000; i++) {
        kill(pid, SIGSTOP);
        int status;
        waitpid(pid, &status, WUNTRACED);
        if (is_inside(s, slot)) return true;
        kill(pid, SIGCONT);
        usleep(50 + (useconds_t)(rng_mix((uint64_t)i) % 200));
    }
    return false;
}

static bool stopped_process_stopped_nobody(stage *s)
{
    arbiter *a = join(s, 2);
    pid_t pid = fork();
    if (pid == 0) take_turns_for_ever(s, 1);
    assert_true(stop_inside(s, pid, 1));
    for (int i = 0; i < 50; i++) { /* without waiting for each */
        arbiter_acquire(a, 1, 0);
        arbiter_release(a);
    }
    arbiter_reap(s->agent, 7); /* the agent does not wait at all */
    assert_true(is_inside(s, 1));
    end_child(pid);
    arbiter_reap(s->agent, 1);
    assert_false(is_inside(s, 1));
    arbiter_close(a);
    atomic_store(&s->n_done, 0);
    return threads_had_their_turns(s, 3, 1); /* the lock works again */
}

static void a_process_stopped_inside_the_lock_stops_nobody(void **state)
{
    play_rounds(stopped_process_stopped_nobody);
}

/* Who watches sees the turns go on, whoever is inside at the moment. */
static void turns_of_the_lock_are_counted(void **state)
{
    stage *s = new_stage();
    uint64_t before, turn;
    arbiter *a = join(s, 1);
    arbiter_inside(s->agent, &before);
    for (unsigned i = 1; i <= 10; i++) {
        arbiter_acquire(a, 1, 0);
        arbiter_release(a);
        assert_int_equal(arbiter_inside(s->agent, &turn), -1);
        assert_int_equal(turn - before, 2 * i);
    }
    arbiter_close(a);
    free_stage(s);
}

/* A worker counts where the agent reads, and what a dead one left there is gone with it. */
static void the_page_shows_what_a_worker_has_done(void **state)
{
    stage *s = new_stage();
    arbiter *a = join(s, 3);
    const progress_counts *seen = arbiter_progress(s->agent, 3);
    assert_null(arbiter_progress(s->agent, 64));
    assert_null(arbiter_progress(s->agent, -1));
    progress_publish(arbiter_progress(a, 3));
    uint64_t before = atomic_load(&seen->work);
    progress_begin();
    progress_add(3 * PROGRESS_WORK);
    progress_add(PROGRESS_WORK - 1);
    assert_int_equal(atomic_load(&seen->n_working), 1);
    assert_int_equal(atomic_load(&seen->work) - before, 2); /* one for beginning, one for the work */
    progress_add(1);
    assert_int_equal(atomic_load(&seen->work) - before, 3);
    assert_false(arbiter_queues(s->agent, 3));
    arbiter_reap(s->agent, 3);
    assert_int_equal(atomic_load(&seen->n_working), 0);
    progress_publish(NULL);
    progress_end();
    arbiter_close(a);
    free_stage(s);
}

static void wrong_descriptors_and_slots_are_refused(void **state)
{
    stage *s = new_stage();
    arbiter *a = NULL;
    assert_int_equal(arbiter_join(&a, s->fd, 64, NULL), SHOAL_EINVALID);
    assert_int_equal(arbiter_join(&a, s->fd, -1, NULL), SHOAL_EINVALID);
    assert_int_equal(arbiter_join(&a, 0, 1, NULL), SHOAL_EINVALID);
    assert_null(a);
    arbiter_close(NULL);
    free_stage(s);
}

static void an_uncontended_turn_is_cheap(void **state)
{
    stage *s = new_stage();
    arbiter *a = join(s, 1);
    uint64_t start = clock_ns();
    for (int i = 0; i < 100000; i++) {
        arbiter_acquire(a, 1, 0);
        arbiter_release(a);
    }
    print_message("acquire and release: %.0f ns\n", (double)(clock_ns() - start) / 1e5);
    arbiter_close(a);
    free_stage(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_take_turns),
        cmocka_unit_test(processes_take_turns),
        cmocka_unit_test(the_earliest_deadline_goes_first),
        cmocka_unit_test(a_killed_holder_is_reaped),
        cmocka_unit_test(a_stopped_holder_loses_the_cores),
        cmocka_unit_test(a_late_release_is_harmless),
        cmocka_unit_test(a_killed_waiter_does_not_keep_the_turn),
        cmocka_unit_test(a_holder_sees_that_the_cores_are_wanted),
        cmocka_unit_test(those_who_want_one_core_run_side_by_side),
        cmocka_unit_test(teams_that_fit_have_domains_of_their_own),
        cmocka_unit_test(a_team_waits_for_all_its_cores_and_is_not_passed_by),
        cmocka_unit_test(a_dead_holder_of_one_core_gives_it_back),
        cmocka_unit_test(a_restarted_worker_frees_what_its_slot_held),
        cmocka_unit_test(death_at_any_moment_is_survived),
        cmocka_unit_test(the_page_cannot_change_its_size),
        cmocka_unit_test(a_process_stopped_inside_the_lock_stops_nobody),
        cmocka_unit_test(turns_of_the_lock_are_counted),
        cmocka_unit_test(the_page_shows_what_a_worker_has_done),
        cmocka_unit_test(wrong_descriptors_and_slots_are_refused),
        cmocka_unit_test(an_uncontended_turn_is_cheap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
