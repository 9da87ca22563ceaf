/* endpoint.c: the table of endpoints, and the search in it. */
#include "gateway/endpoint.h"

#include <string.h>

#include "gateway/encode.h"
#include "gateway/generate.h"
#include "gateway/process.h"
#include "gateway/status.h"

const endpoint ENDPOINTS[] = {
    {"POST", "/v1/chat/completions", chat_handle, true, true, "chat_completions"},
    {"POST", "/v1/completions", completions_handle, true, true, "completions"},
    {"POST", "/v1/embeddings", embeddings_handle, true, true, "embeddings"},
    {"POST", "/v1/classify", classify_handle, true, true, "classify"},
    {"POST", "/v1/tag", tag_handle, true, true, "tag"},
    {"POST", "/v1/process", process_handle, true, true, "process"},
    {"GET", "/v1/models", models_handle, true, false, "models"},
    {"GET", "/v1/models/", model_handle, true, false, "model"},
    {"GET", "/healthz", health_handle, false, false, "healthz"},
    {"GET", "/readyz", ready_handle, false, false, "readyz"},
    {"GET", "/metrics", metrics_handle, true, false, "metrics"},
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
