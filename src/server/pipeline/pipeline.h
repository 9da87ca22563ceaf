/* pipeline.h: a pipeline as data: stages, what each waits for, when each runs.
 *
 * A stage is one model call (classify, tag, generate, embed, rerank, seq2seq, fill-mask; transcribe, vad,
 * image and score of what a request brings beside its text), a look into documents, a request to another host,
 * or what a module above the server registered (stage_kind.h): the rules of home/rules hold models by what is
 * known. Conditions look at the input and at the results of stages declared before, so the stages form a graph
 * without cycles by construction. A stage starts as soon as every stage it names (in conditions, templates or
 * `after`) has settled; stages that do not name each other run side by side. Everything here is pure: given
 * the facts so far it says wait, run or skip, and why. process.c makes the calls. A retrieve stage searches a
 * collection of documents; which model embeds the text is the collection's business.
 *
 * What a transcribe stage hears is the input of all stages after it. Silence is no request: where nothing was
 * heard, no stage runs that would read it, or what another would have made of it.
 *
 *     stages:
 *       - {name: intent, kind: classify, model: home-intent}
 *       - name: reply
 *         kind: generate
 *         model: home-chat-s
 *         when: [{stage: intent, label: ["iot_*"]}, {mentions_device: true}]   # any of these
 *         system: "Devices:\n{devices}"
 */
#ifndef PIPELINE_PIPELINE_H
#define PIPELINE_PIPELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "base/buf.h"
#include "base/err.h"
#include "hosts/host_rule.h"
#include "pipeline/device.h"
#include "pipeline/stage_kind.h"

#define PIPELINE_STAGES_MAX      32
#define PIPELINE_DEVICES_MAX     DEVICES_MAX
#define PIPELINE_ALIASES_MAX     16
#define PIPELINE_GROUPS_MAX      16
#define PIPELINE_NEAR_DEVICES    12 /* in a prompt that names a ground stage */
#define PIPELINE_INPUT_MAX_BYTES 16384
#define PIPELINE_LONG_MAX_BYTES  (1 << 20) /* of the input of a pipeline that goes through it in parts */
#define PIPELINE_EACH_MAX        1024
#define EACH_PARALLEL_MAX        32
#define PIPELINE_CANDIDATES_MAX  64
#define PIPELINE_DOCUMENTS_MAX   256
#define PIPELINE_TOOLS_MAX       64

/* What a request may bring. X(enum, its name in conditions and requests, what people call it, how it is sent)
 */
#define MEDIUM_TABLE(X)                                                                                   \
    X(MEDIUM_TEXT, "text", "text", "give \"input\"")                                                      \
    X(MEDIUM_AUDIO, "audio", "sound file", "give the file as \"audio\" in base64, or in a form")          \
    X(MEDIUM_IMAGE, "image", "picture", "give the PNG or JPEG file as \"image\" in base64, or in a form") \
    X(MEDIUM_CSV, "csv", "table", "give it as \"csv\", a text with a header, or in a form")
typedef enum medium {
#define MEDIUM_ENUM(e, name, noun, how) e,
    MEDIUM_TABLE(MEDIUM_ENUM)
#undef MEDIUM_ENUM
        N_MEDIA
} medium;
const char *medium_name(medium m); /* "audio" */
const char *medium_noun(medium m); /* "sound" */
const char *medium_how(medium m);

/* What it reads of a request beside templates; MEDIUM_TEXT: nothing. */
medium stage_kind_medium(const stage_kind *k);

/* What a retrieve stage comes to. X(enum, label) */
#define FOUND_LABELS(X)    \
    X(FOUND_SOME, "found") \
    X(FOUND_NONE, "nothing")
enum {
#define FOUND_ENUM(e, name) e,
    FOUND_LABELS(FOUND_ENUM)
#undef FOUND_ENUM
};

/* What a vad stage comes to. X(enum, label) */
#define VOICE_LABELS(X)       \
    X(VOICE_SPEECH, "speech") \
    X(VOICE_SILENCE, "silence")
enum {
#define VOICE_ENUM(e, name) e,
    VOICE_LABELS(VOICE_ENUM)
#undef VOICE_ENUM
};

/* Every field that is given must hold. A field about a stage that did not run does not hold. */
typedef struct stage_condition {
    const char *stage;  /* whose result label, score_* and mean_prob_below look at */
    const char **label; /* the label or verdict is one of these; a trailing '*' is a prefix */
    unsigned n_label;
    double *score_min; /* ... and its score is at least this */
    double *score_below;
    double *number_min; /* score stages: the same of a model that gives numbers */
    double *number_below;
    double *mean_prob_below; /* the mean probability of the tokens that it wrote is under this */
    const char *text_prefix; /* the input starts with this */
    const char *brings;      /* the request brings this: the name of a medium */
    bool mentions_device;    /* the input names a device of the list, in any letter case */
} stage_condition;

