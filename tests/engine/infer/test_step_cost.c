/* How many threads, in simulated time: quiet machines, neighbours that come and go, steps of all sizes; two cores,
 * and sixteen. */
#include "helper.h"
#include "infer/step_cost.h"

/* Of two members: both? */
static bool chooses_team(step_cost *p, step_kind k, size_t n)
{
    return step_cost_choose(p, k, n) > 1;
}

static bool prefers_team(const step_cost *p, step_kind k, size_t n)
{
    return step_cost_prefers(p, k, n) > 1;
}

static void note(step_cost *p, step_kind k, size_t n, bool as_team, uint64_t took_ns)
{
    step_cost_note(p, k, n, as_team ? p->n_members : 1, took_ns);
}

typedef struct machine {
    double fixed[2], token[2]; /* ns: alone, as a team */
    double slow[2];            /* what neighbours do to each way; 0: nothing */
    unsigned every;            /* one step in so many lasts twenty times as long: the scheduler; 0: none */
    unsigned n_cold;           /* the first steps meet cold memory */
    unsigned n_steps;
    double spent, lost; /* ns in all, and beyond what the better way would have taken */
    unsigned n_team;    /* steps that were the team's */
} machine;

static double takes(const machine *m, bool as_team, double n)
{
    double slow = m->slow[as_team] > 0 ? m->slow[as_team] : 1;
    return (m->fixed[as_team] + m->token[as_team] * n) * slow;
}

static bool one_step(step_cost *p, machine *m, step_kind k, size_t n)
{
    bool as_team = chooses_team(p, k, n);
    double took = takes(m, as_team, (double)n), other = takes(m, !as_team, (double)n);
    m->lost += took > other ? took - other : 0;
    m->n_team += as_team;
    if (m->every && rng_mix(m->n_steps) % m->every == 0) took *= 20;
    if (m->n_steps++ < m->n_cold) took *= 15;
    m->spent += took;
    note(p, k, n, as_team, (uint64_t)took);
    return as_team;
}

static void steps(step_cost *p, machine *m, step_kind k, size_t n, unsigned count)
{
    while (count-- > 0) one_step(p, m, k, n);
}

/* So many steps until the preference is as said, `most` when it does not come. */
static unsigned until(step_cost *p, machine *m, step_kind k, size_t n, bool as_team, unsigned most)
{
    unsigned i = 0;
    while (i < most && prefers_team(p, k, n) != as_team) {
        one_step(p, m, k, n);
        i++;
    }
    return i;
}

static void forget_times(machine *m)
{
    m->spent = m->lost = 0;
    m->n_team = 0;
}

/* 135 M: prompts gain 1.8 times from two threads, and 1 B: decoding 1.4 times. */
static void a_large_model_keeps_its_team(void **state)
{
    machine prompts = {.fixed = {4e6, 4e6}, .token = {5e5, 2.7e5}, .n_cold = 2};
    machine replies = {.fixed = {80e6, 55e6}, .token = {4e6, 2e6}, .n_cold = 2};
    step_cost p = {.n_members = 2};
    steps(&p, &prompts, STEP_PREFILL, 256, 1000);
    steps(&p, &replies, STEP_DECODE, 1, 1000);
    assert_true(prompts.lost < 0.02 * prompts.spent && prompts.n_team > 950);
    assert_true(replies.lost < 0.02 * replies.spent && replies.n_team > 950);
}

/* 135 M Q8_0: the short end of a prompt may be tried alone, and the long chunks behind it are not part of that. */
static void a_trial_of_short_steps_does_not_go_on_with_long_ones(void **state)
{
    machine m = {.fixed = {9.2e6, 4.2e6}, .token = {1.0e6, 0.52e6}};
    step_cost p = {.n_members = 2};
    unsigned n_alone = 0;
    for (int i = 0; i < 40; i++) {
        n_alone += !one_step(&p, &m, STEP_PREFILL, 256);
        one_step(&p, &m, STEP_PREFILL, 8);
    }
    assert_true(n_alone <= 1);
    assert_true(p.of[STEP_PREFILL].way[0].n_seen > 0);
}

