/* process_run.h: the state of a run, for the files that carry one out. Inside process*.c. */
#ifndef PROCESS_PROCESS_RUN_H
#define PROCESS_PROCESS_RUN_H

#include "process/process.h"
#include "hosts/hosts.h"
#include "retrieve/find.h"

#define TOOL_CALLS_MAX 32 /* of one stage: as many as the endpoints of generations keep */

typedef struct tool_call {
    buf name, arguments;
} tool_call;

typedef struct stage_times { /* as the worker measured them, of the stage's last call */
    bool known;
    double queue_ms, prefill_ms, decode_ms;
} stage_times;

typedef struct stage_run {
    process_run *run;
    const config_stage *stage;
    size_t index;     /* its place in the pipeline */
    stage_fact *fact; /* what is known of it */
    arena *memory;    /* the run's; of an item its own */
    model_call *call; /* NULL: none in flight */
    find *find;       /* retrieve: the same */
    host_call *http;  /* http: the same */
    buf why, label, text;
    json_t *slots;   /* what a tag stage found; what a host answered */
    json_t *results; /* for the trace: what was ordered, guessed, or found */
    json_t *details; /* for the trace: an object whose members go into the stage's entry */
    json_t *trace;
    json_t *value;           /* what it came to, where a later stage reads it as JSON (process_value) */
    struct stage_each *each; /* of one that goes through a list (process_each.h) */
    struct stage_run *whole; /* of an item of such a list: the stage, and which it is; else NULL */
    const json_t *item;
    size_t i_item;
    shoal_err err;                   /* of a start that failed, and not for lack of memory */
    tool_call tools[TOOL_CALLS_MAX]; /* what a model called */
    size_t n_tools;
    size_t n_told;     /* bytes of text that the client has seen */
    uint64_t start_ns; /* 0: not yet */
    stage_times times;
    uint32_t n_prompt, n_generated;
    char finish[16];
    double sum_logprob, n_heard_tokens; /* transcribe */
    /* rules; all in the run's memory */
    const grounding *ground;
    const line_reading *line;
    const struct matching *match;
    const struct guarding *guard;
    const ground_call *calls; /* what the rule stands for */
    size_t n_calls;
} stage_run;

struct process_run {
    const process_input *in;
    calls *calls;
    call_context ctx; /* of the request, for its calls; texts of `memory` */
    uint64_t start_ns;
    process_done_fn done;
    void *user;
    arena *memory;
    stage_fact *facts; /* [n_stages] */
    size_t n_stages;
    degraded degraded; /* the first stage that another model answered */
    bool lacks_memory; /* a part of the answer could not be made */
    bool partial;      /* an item of an optional stage failed, or a time limit cut a reply */
    bool asks;         /* a guard asked back, and gave a token */
    stage_run stages[];
};

/* ---- kinds of stages ------------------------------------------------------------------------------- */

/* How a stage of a kind starts, each in a file of its own: it makes its call (s->call), whose end comes to
 * process_settle, or is done at once and leaves s->call NULL (rules). 0, SHOAL_ENOMEM, or another code with a
 * sentence in s->err. */
#define STAGE_START(e, name, task, gives, start) int start(stage_run *s, const call_context *ctx);
STAGE_KIND_TABLE(STAGE_START)
#undef STAGE_START

stage_fact *process_fact(stage_run *s);
/* For an item, too. As its kind does. */
int process_start_kind(stage_run *s, const call_context *ctx);
/* Does it wait for somebody's answer? */
bool process_is_asking(const stage_run *s);
/* Let go of what it came to. */
void process_stage_done(stage_run *s);
/* What is known, with the input as this stage reads it. */
pipeline_facts process_facts(const stage_run *s);
/* What the request brings for this stage's kind; stages without it are not started. */
ProtobufCBinaryData process_file_of(const stage_run *s);
/* The adapter of the stage's model, "" without one: for requests, which take a char *. */
char *process_adapter(const stage_run *s);
/* A template filled in; NULL: the input, resp. the item. SHOAL_ENOMEM, or 0. */
int process_fill(const stage_run *s, const char *template, const pipeline_facts *facts, buf *ret);
/* What the model reads: the stage's `input` filled in. SHOAL_ENOMEM; *ret is the caller's in any case. */
int process_read(const stage_run *s, buf *ret);

