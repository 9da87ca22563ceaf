/* process_run.h: the state of a run, for the files that carry one out. Inside process*.c. */
#ifndef GATEWAY_PROCESS_RUN_H
#define GATEWAY_PROCESS_RUN_H

#include "gateway/process.h"

#define TOOL_CALLS_MAX 8

typedef struct tool_call {
    buf name, arguments;
} tool_call;

typedef struct stage_run {
    process_run *run;
    const config_stage *stage;
    backend_call *call; /* NULL: none in flight */
    buf why, label, text;
    json_t *slots;
    json_t *trace;
    tool_call tools[TOOL_CALLS_MAX]; /* what a model called */
    size_t n_tools;
    uint32_t n_prompt, n_generated;
    char finish[16];
    /* rules; all in the run's memory */
    const grounding *ground;
    const line_reading *line;
    const ground_call *calls; /* what the rule stands for */
    size_t n_calls;
} stage_run;

struct process_run {
    const process_input *in;
    const process_calls *calls;
    char request_id[129];
    uint64_t deadline_ns;
    process_done_fn done;
    void *user;
    arena *memory;
    stage_fact *facts; /* [n_stages] */
    size_t n_stages;
    bool lacks_memory; /* a part of the answer could not be made */
    stage_run stages[];
};

/* Run a ground, line or check stage: its label and text in the run's facts, its calls in s. SHOAL_ENOMEM, or
 * 0. */
int process_rule(stage_run *s);

/* What a stage that is done says to the person, once all stages are; NULL: out of memory. */
const char *process_text(const stage_run *s);

/* The devices for the prompt of a generate stage that names a ground stage: those that the request names,
 * then others, PIPELINE_NEAR_DEVICES at most. False: the stage names none. */
bool process_near(const stage_run *s, config_device ret[PIPELINE_NEAR_DEVICES], size_t *ret_n);

/* The texts of which a generate stage's reply is one, each a reply with its calls; none without `choices`.
 * Pointers into the run's memory. SHOAL_ENOMEM, or 0. */
int process_choices(const stage_run *s, char ***ret, size_t *ret_n);

#endif