/* 135 M Q4_0, prompts of 8: the scheduler may begin with both members on one core. */
static void first_steps_on_one_core_are_not_the_last_word(void **state)
{
    machine m = {.fixed = {2e6, 2e6}, .token = {78e4, 37e4}};
    step_cost p = {.n_members = 2};
    for (int i = 0; i < 2; i++) {
        assert_true(chooses_team(&p, STEP_PREFILL, 8));
        note(&p, STEP_PREFILL, 8, true, 9500000);
    }
    assert_false(one_step(&p, &m, STEP_PREFILL, 8));
    assert_false(prefers_team(&p, STEP_PREFILL, 8));
    assert_true(until(&p, &m, STEP_PREFILL, 8, true, 100) <= 5);
}

/* 24 M on near cores: a team that slept takes longer than one member, and less when it goes on. */
static void a_team_that_must_get_warm_is_found(void **state)
{
    step_cost p = {.n_members = 2};
    unsigned warm = 0, n_team = 0;
    for (int i = 0; i < 400; i++) {
        bool as_team = chooses_team(&p, STEP_DECODE, 1);
        warm = as_team ? warm + 1 : 0;
        double ms = i < 2 ? 1.3 : !as_team ? 0.60 : warm < 3 ? 0.72 : 0.40;
        note(&p, STEP_DECODE, 1, as_team, (uint64_t)(ms * 1e6));
        n_team += i >= 100 && as_team;
    }
    assert_true(n_team > 290);
}

static void a_tiny_model_goes_alone_at_once(void **state)
{
    machine m = {.fixed = {60e3, 90e3}, .token = {10e3, 8e3}, .n_cold = 1};
    step_cost p = {.n_members = 2};
    assert_true(until(&p, &m, STEP_DECODE, 1, false, 100) < 8);
    forget_times(&m);
    steps(&p, &m, STEP_DECODE, 1, 2000);
    assert_true(m.lost < 0.02 * m.spent);
}

/* Where the ways cross, each size gets its own: no size teaches another one a wrong choice. */
static void small_prompts_go_alone_and_long_ones_as_a_team(void **state)
{
    static const size_t sizes[] = {8, 250, 16, 120, 64, 5, 256};
    machine m = {.fixed = {50e3, 400e3}, .token = {20e3, 11e3}, .n_cold = 1}; /* equal at 39 tokens */
    step_cost p = {.n_members = 2};
    for (int i = 0; i < 300; i++) one_step(&p, &m, STEP_PREFILL, sizes[i % 7]);
    forget_times(&m);
    for (int i = 0; i < 700; i++) one_step(&p, &m, STEP_PREFILL, sizes[i % 7]);
    assert_true(m.lost < 0.03 * m.spent);
    for (int i = 0; i < 7; i++) assert_int_equal(prefers_team(&p, STEP_PREFILL, sizes[i]), sizes[i] > 39);
}

/* A size that was never seen: the lines through others say what it takes. */
static void a_new_size_is_right_the_first_time(void **state)
{
    machine m = {.fixed = {50e3, 400e3}, .token = {20e3, 11e3}};
    step_cost p = {.n_members = 2};
    for (int i = 0; i < 400; i++) one_step(&p, &m, STEP_PREFILL, i % 2 ? 16 : 96);
    assert_true(prefers_team(&p, STEP_PREFILL, 256));
    assert_false(prefers_team(&p, STEP_PREFILL, 4));
}

/* A compiler takes one of two cores: a step of the team lasts ten times as long, one alone as ever. */
static void a_neighbour_that_comes_is_noticed_within_three_steps(void **state)
{
    machine m = {.fixed = {160e3, 120e3}, .token = {12e3, 8e3}};
    step_cost p = {.n_members = 2};
    steps(&p, &m, STEP_DECODE, 1, 1000);
    assert_true(prefers_team(&p, STEP_DECODE, 1));
    m.slow[1] = 10;
    assert_true(until(&p, &m, STEP_DECODE, 1, false, 100) <= 3);
    forget_times(&m);
    steps(&p, &m, STEP_DECODE, 1, 5000);
    assert_true(m.lost < 0.02 * m.spent);
}

