/* rules.h: the kinds of stages that hold models by what is known, and the registry of a program that has them.
 *
 * ground finds out what a request means for the devices (nlu/ground.h), line reads a line of a declared form
 * (nlu/line.h), check holds a model's reply against one of these, match finds the devices that a text names in
 * several languages (match/match.h), guard holds back what may not be done, or not yet (match/guard.h). An
 * ensemble's check of devices is rule_answer.c. */
#ifndef RULES_RULES_H
#define RULES_RULES_H

#include "nlu/check.h"
#include "nlu/follow.h"
#include "nlu/line.h"
#include "process/stage_run.h"
#include "rules/home.h"

extern const stage_kind rule_ground_kind, rule_line_kind, rule_check_kind, rule_match_kind, rule_guard_kind;
extern const stage_runner rule_ground_runner, rule_line_runner, rule_check_runner, rule_match_runner,
    rule_guard_runner;

/* What a ground stage has of its own: the pipeline's devices as the lexicon understands them. */
typedef struct ground_own {
    lexicon *lex;
    arena *memory;
    devices home;
} ground_own;

/* What a rule reads: the input, or the item. NULL: out of memory. */
const char *rules_input(const stage_run *s);
stage_answer rules_answer(follow_reply answer);

#endif
