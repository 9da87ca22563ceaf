/* step_cost.h: how many threads for the next step: a cost model of several numbers, learnt from what steps took.
 *
 * A step of a tiny model lasts 200 us and has dozens of barriers. On a quiet machine two threads gain a
 * quarter; when another program wants one of the two cores, each barrier waits for the scheduler and the same
 * step takes ten times as long (measured on two cores beside a compiler: 5800 tokens/s with one thread, 7300
 * with two on the quiet machine, 360 with two on the busy one). A prompt of a larger model takes almost half
 * as long with two. On sixteen cores a stream of a small model is slower with all of them than with two, and needs
 * five times the energy. So a step is run by 1, 2, 4, ... or all members of the team: these are its ways. For each kind
 * of step and each way the engine keeps a line
 *
 *     ns = fixed + token * tokens
 *
 * and takes the way that is expected to be the cheapest, where each doubling of the members must save a twentieth of
 * the time:
 *
 *   - The line moves towards each step (normalised least mean squares: Widrow and Hoff 1960), half of the way
 *     to a faster one and a quarter to a slower one; all the way to a faster one while it is young, as the
 *     first steps meet cold memory; hardly at all to one that took much longer than expected, but half of the
 *     way to the second of these in a row: one is the scheduler's, two are a neighbour's.
 *   - A kind of step begins with all members. The next smaller and the next larger way are tried when it is paid for:
 *     a hundredth of all time may be lost in trials, and as much
 *     as was lost to the second of two steps that took much longer than expected. What was
 *     never tried is thought to differ as it does for the other kinds of step, else to gain from every
 *     member; it is tried at once where steps are short. What was tried only when it was young is tried once more: a
 *     team's first steps may have shared one core, until the scheduler moved a member.
 *   - A trial is six steps: the first one's members were asleep, and their caches hold nothing of the weights
 *     (24 M: 0.72 ms for 0.60 alone, and 0.40 when it goes on). One that takes twice as long as what is preferred
 *     ends it, as does a long step that is not expected to gain. A trial that beats what is preferred goes on, until it is preferred itself or fails: a neighbour
 *     that has left is noticed within a few steps of the first trial.
 *   - A trial of more members than cores are free is put off, but for each sixteenth: beside a program that computes
 *     all the time it would last many times as long.
 *   - A second line of each way says what it takes in calm times: it follows faster steps and hardly slower
 *     ones. A way that was left for being slow is looked at again soon, then after twice as many steps
 *     each time, whatever that costs: a neighbour's going is noticed in about the time that it was there.
 *     When a step of it is calm again, so is the whole line.
 *   - Where other workers want the cores as well (compute.h: arbiter), steps run side by side as far as the cores
 *     reach, and in turn beyond that. So a step is chosen by when it would be over: with `crowd` workers that take m
 *     members each on n cores, it takes crowd * m / n times as long if that is more than once.
 *   - Neighbours are there for all kinds of step: one that came has each kind try another way once, one
 *     that went brings their lines back to the calm ones.
 *
 * What is calm is a property of model and machine, and is kept from start to start (step_cost_file.h): a process
 * begins with these lines and corrects them as any others.
 *
 * No clock: the caller brings the time. The results of steps do not depend on any of it. Engine thread only.
 *
 *     step_cost p = {.n_members = 16, .n_cores = 16};
 *     int n_members = step_cost_choose(&p, STEP_DECODE, n_streams);
 *     if (n_members > step_cost_prefers(&p, STEP_DECODE, n_streams) && n_members > sys_free_cores())
 *         n_members = step_cost_defer(&p, STEP_DECODE, n_streams, n_members);
 *     ... the step ...
 *     step_cost_note(&p, STEP_DECODE, n_streams, n_members, took_ns); */
#ifndef INFER_STEP_COST_H
#define INFER_STEP_COST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Steps of single tokens, with chunks of prompts among them, and of whole texts. */
typedef enum { STEP_DECODE, STEP_PREFILL, STEP_ENCODE, STEP_KINDS } step_kind;

typedef struct step_cost_line {
    double fixed_ns, token_ns;
    unsigned n_seen;  /* steps; 0: nothing is known */
    unsigned n_slow;  /* steps in a row that took much longer than expected */
    unsigned look_in; /* it became slow: steady steps until it is looked at; 0: it did not */
} step_cost_line;

#define STEP_WAYS 7 /* 1, 2, 4, ... 64 (TEAM_MAX) members; the last way that a team has is all of them */

typedef struct step_cost_ways {
    step_cost_line way[STEP_WAYS];
    step_cost_line calm[STEP_WAYS]; /* the same with nobody beside */
    double credit_ns;               /* what trials may lose; below 0: what they have lost too much */
    unsigned n_steady;              /* steps since the last trial */
    unsigned n_trial;               /* steps of the trial so far */
    int trial_way;                  /* of that trial, or the next one where `again` is set */
    bool again;          /* the next step is a trial: the last one went well, or another kind has news */
    bool try_fewer;      /* of the two ways beside what is preferred, the one that has its turn */
    unsigned n_deferred; /* trials that were put off, in a row */
    bool recalled;       /* the lines are those of an earlier process, and no step has confirmed them */
} step_cost_ways;

typedef struct step_cost {
    int n_members; /* of the whole team; below 2 there is no choice */
    int n_cores;   /* that workers share; less than n_members: as many as members */
    int crowd;     /* workers that want the cores now, this one included; 0 and 1: nobody else */
    step_cost_ways of[STEP_KINDS];
} step_cost;

/* How many members should run the next step of this kind and size? 1 to n_members. */
int step_cost_choose(step_cost *p, step_kind k, size_t n_tokens);
/* Instead of a trial of more members than are preferred, as no core is free for them: the number to take. What others
 * do now is a hint, and may be so at each step's begin; so each sixteenth trial is made. */
int step_cost_defer(step_cost *p, step_kind k, size_t n_tokens, int n_members);
/* What is preferred: never a trial. For a step that nobody notes. */
int step_cost_prefers(const step_cost *p, step_kind k, size_t n_tokens);
/* So many did, as step_cost_choose said, and took this long. */
void step_cost_note(step_cost *p, step_kind k, size_t n_tokens, int n_members, uint64_t took_ns);

/* What one process tells the next: the calm lines of each way. Zeros: not known. */
typedef struct step_cost_known {
    struct {
        double fixed_ns, token_ns;
    } of[STEP_KINDS][STEP_WAYS];
} step_cost_known;

/* False when there is nothing to tell. */
bool step_cost_tell(const step_cost *p, step_cost_known *ret);
/* Before the first step. Lines that no machine could have are left out. */
void step_cost_recall(step_cost *p, const step_cost_known *known);

#endif