/* Twice as long is no more than alone takes anyway; the trial that it pays for comes at once. */
static void a_mild_neighbour_is_weighed(void **state)
{
    machine m = {.fixed = {160e3, 120e3}, .token = {12e3, 8e3}};
    step_cost p = {.n_members = 2};
    steps(&p, &m, STEP_DECODE, 1, 1000);
    m.slow[1] = 2;
    assert_true(until(&p, &m, STEP_DECODE, 1, false, 100) <= 10);
    m.slow[0] = 4; /* now it wants the core that is ours */
    assert_true(until(&p, &m, STEP_DECODE, 1, true, 100) <= 10);
}

static void a_neighbour_that_leaves_is_noticed(void **state)
{
    machine m = {.fixed = {160e3, 120e3}, .token = {12e3, 8e3}};
    step_cost p = {.n_members = 2};
    steps(&p, &m, STEP_DECODE, 1, 100);
    for (int i = 0; i < 3; i++) {
        m.slow[1] = 10;
        steps(&p, &m, STEP_DECODE, 1, 10000);
        assert_false(prefers_team(&p, STEP_DECODE, 1));
        m.slow[1] = 0;
        forget_times(&m);
        until(&p, &m, STEP_DECODE, 1, true, 100000);
        assert_true(m.spent < 0.5e9); /* simulated */
        assert_true(prefers_team(&p, STEP_DECODE, 1));
    }
}

/* A hiccup in one step of a hundred is nobody's fault. */
static void single_slow_steps_do_not_change_the_way(void **state)
{
    for (unsigned way = 0; way < 2; way++) {
        machine m = {.fixed = {way ? 160e3 : 100e3, 120e3}, .token = {12e3, 8e3}, .every = 100};
        step_cost p = {.n_members = 2};
        steps(&p, &m, STEP_DECODE, 1, 20000);
        assert_true(m.lost < 0.03 * m.spent);
        assert_true(way ? m.n_team > 18000 : m.n_team < 2000);
    }
}

/* What decoding has met counts for the first prompt: it goes alone where the machine is busy. */
static void other_kinds_of_step_begin_where_the_first_one_is(void **state)
{
    machine m = {.fixed = {160e3, 120e3}, .token = {12e3, 8e3}, .slow = {1, 10}};
    step_cost p = {.n_members = 2};
    steps(&p, &m, STEP_DECODE, 1, 200);
    assert_false(prefers_team(&p, STEP_DECODE, 1));
    assert_true(one_step(&p, &m, STEP_PREFILL, 64)); /* somebody must say what a token takes */
    assert_false(chooses_team(&p, STEP_PREFILL, 64));
    step_cost quiet = {.n_members = 2};
    m.slow[1] = 1;
    steps(&quiet, &m, STEP_DECODE, 1, 200);
    one_step(&quiet, &m, STEP_PREFILL, 64);
    assert_true(prefers_team(&quiet, STEP_PREFILL, 64));
}

/* It was there for a hundred prompts, and is not thought to be there for a thousand more. */
static void a_neighbour_is_thought_to_stay_as_long_as_it_was_there(void **state)
{
    machine m = {.fixed = {1e6, 1e6}, .token = {9e5, 5e5}};
    step_cost p = {.n_members = 2};
    steps(&p, &m, STEP_PREFILL, 32, 100);
    m.slow[1] = 10;
    steps(&p, &m, STEP_PREFILL, 32, 100);
    assert_false(prefers_team(&p, STEP_PREFILL, 32));
    m.slow[1] = 0;
    assert_true(until(&p, &m, STEP_PREFILL, 32, true, 1000) <= 150);
    assert_true(prefers_team(&p, STEP_PREFILL, 200));
}

/* One kind of step meets it, and the next step of the other kind tries the other way; the same when it goes.
 */
static void what_one_kind_of_step_meets_counts_for_the_others(void **state)
{
    machine m = {.fixed = {160e3, 120e3}, .token = {12e3, 8e3}};
    step_cost p = {.n_members = 2};
    for (int i = 0; i < 200; i++) one_step(&p, &m, i % 2 ? STEP_DECODE : STEP_PREFILL, i % 2 ? 1 : 64);
    assert_true(prefers_team(&p, STEP_PREFILL, 64));
    m.slow[1] = 10;
    until(&p, &m, STEP_DECODE, 1, false, 10);
    assert_false(chooses_team(&p, STEP_PREFILL, 64));
    steps(&p, &m, STEP_PREFILL, 64, 300);
    assert_false(prefers_team(&p, STEP_PREFILL, 64));
    m.slow[1] = 0;
    until(&p, &m, STEP_DECODE, 1, true, 100000);
    assert_true(prefers_team(&p, STEP_PREFILL, 64));
}

