/* How many replicas a model gets: simulated models with queues, in simulated time. A test's result is the list of
 * steps: the new number and why, in order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "cluster/scale.h"

enum { TICK_MS = 100, LOOK_MS = 1000, REPLICAS_MAX = 16, LINE_MAX = 4096, SLOTS_MAX = 16 };
#define MS UINT64_C(1000000)

typedef enum { ABSENT, LOADING, ANSWERS, BROKEN } sim_state;

typedef struct sim_replica {
    sim_state state;
    uint64_t ready_ms; /* when a loading one answers */
    uint64_t line[LINE_MAX],
        end_ms[SLOTS_MAX]; /* when those in line came; when those that run end, 0: a free slot */
    size_t n_line;
} sim_replica;

typedef struct sim_model {
    scale s;
    scale_range r;
    unsigned n_slots;
    uint64_t service_ms, load_ms;
    bool breaks;        /* a replica that is asked for fails */
    double per_s, owed; /* requests */
    sim_replica replicas[REPLICAS_MAX];
    uint64_t n_held, n_requests, n_answered;
    uint64_t worst_wait_ms, min_ready;
    scale_why why; /* of the last look */
    char steps[2000];
    size_t n_steps;
} sim_model;

/* Machines have room for so many replicas of all models together. */
typedef struct sim {
    uint64_t now_ms;
    sim_model *models;
    size_t n;
    unsigned room;
} sim;

static sim_model model_of(unsigned min, unsigned max)
{
    return (sim_model){.r = {.min = min, .max = max, .wait_ms = 1000, .idle_ms = 60000},
                       .n_slots = 1,
                       .service_ms = 1000,
                       .load_ms = 5000};
}

static unsigned n_there(const sim_model *m)
{
    unsigned n = 0;
    for (size_t i = 0; i < REPLICAS_MAX; i++) n += m->replicas[i].state != ABSENT;
    return n;
}

static size_t n_running(const sim_model *m, const sim_replica *r)
{
    size_t n = 0;
    for (size_t i = 0; i < m->n_slots; i++) n += r->end_ms[i] > 0;
    return n;
}

/* ---- requests ------------------------------------------------------------------------------------ */

static sim_replica *shortest_line(sim_model *m)
{
    sim_replica *best = NULL;
    for (size_t i = 0; i < REPLICAS_MAX; i++) {
        sim_replica *r = &m->replicas[i];
        if (r->state != ANSWERS) continue;
        if (!best || r->n_line + n_running(m, r) < best->n_line + n_running(m, best)) best = r;
    }
    return best;
}

static void send(sim_model *m, uint64_t now_ms)
{
    sim_replica *r = shortest_line(m);
    if (!r) {
        m->n_held++;
        return;
    }
    assert_true(r->n_line < LINE_MAX);
    r->line[r->n_line++] = now_ms;
    m->n_requests++;
}

static void run_replica(sim_model *m, sim_replica *r, uint64_t now_ms)
{
    for (size_t i = 0; i < m->n_slots; i++) {
        if (r->end_ms[i] > 0 && r->end_ms[i] <= now_ms) {
            r->end_ms[i] = 0;
            m->n_answered++;
        }
        if (r->end_ms[i] > 0 || r->n_line == 0) continue;
        uint64_t waited_ms = now_ms - r->line[0];
        if (waited_ms > m->worst_wait_ms) m->worst_wait_ms = waited_ms;
        r->end_ms[i] = now_ms + m->service_ms;
        memmove(r->line, r->line + 1, --r->n_line * sizeof *r->line);
    }
}

static void burst(sim *x, sim_model *m, unsigned n)
{
    for (unsigned i = 0; i < n; i++) send(m, x->now_ms);
}

static void run_model(sim_model *m, uint64_t now_ms)
{
    for (size_t i = 0; i < REPLICAS_MAX; i++) {
        sim_replica *r = &m->replicas[i];
        if (r->state == LOADING && r->ready_ms <= now_ms) r->state = m->breaks ? BROKEN : ANSWERS;
    }
    for (; m->n_held > 0 && shortest_line(m); m->n_held--) send(m, now_ms);
    for (m->owed += m->per_s * TICK_MS / 1000; m->owed >= 1; m->owed--) send(m, now_ms);
    for (size_t i = 0; i < REPLICAS_MAX; i++)
        if (m->replicas[i].state == ANSWERS) run_replica(m, &m->replicas[i], now_ms);
}