/* How a text becomes a list. X(enum, name) */
#define EACH_BY_TABLE(X)             \
    X(EACH_WHOLE, "list")            \
    X(EACH_LINES, "lines")           \
    X(EACH_PARAGRAPHS, "paragraphs") \
    X(EACH_SENTENCES, "sentences")   \
    X(EACH_PIECES, "pieces")
typedef enum each_by {
#define EACH_BY_ENUM(e, name) e,
    EACH_BY_TABLE(EACH_BY_ENUM)
#undef EACH_BY_ENUM
} each_by;

/* A list that a stage goes through: foreach runs it once for each item, reduce for as many of them as it can
 * read at once, and again for what came of that, until one text is left. */
typedef struct config_each {
    const char *of;         /* "input", "devices", "json.STAGE.PATH", STAGE ...; NULL: the stage runs once */
    each_by by;             /* how a text is cut; EACH_WHOLE: by lines, and a list as it is */
    const char *as;         /* what templates call an item */
    unsigned parallel, max; /* items at once; items of a list */
    unsigned most, overlap; /* pieces, and texts of a reduce stage: bytes; what pieces have in common */
    const char *join;       /* reduce: what stands between two texts */
} config_each;

typedef device config_device; /* "light.kitchen", "Kitchen Light", "off" or "" */

/* What a guard says instead of its lexicon's own sentence. */
typedef struct stage_saying {
    const char *rule, *language, *text; /* language NULL: every one */
} stage_saying;

/* A function that a generate stage may call. In its schema {"enum_of": "devices"} stands for {"enum": [...]}
 * with what the request's devices are (stage_enum_of_ok). */
typedef struct stage_tool {
    const char *name, *description; /* description NULL: none */
    const char *parameters;         /* JSON; NULL: any object */
} stage_tool;

typedef struct config_stage {
    const char *name;
    const stage_kind *kind;
    const char *model;     /* NULL: a rule */
    stage_condition *when; /* any of them; none: always */
    unsigned n_when;
    stage_condition *unless; /* none of them */
    unsigned n_unless;
    const char **after; /* further stages to wait for */
    unsigned n_after;
    const char *system;        /* generate: template of the system message; NULL: none */
    const char *prompt;        /* generate: template of the user message; NULL: "{input}" */
    const char *input;         /* template of the text that READS_TEXT reads; NULL: "{input}" */
    unsigned max_tokens;       /* 0: 128 */
    double temperature, top_p; /* 0: greedy; 0: 1 */
    uint64_t seed;
    unsigned n_beams;        /* seq2seq; 0: 1 */
    const char **candidates; /* embed: the texts of which the nearest is its label */
    unsigned n_candidates;
    const char **documents; /* rerank: the texts that are ordered */
    unsigned n_documents;
    const char *collection; /* retrieve: where it looks */
    unsigned limit;         /* retrieve: passages; 0: 4 */
    const char *host;       /* http: a name of the configuration's `hosts`, */
    host_method method;     /* how it is asked, */
    const char *path;       /* the template of what follows its URL; NULL: nothing, */
    const char *body;       /* and that of the JSON that is sent; NULL: none */
    const char *adapter;    /* LoRA adapter of `model`; NULL: the model as it is */
    const char *language;   /* transcribe: code or English name; NULL: the likeliest */
    bool translate;         /* transcribe: into English */
    double threshold; /* vad: from which probability a window is speech; this and the next 0: Silero's */
    unsigned min_speech_ms, min_silence_ms, pad_ms;
    const char **alert; /* score: labels; of those that any row has, the first is the stage's */
    unsigned n_alert;
    const char *row;                   /* score: whose number is the score: last (NULL), highest or lowest */
    unsigned timeout_ms;               /* 0: the request's deadline alone */
    bool optional;                     /* may fail: leaves a trace entry, and the pipeline goes on */
    const char *lexicon_path, *intent; /* ground; intent NULL: none */
    const char *forms_path;            /* line */
    const char *of, *against;          /* check; of: guard, too */
    config_each each, reduce;          /* of the two one at most has `of` */
    const char *schema;                /* generate: the JSON Schema that the reply follows; NULL: none */
    const char *slots;                 /* match: a tag stage whose spans name devices; NULL: the text does */
    const char **slot_labels;          /* of spans that count; none: all; a trailing '*' is a prefix */
    unsigned n_slot_labels;
    const char **languages; /* match, guard: those that may be spoken; none: all of the lexicon */
    unsigned n_languages;
    const char **rules; /* guard: those that are held; none: those that `of` does not hold itself */
    unsigned n_rules;
    const char **ask_kinds, **ask_ids, **ask_actions; /* guard: asked back about */
    unsigned n_ask_kinds, n_ask_ids, n_ask_actions;
    unsigned max_targets; /* guard: more are asked back about; 0: any number */
    unsigned confirm_s;   /* guard: how long a question may be answered; 0: 120 */
    stage_saying *say;
    unsigned n_say;
    const char *choices, *near_stage; /* generate, of a ground stage; NULL: none */
    stage_tool *tools; /* generate: what it may call; none: what its model was trained to call */
    unsigned n_tools;
    const char *tool_choice; /* auto (NULL), required, none, or a tool's name */
    bool several_calls;
    const char **mcp; /* generate: servers of the configuration's mcp_servers whose tools it calls, */
    unsigned n_mcp;
    unsigned mcp_rounds; /* calls at most; 0: 4 */
    void *own;           /* what its kind loaded for it (pipeline_open) */
    uint32_t needs;      /* bit i: waits for stage i; computed by pipeline_check, as are these: */
    uint32_t reads;      /* bit i: it reads what stage i came to, so that it is silent with it */
    bool reads_input;    /* and it reads the input */
    bool is_typed;       /* a later stage reads what it came to as JSON */
} config_stage;

