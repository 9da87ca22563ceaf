/* task.h: what models are asked.
 *
 * Two tables. CALL_TASK_TABLE has the methods of a worker: from a row follow the call's typed function (calls.h),
 * its path and its codec. TASK_ENDPOINTS has the endpoints over them: which model may be asked there, and which
 * method it is called with. Both are data; nothing is done here. */
#ifndef TASKS_TASK_H
#define TASKS_TASK_H

#include <stdbool.h>
#include <stddef.h>

#include "shoal/v1/worker.pb-c.h"

/* ---- methods of workers ------------------------------------------------------------------------------ */

/* What is true of a task. */
enum {
    CALL_WAITS = 1,  /* for a worker that is being restarted */
    CALL_LEARNS = 2, /* its time tells how fast a replica is: one pass over the whole input */
    CALL_PROMPT = 4, /* its input must fit the context */
};

/* X(enum, name, method, Request, request, Reply, reply, flags): a stream's Reply is its event. */
#define CALL_STREAM_TABLE(X)                                                                                 \
    X(CALL_GENERATE, generate, "Generate", GenerateRequest, generate_request, GenerateEvent, generate_event, \
      CALL_WAITS | CALL_PROMPT)                                                                              \
    X(CALL_VOTE, vote, "Vote", GenerateRequest, generate_request, GenerateEvent, generate_event,             \
      CALL_PROMPT)                                                                                           \
    X(CALL_TRANSCRIBE, transcribe, "Transcribe", TranscribeRequest, transcribe_request, TranscribeEvent,     \
      transcribe_event, CALL_WAITS)
#define CALL_UNARY_TABLE(X)                                                                                  \
    X(CALL_CLASSIFY, classify, "Classify", ClassifyRequest, classify_request, ClassifyReply, classify_reply, \
      CALL_WAITS | CALL_LEARNS)                                                                              \
    X(CALL_TAG, tag, "Tag", TagRequest, tag_request, TagReply, tag_reply, CALL_WAITS | CALL_LEARNS)          \
    X(CALL_EMBED, embed, "Embed", EmbedRequest, embed_request, EmbedReply, embed_reply,                      \
      CALL_WAITS | CALL_LEARNS)                                                                              \
    X(CALL_DETECT, detect, "DetectSpeech", DetectSpeechRequest, detect_speech_request, DetectSpeechReply,    \
      detect_speech_reply, CALL_WAITS | CALL_LEARNS)                                                         \
    X(CALL_SCORE, score, "Score", ScoreRequest, score_request, ScoreReply, score_reply,                      \
      CALL_WAITS | CALL_LEARNS)                                                                              \
    X(CALL_CLASSIFY_IMAGE, classify_image, "ClassifyImage", ImageRequest, image_request, ClassifyReply,      \
      classify_reply, CALL_WAITS | CALL_LEARNS)                                                              \
    X(CALL_FILL_MASK, fill_mask, "FillMask", FillMaskRequest, fill_mask_request, FillMaskReply,              \
      fill_mask_reply, CALL_WAITS | CALL_LEARNS)                                                             \
    X(CALL_LIKELIHOOD, likelihood, "Likelihood", LikelihoodRequest, likelihood_request, LikelihoodReply,     \
      likelihood_reply, CALL_WAITS)                                                                          \
    X(CALL_DESCRIBE, describe, "Describe", DescribeRequest, describe_request, ModelInfo, model_info, 0)      \
    X(CALL_TOKENIZE, tokenize, "Tokenize", TokenizeRequest, tokenize_request, TokenizeReply, tokenize_reply, \
      CALL_WAITS)                                                                                            \
    X(CALL_DETOKENIZE, detokenize, "Detokenize", DetokenizeRequest, detokenize_request, DetokenizeReply,     \
      detokenize_reply, CALL_WAITS)                                                                          \
    X(CALL_RENDER, render, "Render", RenderRequest, render_request, RenderReply, render_reply, CALL_WAITS)
#define CALL_TASK_TABLE(X) CALL_STREAM_TABLE(X) CALL_UNARY_TABLE(X)

typedef enum call_task {
#define CALL_TASK_ENUM(e, name, method, Request, request, Reply, reply, flags) e,
    CALL_TASK_TABLE(CALL_TASK_ENUM)
#undef CALL_TASK_ENUM
        CALL_N_TASKS
} call_task;

typedef struct call_task_info {
    const char *name, *path; /* "/shoal.v1.Worker/Tag" */
    const ProtobufCMessageDescriptor *request, *reply;
    bool streams;
    unsigned flags;
} call_task_info;
extern const call_task_info CALL_TASKS[CALL_N_TASKS];

/* Where m has the field of that name; NULL: its type has none. */
void *task_field(const ProtobufCMessage *m, const char *name);

/* A request of any unary method. Those that read texts begin alike, and so do those that read a file. */
typedef union task_request {
    ProtobufCMessage base;
#define TASK_REQUEST(e, name, method, Request, request, Reply, reply, flags) Shoal__V1__##Request name;
    CALL_UNARY_TABLE(TASK_REQUEST)
#undef TASK_REQUEST
} task_request;

/* The request of a method that reads texts, resp. a file (a CSV, a picture, a sound); it borrows what is given. */
void task_request_texts(task_request *ret, call_task task, Shoal__V1__TextInput **texts, size_t n,
                        char *adapter);
void task_request_file(task_request *ret, call_task task, ProtobufCBinaryData file);
/* What the worker says of its time; NULL: nothing. */
const Shoal__V1__Timing *task_reply_timing(const ProtobufCMessage *reply);

/* ---- endpoints --------------------------------------------------------------------------------------- */

typedef enum task_endpoint_id {
    ASK_CHAT,
    ASK_COMPLETION,
    ASK_TRANSLATE,
    ASK_SUMMARIZE,
    ASK_EMBED,
    ASK_CLASSIFY,
    ASK_RERANK,
    ASK_TAG,
    ASK_FILL_MASK,
    ASK_PROCESS,
    ASK_MODERATE,
    ASK_SCORE,
    ASK_IMAGE,
    ASK_TRANSCRIBE,
    ASK_VAD,
    N_ASKS
} task_endpoint_id;

/* What task_endpoint.does says of /v1/completions: models that write on from a text, "generate" and "seq2seq". */
#define TASK_COMPLETES "completion"

typedef struct task_endpoint {
    const char *name; /* as in metrics, in the rules of routes and in POST /v1/route */
    const char *path;
    const char *does;  /* what its model must do (task_fits); NULL: a pipeline, whose stages say that */
    call_task call;    /* what a worker is asked */
    const char *input; /* the member of its JSON that has the text; NULL: a file's bytes */
    bool routed;       /* "model" may name a route: it brings texts */
} task_endpoint;
extern const task_endpoint TASK_ENDPOINTS[N_ASKS];

/* NULL: no endpoint over models has this name. */
const task_endpoint *task_endpoint_named(const char *name);
/* Where a text or a file goes to a model of this task, and what it makes of it comes back; NULL: nowhere. */
const task_endpoint *task_endpoint_of(const char *task);

/* What a model of that task and so many labels is for: a classifier of one label ranks, whatever its file says. */
const char *task_effective(const char *task, size_t n_labels);
/* Does such a model do what an endpoint wants? What ranks may be asked as a classifier, too. */
bool task_fits(const char *does, const char *task, size_t n_labels);

#endif