/* While it is there a team is tried in a sixteenth of the trials that are due, and at once when it has left. */
static void trials_of_a_team_wait_for_a_free_core(void **state)
{
    machine m = {.fixed = {160e3, 120e3}, .token = {12e3, 8e3}};
    step_cost p = {.n_members = 2};
    unsigned n_team = 0, n_deferred = 0;
    steps(&p, &m, STEP_DECODE, 1, 100);
    m.slow[1] = 10;
    until(&p, &m, STEP_DECODE, 1, false, 100);
    for (int i = 0; i < 4000; i++) {
        int n = step_cost_choose(&p, STEP_DECODE, 1), asked = n;
        if (n > step_cost_prefers(&p, STEP_DECODE, 1)) n = step_cost_defer(&p, STEP_DECODE, 1, n);
        n_deferred += n < asked;
        n_team += n > 1;
        step_cost_note(&p, STEP_DECODE, 1, n, (uint64_t)takes(&m, n > 1, 1));
    }
    assert_true(n_team > 0 && n_deferred >= 15 * (n_team - 1) && n_team < 20);
    assert_false(prefers_team(&p, STEP_DECODE, 1));
    m.slow[1] = 0;
    assert_true(until(&p, &m, STEP_DECODE, 1, true, 10000) <= 256);
}

/* What a process tells the next one. */
static step_cost next_process(const step_cost *before)
{
    step_cost_known known;
    step_cost p = {.n_members = 2};
    assert_true(step_cost_tell(before, &known));
    step_cost_recall(&p, &known);
    return p;
}

/* Each size from the first step on, and whatever was there when the last process ended. */
static void what_was_kept_is_right_the_first_time(void **state)
{
    static const size_t sizes[] = {8, 250, 16, 120, 64, 5, 256};
    machine m = {.fixed = {50e3, 400e3}, .token = {20e3, 11e3}}; /* equal at 39 tokens */
    step_cost before = {.n_members = 2};
    for (int i = 0; i < 1000; i++) one_step(&before, &m, STEP_PREFILL, sizes[i % 7]);
    m.slow[1] = 10;
    for (int i = 0; i < 100; i++) one_step(&before, &m, STEP_PREFILL, sizes[i % 7]);
    m.slow[1] = 0;
    m.n_steps = 0;
    m.n_cold = 1;
    step_cost p = next_process(&before);
    for (int i = 0; i < 7; i++) assert_int_equal(chooses_team(&p, STEP_PREFILL, sizes[i]), sizes[i] > 39);
    forget_times(&m);
    for (int i = 0; i < 100; i++) one_step(&p, &m, STEP_PREFILL, sizes[i % 7]);
    assert_true(m.lost < 0.05 * m.spent);
}

/* No more than where it begins: a machine that is busy now is noticed as at any time. */
static void what_was_kept_is_corrected_within_a_few_steps(void **state)
{
    machine m = {.fixed = {4e6, 4e6}, .token = {5e5, 2.7e5}};
    step_cost before = {.n_members = 2};
    steps(&before, &m, STEP_PREFILL, 128, 400);
    m.slow[1] = 2.5;
    step_cost p = next_process(&before);
    assert_true(prefers_team(&p, STEP_PREFILL, 128));
    assert_true(until(&p, &m, STEP_PREFILL, 128, false, 100) <= 4);
}

/* A file of another time says nothing of this machine, and a first step shows it. */
static void what_was_kept_of_a_faster_or_slower_machine_is_dropped(void **state)
{
    static const double factors[] = {1e-4, 0.1, 100};
    for (int i = 0; i < 3; i++) {
        machine then = {.fixed = {160e3, 120e3}, .token = {12e3, 8e3}, .slow = {factors[i], factors[i]}};
        machine m = {.fixed = {60e3, 90e3}, .token = {10e3, 11e3}};
        step_cost before = {.n_members = 2};
        steps(&before, &then, STEP_DECODE, 1, 1000);
        step_cost p = next_process(&before);
        assert_true(until(&p, &m, STEP_DECODE, 1, false, 100) < 8);
    }
}