typedef struct config_pipeline {
    const char *name;
    const char *use;        /* what requests it is for, to people; NULL: nothing is said */
    const char *functions;  /* the table of offered functions (converse/function_table.h); NULL: none */
    config_device *devices; /* the default list; a request's context replaces it */
    unsigned n_devices;
    sha256_digest devices_digest; /* of devices; pipeline_open */
    config_stage *stages;
    unsigned n_stages;
    const stage_registry *kinds; /* where the kinds of its stages stand; NULL: PLAIN_STAGES */
} config_pipeline;

/* X(enum, name) */
#define STAGE_STATE_TABLE(X)    \
    X(STAGE_PENDING, "pending") \
    X(STAGE_RUNNING, "running") \
    X(STAGE_DONE, "done")       \
    X(STAGE_SKIPPED, "skipped") \
    X(STAGE_FAILED, "failed")
typedef enum stage_state {
#define STAGE_STATE_ENUM(e, n) e,
    STAGE_STATE_TABLE(STAGE_STATE_ENUM)
#undef STAGE_STATE_ENUM
} stage_state;

/* What is known of a stage; text and label are "" until known. */
typedef struct stage_fact {
    stage_state state;
    const char *label;   /* the best label, candidate, document or word; of rules the verdict */
    double score;        /* its score */
    const char *text;    /* the reply, translation, filled text */
    double mean_prob;    /* of the tokens of a reply */
    const json_t *value; /* what it came to, as JSON; NULL: nothing, or nobody reads it (is_typed) */
} stage_fact;

/* What a run knows; facts[n_stages]. All borrowed. */
typedef struct pipeline_facts {
    const char *input; /* as the request has it, "" when it has none; see pipeline_input */
    unsigned brings;   /* bit m: the request brings medium m */
    const config_device *devices;
    size_t n_devices;
    const char *context; /* free text, "" when none */
    const char *as;      /* what templates call the item at hand; NULL: there is none */
    const json_t *item;
    size_t i_item; /* its place, from 0 */
    const stage_fact *stages;
} pipeline_facts;

typedef enum stage_verdict { STAGE_WAIT, STAGE_RUN, STAGE_SKIP } stage_verdict;

/* Check names, references, templates and bounds of one parsed pipeline and compute `needs`. Sentences
 * start with `where` and the field ("pipelines[0]." "stages[2].when[0].stage: ..."). */
int pipeline_check(config_pipeline *p, const char *where, shoal_err *err);
/* All labels or verdicts that a stage can come to; NULL when only its model knows them. */
const char *const *pipeline_labels(const config_stage *s, size_t *ret_n);
/* Load what the stages name, as their kinds do; pipeline_close lets go of it. Errors start with `where` as those
 * of pipeline_check do. */
int pipeline_open(config_pipeline *p, const char *where, shoal_err *err);
void pipeline_close(config_pipeline *p);

