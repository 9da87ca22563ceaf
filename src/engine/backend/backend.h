/* backend.h: what computes a worker's model: one table of operations for each kind of engine.
 *
 * A kind is one file with a state of its own: backend_net.c (a network and an engine), backend_speech.c (the
 * same, and what a Whisper-shaped model says about itself), backend_vad.c (voice activity), backend_trees.c,
 * backend_stage.c (some layers of a network). Which kind serves a path is a row of the table in backend.c.
 * Services (worker/service_*.c) turn messages into calls of these operations and know no kind. An operation
 * that is NULL is one that the model cannot do; backend_admit says so.
 *
 *     backend b;
 *     backend_open(&b, &options, &env, &err);       reads the model; b.file_digest, b.identity
 *     backend_start(&b, &options, &env, &err);      makes it ready; b.about
 *     if (backend_admit(&b, TASK_EMBED, &err) == 0) b.ops->encode(b.state, &request, on_result, job, &id, &err);
 *     b.ops->stop(b.state); ... backend_close(&b);
 *
 * open, start and close run on the loop thread; the others on the thread that engine.h names for the
 * operation of the same name, else on any. */
#ifndef BACKEND_BACKEND_H
#define BACKEND_BACKEND_H

#include "backend/backend_facts.h"
#include "backend/stage_rows.h"
#include "base/bit_identity.h"
#include "json/sampling.h"
#include "base/sha256.h"
#include "forest/scorer.h"
#include "infer/engine.h"
#include "infer/preprocessor.h"
#include "infer/stage.h"
#include "model/packed/packed_store.h"
#include "net/net.h"
#include "signal/sound.h"
#include "speech/transcription.h"

typedef struct backend_adapter {
    const char *name, *path;
} backend_adapter;

/* What to serve, and how. Borrowed by open and start. */
typedef struct backend_options {
    const char *name;   /* of the model, for clients and logs */
    const char *path;   /* model file or folder */
    const char *sha256; /* NULL: not pinned */
    engine_options engine;
    packed_store store; /* of packed weights; folder NULL: none */
    dtype regroup;      /* a type of our own for the matrices (model/packed/regroup.h); 0: as in the file */
    const backend_adapter *adapters;
    size_t n_adapters;
    /* A model cut between its layers. From layer 0 on, with the addresses of the other stages in order: the
     * first stage, which serves the model. From another layer on: a stage, which serves Stage.Run alone. Of
     * an end of 0: all layers, of the whole model. */
    net_layers layers;
    const char *const *stages;
    size_t n_stages;
    rows_wire wire;             /* how rows travel; of the first stage */
    const char *member;         /* folder with this machine's certificate, for stages elsewhere; NULL: none */
    sampling_defaults sampling; /* of generations that do not say; over what the model's own files say */
    bool full_window;           /* of a model that transcribes; as transcription_options has it */
} backend_options;

/* What a backend is given of the process. */
typedef struct backend_env {
    arbiter *arbiter;                       /* NULL: the machine is ours, or no core is needed */
    void (*burst)(void *user, bool begins); /* as engine_options has it */
    void *burst_user;
} backend_env;

/* What is known of the model once it is ready. Borrowed from the backend. Zeroed members: there is no such thing. */
typedef struct backend_about {
    model_task task;
    const char *architecture, *version, *quantisation; /* "": not known */
    const char *vocabulary; /* SHA-256 of the tokens alone, in hex; "": no tokenizer */
    backend_facts facts;
    const model_config *config; /* NULL: no network */
    const tokenizer *tokenizer; /* NULL: no_tokenizer says why */
    const char *no_tokenizer;
    const chat_template *chat_template;
    bool default_chat_template;   /* it is the plain one (model_chat_template_is_default) */
    const char *no_chat_template; /* why the one that it has cannot be used; NULL: it has none */
    bool quotes_results;          /* model_quotes_results */
    /* [n_labels]: of classes, in the order of the scores. */
    const char *const *labels;
    size_t n_labels, n_raw;       /* n_raw: of what scores rows, scores before the link function */
    const series_spec *rows;      /* of what scores rows: how they are made */
    const whisper_tokens *speech; /* of a model that transcribes, as the next */
    bool full_window;             /* as backend_options has it */
    sampling_defaults sampling;
    int n_threads;
    size_t n_ctx;          /* tokens that one request has room for */
    size_t n_parallel;     /* calls that it works on at once */
    const char *longer_by; /* the setting that gives a longer context; "": none does */
    const char *precision; /* as bit_identity has it: "file", and what of its bits deviates from the file */
    /* May a reply begun by another backend of this identity go on here? Not where several stages lose bits
     * between them: the identity does not say where all of them are cut. */
    bool exact_resume;
    bool takes_adapters; /* it could have some */
} backend_about;

/* The file that is to be opened, as the rows of the table see it. */
typedef struct backend_source {
    const backend_options *o;
    model *model; /* NULL until backend_source_model; whoever takes it leaves NULL */
} backend_source;

