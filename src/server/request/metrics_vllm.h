/* metrics_vllm.h: our numbers under the names by which vLLM exports them (metrics.compat: vllm), for dashboards,
 * autoscalers and the endpoint picker of the Gateway API Inference Extension, which read these names.
 *
 * A row renames a family of metrics.h, or those of its series whose second label has one value; nothing is counted
 * twice. Names and meanings: vllm/v1/metrics/loggers.py of vLLM's sources; its label `engine` and its families of GPU
 * blocks, adapters and preemption have no counterpart here. */
#ifndef REQUEST_METRICS_VLLM_H
#define REQUEST_METRICS_VLLM_H

#include "request/metrics.h"

/* X(name without "vllm:", family, value of the family's second label or NULL, label names) */
#define METRIC_VLLM_TABLE(X)                                                        \
    X("num_requests_running", METRIC_MODEL_RUNNING, NULL, "model_name")             \
    X("num_requests_waiting", METRIC_MODEL_WAITING, NULL, "model_name")             \
    X("kv_cache_usage_perc", METRIC_MODEL_KV, NULL, "model_name")                   \
    X("gpu_cache_usage_perc", METRIC_MODEL_KV, NULL, "model_name")                  \
    X("prefix_cache_queries_total", METRIC_PREFIX, "queried", "model_name")         \
    X("prefix_cache_hits_total", METRIC_PREFIX, "hit", "model_name")                \
    X("prompt_tokens_total", METRIC_TOKENS, "prompt", "model_name")                 \
    X("generation_tokens_total", METRIC_TOKENS, "generated", "model_name")          \
    X("request_success_total", METRIC_FINISHED, NULL, "model_name,finished_reason") \
    X("time_to_first_token_seconds", METRIC_STAGE_S, "first_token", "model_name")   \
    X("inter_token_latency_seconds", METRIC_TOKEN_GAP, NULL, "model_name")          \
    X("time_per_output_token_seconds", METRIC_TOKEN_GAP, NULL, "model_name")        \
    X("e2e_request_latency_seconds", METRIC_STAGE_S, "total", "model_name")         \
    X("request_queue_time_seconds", METRIC_STAGE_S, "queue", "model_name")          \
    X("request_prefill_time_seconds", METRIC_STAGE_S, "prefill", "model_name")      \
    X("request_decode_time_seconds", METRIC_STAGE_S, "decode", "model_name")

void metrics_put_vllm(buf *out, const metrics *m, metrics_form form);

#endif
