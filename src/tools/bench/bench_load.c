/* bench_load.c: streams of completions from any server that speaks OpenAI's, with as many clients, or as many
 * requests a second, as was asked for. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "json/json.h"
#include "bench/bench.h"
#include "client/load_client.h"
#include "client/load_cpu.h"
#include "command/cli_process.h"

enum { OPEN_CLIENTS = 64 }; /* of an open loop whose clients nobody counted */

typedef struct load {
    const bench_options *o;
    http_where where;
    int pid;       /* of the server, 0: not known */
    uint64_t salt; /* of this run: no other one asked the same */
    bool live;     /* there is a terminal to show progress on */
    int n_clients;
    buf model; /* its name, as JSON */
} load;

/* Words that no earlier request began with, nor one of another run; of --cached always the same. */
static void put_prompt(const load *l, size_t i, buf *out)
{
    static const char *const words[] = {"light", "door", "warm", "blue", "turn", "hall", "noon", "rain",
                                        "song",  "open", "late", "cold", "room", "fan",  "lamp", "wind"};
    uint64_t salt = l->o->cached ? 0 : rng_mix(l->salt + i);
    if (!l->o->cached) buf_printf(out, "%llx ", (unsigned long long)salt);
    for (size_t k = 0; k < l->o->prompts.v[0]; k++)
        buf_printf(out, "%s%s", k ? " " : "", words[rng_mix(salt + k) % (sizeof words / sizeof *words)]);
}

static void make_completion(void *user, size_t i, buf *out, http_ask *ret)
{
    const load *l = user;
    buf_printf(out, "{\"model\":%s,\"prompt\":\"", l->model.data);
    put_prompt(l, i, out);
    buf_printf(out,
               "\",\"stream\":true,\"stream_options\":{\"include_usage\":true},\"max_tokens\":%zu,\"ignore_"
               "eos\":true,"
               "\"temperature\":%d,\"seed\":%zu}",
               l->o->generates.v[0], l->o->cached ? 0 : 1, i + 1);
    *ret = (http_ask){.method = "POST",
                      .path = "/v1/completions",
                      .body = out->data,
                      .headers = l->o->cached ? NULL : "cache-control: no-cache\r\n"};
}

static void bench_load_on_progress(void *user, size_t done, size_t total)
{
    const load *l = user;
    if (l->live) fprintf(stderr, "\r\033[K%d clients: %zu/%zu", l->n_clients, done, total);
}

static void print_head(const load *l)
{
    if (l->o->json) {
        printf("{\"url\":\"%s\",\"model\":%s,\"words\":%zu,\"max_tokens\":%zu,\"cached\":%s,\"loads\":[",
               l->o->url, l->model.data, l->o->prompts.v[0], l->o->generates.v[0],
               l->o->cached ? "true" : "false");
        return;
    }
    printf("%s: streams of %s, prompts of %zu words, replies of %zu tokens%s\n\n", l->o->url, l->model.data,
           l->o->prompts.v[0], l->o->generates.v[0], l->o->cached ? ", the cache may answer" : "");
    printf("%7s %7s %6s %6s %9s %9s %9s %9s %9s %9s %10s\n", "CLIENTS", "REQ/S", "OK", "FAILED", "TOKENS/S",
           "FIRST p50", "p99 ms", "GAP p50", "p99 ms", "WHOLE p50", "TOK/CPU s");
}

static void print_row(const load *l, const load_result *r, double cpu_s, bool first)
{
    double per_s = r->seconds > 0 ? (double)r->n_tokens / r->seconds : 0;
    double requests = r->seconds > 0 ? (double)r->n_ok / r->seconds : 0;
    double per_cpu = cpu_s > 0 ? (double)r->n_tokens / cpu_s : 0;
    if (l->o->json)
        printf("%s{\"clients\":%d,\"rate\":%g,\"ok\":%zu,\"failed\":%zu,\"late\":%zu,\"seconds\":%.3f,"
               "\"tokens\":%zu,"
               "\"tokens_per_s\":%.1f,\"requests_per_s\":%.2f,\"first_p50_ms\":%.3f,\"first_p99_ms\":%.3f,"
               "\"gap_p50_ms\":%.3f,\"gap_p99_ms\":%.3f,\"p50_ms\":%.3f,\"p99_ms\":%.3f,\"cpu_s\":%.2f,"
               "\"tokens_per_cpu_s\":%.1f}",
               first ? "" : ",", l->n_clients, l->o->rate, r->n_ok, r->n_failed, r->n_late, r->seconds,
               r->n_tokens, per_s, requests, r->first_p50_ms, r->first_p99_ms, r->gap_p50_ms, r->gap_p99_ms,
               r->p50_ms, r->p99_ms, cpu_s, per_cpu);
    else
        printf("%7d %7.1f %6zu %6zu %9.1f %9.2f %9.2f %9.2f %9.2f %9.1f %10.0f\n", l->n_clients, requests,
               r->n_ok, r->n_failed, per_s, r->first_p50_ms, r->first_p99_ms, r->gap_p50_ms, r->gap_p99_ms,
               r->p50_ms, per_cpu);
    fflush(stdout);
}

static int run_load(load *l, bool first, shoal_err *err)
{
    load_plan plan = {.where = l->where,
                      .n_clients = l->n_clients,
                      .n_requests = (size_t)l->o->requests,
                      .rate = l->o->rate,
                      .make = make_completion,
                      .user = l,
                      .progress = bench_load_on_progress};
    load_result r;
    l->salt = rng_mix(l->salt + 1);
    double before = l->pid ? load_cpu_seconds(l->pid) : -1;
    int rc = load_run(&plan, &r, err);
    double after = l->pid ? load_cpu_seconds(l->pid) : -1;
    if (l->live) fputs("\r\033[K", stderr);
    if (rc != 0) return rc;
    print_row(l, &r, before >= 0 && after >= 0 ? after - before : -1, first);
    if (r.n_failed) fprintf(stderr, "%d clients: first failure: %s\n", l->n_clients, r.first_failure);
    return 0;
}

int bench_load(const bench_options *o, shoal_err *err)
{
    load l = {
        .o = o, .salt = rng_mix(clock_ns() ^ (uint64_t)getpid() << 40), .live = isatty(STDERR_FILENO) != 0};
    int rc = cli_process_where(&l.where, o->url, err);
    if (rc != 0) return rc;
    l.pid = o->pid ? (int)o->pid : load_cpu_find(&l.where);
    if (o->pid && load_cpu_seconds(l.pid) < 0)
        return err_set(err, SHOAL_EINVALID, "--pid %d: there is no such process", l.pid);
    if (json_put_string(&l.model, o->load, strlen(o->load)) != 0) rc = err_nomem(err);
    if (rc == 0) print_head(&l);
    bench_list one = {.v = {OPEN_CLIENTS}, .n = 1};
    const bench_list *clients = o->rate > 0 && !o->clients_given ? &one : &o->clients;
    for (size_t i = 0; rc == 0 && i < clients->n; i++) {
        l.n_clients = (int)clients->v[i];
        rc = run_load(&l, i == 0, err);
    }
    if (rc == 0 && o->json)
        printf("]}\n");
    else if (rc == 0 && !l.pid)
        printf("\nno CPU time: nobody here listens there that this user may look into (--pid)\n");
    buf_done(&l.model);
    return rc;
}