/* ---- looks --------------------------------------------------------------------------------------- */

/* Who leaves gives its requests to the others, as a drain does: none is lost. */
static void serve(sim_model *m, uint64_t now_ms)
{
    while (n_there(m) < m->s.n) {
        size_t i = 0;
        while (m->replicas[i].state != ABSENT) i++;
        m->replicas[i] = (sim_replica){.state = LOADING, .ready_ms = now_ms + m->load_ms};
    }
    while (n_there(m) > m->s.n) {
        size_t i = REPLICAS_MAX - 1;
        while (m->replicas[i].state == ABSENT) i--;
        size_t n = m->replicas[i].n_line + n_running(m, &m->replicas[i]);
        m->replicas[i] = (sim_replica){0};
        for (m->n_requests -= n; n > 0; n--) send(m, now_ms);
    }
}

static scale_view view_of(const sim *x, const sim_model *m)
{
    scale_view v = {.n_slots = m->n_slots, .n_held = m->n_held, .n_requests = m->n_requests};
    unsigned others = 0;
    double least = -1;
    for (size_t i = 0; i < x->n; i++) others += &x->models[i] == m ? 0 : n_there(&x->models[i]);
    unsigned room = x->room > others ? x->room - others : 0;
    v.n_room = room < m->s.n + 1 ? room : m->s.n + 1;
    for (size_t i = 0; i < REPLICAS_MAX; i++) {
        const sim_replica *r = &m->replicas[i];
        v.n_failed += r->state == BROKEN;
        if (r->state != ANSWERS) continue;
        double queue_ms = r->n_line ? (double)(x->now_ms - r->line[0]) : 0;
        if (least < 0 || queue_ms < least) least = queue_ms;
        v.n_ready++;
        v.n_running += n_running(m, r);
        v.n_waiting += r->n_line;
    }
    v.queue_ms = least > 0 ? least : 0;
    return v;
}

static void look(sim *x, sim_model *m)
{
    scale_view v = view_of(x, m);
    unsigned was = m->s.n;
    bool starting = v.n_ready < m->s.n;
    bool needs = scale_needs_room(&m->s, &m->r, &v);
    scale one = m->s;
    m->why = scale_look(&m->s, &m->r, &v, x->now_ms * MS);
    if (!needs) { /* whatever the room is, the same comes of it */
        v.n_room = was + 1;
        assert_int_equal(scale_look(&one, &m->r, &v, x->now_ms * MS), m->why);
        assert_int_equal(one.n, m->s.n);
    }
    if (!scale_is_step(m->why)) {
        assert_int_equal(m->s.n, was);
        return;
    }
    assert_true(m->s.n <= m->r.max && m->s.n >= m->r.min);
    if (m->s.n > was && m->why != SCALE_RANGE)
        assert_true(m->s.n == was + 1 && !starting); /* one at a time */
    m->n_steps++;
    size_t at = strlen(m->steps);
    snprintf(m->steps + at, sizeof m->steps - at, "%s%u %s", at ? ", " : "", m->s.n, scale_why_word(m->why));
    serve(m, x->now_ms);
}

static void run(sim *x, uint64_t ms)
{
    for (uint64_t end = x->now_ms + ms; x->now_ms < end;) {
        x->now_ms += TICK_MS;
        for (size_t i = 0; i < x->n; i++) run_model(&x->models[i], x->now_ms);
        for (size_t i = 0; x->now_ms % LOOK_MS == 0 && i < x->n; i++) look(x, &x->models[i]);
    }
}

static sim sim_of(sim_model *models, size_t n, unsigned room)
{
    sim x = {.now_ms = LOOK_MS, .models = models, .n = n, .room = room};
    for (size_t i = 0; i < n; i++) {
        scale_begin(&models[i].s, &models[i].r, x.now_ms * MS);
        serve(&models[i], x.now_ms);
    }
    return x;
}

static void expect_steps(sim_model *m, const char *steps)
{
    assert_string_equal(m->steps, steps);
    *m->steps = '\0';
    m->n_steps = 0;
}

/* Until all that was asked is answered. */
static void drain(sim *x, sim_model *m)
{
    m->per_s = 0;
    for (int i = 0; i < 100000 && m->n_answered < m->n_requests + m->n_held; i++) run(x, TICK_MS);
    assert_int_equal(m->n_answered, m->n_requests + m->n_held);
}

/* ---- the tests ----------------------------------------------------------------------------------- */