/* The call of s has ended: note what came, and go on. The run may be dead afterwards. */
void process_settle(stage_run *s, const call_result *r);
/* What a worker says of its time; NULL: nothing. */
void process_note_timing(stage_run *s, const Shoal__V1__Timing *t);
/* How a stage ended whose model was not asked, or is not known. */
call_result process_alone(const config_stage *s, int status, const char *message);
/* The call ended well, but what it brought is no answer. */
void process_settle_broken(stage_run *s, const call_result *r, const char *message);
/* The start and the end of a generation, for stages that write (process_generate.c): text, tool calls,
 * tokens. */
calls_generate_events process_writing(stage_run *s);
Shoal__V1__Sampling process_sampling(const config_stage *st);
unsigned process_max_tokens(const config_stage *st);
/* Functions (process_tools.c): the stage's, as they are for this request's devices, into a request for its
 * model, with memory of the run. SHOAL_EINVALID and s->err: one has to be called, and none can be. */
int process_offer(stage_run *s, Shoal__V1__GenerateRequest *req);
/* All that was called came to its end. */
bool process_calls_are_whole(const stage_run *s);
/* n texts have these scores (process_rank.c): the best becomes the label, all go to the trace, best first. */
void process_rank(stage_run *s, const char *const *texts, const double *scores, size_t n);

/* ---- JSON (process_answer.c): what cannot be made fails the run (lacks_memory) ---------------------- */

void process_put(process_run *r, json_t *o, const char *key, json_t *v); /* v NULL: it could not be made */
void process_add(process_run *r, json_t *array, json_t *v);
json_t *process_rounded(double v); /* a score or a time to six decimals: more would be noise; NaN: null */
/* What a stage calls, as a JSON array; of a rule those calls alone that it stands for. s NULL: none. */
json_t *process_calls(process_run *r, const stage_run *s);
/* Does what it came to stand in the answer's "results"? */
bool process_is_result(const config_stage *st);
/* What a stage that is done came to, as JSON of its kind (process_value.c); the caller's. NULL: out of
 * memory. */
json_t *process_value(stage_run *s);
/* A stage's entry in the trace: it did not run; it is a rule; its call ended so. */
void process_trace_skipped(stage_run *s);
void process_trace_rule(stage_run *s);
void process_trace_call(stage_run *s, const call_result *r);
/* Has stage i, which is done, something to say? */
bool process_speaks(const process_run *r, size_t i);
/* Whose text and calls are the answer: a guard that holds the request back, else the last stage that has
 * something to say. NULL: none. */
stage_run *process_speaker(process_run *r);
/* To who watches (process_tell.c): the stage has settled; its text is longer, if nothing can take its place
 * any more; all stages have settled, and the rest of the answer's text goes out. */
void process_tell_stage(const stage_run *s);
void process_tell_text(stage_run *s);
void process_tell_rest(process_run *r);
/* The response object, and the tokens that it counts. */
json_t *process_answer(process_run *r, process_outcome *o);

/* ---- matches and guards (process_match.c, process_guard.c) ------------------------------------------- */

/* The stage of that name, in the same run. */
stage_run *process_stage(const stage_run *s, const char *name);
/* What a text names, as a match stage of this kind reads it. SHOAL_ENOMEM, or 0. */
int process_find_devices(const stage_run *s, const char *text, struct matching *ret);
/* The stage's `input` filled in, in the run's memory; NULL: out of memory. */
const char *process_read_kept(const stage_run *s);
/* Did a guard hold the request back? Then nothing is called, and it has the word. */
bool process_is_held_back(const stage_run *s);

/* ---- rules (process_rule.c) ------------------------------------------------------------------------- */

/* What a stage that is done says to the person, once all stages are; NULL: out of memory. */
const char *process_text(const stage_run *s);

/* The devices for the prompt of a generate stage that names a ground stage: those that the request names,
 * then others, PIPELINE_NEAR_DEVICES at most. False: the stage names none. */
bool process_near(const stage_run *s, config_device ret[PIPELINE_NEAR_DEVICES], size_t *ret_n);

/* The texts of which a generate stage's reply is one, each a reply with its calls; none without `choices`.
 * Pointers into the run's memory. SHOAL_ENOMEM, or 0. */
int process_choices(const stage_run *s, char ***ret, size_t *ret_n);

#endif