/* The input as stage i reads it: the request's text, or else what the last transcribe stage before it heard;
 * "": nothing, so far. */
const char *pipeline_input(const config_pipeline *p, size_t i, const pipeline_facts *facts);
/* Would stage i answer silence: does it read what nobody said, or what would have been made of it? */
bool pipeline_is_silent(const config_pipeline *p, size_t i, const pipeline_facts *facts);
/* The medium that stage i cannot run without and that is not there; N_MEDIA: it has all. */
medium pipeline_lacks(const config_pipeline *p, size_t i, const pipeline_facts *facts);
/* The same before anything ran, of the first stage that is sure to run: *ret_stage. */
medium pipeline_lacks_surely(const config_pipeline *p, const pipeline_facts *facts, size_t *ret_stage);
/* The longest input that the pipeline takes, in bytes. */
size_t pipeline_input_max(const config_pipeline *p);
/* The list that the stage goes through; NULL: none, it runs once. */
const config_each *pipeline_each(const config_stage *s);
/* Does any stage of the pipeline read this medium? */
bool pipeline_takes(const config_pipeline *p, medium m);

/* Is it a guard that holds the request back? Then nothing is called, and it has the word. */
bool pipeline_holds_back(const config_stage *s, const stage_fact *f);

/* May stage i start now? An http stage may not while a guard before it is open, or when that holds the
 * request back. For RUN and SKIP the reason ("intent is iot_hue_lightoff") is appended. When why->failed,
 * memory was short and the verdict counts for nothing. */
stage_verdict pipeline_judge(const config_pipeline *p, size_t i, const pipeline_facts *facts, buf *why);
/* A device of a request that says no unit has that of the pipeline's of its id, else of its name and domain. */
void pipeline_lend_units(const config_pipeline *p, config_device *to, size_t n);
/* *ret: the device of the list whose name the text contains as whole words, in any letter case (Latin, Greek
 * and Cyrillic letters), the last of them perhaps inflected (s, es, ed, ing); the longest name wins. NULL:
 * none. Fails only with SHOAL_ENOMEM. */
int pipeline_mentioned(const char *text, const config_device *devices, size_t n_devices,
                       const config_device **ret);
/* facts->input is taken as it stands, so it is what the stage reads (pipeline_input). Fill in {input},
 * {Input} (its first letter in upper case), {devices}, {context}, {label.STAGE}, {text.STAGE}, {spans.STAGE},
 * {spans.STAGE.LABEL} (the texts of a tag stage's spans, a line each) and {json.STAGE.PATH} (what a stage
 * came to, a text as it is, all else as JSON), in stages that go through a list {item} (or what `as` says),
 * {item.PATH} and {number}, the item's place from 1; each perhaps through functions: {input | trim |
 * first:200} (pipeline_function.h); "{{" is "{". Devices are lines light.kitchen 'Kitchen Light' = off joined
 * by newlines, the form the home models were trained on. */
int pipeline_expand(const config_pipeline *p, const char *template, const pipeline_facts *facts, buf *out);

/* How a field is written where it stands. */
typedef enum fill_as {
    FILL_TEXT,    /* as it is */
    FILL_PERCENT, /* in a URL: all but letters, digits and "-._~" as %XX */
    FILL_JSON     /* as a value: a text in quotes, {json...} and items as what they are, nothing as null */
} fill_as;
int pipeline_expand_as(const config_pipeline *p, const char *template, const pipeline_facts *facts,
                       fill_as as, buf *out);
/* What "enum_of" may be: "devices" (their ids), "names", "areas", or a pattern of ids such as "light.*". */
bool stage_enum_of_ok(const char *what);
/* May this text be a device's id, name or state: 1 to 128 bytes without control characters? A line break
 * in one would let a request add lines to the prompt. */
bool pipeline_device_text_ok(const char *s);
/* Does any template of the pipeline use {name}? */
bool pipeline_uses(const config_pipeline *p, const char *name);
/* By name; NULL name: the only one. NULL when there is none. */
const config_pipeline *pipeline_find(const config_pipeline *all, size_t n, const char *name);
/* True when every stage that may run is greedy and none looks into documents or asks other hosts, which
 * change: the same input always gives the same answer. */
/* Does it ask others, who may do something? Then no guard may hold the request back. */
bool pipeline_stage_acts(const config_stage *s);
bool pipeline_is_deterministic(const config_pipeline *p);
/* May its answer have calls? A generate stage calls nothing where tool_choice is none, or a schema is to be obeyed. */
bool pipeline_may_call(const config_pipeline *p);

#endif
