/* metrics.h: counters, gauges and histograms, all from one table, as the text of Prometheus or of OpenMetrics.
 *
 * A family has up to three labels; a series is made when its label values are first seen. Label values
 * come from small sets (endpoints, configured models, status codes), never from clients' text, so the
 * number of series is bounded. Series of replicas and sources (from METRIC_SOURCE on) are made anew from the
 * registry, so they go with what they tell of. Loop thread only. */
#ifndef REQUEST_METRICS_H
#define REQUEST_METRICS_H

#include <stdint.h>

#include "base/buf.h"
#include "base/loop_work.h"
#include "cluster/registry.h"
#include "logging/trace.h"

#define METRIC_LABELS_MAX 3

/* X(enum, name, type, labels, help): labels are comma separated, at most METRIC_LABELS_MAX. Those that the
 * registry knows stand at the end, from METRIC_SOURCE on. */
#define METRIC_TABLE(X)                                                                                     \
    X(METRIC_BUILD, "shoal_build_info", GAUGE, "version", "Always 1; the version is a label.")              \
    X(METRIC_REQUESTS, "shoal_requests_total", COUNTER, "endpoint,model,code", "Answered HTTP requests.")   \
    X(METRIC_ERRORS, "shoal_errors_total", COUNTER, "endpoint,code", "Failed requests by error code.")      \
    X(METRIC_GONE, "shoal_client_gone_total", COUNTER, "endpoint", "Clients that left early.")              \
    X(METRIC_TOKENS, "shoal_tokens_total", COUNTER, "model,kind",                                           \
      "Tokens read and made, cached answers not.")                                                          \
    X(METRIC_DRAFTS, "shoal_draft_tokens_total", COUNTER, "model,result",                                   \
      "Tokens that were guessed and computed ahead: accepted or rejected.")                                 \
    X(METRIC_COST, "shoal_cost_total", COUNTER, "model,route",                                              \
      "What answers cost by the configuration's prices, in its unit; route: by which it came, if any.")     \
    X(METRIC_ENERGY, "shoal_energy_joules_total", COUNTER, "model,route,by",                                \
      "What answers took, and how that is known: configured, rapl or cpu_time.")                            \
    X(METRIC_CACHE, "shoal_cache_lookups_total", COUNTER, "of,name,result",                                 \
      "Response cache, by route, pipeline, ensemble or model: hit, stale, negative, near, shared or miss.") \
    X(METRIC_NEAR, "shoal_cache_near_total", COUNTER, "name,result,why",                                    \
      "Lookups by likeness: near, none, refused (and why), absent (the model that was missed).")            \
    X(METRIC_NEAR_S, "shoal_cache_near_seconds", HISTOGRAM, "name", "What such a lookup took.")             \
    X(METRIC_NEAR_AUDIT, "shoal_cache_near_audit_total", COUNTER, "name,result",                            \
      "Answers found by likeness, made anew and compared: same or other.")                                  \
    X(METRIC_NEAR_LIKENESS, "shoal_cache_near_likeness_total", COUNTER, "name",                             \
      "What share of their words the two had in common, summed up.")                                        \
    X(METRIC_IN_FLIGHT, "shoal_requests_in_flight", GAUGE, "", "HTTP requests being answered.")             \
    X(METRIC_CONNECTIONS, "shoal_connections", GAUGE, "", "Open client connections.")                       \
    X(METRIC_GATEWAY_RESTARTS, "shoal_gateway_restarts_total", COUNTER, "",                                 \
      "Starts of the gateway process after a crash.")                                                       \
    X(METRIC_GATEWAY_CPU_S, "shoal_gateway_cpu_seconds_total", COUNTER, "",                                 \
      "Time that the gateway process had a core, since it started.")                                        \
    X(METRIC_LOOP_WORK, "shoal_loop_turn_work_bytes", BYTES_HISTOGRAM, "",                                  \
      "Bytes that a turn of the event loop parsed, unpacked or packed, plus 4096 for each message.")        \
    X(METRIC_LOOP_WORK_MAX, "shoal_loop_turn_work_bytes_max", GAUGE, "",                                    \
      "The largest such turn since the start.")                                                             \
    X(METRIC_REQUEST_S, "shoal_request_seconds", HISTOGRAM, "endpoint",                                     \
      "From request received to answer done.")                                                              \
    X(METRIC_STAGE_S, "shoal_stage_seconds", HISTOGRAM, "model,stage",                                      \
      "Time of a model call by stage: queue, prefill, decode, first_token, total.")                         \
    X(METRIC_TOKEN_GAP, "shoal_token_gap_seconds", HISTOGRAM, "model",                                      \
      "Time between two tokens of a reply, as the gateway received them.")                                  \
    X(METRIC_FINISHED, "shoal_replies_total", COUNTER, "model,finish",                                      \
      "Finished generations by why they ended: stop, length or tool_calls.")                                \
    X(METRIC_PREFIX, "shoal_prefix_cache_tokens_total", COUNTER, "model,result",                            \
      "Prompt tokens: queried, and those of them whose KV pages were there: hit.")                          \
    X(METRIC_HELD, "shoal_model_calls_held", GAUGE, "model",                                                \
      "Calls that wait in this gateway for a replica.")                                                     \
    X(METRIC_WANTED, "shoal_model_replicas_wanted", GAUGE, "model",                                         \
      "Of models whose replicas follow the load: how many are wanted.")                                     \
    X(METRIC_SCALE, "shoal_scale_steps_total", COUNTER, "model,why",                                        \
      "Changes of that number: waited, called, idle, failed, no_machine or range.")                         \
    X(METRIC_CALL_CPU_S, "shoal_call_cpu_seconds_total", COUNTER, "model,task",                             \
      "Time of workers' cores that model calls took, each its share of the engine's steps.")                \
    X(METRIC_LAST_CALL, "shoal_model_last_call_timestamp_seconds", GAUGE, "model",                          \
      "When the last model call ended, in seconds since 1970.")                                             \
    X(METRIC_MOVES, "shoal_moves_total", COUNTER, "cause",                                                  \
      "Model calls that went on elsewhere: lost, leaves, broken, silent.")                                  \
    X(METRIC_ANSWER_RESTARTS, "shoal_answer_restarts_total", COUNTER, "cause",                              \
      "Of these moves those to a replica of another identity, where the answer began anew.")                \
    X(METRIC_MOVE_S, "shoal_move_gap_seconds", HISTOGRAM, "cause",                                          \
      "From a worker's end to the first word of the next one.")                                             \
    X(METRIC_MCP, "shoal_mcp_calls_total", COUNTER, "server,tool,result",                                   \
      "Calls of tools of MCP servers: ok, late or error; tool \"\": a list of them.")                       \
    X(METRIC_MCP_S, "shoal_mcp_seconds", HISTOGRAM, "server", "What such a call took.")                     \
    X(METRIC_BATCHES, "shoal_batches_total", COUNTER, "status",                                             \
      "Batches that have ended: completed, failed, expired or cancelled.")                                  \
    X(METRIC_BATCH_LINES, "shoal_batch_requests_total", COUNTER, "result",                                  \
      "Requests of batches that were answered: ok or error.")                                               \
    X(METRIC_HEDGES, "shoal_hedges_total", COUNTER, "task,result",                                          \
      "Unary calls that were made twice: the second won or lost.")                                          \
    X(METRIC_DEGRADED, "shoal_degraded_total", COUNTER, "model,answered_by",                                \
      "Calls made of a stand-in, because the model had no replica.")                                        \
    X(METRIC_CASCADE, "shoal_cascade_total", COUNTER, "ensemble,model,judged",                              \
      "Answers of a cascade's members: sure or unsure.")                                                    \
    X(METRIC_CONFIDENCE, "shoal_cascade_confidence_total", COUNTER, "ensemble,model",                       \
      "Their confidences, summed up.")                                                                      \
    X(METRIC_DRIFT, "shoal_cascade_drift", GAUGE, "ensemble,model",                                         \
      "Spreads of the calibration by which the running confidence is above (or below: < 0) its mean.")      \
    X(METRIC_VOTE_LEFT, "shoal_vote_left_total", COUNTER, "ensemble,model",                                 \
      "Members that left a vote before the reply was whole.")                                               \
    X(METRIC_REFINE, "shoal_refine_total", COUNTER, "ensemble,by",                                          \
      "Answers of a refine: fast, better or refined.")                                                      \
    X(METRIC_VERIFY, "shoal_verify_total", COUNTER, "ensemble,model,verdict",                               \
      "Answers of a verify's members: passed, repaired, asked_again, escalated, safe or refused.")          \
    X(METRIC_RERANK, "shoal_rerank_total", COUNTER, "ensemble,model",                                       \
      "Answers of a rerank, by whose candidate was the best.")                                              \
    X(METRIC_ROUTED, "shoal_routed_total", COUNTER, "route,model,reason",                                   \
      "Requests for a route, by who answered and why.")                                                     \
    X(METRIC_ROUTE_S, "shoal_route_seconds", HISTOGRAM, "route",                                            \
      "From a request for a route to the decision.")                                                        \
    X(METRIC_SHADOW, "shoal_shadow_total", COUNTER, "route,shadow,result",                                  \
      "Answers of shadow models, compared with those that were sent: same, other or failed.")               \
    X(METRIC_SHADOW_LIKENESS, "shoal_shadow_likeness_total", COUNTER, "route,shadow",                       \
      "What share of their words the two had in common, summed up: over same and other it is the mean.")    \
    X(METRIC_RESUMED, "shoal_streams_resumed_total", COUNTER, "model",                                      \
      "Streams that a client came back to with Last-Event-ID.")                                             \
    X(METRIC_TURNS, "shoal_session_turns_total", COUNTER, "model,warm",                                     \
      "Turns of conversations: new, or whether their past was still in KV pages: yes or no.")               \
    X(METRIC_TURN_TOKENS, "shoal_session_prompt_tokens_total", COUNTER, "model,from",                       \
      "Prompt tokens of turns with a past, by where they came from: pages or prefill.")                     \
    X(METRIC_OTEL_SENT, "shoal_otel_sent_total", COUNTER, "signal",                                         \
      "Spans, metrics and log records that the OpenTelemetry collector took: traces, metrics or logs.")     \
    X(METRIC_OTEL_DROPPED, "shoal_otel_dropped_total", COUNTER, "signal,reason",                            \
      "Those that it did not get: queue_full, memory, refused, partial, late, stopped or missed.")          \
    X(METRIC_CERT_UNTIL, "shoal_certificate_expiry_timestamp_seconds", GAUGE, "use,kind",                   \
      "When a TLS certificate of the server expires, in seconds since 1970; use: listener, cluster or "     \
      "workers.")                                                                                           \
    X(METRIC_CERT_FROM, "shoal_certificate_start_timestamp_seconds", GAUGE, "use,kind",                     \
      "Since when it is valid; kind: certificate (what is shown) or ca (what peers are checked by).")       \
    X(METRIC_SOURCE, "shoal_source_up", GAUGE, "source", "1 when a source of members is heard.")            \
    X(METRIC_MODEL_READY, "shoal_model_replicas_ready", GAUGE, "model",                                     \
      "Replicas that take calls; 0 also of a model without any.")                                           \
    X(METRIC_MODEL_RUNNING, "shoal_model_running", GAUGE, "model",                                          \
      "Sequences in the running batches of all its replicas.")                                              \
    X(METRIC_MODEL_WAITING, "shoal_model_queue", GAUGE, "model",                                            \
      "Requests that wait: in its workers, and in this gateway for a replica.")                             \
    X(METRIC_MODEL_KV, "shoal_model_kv_usage_ratio", GAUGE, "model",                                        \
      "KV cache pages in use, as a share of all; 0 without a KV cache.")                                    \
    X(METRIC_UP, "shoal_worker_up", GAUGE, "model,replica", "1 when the replica is ready.")                 \
    X(METRIC_RTT, "shoal_worker_rtt_seconds", GAUGE, "model,replica,site",                                  \
      "There and back, as the polls measured it; the site where it stands.")                                \
    X(METRIC_SPILLS, "shoal_spills_total", COUNTER, "model,replica,site",                                   \
      "Calls that left the gateway's site, and where they went.")                                           \
    X(METRIC_RESTARTS, "shoal_worker_restarts_total", COUNTER, "model,replica", "Starts after the first.")  \
    X(METRIC_CRASHES, "shoal_worker_crashes_total", COUNTER, "model,replica", "Deaths nobody asked for.")   \
    X(METRIC_CALLS, "shoal_worker_calls_in_flight", GAUGE, "model,replica", "Calls of this gateway.")       \
    X(METRIC_RUNNING, "shoal_worker_running", GAUGE, "model,replica", "Sequences in the running batch.")    \
    X(METRIC_WAITING, "shoal_worker_queue", GAUGE, "model,replica", "Requests waiting in the worker.")      \
    X(METRIC_QUEUE_AGE, "shoal_worker_queue_age_seconds", GAUGE, "model,replica",                           \
      "The longest that a request in the worker's queue has waited, over all its turns.")                   \
    X(METRIC_KV_USED, "shoal_worker_kv_pages_used", GAUGE, "model,replica", "KV cache pages in use.")       \
    X(METRIC_KV_KEPT, "shoal_worker_kv_pages_kept", GAUGE, "model,replica",                                 \
      "KV cache pages that nobody uses now and that are kept for conversations.")                           \
    X(METRIC_KV_TOTAL, "shoal_worker_kv_pages", GAUGE, "model,replica", "KV cache pages in all.")           \
    X(METRIC_SPEED, "shoal_worker_tokens_per_second", GAUGE, "model,replica,phase",                         \
      "Moving average by phase: prefill, decode.")                                                          \
    X(METRIC_STEP_S, "shoal_worker_step_seconds", GAUGE, "model,replica", "Average of one engine step.")    \
    X(METRIC_CPU_S, "shoal_worker_cpu_seconds_total", COUNTER, "model,replica", "Time that it had a core.") \
    X(METRIC_WORKER_J, "shoal_worker_energy_joules_total", COUNTER, "model,replica",                        \
      "Its share of what the machine's packages took, where they can be read.")                             \
    X(METRIC_RSS, "shoal_worker_resident_bytes", GAUGE, "model,replica", "Resident memory of the worker.")  \
    X(METRIC_WORKER_INFO, "shoal_worker_info", GAUGE, "model,replica,node",                                 \
      "Always 1; the node that the replica runs on.")                                                       \
    X(METRIC_NODE_CORES, "shoal_node_cores", GAUGE, "node", "Cores of a machine of the cluster.")           \
    X(METRIC_NODE_LOAD, "shoal_node_load", GAUGE, "node", "Its load average over one minute.")              \
    X(METRIC_NODE_MEMORY, "shoal_node_memory_bytes", GAUGE, "node", "Its memory.")                          \
    X(METRIC_NODE_FREE, "shoal_node_memory_free_bytes", GAUGE, "node",                                      \
      "Its memory that is free, or that can be had at once.")                                               \
    X(METRIC_CONFIDENCE_PSI, "shoal_confidence_psi", GAUGE, "model",                                        \
      "Population stability index of a classifier's last 250 confidences against its first 500.")           \
    X(METRIC_CONFIDENCE_MEAN, "shoal_confidence_mean", GAUGE, "model,of",                                   \
      "Mean confidence: of the reference (the first 500) and of the window (the last 250).")

