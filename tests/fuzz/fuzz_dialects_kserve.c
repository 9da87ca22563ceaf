/* Bodies of the Open Inference Protocol: tensors in JSON and in binary behind it. What is taken has as many
 * elements as its shape says, and asks one of our endpoints in JSON; what is refused is a 4xx with a
 * sentence. And bytes as one of our answers: its tensors are told in JSON, or it is no answer. The first byte
 * chooses the task, the next two how long the JSON is (0: all). */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "dialects/kserve.h"
#include "json/json.h"
#include "memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_json(const buf *out)
{
    json_t *v = NULL;
    if (holds(!out->failed)) holds(json_parse(&v, out->data, out->len, "what was put", NULL) == 0);
    json_decref(v);
}

static void check_refusal(int rc, const api_error *e)
{
    if (rc != e->status || rc < 400 || !e->message[0]) abort();
    holds(rc <= 499);
}

static void ask_ours(const kserve_ask *a, const Shoal__V1__ModelInfo *info)
{
    buf body = {0};
    api_error e = {0};
    const char *path = NULL;
    int rc = kserve_ask_ours(&a->in, a->params, "m", info, &path, &body, &e);
    if (rc != 0)
        check_refusal(rc, &e);
    else
        check_json(&body);
    buf_done(&body);
}

static void answer(const kserve_ask *a, const Shoal__V1__ModelInfo *info, const json_t *ours)
{
    kserve_tensors out = {0};
    buf json = {0}, tail = {0};
    api_error e = {0};
    if (kserve_take_ours(&out, &a->in, info, ours) == 0) {
        int rc = kserve_put_answer(&json, &tail, a, &out, "m", "1", &e);
        if (rc != 0)
            check_refusal(rc, &e);
        else
            check_json(&json);
    }
    buf_done(&json);
    buf_done(&tail);
    kserve_done(&out);
}

static void look(const kserve_tensors *in)
{
    for (size_t i = 0; i < in->n; i++) {
        buf out = {0};
        size_t n = 1;
        for (size_t k = 0; k < in->items[i].n_dims; k++) n *= (size_t)in->items[i].shape[k];
        if (n != in->items[i].n) abort();
        kserve_put_data(&out, &in->items[i]);
        check_json(&out);
        buf_done(&out);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const TASKS[] = {"generate", "seq2seq", "classify",  "embed",          "rerank",
                                        "tag",      "score",   "fill-mask", "classify-image", "vad"};
    static char *NAMES[] = {"a", "b"};
    if (size < 3) return 0;
    Shoal__V1__ModelInfo info = SHOAL__V1__MODEL_INFO__INIT;
    info.task = (char *)TASKS[data[0] % 10];
    info.labels = info.columns = NAMES;
    info.n_labels = info.n_columns = 2;
    const char *bytes = (const char *)data + 3;
    size_t n = size - 3, n_json = (size_t)data[1] << 8 | data[2];
    kserve_ask a;
    api_error e = {0};
    json_t *ours = NULL;
    int rc = kserve_ask_read(&a, bytes, n, n_json ? n_json : n, &e);
    if (rc != 0) {
        check_refusal(rc, &e);
    } else {
        look(&a.in);
        ask_ours(&a, &info);
    }
    if (json_parse(&ours, bytes, n, "bytes", NULL) == 0) answer(&a, &info, json_object_get(ours, "ours"));
    if (ours) answer(&a, &info, ours);
    json_decref(ours);
    kserve_ask_done(&a);
    return 0;
}