static void what_no_machine_takes_is_not_recalled(void **state)
{
    static const struct {
        double alone, as_team;
    } odd[] = {{NAN, 1e5}, {1e5, NAN},   {INFINITY, 1e5}, {-1e5, 1e5}, {0, 0},
               {1e5, 0},   {1e18, 1e18}, {1e5, 1e8},      {1e8, 1e5}};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        step_cost p = {.n_members = 2};
        step_cost_known known = {0};
        known.of[STEP_DECODE][0].fixed_ns = odd[i].alone;
        known.of[STEP_DECODE][1].fixed_ns = odd[i].as_team;
        step_cost_recall(&p, &known);
        assert_int_equal(p.of[STEP_DECODE].way[0].n_seen + p.of[STEP_DECODE].way[1].n_seen, 0);
    }
    step_cost young = {.n_members = 2};
    step_cost_known known;
    assert_false(step_cost_tell(&young, &known));
    note(&young, STEP_DECODE, 1, true, 1000);
    assert_false(step_cost_tell(&young, &known));
}

/* Two workers on two cores: steps of one member side by side are over before steps of the team in turn,
 * unless the team is more than twice as fast. With nobody else the team is taken again, without a trial. */
static void with_other_workers_a_step_leaves_them_their_core(void **state)
{
    machine m = {.fixed = {160e3, 100e3}, .token = {12e3, 7e3}};
    step_cost p = {.n_members = 2};
    steps(&p, &m, STEP_DECODE, 1, 100);
    assert_true(prefers_team(&p, STEP_DECODE, 1));
    for (p.crowd = 2; p.crowd < 5; p.crowd++) {
        forget_times(&m);
        steps(&p, &m, STEP_DECODE, 1, 200);
        assert_true(m.n_team < 20);
        assert_false(prefers_team(&p, STEP_DECODE, 1));
    }
    p.crowd = 1;
    assert_true(prefers_team(&p, STEP_DECODE, 1));
}

static void one_member_has_no_choice(void **state)
{
    step_cost p = {.n_members = 1}, none = {0};
    for (int i = 0; i < 50; i++) {
        assert_int_equal(step_cost_choose(&p, STEP_ENCODE, 1000), 1);
        step_cost_note(&p, STEP_ENCODE, 1000, 1, i % 7 ? 1000 : 0);
    }
    assert_int_equal(step_cost_choose(&none, STEP_DECODE, 0), 1);
}

/* The same times, the same choices; and no time breaks the arithmetic. */
static void choices_follow_from_times_alone(void **state)
{
    static const int sizes[] = {2, 3, 4, 12, 16, 64};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        step_cost a = {.n_members = sizes[s]}, b = {.n_members = sizes[s]};
        for (uint64_t i = 0; i < 20000; i++) {
            step_kind k = (step_kind)(rng_mix(i) % STEP_KINDS);
            size_t n = rng_mix(i + 1) % 700;
            uint64_t took = rng_mix(i + 2) >> (rng_mix(i + 3) % 64);
            int m = step_cost_choose(&a, k, n);
            assert_int_equal(m, step_cost_choose(&b, k, n));
            assert_true(m == sizes[s] || (m >= 1 && m < sizes[s] && (m & (m - 1)) == 0));
            step_cost_note(&a, k, n, m, took);
            step_cost_note(&b, k, n, m, took);
            for (int w = 0; w < STEP_WAYS; w++) {
                const step_cost_line *l = &a.of[k].way[w];
                assert_true(l->fixed_ns >= 0 && l->token_ns >= 0 && l->fixed_ns + l->token_ns < 1e21);
            }
        }
    }
}

/* ---- sixteen cores -------------------------------------------------------------------------------- */

/* A step of n tokens: what does not split, what does, and barriers that cost more the more members meet. */
typedef struct large_machine {
    double serial, work, token_work, barriers; /* ns; barriers: of a step, for each doubling of the members */
    int busy;              /* cores that other programs have: members beyond the rest are slow */
    double core_ns, spent; /* of all steps: times members, and alone */
    unsigned n_of[65];     /* steps by members */
} large_machine;

