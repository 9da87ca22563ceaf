/* bench_http.c: a running home cluster, measured from outside. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/bench.h"
#include "command/cli_process.h"
#include "json/json.h"
#include "load/load_client.h"
#include "load/load_cores.h"

typedef struct scenario {
    const char *name, *what;
    int n_clients;
    size_t n_requests;
    void (*make)(void *user, size_t i, buf *scratch, http_ask *ret);
    uint32_t back_ms; /* of streams: load_plan has it */
} scenario;

enum { BACK_MS = 10000 };

static void make_describe(void *user, size_t i, buf *scratch, http_ask *ret)
{
    *ret = (http_ask){.method = "GET", .path = "/v1/models/home-intent"};
}

static const char *const utterances[] = {
    "turn off the kitchen light",  "set the bedroom lamp to blue", "is the front door locked",
    "open the dining room blinds", "pause the downstairs robot",   "turn on the office fan",
    "mute the lounge speaker",     "close the garage door",
};
enum { N_UTTERANCES = sizeof utterances / sizeof *utterances };

/* Every answer is computed, also when the texts come round again. */
#define FRESH "cache-control: no-cache\r\n"

static void make_intent(void *user, size_t i, buf *scratch, http_ask *ret)
{
    buf_printf(scratch, "{\"model\":\"home-intent\",\"input\":\"%s %zu\"}", utterances[i % N_UTTERANCES], i);
    *ret = (http_ask){.method = "POST", .path = "/v1/classify", .body = scratch->data, .headers = FRESH};
}

static void make_embed(void *user, size_t i, buf *scratch, http_ask *ret)
{
    buf_printf(scratch, "{\"model\":\"home-embed\",\"input\":\"%s %zu\"}", utterances[i % N_UTTERANCES], i);
    *ret = (http_ask){.method = "POST", .path = "/v1/embeddings", .body = scratch->data, .headers = FRESH};
}

static void make_home(void *user, size_t i, buf *scratch, http_ask *ret)
{
    buf_printf(scratch, "{\"pipeline\":\"home\",\"input\":\"%s\"}", utterances[i % N_UTTERANCES]);
    *ret = (http_ask){.method = "POST", .path = "/v1/process", .body = scratch->data, .headers = FRESH};
}

static void make_cached(void *user, size_t i, buf *scratch, http_ask *ret)
{
    *ret = (http_ask){.method = "POST",
                      .path = "/v1/process",
                      .body = "{\"pipeline\":\"home\",\"input\":\"turn off the kitchen light\"}"};
}

static void make_stream(void *user, size_t i, buf *scratch, http_ask *ret)
{
    buf_printf(scratch,
               "{\"model\":\"home-chat-s\",\"stream\":true,\"stream_options\":{\"include_usage\":true},"
               "\"temperature\":1,\"seed\":%zu,\"max_tokens\":48,"
               "\"ignore_eos\":true,\"messages\":["
               "{\"role\":\"user\",\"content\":\"%zu: tell me about the weather and your day.\"}]}",
               i + 1, i);
    *ret =
        (http_ask){.method = "POST", .path = "/v1/chat/completions", .body = scratch->data, .headers = FRESH};
}

static const scenario scenarios[] = {
    {"overhead", "HTTP in to worker call and back, no inference", 1, 4000, make_describe, 0},
    {"intent", "/v1/classify home-intent", 1, 2000, make_intent, 0},
    {"embed", "/v1/embeddings home-embed, one text", 1, 2000, make_embed, 0},
    {"home", "/v1/process pipeline home", 1, 300, make_home, 0},
    {"cache_hit", "/v1/process answered by the cache", 1, 4000, make_cached, 0},
    {"stream_1", "chat-s streaming", 1, 100, make_stream, BACK_MS},
    {"stream_16", "chat-s streaming", 16, 1000, make_stream, BACK_MS},
};
enum { N_SCENARIOS = sizeof scenarios / sizeof *scenarios };

static bool is_wanted(const char *only, const char *name)
{
    size_t n = strlen(name);
    for (const char *at = only; at && *at; at += strcspn(at, ","), at += *at == ',')
        if (strncmp(at, name, n) == 0 && (at[n] == ',' || !at[n])) return true;
    return !only;
}

/* Each of the names must be one. */
static int check_only(const char *only, shoal_err *err)
{
    for (const char *at = only; at && *at;) {
        size_t n = strcspn(at, ","), i = 0;
        while (i < N_SCENARIOS && (strlen(scenarios[i].name) != n || memcmp(at, scenarios[i].name, n) != 0))
            i++;
        if (i == N_SCENARIOS)
            return err_set(err, SHOAL_EINVALID,
                           "--only: there is no scenario \"%.*s\"; without --only all are run",
                           (int)(n < 40 ? n : 40), at);
        at += at[n] ? n + 1 : n;
    }
    return 0;
}

typedef struct meter {
    const char *name;
    size_t n_requests;
    bool live;
} meter;

static bool bench_http_on_watch(void *user, load_record *r, double seconds)
{
    const meter *p = user;
    load_record_lock(r);
    size_t n = r->n_ok + r->n_failed;
    load_record_unlock(r);
    if (p->live) cli_live_line("%s %zu/%zu", p->name, n, p->n_requests);
    return true;
}