typedef enum metric_id {
#define METRIC_ENUM(e, name, type, labels, help) e,
    METRIC_TABLE(METRIC_ENUM)
#undef METRIC_ENUM
        METRIC_COUNT
} metric_id;

typedef struct metrics metrics;

metrics *metrics_new(void); /* NULL when out of memory */
void metrics_free(metrics *m);

/* Label values in the table's order; NULL counts as "". Values are copied on first sight. When memory is
 * out the observation is lost, nothing else. */
void metrics_add(metrics *m, metric_id id, double v, const char *l0, const char *l1, const char *l2);
void metrics_set(metrics *m, metric_id id, double v, const char *l0, const char *l1, const char *l2);
void metrics_observe_s(metrics *m, metric_id id, double seconds, const char *l0, const char *l1);
/* The same; where the request's trace is sampled, it is the bucket's exemplar (unix_ns: since 1970). */
void metrics_observe_traced_s(metrics *m, metric_id id, double seconds, const char *l0, const char *l1,
                              const char *traceparent, uint64_t unix_ns);
/* The same value n times. */
void metrics_observe_many_s(metrics *m, metric_id id, double seconds, size_t n, const char *l0,
                            const char *l1);
/* A histogram of bytes as a loop's thread counted it: replaces what was there. */
void metrics_set_work(metrics *m, metric_id id, const loop_work *w);
/* The value of a counter or gauge, 0 when that series does not exist. */
double metrics_get(const metrics *m, metric_id id, const char *l0, const char *l1, const char *l2);
/* How many values a histogram's series has seen, 0 when it does not exist; metrics_get says their sum. */
uint64_t metrics_seen(const metrics *m, metric_id id, const char *l0, const char *l1);
enum { METRICS_BUCKETS = 32 }; /* of a histogram of seconds, the last without an upper bound */
/* The quantile q of the values that came since `seen` was filled (zeroed: of all), in seconds: the lower bound of its
 * bucket. *ret_n: how many came. seen is filled anew. */