static double large_takes(const large_machine *m, int n_members, double n)
{
    double doublings = log2(n_members), slow = n_members > 16 - m->busy ? 10 : 1;
    return (m->serial + (m->work + m->token_work * n) / n_members + m->barriers * doublings * doublings) *
           slow;
}

static void large_steps(step_cost *p, large_machine *m, step_kind k, size_t n, unsigned count)
{
    m->core_ns = m->spent = 0;
    memset(m->n_of, 0, sizeof m->n_of);
    while (count-- > 0) {
        int n_members = step_cost_choose(p, k, n);
        double took = large_takes(m, n_members, (double)n);
        m->n_of[n_members]++;
        m->spent += took;
        m->core_ns += took * n_members;
        step_cost_note(p, k, n, n_members, (uint64_t)took);
    }
}

/* Which number of members takes the least time? */
static int fastest(const large_machine *m, double n)
{
    int best = 1;
    for (int i = 2; i <= 16; i *= 2)
        if (large_takes(m, i, n) < large_takes(m, best, n)) best = i;
    return best;
}

/* 24 M, one stream: 0.45 ms alone, 0.36 by two, 0.53 by sixteen (measured on sixteen cores). And 4.8 M, one text. */
static void a_small_model_takes_few_of_many_cores(void **state)
{
    large_machine stream = {.serial = 60e3, .work = 390e3, .barriers = 28e3};
    large_machine text = {.serial = 40e3, .token_work = 12e3, .barriers = 25e3};
    step_cost p = {.n_members = 16, .n_cores = 16}, q = p;
    large_steps(&p, &stream, STEP_DECODE, 1, 100);
    large_steps(&p, &stream, STEP_DECODE, 1, 5000);
    assert_true(step_cost_prefers(&p, STEP_DECODE, 1) <= 4);
    assert_true(stream.core_ns < 4 * stream.spent);
    assert_true(stream.spent < 1.08 * 5000 * large_takes(&stream, fastest(&stream, 1), 1));
    large_steps(&q, &text, STEP_ENCODE, 16, 100);
    large_steps(&q, &text, STEP_ENCODE, 16, 5000);
    assert_true(text.core_ns < 2.2 * text.spent);
}

/* 1.1 B: it gains from each core, and gets them all from the first step on. */
static void a_large_model_takes_all_cores(void **state)
{
    large_machine m = {.serial = 2e6, .work = 44e6, .token_work = 7.7e6, .barriers = 60e3};
    step_cost p = {.n_members = 16, .n_cores = 16};
    large_steps(&p, &m, STEP_PREFILL, 128, 200);
    assert_true(m.n_of[16] > 190);
}

/* Each size of prompt gets as many as pay for it. */
static void members_grow_with_the_prompt(void **state)
{
    static const size_t sizes[] = {1, 4, 16, 64, 256};
    large_machine m = {.serial = 30e3, .work = 50e3, .token_work = 40e3, .barriers = 20e3};
    step_cost p = {.n_members = 16, .n_cores = 16};
    for (int round = 0; round < 400; round++)
        for (int i = 0; i < 5; i++) large_steps(&p, &m, STEP_PREFILL, sizes[i], 1);
    int last = 1;
    for (int i = 0; i < 5; i++) {
        int n = step_cost_prefers(&p, STEP_PREFILL, sizes[i]);
        double took = large_takes(&m, n, (double)sizes[i]);
        assert_true(n >= last &&
                    took < 1.25 * large_takes(&m, fastest(&m, (double)sizes[i]), (double)sizes[i]));
        last = n;
    }
    assert_int_equal(last, 16);
}

/* Four workers of four threads on sixteen cores run side by side, as one alone does; sixteen of them take a core each,
 * where a stream gains little from more. */
static void workers_that_fit_side_by_side_keep_their_teams(void **state)
{
    large_machine m = {.serial = 0.3e6, .work = 9e6, .token_work = 0.9e6, .barriers = 0.1e6};
    step_cost p = {.n_members = 4, .n_cores = 16};
    for (p.crowd = 1; p.crowd <= 4; p.crowd++) {
        large_steps(&p, &m, STEP_DECODE, 8, 500);
        assert_true(m.n_of[4] > 480);
    }
    p.crowd = 16;
    large_steps(&p, &m, STEP_DECODE, 8, 500);
    assert_true(m.n_of[1] > 400);
}

