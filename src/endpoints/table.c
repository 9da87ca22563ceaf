/* table.c: every endpoint that there is. */
#include "endpoints/table.h"

#include "endpoints/collections.h"
#include "endpoints/detect.h"
#include "endpoints/encode.h"
#include "endpoints/generate.h"
#include "endpoints/machines.h"
#include "endpoints/ollama.h"
#include "endpoints/overview.h"
#include "endpoints/pages.h"
#include "endpoints/pipelines.h"
#include "endpoints/sessions.h"
#include "endpoints/status.h"
#include "endpoints/transcribe.h"
#include "endpoints/vector_stores.h"
#include "gateway/caches.h"
#include "gateway/door_ws.h"
#include "gateway/routed.h"

static const endpoint ROWS[] = {
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
    {"POST", "/v1/process", pipelines_process, true, true, "process",
     ENDPOINT_FORMS | ENDPOINT_SOUND | ENDPOINT_PIPELINE},
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
    {"GET", "/assets/", pages_asset, false, false, "asset", 0},
    {"GET", "/healthz", status_health, false, false, "healthz", 0},
    {"GET", "/readyz", status_ready, false, false, "readyz", 0},
    {"GET", "/metrics", status_metrics, true, false, "metrics", 0},
};
const endpoint_table ENDPOINTS = {ROWS, sizeof ROWS / sizeof *ROWS};