static void a_load_that_fits_changes_nothing(void **state)
{
    sim_model m = model_of(1, 4);
    sim x = sim_of(&m, 1, 8);
    run(&x, 10000);
    m.per_s = 0.9;
    run(&x, 3600000);
    expect_steps(&m, "");
    drain(&x, &m);
}

static void a_load_that_rises_gets_as_many_as_it_needs(void **state)
{
    sim_model m = model_of(1, 8);
    sim x = sim_of(&m, 1, 16);
    m.per_s = 0.5;
    run(&x, 60000);
    expect_steps(&m, "");
    for (int i = 1; i <= 3; i++) {
        m.per_s = i;
        run(&x, 300000);
    }
    expect_steps(&m, "2 waited, 3 waited");
    m.per_s = 3.3;
    run(&x, 300000);
    expect_steps(&m, "4 waited");
    m.worst_wait_ms = 0;
    run(&x, 300000);
    assert_in_range(m.worst_wait_ms, 0, m.r.wait_ms); /* the aim is reached */
    m.per_s = 1.5;
    run(&x, 600000);
    expect_steps(&m, "3 idle");
    m.per_s = 0;
    run(&x, 600000);
    expect_steps(&m, "2 idle, 1 idle");
    drain(&x, &m);
}

/* While each one loads the queue grows on, and what is in line then takes two more than the load by itself; one of these
 * goes when that is done. The other one stays, because four would be busier than seven tenths. */
static void a_jump_gets_what_its_queue_needs_and_not_max(void **state)
{
    sim_model m = model_of(1, 16);
    m.load_ms = 20000;
    sim x = sim_of(&m, 1, 16);
    run(&x, 60000);
    m.per_s = 3.5;
    run(&x, 600000);
    expect_steps(&m, "2 waited, 3 waited, 4 waited, 5 waited, 6 waited, 5 idle");
    run(&x, 600000);
    expect_steps(&m, "");
    drain(&x, &m);
}

static void a_burst_that_is_over_before_a_replica_would_answer_starts_none(void **state)
{
    sim_model m = model_of(1, 4);
    m.load_ms = 20000;
    sim x = sim_of(&m, 1, 8);
    run(&x, 60000);
    burst(&x, &m, 10);
    run(&x, 6000);
    assert_int_equal(m.why, SCALE_TOO_LATE);
    run(&x, 60000);
    expect_steps(&m, "");
    burst(&x, &m, 100); /* this one lasts: one more takes what comes, and a third would have nothing to do */
    run(&x, 100000);
    expect_steps(&m, "2 waited");
    run(&x, 180000);
    expect_steps(&m, "1 idle");
    drain(&x, &m);
}

static void without_room_there_is_no_step(void **state)
{
    sim_model m = model_of(1, 4);
    sim x = sim_of(&m, 1, 1);
    m.per_s = 2;
    run(&x, 60000);
    assert_int_equal(m.why, SCALE_NO_ROOM);
    expect_steps(&m, "");
    x.room = 2;
    run(&x, LOOK_MS);
    expect_steps(&m, "2 waited");
    drain(&x, &m);
}

static void there_are_at_most_max(void **state)
{
    sim_model m = model_of(1, 2);
    sim x = sim_of(&m, 1, 8);
    m.per_s = 5;
    run(&x, 120000);
    assert_int_equal(m.why, SCALE_AT_MAX);
    expect_steps(&m, "2 waited");
    drain(&x, &m);
}

static void one_that_cannot_start_is_given_up_for_a_while(void **state)
{
    sim_model m = model_of(1, 4);
    sim x = sim_of(&m, 1, 8);
    run(&x, 10000);
    m.breaks = true;
    m.per_s = 1.2;
    run(&x, 40000);
    expect_steps(&m, "2 waited, 1 failed");
    run(&x, LOOK_MS);
    assert_int_equal(m.why, SCALE_PAUSES);
    run(&x, 240000); /* after 30, 60 and 120 s */
    expect_steps(&m, "2 waited, 1 failed, 2 waited, 1 failed, 2 waited, 1 failed");
    m.breaks = false;
    run(&x, 240000);
    expect_steps(&m, "2 waited");
    assert_int_equal(m.s.pause_ms, 0);
    drain(&x, &m);
}

