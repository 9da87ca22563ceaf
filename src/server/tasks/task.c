/* task.c: the tables, and looking rows up. */
#include "tasks/task.h"

#include <assert.h>
#include <string.h>

#define SERVICE "/shoal.v1.Worker/"

const call_task_info CALL_TASKS[CALL_N_TASKS] = {
#define STREAM_INFO(e, name_, method, Request, request_, Reply, reply_, flags_) \
    [e] = {.name = #name_,                                                      \
           .path = SERVICE method,                                              \
           .request = &shoal__v1__##request_##__descriptor,                     \
           .reply = &shoal__v1__##reply_##__descriptor,                         \
           .streams = true,                                                     \
           .flags = flags_},
    CALL_STREAM_TABLE(STREAM_INFO)
#undef STREAM_INFO
#define UNARY_INFO(e, name_, method, Request, request_, Reply, reply_, flags_) \
    [e] = {.name = #name_,                                                     \
           .path = SERVICE method,                                             \
           .request = &shoal__v1__##request_##__descriptor,                    \
           .reply = &shoal__v1__##reply_##__descriptor,                        \
           .flags = flags_},
        CALL_UNARY_TABLE(UNARY_INFO)
#undef UNARY_INFO
};

void *task_field(const ProtobufCMessage *m, const char *name)
{
    const ProtobufCFieldDescriptor *f = protobuf_c_message_descriptor_get_field_by_name(m->descriptor, name);
    return f ? (char *)m + f->offset : NULL;
}

void task_request_texts(task_request *ret, call_task task, Shoal__V1__TextInput **texts, size_t n,
                        char *adapter)
{
    protobuf_c_message_init(CALL_TASKS[task].request, ret);
    assert(task_field(&ret->base, "inputs") == &ret->classify.inputs);
    ret->classify.inputs = texts;
    ret->classify.n_inputs = n;
    *(char **)task_field(&ret->base, "adapter") = adapter;
}

void task_request_file(task_request *ret, call_task task, ProtobufCBinaryData file)
{
    const ProtobufCFieldDescriptor *f = CALL_TASKS[task].request->fields;
    assert(f->type == PROTOBUF_C_TYPE_BYTES && f->offset == offsetof(Shoal__V1__ScoreRequest, csv));
    (void)f;
    protobuf_c_message_init(CALL_TASKS[task].request, ret);
    ret->score.csv = file;
}

const Shoal__V1__Timing *task_reply_timing(const ProtobufCMessage *reply)
{
    Shoal__V1__Timing *const *timing = task_field(reply, "timing");
    return timing ? *timing : NULL;
}

const task_endpoint TASK_ENDPOINTS[N_ASKS] = {
    [ASK_CHAT] = {"chat_completions", "/v1/chat/completions", "generate", CALL_GENERATE, "messages", true},
    [ASK_COMPLETION] = {"completions", "/v1/completions", TASK_COMPLETES, CALL_GENERATE, "prompt", true},
    [ASK_TRANSLATE] = {"translate", "/v1/translate", "seq2seq", CALL_GENERATE, "input", true},
    [ASK_SUMMARIZE] = {"summarize", "/v1/summarize", "seq2seq", CALL_GENERATE, "input", true},
    [ASK_EMBED] = {"embeddings", "/v1/embeddings", "embed", CALL_EMBED, "input", true},
    [ASK_CLASSIFY] = {"classify", "/v1/classify", "classify", CALL_CLASSIFY, "input", true},
    [ASK_RERANK] = {"rerank", "/v1/rerank", "rerank", CALL_CLASSIFY, "query", true},
    [ASK_TAG] = {"tag", "/v1/tag", "tag", CALL_TAG, "input", true},
    [ASK_FILL_MASK] = {"fill_mask", "/v1/fill-mask", "fill-mask", CALL_FILL_MASK, "input", true},
    [ASK_PROCESS] = {"process", "/v1/process", NULL, CALL_N_TASKS, "input", true},
    [ASK_MODERATE] = {"moderations", "/v1/moderations", "classify", CALL_CLASSIFY, "input", false},
    [ASK_SCORE] = {"score", "/v1/score", "score", CALL_SCORE, NULL, false},
    [ASK_IMAGE] = {"classify_image", "/v1/images/classify", "classify-image", CALL_CLASSIFY_IMAGE, NULL,
                   false},
    [ASK_TRANSCRIBE] = {"transcriptions", "/v1/audio/transcriptions", "transcribe", CALL_TRANSCRIBE, NULL,
                        false},
    [ASK_VAD] = {"vad", "/v1/vad", "vad", CALL_DETECT, NULL, false},
};

const task_endpoint *task_endpoint_named(const char *name)
{
    for (size_t i = 0; i < N_ASKS; i++)
        if (strcmp(TASK_ENDPOINTS[i].name, name) == 0) return &TASK_ENDPOINTS[i];
    return NULL;
}

static bool completes(const char *task)
{
    return strcmp(task, "generate") == 0 || strcmp(task, "seq2seq") == 0;
}

const task_endpoint *task_endpoint_of(const char *task)
{
    if (completes(task)) return &TASK_ENDPOINTS[ASK_COMPLETION];
    for (size_t i = 0; i < N_ASKS; i++) {
        const task_endpoint *e = &TASK_ENDPOINTS[i];
        if (e->does && strcmp(e->does, task) == 0) return e;
    }
    return NULL;
}

const char *task_effective(const char *task, size_t n_labels)
{
    return strcmp(task, "classify") == 0 && n_labels == 1 ? "rerank" : task;
}

bool task_fits(const char *does, const char *task, size_t n_labels)
{
    if (strcmp(does, TASK_COMPLETES) == 0) return completes(task);
    bool ranks = strcmp(task_effective(task, n_labels), "rerank") == 0;
    return ranks ? strcmp(does, "rerank") == 0 || strcmp(does, "classify") == 0 : strcmp(does, task) == 0;
}
