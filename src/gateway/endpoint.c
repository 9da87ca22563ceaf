/* endpoint.c: the table of endpoints, and the search in it. */
#include "gateway/endpoint.h"

#include <string.h>

#include "gateway/caches.h"
#include "gateway/collections.h"
#include "gateway/detect.h"
#include "gateway/door_ws.h"
#include "gateway/encode.h"
#include "gateway/generate.h"
#include "gateway/machines.h"
#include "gateway/ollama.h"
#include "gateway/overview.h"
#include "gateway/routed.h"
#include "process/process.h"
#include "gateway/sessions.h"
#include "gateway/status.h"
#include "gateway/transcribe.h"
#include "gateway/vector_stores.h"

const endpoint ENDPOINTS[] = {
    {"POST", "/v1/chat/completions", sessions_chat, true, true, "chat_completions", 0},
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
    {"GET", "/v1/collections", collections_list, true, false, "collections", 0},
    {"POST", "/v1/collections", collections_create, true, true, "collection_create", 0},
    {"GET", "/v1/collections/*", collections_get, true, false, "collection", 0},
    {"DELETE", "/v1/collections/*", collections_delete, true, true, "collection_delete", 0},
    {"GET", "/v1/collections/*/documents", collections_documents, true, false, "documents", 0},
    {"POST", "/v1/collections/*/documents", collections_add, true, true, "documents_add", ENDPOINT_DOCUMENTS},
    {"DELETE", "/v1/collections/*/documents", collections_remove, true, true, "document_delete", 0},
    {"GET", "/v1/collections/*/documents/*", collections_document, true, false, "document", 0},
    {"DELETE", "/v1/collections/*/documents/*", collections_document_delete, true, true, "document_delete",
     0},
    {"POST", "/v1/collections/*/search", collections_search, true, true, "search", 0},
    {"POST", "/v1/collections/*/answer", collections_answer, true, true, "answer", 0},
    {"GET", "/v1/vector_stores", vector_stores_list, true, false, "vector_stores", 0},
    {"POST", "/v1/vector_stores", vector_stores_create, true, true, "vector_store_create", 0},
    {"GET", "/v1/vector_stores/*", vector_stores_get, true, false, "vector_store", 0},
    {"DELETE", "/v1/vector_stores/*", vector_stores_delete, true, true, "vector_store_delete", 0},
    {"GET", "/v1/vector_stores/*/files", vector_stores_files, true, false, "vector_store_files", 0},
    {"POST", "/v1/vector_stores/*/files", vector_stores_add, true, true, "vector_store_add",
     ENDPOINT_DOCUMENTS},
    {"GET", "/v1/vector_stores/*/files/*", vector_stores_file, true, false, "vector_store_file", 0},
    {"DELETE", "/v1/vector_stores/*/files/*", vector_stores_file_delete, true, true, "vector_store_remove",
     0},
    {"POST", "/v1/vector_stores/*/search", vector_stores_search, true, true, "vector_store_search", 0},
    {"GET", "/v1/files", files_list, true, false, "files", 0},
    {"POST", "/v1/files", files_upload, true, true, "file_upload", ENDPOINT_FORMS | ENDPOINT_DOCUMENTS},
    {"GET", "/v1/files/*", files_get, true, false, "file", 0},
    {"GET", "/v1/files/*/content", files_content, true, false, "file_content", 0},
    {"DELETE", "/v1/files/*", files_delete, true, true, "file_delete", 0},
    {"POST", "/v1/route", routed_explain, true, true, "route", 0},
    {"POST", "/v1/responses", sessions_respond, true, true, "responses", 0},
    {"GET", "/v1/responses/*", sessions_response, true, false, "response", 0},
    {"DELETE", "/v1/responses/*", sessions_forget, true, true, "response_delete", 0},
    {"GET", "/v1/sessions/*", sessions_get, true, false, "session", 0},
    {"DELETE", "/v1/sessions/*", sessions_delete, true, true, "session_delete", 0},
    {"POST", "/api/chat", ollama_chat, true, false, "ollama_chat", ENDPOINT_OLLAMA},
    {"POST", "/api/generate", ollama_generate, true, false, "ollama_generate", ENDPOINT_OLLAMA},
    {"POST", "/api/embed", ollama_embed, true, false, "ollama_embed", ENDPOINT_OLLAMA},
    {"POST", "/api/embeddings", ollama_embeddings, true, false, "ollama_embeddings", ENDPOINT_OLLAMA},
    {"POST", "/api/show", ollama_show, true, false, "ollama_show", ENDPOINT_OLLAMA},
    {"GET", "/api/tags", ollama_tags, true, false, "ollama_tags", ENDPOINT_OLLAMA},
    {"GET", "/api/ps", ollama_ps, true, false, "ollama_ps", ENDPOINT_OLLAMA},
    {"GET", "/api/version", ollama_version, false, false, "ollama_version", ENDPOINT_OLLAMA},
    {"GET", "/v1/ws", door_ws_handle, false, false, "ws", ENDPOINT_TUNNEL},
    {"GET", "/v1/cache", caches_show, true, false, "cache", 0},
    {"DELETE", "/v1/cache", caches_purge, true, false, "cache_purge", 0},
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

/* '*' is one segment; '/' at the end is one more, or several. */
static bool path_matches(const char *pattern, const char *path)
{
    for (; *pattern; pattern++) {
        if (*pattern == '*') {
            size_t n = strcspn(path, "/");
            if (n == 0) return false;
            path += n;
        } else if (*pattern != *path++) {
            return false;
        } else if (*pattern == '/' && !pattern[1]) {
            return *path != '\0';
        }
    }
    return *path == '\0';
}

/* What a path allows, by which of the methods it has; GET serves HEAD: the server drops the body. */
enum { HAS_GET = 1, HAS_POST = 2, HAS_DELETE = 4 };
static const char *const ALLOWED[] = {
    NULL,     "GET, HEAD",         "POST",         "GET, HEAD, POST",
    "DELETE", "GET, HEAD, DELETE", "POST, DELETE", "GET, HEAD, POST, DELETE"};

static unsigned method_of(const char *method)
{
    if (strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0) return HAS_GET;
    if (strcmp(method, "POST") == 0) return HAS_POST;
    return strcmp(method, "DELETE") == 0 ? HAS_DELETE : 0;
}

const endpoint *endpoint_find(const char *method, const char *path, const char **ret_allow)
{
    unsigned has = 0, asked = method_of(method);
    for (size_t i = 0; i < N_ENDPOINTS; i++) {
        if (!path_matches(ENDPOINTS[i].path, path)) continue;
        unsigned here = method_of(ENDPOINTS[i].method);
        if (here == asked) {
            *ret_allow = NULL;
            return &ENDPOINTS[i];
        }
        has |= here;
    }
    *ret_allow = ALLOWED[has];
    return NULL;
}