/* The file as a network's; opened by the first who asks. SHOAL_EFORMAT, ...: it is none. */
int backend_source_model(backend_source *s, const model **ret, shoal_err *err);

/* The SHA-256 of the file, and the one that tells its answers apart from those of other files and settings. */
typedef struct backend_digests {
    sha256_digest file, identity;
} backend_digests;

typedef struct backend_ops {
    const char *name, *engine; /* for logs; as bit_identity has it */
    unsigned numerics;         /* of bit_identity */
    const char *device; /* kind of device that it computes on, such as "cuda"; NULL: cores, which it leases */
    /* Read the model. On failure nothing is left to close. */
    int (*open)(void **ret, backend_source *s, backend_digests *ret_digests, shoal_err *err);
    /* Make it ready, once the digest is the right one. On failure close follows. NULL: it is. */
    int (*start)(void *state, const backend_options *o, const backend_env *env, shoal_err *err);
    void (*describe)(const void *state, backend_about *ret); /* *ret is zeroed before */
    void (*stats)(const void *state, engine_stats *ret);     /* NULL: the services count their own calls */
    /* As engine_adapter_name. */
    bool (*adapter)(const void *state, size_t i, char ret_name[64], char ret_digest[65]);

    /* Requests that run: as engine_generate, and with it the next four; as engine_encode, with the scores. */
    int (*generate)(void *state, const gen_request *r, gen_event_fn fn, void *user, uint64_t *ret_id,
                    shoal_err *err);
    int (*grammar)(void *state, const grammar_spec *form, grammar **ret, shoal_err *err);
    int (*ballot)(void *state, uint64_t id, size_t position, const float *mean, size_t n);
    void (*pause)(void *state, uint64_t id, bool paused);
    void (*cancel)(void *state, uint64_t id);
    int (*encode)(void *state, const enc_request *r, enc_result_fn fn, void *user, uint64_t *ret_id,
                  shoal_err *err);
    void (*label_scores)(const void *state, const float *logits, float *ret_scores); /* engine_scores */
    void (*word_scores)(const void *state, float *row);                              /* engine_word_scores */
    /* The window that t has ready (transcription_next), as generate: events for transcription_add. */
    int (*transcribe)(void *state, transcription *t, gen_event_fn fn, void *user, uint64_t *ret_id,
                      shoal_err *err);

    /* Calls that block, on a thread that may wait. */
    int (*score)(const void *state, csv *c, uint64_t deadline_ns, scorer_row_fn row, void *user,
                 preprocessor_totals *ret_totals, shoal_err *err); /* preprocessor_score */
    int (*pixels)(const void *state, const void *bytes, size_t n, const image_limits *limits, float **ret,
                  shoal_err *err); /* preprocessor_pixels */
    int (*classify_image)(const void *state, const float *pixels, uint64_t deadline_ns,
                          const cancel_check *cancel, float *ret_logits,
                          shoal_err *err); /* preprocessor_look_at */
    int (*detect)(const void *state, sound *s, float **ret, size_t *ret_n,
                  shoal_err *err); /* vad_model_all */
    /* Not NULL: these are some layers of a network, and serve Stage.Run alone. */
    stage *(*stage)(void *state);

    /* Cancel what runs and let blocked calls return; nothing runs any more when it returns, and the calls
     * above stay allowed. May be called twice. NULL: nothing runs. */
    void (*stop)(void *state);
    void (*close)(void *state);
} backend_ops;

/* A row of the table in backend.c: 1: this kind serves it; 0: it does not; or an error. */
typedef struct backend_kind {
    int (*recognises)(backend_source *s, shoal_err *err);
    const backend_ops *ops;
} backend_kind;

int backend_trees_recognises(backend_source *s, shoal_err *err);
int backend_vad_recognises(backend_source *s, shoal_err *err);
int backend_stage_recognises(backend_source *s, shoal_err *err);
int backend_speech_recognises(backend_source *s, shoal_err *err);
int backend_net_recognises(backend_source *s, shoal_err *err);
extern const backend_ops backend_trees, backend_vad, backend_stage, backend_speech, backend_net;

typedef struct backend {
    const backend_ops *ops; /* NULL: not open */
    void *state;
    backend_about about;
    backend_digests digests;
    char *name; /* of the model, for the errors */
} backend;

/* SHOAL_EDIGEST: the file is not the one that is pinned. *ret is zeroed on failure. */
int backend_open(backend *ret, const backend_options *o, shoal_err *err);
int backend_start(backend *b, const backend_options *o, const backend_env *env, shoal_err *err);
void backend_stop(backend *b);  /* one that is not open: nothing, as the next */
void backend_close(backend *b); /* *b is zeroed then */

/* May a call for this task be made? SHOAL_EUNSUPPORTED: the model cannot do that, with what it can. */
int backend_admit(const backend *b, model_task task, shoal_err *err);
/* Its tokenizer; SHOAL_EUNSUPPORTED: it reads no text. `instead`: what to send instead ("; send ..."), or "". */
int backend_tokenizer(const backend *b, const char *instead, const tokenizer **ret, shoal_err *err);

#endif