static void print_row(const scenario *s, const load_plan *plan, const load_result *r, const load_cores *cpu,
                      bool json, bool first)
{
    double per_s = r->seconds > 0 ? (double)r->n_tokens / r->seconds : 0;
    double requests_per_s = r->seconds > 0 ? (double)r->n_ok / r->seconds : 0;
    if (!json) {
        printf("%-10s %7d %7zu %6zu %9.3f %9.3f %9.3f %10.1f %10.1f  %s\n", s->name, plan->schedule.n_clients,
               r->n_ok, r->n_failed, r->p50_ms, r->p99_ms, r->max_ms, requests_per_s, per_s, s->what);
        load_cores_print(cpu);
        return;
    }
    buf processes = {0};
    load_cores_put_json(cpu, &processes);
    printf("%s{\"name\":\"%s\",\"clients\":%d,\"ok\":%zu,\"failed\":%zu,\"seconds\":%.3f,\"p50_ms\":%.3f,"
           "\"p99_ms\":%.3f,\"max_ms\":%.3f,"
           "\"first_p50_ms\":%.3f,\"first_p99_ms\":%.3f,\"gap_p50_ms\":%.3f,\"gap_p99_ms\":%.3f,"
           "\"requests_per_s\":%.1f,\"tokens_per_s\":%.1f%s,\"tokens_per_cpu_s\":%.1f}",
           first ? "" : ",", s->name, plan->schedule.n_clients, r->n_ok, r->n_failed, r->seconds, r->p50_ms,
           r->p99_ms, r->max_ms, r->first_p50_ms, r->first_p99_ms, r->gap_p50_ms, r->gap_p99_ms,
           requests_per_s, per_s, processes.failed ? "" : processes.data,
           cpu->seconds > 0 ? (double)r->n_tokens / cpu->seconds : 0.0);
    buf_done(&processes);
}

/* The server that is asked, and what has been printed. */
typedef struct asked {
    http_where where;
    int pid; /* 0: not known */
    bool first;
} asked;

/* One scenario with so many clients; 0: its own number. */
static int run_scenario(const bench_options *o, asked *a, const scenario *s, size_t n_clients, shoal_err *err)
{
    size_t usual = o->duration_s > 0 ? REQUESTS_MOST : s->n_requests;
    meter p = {s->name, o->requests ? (size_t)o->requests : usual, isatty(STDERR_FILENO) != 0};
    load_plan plan = {.where = a->where,
                      .schedule = {.n_clients = n_clients ? (int)n_clients : s->n_clients,
                                   .n_requests = p.n_requests,
                                   .seconds = o->duration_s},
                      .make = s->make,
                      .back_ms = s->back_ms,
                      .user = &p,
                      .watch = bench_http_on_watch};
    load_result r;
    load_cores cpu;
    load_cores_begin(&cpu, a->pid);
    int rc = load_run(&plan, &r, err);
    if (p.live) fputs("\r\033[K", stderr);
    if (rc != 0) return rc;
    load_cores_end(&cpu, r.seconds);
    print_row(s, &plan, &r, &cpu, o->json, a->first);
    a->first = false;
    if (r.n_resumed) fprintf(stderr, "%s: streams broke and went on %zu times\n", s->name, r.n_resumed);
    if (r.n_failed) cli_say("%s: first failure: %s\n", s->name, r.first_failure);
    fflush(stdout);
    return 0;
}

static int check_ready(const bench_options *o, const http_where *where, shoal_err *err)
{
    int status = 0;
    int rc = http_client_once(where, &(http_ask){.method = "GET", .path = "/readyz"}, &status, NULL, err);
    if (rc == 0 && status != 200)
        rc = err_set(err, SHOAL_EUNAVAILABLE, "%s answers /readyz with %d: not ready", o->url, status);
    return rc;
}

int bench_http(const bench_options *o, shoal_err *err)
{
    asked a = {.first = true};
    bench_list own = {.n = 1}; /* 0: each scenario's number of clients */
    const bench_list *clients = o->clients_given ? &o->clients : &own;
    int rc = cli_process_where(&a.where, o->url, err);
    if (rc == 0) rc = check_only(o->only, err);
    if (rc == 0) rc = check_ready(o, &a.where, err);
    if (rc != 0) return rc;
    a.pid = load_cpu_find(&a.where);
    if (o->json)
        printf("{\"url\":\"%s\",\"scenarios\":[", o->url);
    else
        printf("%-10s %7s %7s %6s %9s %9s %9s %10s %10s\n", "SCENARIO", "CLIENTS", "OK", "FAILED", "P50 MS",
               "P99 MS", "MAX MS", "REQ/S", "TOKENS/S");
    for (size_t i = 0; i < N_SCENARIOS; i++)
        for (size_t k = 0; rc == 0 && is_wanted(o->only, scenarios[i].name) && k < clients->n; k++)
            rc = run_scenario(o, &a, &scenarios[i], clients->v[k], err);
    if (o->json) printf("]}\n");
    return rc;
}
