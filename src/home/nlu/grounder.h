/* grounder.h: a grounding under way; for the files ground*.c alone.
 *
 *     ground.c         sentences, and the one judgement at the end
 *       ground_piece.c   the clauses of a sentence together
 *         ground_text.c    free text for lists
 *         ground_task.c    a cue becomes a task
 *           ground_attempt.c an action on what was named
 *             ground_value.c   a number in the unit and the bounds of a device
 *       ground_ask.c     questions about states
 *         ground_quantity.c  and for a temperature and the like
 *       device_option.c  tasks as calls and sentences
 *
 * Each calls those below it. Memory is the caller's arena; when it is out, `nomem` is set and what follows is
 * thrown away. */
#ifndef NLU_GROUNDER_H
#define NLU_GROUNDER_H

#include "nlu/clause.h"
#include "nlu/ground.h"
#include "nlu/reply.h"

#define TASKS_MAX    32
#define PROBLEMS_MAX 8
#define ITEMS_MAX    8

/* How an attempt to carry out a cue ends; of several failures the first in this order is told. */
typedef enum outcome {
    DO_IT,
    ASK_WHICH,
    OUT_OF_RANGE,
    WRONG_UNIT,
    DIFFERENCE,
    ASK_VALUE,
    CANNOT,
    NOT_SO, /* it can, but not with all that was said */
    FOR_A_TIME,
    NO_TARGET,
    NOT_HERE,
    NOT_CLEAR,
} outcome;

typedef struct attempt {
    outcome how;
    const action_def *action;
    const clause_rest *rest;
    device_set targets;
    const clause_value *given[4]; /* for action->takes */
    const char *text;             /* a TEXT value */
    size_t n_items;               /* what of it is to be called one by one; 0: all of it at once */
    const char *items[ITEMS_MAX];
    const value_def *odd; /* OUT_OF_RANGE, WRONG_UNIT, DIFFERENCE, ASK_VALUE */
    size_t odd_device;    /* OUT_OF_RANGE: whose bounds they are */
    bool verb_said;       /* by the words of the action's verb */
    const unit *odd_unit; /* WRONG_UNIT */
    const units *u;
    const value_unit *other_unit; /* OUT_OF_RANGE: the value may be in this one; NULL: in none */
} attempt;

typedef struct task {
    const units *u;
    size_t n_ways;
    attempt ways[8]; /* more than one: a cue that means several services of the device */
} task;

typedef struct problem {
    ground_verdict verdict;
    const char *text;
    const char *request, *about; /* as in a grounding, as is the next */
    bool odd_value;
} problem;

typedef struct grounder {
    const lexicon *lex;
    devices d;
    words w;
    arena *a;
    task *tasks[TASKS_MAX];
    size_t n_tasks;
    problem problems[PROBLEMS_MAX];
    size_t n_problems;
    device_set named, forbidden_targets, last;
    device_set left_out; /* of everything, what the words do not reach */
    bool earlier;        /* `last` is from the request before */
    bool forbidden, later, withdrawn, unclear, question;
    bool chatter;                   /* something was said that is no request and names nothing */
    bool mended;                    /* a typing error was put right */
    bool limited;                   /* there is an exception, a contrast or a value: nothing is offered */
    bool remark;                    /* something is said to be so: nothing is offered */
    bool forbidden_unsure;          /* something was forbidden, and it is not clear what */
    size_t task_mark, problem_mark; /* before the last piece: what a correction takes back */
    const char *answer, *strange;
    const talk_def *talk;
    const attempt *other; /* what its value in another unit would mean; NULL: nothing */
    bool nomem;
} grounder;