/* Other programs have some of the cores: the team shrinks to the rest, and grows again when they end. */
static void a_team_shrinks_to_the_cores_that_are_free(void **state)
{
    large_machine m = {.serial = 0.2e6, .work = 16e6, .barriers = 0.05e6};
    step_cost p = {.n_members = 16, .n_cores = 16};
    large_steps(&p, &m, STEP_DECODE, 1, 300);
    assert_int_equal(step_cost_prefers(&p, STEP_DECODE, 1), 16);
    m.busy = 3;
    large_steps(&p, &m, STEP_DECODE, 1, 20);
    assert_int_equal(step_cost_prefers(&p, STEP_DECODE, 1), 8);
    m.busy = 10;
    large_steps(&p, &m, STEP_DECODE, 1, 30);
    assert_int_equal(step_cost_prefers(&p, STEP_DECODE, 1), 4);
    large_steps(&p, &m, STEP_DECODE, 1, 300);
    assert_true(m.n_of[4] > 250);
    m.busy = 0;
    large_steps(&p, &m, STEP_DECODE, 1, 1200);
    assert_int_equal(step_cost_prefers(&p, STEP_DECODE, 1), 16);
}

/* What a process learnt of five ways is there for the next one. */
static void ways_are_kept_from_start_to_start(void **state)
{
    large_machine m = {.serial = 60e3, .work = 390e3, .barriers = 28e3};
    step_cost before = {.n_members = 16, .n_cores = 16}, after = before;
    step_cost_known known;
    large_steps(&before, &m, STEP_DECODE, 1, 2000);
    assert_true(step_cost_tell(&before, &known));
    step_cost_recall(&after, &known);
    assert_int_equal(step_cost_choose(&after, STEP_DECODE, 1), step_cost_prefers(&before, STEP_DECODE, 1));
    large_steps(&after, &m, STEP_DECODE, 1, 50);
    assert_true(m.n_of[16] == 0 && m.core_ns < 4.5 * m.spent);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_large_model_keeps_its_team),
        cmocka_unit_test(a_trial_of_short_steps_does_not_go_on_with_long_ones),
        cmocka_unit_test(first_steps_on_one_core_are_not_the_last_word),
        cmocka_unit_test(a_team_that_must_get_warm_is_found),
        cmocka_unit_test(a_tiny_model_goes_alone_at_once),
        cmocka_unit_test(small_prompts_go_alone_and_long_ones_as_a_team),
        cmocka_unit_test(a_new_size_is_right_the_first_time),
        cmocka_unit_test(a_neighbour_that_comes_is_noticed_within_three_steps),
        cmocka_unit_test(a_mild_neighbour_is_weighed),
        cmocka_unit_test(a_neighbour_that_leaves_is_noticed),
        cmocka_unit_test(single_slow_steps_do_not_change_the_way),
        cmocka_unit_test(other_kinds_of_step_begin_where_the_first_one_is),
        cmocka_unit_test(a_neighbour_is_thought_to_stay_as_long_as_it_was_there),
        cmocka_unit_test(what_one_kind_of_step_meets_counts_for_the_others),
        cmocka_unit_test(trials_of_a_team_wait_for_a_free_core),
        cmocka_unit_test(what_was_kept_is_right_the_first_time),
        cmocka_unit_test(what_was_kept_is_corrected_within_a_few_steps),
        cmocka_unit_test(what_was_kept_of_a_faster_or_slower_machine_is_dropped),
        cmocka_unit_test(what_no_machine_takes_is_not_recalled),
        cmocka_unit_test(with_other_workers_a_step_leaves_them_their_core),
        cmocka_unit_test(one_member_has_no_choice),
        cmocka_unit_test(choices_follow_from_times_alone),
        cmocka_unit_test(a_small_model_takes_few_of_many_cores),
        cmocka_unit_test(a_large_model_takes_all_cores),
        cmocka_unit_test(members_grow_with_the_prompt),
        cmocka_unit_test(workers_that_fit_side_by_side_keep_their_teams),
        cmocka_unit_test(a_team_shrinks_to_the_cores_that_are_free),
        cmocka_unit_test(ways_are_kept_from_start_to_start),
    };
    return cmocka_run_group_tests_name("infer_pace", tests, NULL, NULL);
}