/* Between its failures it is starting. */
static void one_that_fails_again_and_again_is_given_up(void **state)
{
    sim_model m = model_of(1, 4);
    m.load_ms = 60000;
    sim x = sim_of(&m, 1, 8);
    run(&x, 70000);
    m.per_s = 1.5;
    run(&x, 20000);
    expect_steps(&m, "2 waited");
    m.replicas[1].state = BROKEN;
    run(&x, LOOK_MS);
    m.replicas[1].state = LOADING;
    run(&x, 10000);
    expect_steps(&m, "");
    m.replicas[1].state = BROKEN;
    run(&x, LOOK_MS);
    expect_steps(&m, "1 failed");
    drain(&x, &m);
}

/* Whoever is asked for and cannot start is to be seen: the last one stays wanted. */
static void the_last_one_stays_wanted_though_it_fails(void **state)
{
    sim_model m = model_of(0, 4);
    sim x = sim_of(&m, 1, 8);
    m.breaks = true;
    m.per_s = 1;
    run(&x, 60000);
    expect_steps(&m, "1 called");
}

static void a_machine_that_leaves_takes_its_replica_with_it(void **state)
{
    sim_model m = model_of(1, 4);
    sim x = sim_of(&m, 1, 3);
    m.per_s = 2.5;
    run(&x, 120000);
    expect_steps(&m, "2 waited, 3 waited");
    x.room = 2;
    m.replicas[2].state = BROKEN; /* its worker is gone; the tests' requests wait for it */
    m.n_requests -= m.replicas[2].n_line + n_running(&m, &m.replicas[2]);
    m.replicas[2].n_line = 0;
    memset(m.replicas[2].end_ms, 0, sizeof m.replicas[2].end_ms);
    run(&x, LOOK_MS);
    expect_steps(&m, "2 no_machine");
    run(&x, 60000);
    assert_int_equal(m.why, SCALE_NO_ROOM);
    x.room = 3;
    run(&x, LOOK_MS);
    expect_steps(&m, "3 waited");
    drain(&x, &m);
}

/* A load that comes and goes in a rhythm: after each raise that follows a step down soon, the next step down takes
 * twice as long, so that replicas are not started and ended for ever. */
static void a_rhythm_does_not_start_and_end_replicas_for_ever(void **state)
{
    sim_model m = model_of(1, 2);
    sim x = sim_of(&m, 1, 8);
    unsigned n_first = 0;
    for (int i = 0; i < 80; i++) {
        m.per_s = 1.5;
        run(&x, 60000);
        m.per_s = 0.2;
        run(&x, 120000);
        if (i == 39) n_first = (unsigned)m.n_steps;
    }
    assert_int_equal(m.n_steps, n_first); /* it has come to rest with two */
    expect_steps(&m, "2 waited, 1 idle, 2 waited, 1 idle, 2 waited");
    assert_int_equal(m.s.n, 2);
    drain(&x, &m);
}

static void after_a_quiet_time_there_is_none_and_the_first_request_brings_one(void **state)
{
    sim_model m = model_of(0, 2);
    sim x = sim_of(&m, 1, 8);
    run(&x, 600000);
    expect_steps(&m, "");
    burst(&x, &m, 1);
    run(&x, LOOK_MS);
    expect_steps(&m, "1 called");
    run(&x, m.load_ms + m.service_ms + LOOK_MS);
    assert_int_equal(m.n_answered, 1);
    m.per_s = 1.0 / 30; /* each is within idle_ms of the last */
    run(&x, 600000);
    expect_steps(&m, "");
    m.per_s = 0;
    run(&x, 120000);
    expect_steps(&m, "0 idle");
    burst(&x, &m, 30); /* and from none to two */
    run(&x, 30000);
    expect_steps(&m, "1 called, 2 waited");
    drain(&x, &m);
}

static void another_range_counts_at_once(void **state)
{
    sim_model m = model_of(2, 4);
    sim x = sim_of(&m, 1, 8);
    run(&x, 30000);
    m.r.min = m.r.max = 3;
    run(&x, LOOK_MS);
    expect_steps(&m, "3 range");
    m.r = (scale_range){.min = 1, .max = 1, .wait_ms = 1000, .idle_ms = 60000};
    run(&x, LOOK_MS);
    expect_steps(&m, "1 range");
}

