/* rules.c: the registry of the home; see rules.h. */
#include "rules/rules.h"

#include "ensemble/verify.h"
#include "rules/rule_answer.h"
#include "stages/stages.h"

static const stage_row ROWS[] = {SERVER_STAGE_ROWS /* and the home's */
                                 {&rule_ground_kind, &rule_ground_runner},
                                 {&rule_line_kind, &rule_line_runner},
                                 {&rule_check_kind, &rule_check_runner},
                                 {&rule_match_kind, &rule_match_runner},
                                 {&rule_guard_kind, &rule_guard_runner}};

const stage_registry HOME_STAGES = {
    .stages = ROWS, .n_stages = sizeof ROWS / sizeof *ROWS, .devices = &rule_answer_devices};

const lexicon *rules_lexicon(const config_stage *s)
{
    const ground_own *own = s->kind == &rule_ground_kind ? s->own : NULL;
    return own ? own->lex : NULL;
}

const line_forms *rules_line_forms(const config_stage *s)
{
    return s->kind == &rule_line_kind ? s->own : NULL;
}

stage_answer rules_answer(follow_reply answer)
{
    return answer == FOLLOW_YES  ? STAGE_ANSWER_YES
           : answer == FOLLOW_NO ? STAGE_ANSWER_NO
                                 : STAGE_ANSWER_OTHER;
}

const char *rules_input(const stage_run *s)
{
    if (!s->whole) return process_facts(s).input;
    buf text = {0};
    pipeline_facts facts = process_facts(s);
    const char *kept =
        process_fill(s, NULL, &facts, &text) ? NULL : arena_strndup(s->memory, text.data, text.len);
    buf_done(&text);
    return kept;
}