double metrics_quantile_s(const metrics *m, metric_id id, const char *l0, const char *l1, double q,
                          uint64_t seen[METRICS_BUCKETS], uint64_t *ret_n);
/* The labels of the i-th series, in the order of their first sight; NULL: there are no more. */
const char *const *metrics_labels(const metrics *m, metric_id id, size_t i);
/* Of all series of a counter. */
double metrics_sum(const metrics *m, metric_id id);

/* Take what the registry knows (METRIC_SOURCE and all behind it): replicas that are gone have no series left. own: this
 * machine, NULL: not known. */
void metrics_scrape(metrics *m, registry *g, const node *own);
/* Prometheus' text, version 0.0.4, or OpenMetrics 1.0, which has exemplars; its end is metrics_put_end's. */
typedef enum metrics_form { METRICS_PROMETHEUS, METRICS_OPEN, METRICS_N_FORMS } metrics_form;
void metrics_put(buf *out, const metrics *m, metrics_form form);
void metrics_put_end(buf *out, metrics_form form);

/* ---- for exporters ------------------------------------------------------------------------------- */

typedef enum { METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM, METRIC_BYTES_HISTOGRAM } metric_type;

typedef struct metric_family {
    const char *name, *labels, *help; /* labels: their names, separated by commas */
    metric_type type;
} metric_family;
const metric_family *metrics_family(metric_id id);

