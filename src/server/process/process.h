/* process.h: POST /v1/process: runs a pipeline for one request.
 *
 * A run (process.c) holds the facts so far, starts every stage that may start (pipeline_judge), and
 * is done when none is left. It knows no HTTP: it takes an input and the model calls and gives JSON,
 * so it is tested without sockets. inference/pipelines.c is the endpoint around it: the request's JSON, the
 * answer cache, errors.
 *
 * Beside its text, or instead of it, a request brings what some stages read: sound, a picture, a table; in
 * JSON (base64) or as a form with files.
 *
 *     POST /v1/process {"pipeline":"home","input":"turn off the kitchen light"}
 *     {"id":"...","ms":21.4,"object":"shoal.process","pipeline":"home","text":"Turning off Kitchen Light.",
 *      "intent":{"label":"iot_hue_lightoff","score":0.99},"slots":[...],
 *      "tool_call":{"name":"light.turn_off","arguments":{"target":"light.kitchen"}},
 *      "trace":[{"stage":"intent","ran":true,"why":"always","ms":1.9,...}, ...],"usage":{...}} */
#ifndef PROCESS_PROCESS_H
#define PROCESS_PROCESS_H

#include <jansson.h>

#include "calls/calls.h"
#include "messages/degraded.h"
#include "messages/api_error.h"
#include "base/sha256.h"
#include "time/env.h"
#include "config/config.h"
#include "pipeline/pipeline.h"

struct confirm_book; /* process/confirm.h */
struct turn_book;    /* process/turns.h */

/* ---- what a request asked for (process_parse.c) ------------------------------------------------ */

typedef struct process_file {
    const uint8_t *data; /* NULL: none */
    size_t len;
} process_file;

/* A request and its reply, before another. */
typedef struct process_turn {
    const char *request; /* as it was understood: with what it answered in it */
    const char *subject; /* ids of the devices that "it" stood for in it, a line each; "": none */
    const char *reply;
} process_turn;

typedef struct process_input {
    const config_pipeline *pipeline;
    char *text;                  /* "": none; then a transcribe stage may write it */
    const char *subject;         /* as in a turn; NULL: nothing was before */
    process_file files[N_MEDIA]; /* by medium; in `decoded`, or in a form that the caller keeps */
    buf decoded[N_MEDIA];
    config_device *devices; /* those of the request, else the pipeline's (borrowed) */
    size_t n_devices;
    bool stream;                       /* the client wants to see it going on, */
    const struct process_watch *watch; /* and this is who shows it (process_events.h); NULL: nobody */
    const env *time;                   /* with timers, so that rules of a long list hold up no loop */
    struct mcp_client *mcp;            /* whose tools generate stages call (mcp/mcp_client.h) */
    struct hosts *hosts;               /* that http stages ask (hosts/hosts.h) */
    char *context;                     /* free text, "" when none */
    arena *memory;                     /* what the request brought */
    const char *owner;                 /* whose collections it finds beside shared ones; NULL: nobody's */
    struct executor
        *executor; /* of the collections (retrieve/executor.h), for pipelines that look into them */
    char *confirm; /* the token of a question that was asked back; NULL: none */
    char *session; /* whose next request may answer it without the token; NULL: none */
    struct confirm_book *confirms; /* such questions; NULL: nothing can be confirmed */
    struct turn_book *turns;       /* the last of each session; NULL: none is remembered */
    const char *asked_by;          /* the stage whose question this answers; NULL: none */
    bool agrees;                   /* the answer: yes */
    sha256_digest asked_about;     /* what may be done if it is */
    unsigned first_stages; /* run these alone, and none that asks a host: they only ask once more; 0: all */
} process_input;

/* Read a request body, JSON or, as its Content-Type says (NULL: none), a form, to which *ret then points.
 * Returns 0 or the HTTP status in *ret_error; *ret is untouched then. */
int process_parse(process_input *ret, const gateway_config *config, const char *body, size_t len,
                  api_error *ret_error);
int process_parse_form(process_input *ret, const gateway_config *config, const char *content_type,
                       const char *body, size_t len, api_error *ret_error);
/* Where the request answers a question that a stage asked back (in->confirm, in->session), put the request that was
 * asked about in its place; else what the session's last turn tells of it into in->text and in->subject. in->confirms,
 * in->turns, in->time and in->owner are set. Returns 0 or the HTTP status in *e. */
int process_take_answer(process_input *in, api_error *e);
/* The run of `in` gave this answer, which its session's next request may be about. */
void process_note_turn(const process_input *in, const char *answer, size_t len);
/* The same for a chat, whose messages are all that is known: the turn is the one just before in->text. A yes to "Do you
 * mean: ...?" carries out what was offered, whatever else the messages say; what else the turn tells of in->text is
 * put into it and into in->subject. A reply that the request would not have got tells nothing. Nothing to ask in->confirms. */
int process_take_turn(process_input *in, const process_turn *turn, api_error *e);
/* May in->text, a yes or a no, answer a question which only a run of the request before it asks again (a guard's)?
 * *ret_stages: the first so many, which that run needs as in->first_stages; 0: it answers none. The run needs in->confirms and
 * in->session of its own; if it asks what was asked, process_take_answer takes the answer up. SHOAL_ENOMEM, or 0. */
int process_may_answer(unsigned *ret_stages, const process_input *in);
void process_input_done(process_input *in); /* accepts a zeroed one */

/* Of numbers in an answer: they print a rounded one as it was rounded, where all 17 show the binary fraction. */
#define PROCESS_DIGITS 15

/* ---- the run (process.c) ------------------------------------------------------------------------ */

/* How a run ended; borrowed until the callback returns. */
typedef struct process_outcome {
    const config_stage *failed; /* the stage that failed the run, NULL on success */
    const call_result *failure; /* how its call ended */
    const buf *answer;          /* on success: the response object without "id" and "ms" */
    const degraded *degraded;   /* a stage was answered by another model than its own; NULL: none */
    bool partial; /* an optional stage failed, or a time limit cut one: an answer, but none to keep */
    bool asks;    /* a guard asked back, and its token is for this request alone */
    uint64_t n_prompt_tokens, n_generated_tokens;
} process_outcome;
typedef void (*process_done_fn)(void *user, const process_outcome *o);
/* The answer, for who reads it; the caller's. NULL: the run failed, or out of memory. */
json_t *process_outcome_json(const process_outcome *o);

typedef struct process_run process_run;

/* Input and calls must outlive the run. When no stage has to run, `done` comes inside this call; in any
 * case *ret is written before, and the run is dead after `done`. Fails only without memory. */
int process_run_start(process_run **ret, const process_input *in, calls *c, const call_context *ctx,
                      process_done_fn done, void *user, shoal_err *err);
void process_run_cancel(process_run *r); /* no callback follows; accepts NULL */
/* Tokens that its stages have read and made so far, where they have ended. NULL: none. */
void process_run_spent(const process_run *r, uint64_t *ret_prompt, uint64_t *ret_generated);
/* While paused no model writes more. Accepts NULL. */
void process_run_pause(process_run *r, bool paused);

#endif
