/* stage_run.h: the state of a run, for the files that carry one out, and for the kinds of stages: the server's
 * in stages/, those of modules above it (home/rules).
 *
 * A kind that asks nobody is one function:
 *
 *     static int start_echo(stage_run *s, const call_context *ctx)
 *     {
 *         process_fact(s)->label = "done";
 *         process_fact(s)->text = process_read_kept(s);
 *         return process_fact(s)->text ? 0 : SHOAL_ENOMEM;
 *     }
 *     const stage_runner stage_echo = {.start = start_echo}; */
#ifndef PROCESS_STAGE_RUN_H
#define PROCESS_STAGE_RUN_H

#include "pipeline/device_set.h"
#include "process/process.h"
#include "hosts/hosts.h"
#include "mcp/mcp_client.h"
#include "retrieve/find.h"

#define TOOL_CALLS_MAX 32 /* of one stage: as many as the endpoints of generations keep */

typedef struct tool_call {
    buf name, arguments;
} tool_call;

typedef struct stage_times { /* as the worker measured them, of the stage's last call */
    bool known;
    double queue_ms, prefill_ms, decode_ms, cpu_ms;
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
    mcp_call *mcp;    /* generate: the same, of a tool */
    struct stage_mcp
        *tools_of; /* generate: what its servers offer, and the rounds so far; in the run's memory */
    buf why, label, text;
    json_t *slots;           /* what a tag stage found; what a host answered */
    json_t *results;         /* for the trace: what was ordered, guessed, or found */
    json_t *details;         /* for the trace: an object whose members go into the stage's entry */
    const char *trace;       /* its entry, as JSON; in the run's memory; NULL: not yet */
    json_t *value;           /* what it came to, where a later stage reads it as JSON (process_value) */
    struct stage_each *each; /* of one that goes through a list (process_each.h) */
    struct stage_run *whole; /* of an item of such a list: the stage, and which it is; else NULL */
    const json_t *item;
    size_t i_item;
    shoal_err err;    /* of a start that failed, and not for lack of memory */
    tool_call *tools; /* [TOOL_CALLS_MAX] in the run's memory: what a model called; NULL: nothing */
    size_t n_tools;
    size_t n_told;     /* bytes of text that the client has seen */
    uint64_t start_ns; /* 0: not yet */
    uint64_t span;     /* of its time, while it runs and somebody is told; else 0 */
    stage_times times;
    uint32_t n_prompt, n_generated;
    char finish[16];
    double sum_logprob, n_heard_tokens; /* transcribe */
    const void *own; /* what a rule came to, of its kind; in the run's memory; NULL: it did not run */
    const device_call *calls; /* what the rule stands for */
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
    buf out;           /* the entry or the answer that is being written */
    bool lacks_memory; /* a part of the answer could not be made */
    bool partial;      /* an item of an optional stage failed, or a time limit cut a reply */
    bool asks;         /* a guard asked back, and gave a token */
    stage_run stages[];
};

/* ---- kinds of stages ------------------------------------------------------------------------------- */

/* What a kind with GIVES_OPTIONS offers to stages that name it. */
typedef struct stage_options {
    const device_set *named; /* devices that the request names or may name */
    const device_option *at; /* what a reply is one of */
    size_t n;
} stage_options;

/* An answer to a question that was asked back. */
typedef enum stage_answer { STAGE_ANSWER_OTHER, STAGE_ANSWER_YES, STAGE_ANSWER_NO } stage_answer;

/* In in->memory. */
typedef struct stage_following {
    const char *text;    /* the request with the answer in it; NULL: in->text as it is */
    const char *subject; /* as process_turn.subject, for that; NULL: nothing */
} stage_following;

/* How a kind runs. All but `start` may be NULL. */
typedef struct stage_runner {
    /* It makes its call (s->call, find or http), whose end comes to process_settle, or is done at once (rules).
     * 0, SHOAL_ENOMEM, or another code with a sentence in s->err. */
    int (*start)(stage_run *s, const call_context *ctx);
    /* Of a kind that asks a model once: by which method, and what it takes of a reply. NULL, or a sentence that says
     * why it is none. */
    void (*done)(stage_run *s); /* lets go of what is the kind's own beside `own` */
    call_task task;
    const char *(*take)(stage_run *s, const ProtobufCMessage *reply);
    unsigned n_best; /* of a classifier's labels, what `take` looks at; 0: all */
    /* What it says once all stages are done, where that is not its fact's text; NULL: out of memory. */
    const char *(*text)(const stage_run *s);
    stage_options (*options)(const stage_run *s); /* s->own is there */
    /* What a rule that has the word took the request for: what it calls, or its verdict; NULL: it does not know. */
    const char *(*intent)(const stage_run *s);
    /* Of a kind that asks back (process_ask): is the whole text an answer? SHOAL_ENOMEM, or 0. */
    int (*read_answer)(stage_answer *ret, const config_stage *s, const char *text, arena *a);
    /* The same, where questions can be told by their text: did the turn's reply ask one, and about
     * what? SHOAL_ENOMEM, or 0. */
    int (*recall)(bool *ret_asked, sha256_digest *ret_about, const config_stage *s, const process_input *in,
                  const process_turn *turn);
    /* What in->text means behind the turn: it may answer what the reply asked ("which one?", "the left one"), or be about
     * what that was about ("turn it off"). *ret, zeroed, stays so where it means what it means alone. SHOAL_ENOMEM, or 0. */
    int (*follow)(stage_following *ret, const config_stage *s, const process_input *in,
                  const process_turn *turn);
} stage_runner;

/* That of the stage's kind, which the registry of its pipeline has. */
const stage_runner *process_runner(const stage_run *s);

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
/* The stage of that name, in the same run. */
stage_run *process_stage(const stage_run *s, const char *name);
/* The stage's `input` filled in, in the run's memory; NULL: out of memory. */
const char *process_read_kept(const stage_run *s);
/* Did a guard hold the request back? Then nothing is called, and it has the word. */
bool process_is_held_back(const stage_run *s);
/* What a stage that is done says to the person, once all stages are; NULL: out of memory. */
const char *process_text(const stage_run *s);
/* A stage asks back: put a question about what these are the digest of, which a "yes" is an answer to, into its
 * details (process_confirm.c). Nothing where nobody can answer. SHOAL_ENOMEM, or 0. */
int process_ask(stage_run *s, const sha256_digest *about, json_t *details);

/* ---- JSON (process_json.c): what cannot be made fails the run (lacks_memory) ---------------------------- */

void process_put(process_run *r, json_t *o, const char *key, json_t *v); /* v NULL: it could not be made */
void process_add(process_run *r, json_t *array, json_t *v);
json_t *process_rounded(double v); /* a score or a time to six decimals: more would be noise; NaN: null */
void process_put_rounded(buf *out, const char *key, double v); /* the same, appended */
/* What a stage calls, as a JSON array; of a rule those calls alone that it stands for. s NULL: none. */
json_t *process_calls(process_run *r, const stage_run *s);

/* ---- the answer (process_answer.c, process_value.c, process_tell.c) -------------------------------------- */

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
/* To whom the request's spans are told: the stage has ended; r NULL: it was cancelled (process_tell.c). */
void process_tell_span(stage_run *s, const call_result *r);
/* To who watches (process_tell.c): the stage has settled; its text is longer, if nothing can take its place
 * any more; all stages have settled, and the rest of the answer's text goes out. */
void process_tell_stage(const stage_run *s);
void process_tell_text(stage_run *s);
void process_tell_rest(process_run *r);
/* The response object into r->out, and the tokens that it counts. */
void process_answer(process_run *r, process_outcome *o);

#endif