/* Two models and room for four replicas: who waits gets what there is, and the other one keeps what it has. */
static void models_share_what_room_there_is(void **state)
{
    static sim_model m[2];
    m[0] = model_of(1, 4);
    m[1] = model_of(1, 4);
    sim x = sim_of(m, 2, 4);
    m[0].per_s = 2.5;
    run(&x, 300000);
    expect_steps(&m[0], "2 waited, 3 waited");
    m[1].per_s = 1.5;
    run(&x, 60000);
    assert_int_equal(m[1].why, SCALE_NO_ROOM);
    expect_steps(&m[1], "");
    m[0].per_s = 0.5;
    run(&x, 300000);
    expect_steps(&m[0], "2 idle, 1 idle");
    expect_steps(&m[1], "2 waited, 3 waited");
    drain(&x, &m[0]);
    drain(&x, &m[1]);
}

/* Waits that ended count where all slots are taken, and not before the last replica had time to change them. */
static void waits_that_ended_count_while_all_slots_are_taken(void **state)
{
    scale_range r = {.min = 1, .max = 3, .wait_ms = 1000, .idle_ms = 60000};
    scale_view v = {.n_ready = 1, .n_room = 9, .n_slots = 4, .n_running = 4, .p95_ms = 1500};
    scale s;
    uint64_t now = 1000 * MS;
    scale_begin(&s, &r, now);
    for (int i = 0; i < 3; i++) assert_int_equal(scale_look(&s, &r, &v, now += 1000 * MS), SCALE_STEADY);
    assert_int_equal(scale_look(&s, &r, &v, now += 1000 * MS), SCALE_STEADY); /* the window is too old */
    v.p95_since_ns = now;
    v.n_running = 3; /* a slot is free */
    for (int i = 0; i < 9; i++) assert_int_equal(scale_look(&s, &r, &v, now += 1000 * MS), SCALE_STEADY);
    v.n_running = 4;
    for (int i = 0; i < 3; i++) assert_int_equal(scale_look(&s, &r, &v, now += 1000 * MS), SCALE_STEADY);
    assert_int_equal(scale_look(&s, &r, &v, now += 1000 * MS), SCALE_WAITED);
    assert_int_equal(s.n, 2);
}

static void a_gateway_that_follows_takes_the_number_into_its_range(void **state)
{
    scale_range r = {.min = 1, .max = 3, .wait_ms = 1000, .idle_ms = 60000};
    scale s;
    scale_begin(&s, &r, 1000 * MS);
    scale_follow(&s, &r, 2, 2000 * MS);
    assert_int_equal(s.n, 2);
    scale_follow(&s, &r, 9, 3000 * MS);
    assert_int_equal(s.n, 3);
    scale_follow(&s, &r, 0, 4000 * MS);
    assert_int_equal(s.n, 1);
}

/* Its memory would count as being taken for ever, and leave no room for others. */
static void a_fixed_number_is_not_starting_for_ever(void **state)
{
    scale_range fixed = {.min = 3}, r = {.min = 1, .max = 3};
    scale s;
    scale_begin(&s, &fixed, 1000 * MS);
    assert_int_equal(s.n, 3);
    assert_int_equal(s.step_ns, 0);
    scale_begin(&s, &r, 2000 * MS);
    assert_int_equal(s.step_ns, 2000 * MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_load_that_fits_changes_nothing),
        cmocka_unit_test(a_load_that_rises_gets_as_many_as_it_needs),
        cmocka_unit_test(a_jump_gets_what_its_queue_needs_and_not_max),
        cmocka_unit_test(a_burst_that_is_over_before_a_replica_would_answer_starts_none),
        cmocka_unit_test(without_room_there_is_no_step),
        cmocka_unit_test(there_are_at_most_max),
        cmocka_unit_test(one_that_cannot_start_is_given_up_for_a_while),
        cmocka_unit_test(one_that_fails_again_and_again_is_given_up),
        cmocka_unit_test(the_last_one_stays_wanted_though_it_fails),
        cmocka_unit_test(a_machine_that_leaves_takes_its_replica_with_it),
        cmocka_unit_test(a_rhythm_does_not_start_and_end_replicas_for_ever),
        cmocka_unit_test(after_a_quiet_time_there_is_none_and_the_first_request_brings_one),
        cmocka_unit_test(another_range_counts_at_once),
        cmocka_unit_test(models_share_what_room_there_is),
        cmocka_unit_test(waits_that_ended_count_while_all_slots_are_taken),
        cmocka_unit_test(a_gateway_that_follows_takes_the_number_into_its_range),
        cmocka_unit_test(a_fixed_number_is_not_starting_for_ever),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