/* One of the values that a bucket counts, and the trace that it is of. */
typedef struct metric_exemplar {
    char trace[TRACE_SIZE]; /* "": there is none */
    double value;
    uint64_t unix_ns;
} metric_exemplar;

/* One series of a family; borrowed for the call. */
typedef struct metric_point {
    const metric_family *family;
    const char *const *labels; /* values, in the order of the family's names; "": not said */
    double value;              /* of a histogram the sum */
    const uint64_t *counts; /* of a histogram: per bucket, not cumulative, n_bounds + 1 of them; else NULL */
    size_t n_bounds;
    const metric_exemplar *exemplars; /* of a histogram, per bucket; NULL: none */
} metric_point;
double metric_bound(const metric_family *f, size_t i); /* the i-th bucket's upper bound: seconds, or bytes */

/* visit(user, point) for each series of the family, in the order of their first sight:
 *
 *     for (int id = 0; id < METRIC_COUNT; id++) metrics_each(m, id, put, &out); */
void metrics_each(const metrics *m, metric_id id, void (*visit)(void *user, const metric_point *p),
                  void *user);
/* The comments above a family, and one series. */
void metrics_put_head(buf *out, const metric_family *f, metrics_form form);
void metrics_put_point(buf *out, const metric_point *p, metrics_form form);

#endif