/* ---- grounder.c ---- */
void grounder_name_all(grounder *g, const device_set *s);
/* Joins that end a clause at unit i: not the hyphen of "un-lock", nor the "instead" of "instead of". */
bool grounder_join_at(const grounder *g, const units *u, size_t i, size_t to, size_t *ret_n);
bool grounder_contrast_at(const grounder *g, const units *u, size_t i, size_t to, size_t *ret_n);
const char *grounder_slice(grounder *g, size_t begin, size_t end);
const char *grounder_fill(grounder *g, const char *template, const reply_field *f, size_t n);
const char *grounder_names(grounder *g, const device_set *s, bool any);
/* "is" or "are", "it is" or "they are"; "" where the lexicon has none. */
const char *grounder_is(const grounder *g, const device_set *s);
const char *grounder_it_is(const grounder *g, const device_set *s);
void grounder_add_problem(grounder *g, ground_verdict v, const char *text);

/* ---- ground_value.c ---- */
bool value_in_range(grounder *g, const value_def *def, const unit *x, size_t device);
double value_for(grounder *g, const value_def *def, const unit *x, size_t device);
/* The unit that a number without one may be in, where it is out of bounds for a device whose unit nobody has said. */
const value_unit *value_other_unit(grounder *g, const value_def *def, const unit *x, size_t device);
/* The unit that the device tells or is said to have; NULL: it is not known. */
const value_unit *value_unit_told(grounder *g, const value_def *def, size_t device);
const char *value_bound_said(grounder *g, const value_def *def, size_t device, bool max);

/* ---- ground_attempt.c ---- */
bool attempt_is_careful(const grounder *g, const attempt *t);
bool attempt_serves(const grounder *g, const action_def *x, size_t device);
const char *attempt_abilities(grounder *g, size_t device);
entity_mention attempt_known_part(const grounder *g, const entity_mention *m);
attempt attempt_action(grounder *g, const action_def *x, const units *u, const clause_rest *r);
const char *attempt_target_names(grounder *g, const attempt *t, bool any);
void attempt_tell(grounder *g, const attempt *t);
/* The last problem is that a value of t's device is not known, or no good one. */
void attempt_want_value(grounder *g, const attempt *t);

/* ---- ground_task.c ---- */
bool task_same_call(const attempt *a, const attempt *b);
void task_add(grounder *g, const task *t);
clause_rest *task_new_rest(grounder *g);
void task_inherit_kind(const grounder *g, entity_mention *m, const entity_mention *from);
void task_carry_out(grounder *g, const clause *c, const units *u, const clause_rest *more,
                    const entity_mention *before);

/* ---- ground_text.c ---- */
size_t text_clause_end(const grounder *g, const units *u, size_t from, size_t to);
size_t text_task(grounder *g, const units *u, size_t at, size_t to, bool forbidden);

/* ---- ground_piece.c ---- */
void piece_note_strange(grounder *g, const units *u, const clause_rest *r);
void piece_read_all(grounder *g, const units *u, size_t at, size_t to);

/* ---- ground_ask.c ---- */
/* ASK_ELSE: what the device tells leaves it open, as "opening" does. ASK_NOT_TOLD: it tells no state. */
typedef enum ask_verdict { ASK_SO, ASK_NOT_SO, ASK_ELSE, ASK_NOT_TOLD, N_ASK_VERDICTS } ask_verdict;
ask_verdict ask_is_in_state(grounder *g, size_t device, const char *asked);
/* Of device i, in a reply of the lexicon that has {name}, {state} and {is}. */
const char *ask_say_state(grounder *g, size_t i, const char *state, const char *reply);
const char *ask_asked_state(const units *u, unit_set used);
void ask_say_more(grounder *g, buf *b, const char *s);
const char *ask_keep(grounder *g, buf *b);
void ask_answer_states(grounder *g, const units *u, const device_set *s, const char *asked);
bool ask_is_question(grounder *g, const units *u, size_t at);

/* ---- ground_quantity.c ---- */
bool quantity_is_asked(grounder *g, const units *u, size_t at);

/* ---- device_option.c ---- */
void option_give_tasks(grounder *g, grounding *out);
void option_give_ways(grounder *g, grounding *out);
void option_give_guesses(grounder *g, grounding *out);
void option_give_other(grounder *g, grounding *out);

#endif
