/* endpoint.c: the table of endpoints, and the search in it. */
#include "gateway/endpoint.h"

#include <string.h>

#include "gateway/detect.h"
#include "gateway/encode.h"
#include "gateway/generate.h"
#include "gateway/machines.h"
#include "gateway/overview.h"
#include "process/process.h"
#include "gateway/status.h"
#include "gateway/transcribe.h"

const endpoint ENDPOINTS[] = {
    {"POST", "/v1/chat/completions", generate_chat, true, true, "chat_completions", 0},
    {"POST", "/v1/completions", generate_completions, true, true, "completions", 0},
    {"POST", "/v1/translate", generate_translate, true, true, "translate", 0},
    {"POST", "/v1/summarize", generate_summarize, true, true, "summarize", 0},
    {"POST", "/v1/embeddings", encode_embeddings, true, true, "embeddings", 0},
    {"POST", "/v1/classify", encode_classify, true, true, "classify", 0},
    {"POST", "/v1/rerank", encode_rerank, true, true, "rerank", 0},
    {"POST", "/v1/tag", encode_tag, true, true, "tag", 0},
    {"POST", "/v1/audio/transcriptions", transcribe_handle, true, true, "transcriptions",
     ENDPOINT_FORMS | ENDPOINT_SOUND | ENDPOINT_PIECES},
    {"POST", "/v1/audio/translations", transcribe_translate, true, true, "translations",
     ENDPOINT_FORMS | ENDPOINT_SOUND | ENDPOINT_PIECES},
    {"POST", "/v1/vad", detect_handle, true, true, "vad", ENDPOINT_FORMS | ENDPOINT_SOUND},
    {"POST", "/v1/fill-mask", encode_fill_mask, true, true, "fill_mask", 0},
    {"POST", "/v1/score", encode_score, true, true, "score", ENDPOINT_FORMS},
    {"POST", "/v1/images/classify", encode_image, true, true, "classify_image", ENDPOINT_FORMS},
    {"POST", "/v1/process", process_handle, true, true, "process", ENDPOINT_FORMS | ENDPOINT_SOUND},
    {"GET", "/v1/models", status_models, true, false, "models", 0},
    {"GET", "/v1/models/", status_model, true, false, "model", 0},
    {"GET", "/v1/nodes", machines_list, true, false, "nodes", false},
    {"GET", "/v1/status", overview_handle, true, false, "status", 0},
    {"POST", "/v1/nodes/", machines_order, true, false, "node_order", 0},
    {"GET", "/healthz", status_health, false, false, "healthz", 0},
    {"GET", "/readyz", status_ready, false, false, "readyz", 0},
    {"GET", "/metrics", status_metrics, true, false, "metrics", 0},
};
const size_t N_ENDPOINTS = sizeof ENDPOINTS / sizeof *ENDPOINTS;

static bool path_matches(const char *pattern, const char *path)
{
    size_t n = strlen(pattern);
    if (pattern[n - 1] != '/') return strcmp(pattern, path) == 0;
    return strncmp(pattern, path, n) == 0 && path[n] != '\0';
}

const endpoint *endpoint_find(const char *method, const char *path, const char **ret_allow)
{
    *ret_allow = NULL;
    for (size_t i = 0; i < N_ENDPOINTS; i++) {
        if (!path_matches(ENDPOINTS[i].path, path)) continue;
        bool reads =
            strcmp(ENDPOINTS[i].method, "GET") == 0; /* then HEAD is served: the server drops the body */
        if (strcmp(ENDPOINTS[i].method, method) == 0 || (reads && strcmp(method, "HEAD") == 0))
            return &ENDPOINTS[i];
        *ret_allow = reads ? "GET, HEAD" : ENDPOINTS[i].method; /* every path has one method */
    }
    return NULL;
}
