/* shoal bench: how fast kernels, a model, or a running Shoal are on this machine. */
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "cli/commands.h"
#include "command/cli_process.h"

/* A whole number up to `most` at *at, which moves behind it. */
static bool take_number(const char **at, size_t most, size_t *ret)
{
    size_t n = 0;
    const char *p = *at;
    for (; *p >= '0' && *p <= '9'; p++)
        if ((n = n * 10 + (size_t)(*p - '0')) > most) return false;
    if (p == *at) return false;
    *at = p;
    *ret = n;
    return true;
}

/* "1,4,16"; with `more`, "1x8,32x32". */
static int read_list(bench_list *ret, bench_list *more, const char *name, const char *text, size_t least,
                     size_t most, shoal_err *err)
{
    const char *at = text;
    bool ok = true;
    for (ret->n = 0; ok; at++) {
        ok = ret->n < BENCH_LIST_MAX && take_number(&at, most, &ret->v[ret->n]) && ret->v[ret->n] >= least;
        if (ok && more) ok = *at++ == 'x' && take_number(&at, most, &more->v[ret->n]) && more->v[ret->n];
        ret->n += ok;
        if (ok && !*at) break;
        ok = ok && *at == ',';
    }
    if (more) more->n = ret->n;
    if (ok) return 0;
    return err_set(
        err, SHOAL_EINVALID, "--%s wants up to %d %s from %zu to %zu with commas between, not \"%.60s\"",
        name, BENCH_LIST_MAX, more ? "shapes such as 8x32, numbers" : "whole numbers", least, most, text);
}

/* What the options say as texts; NULL: not said. */
typedef struct texts {
    const char *prompts, *generates, *depths, *streams, *shapes, *clients, *seconds;
} texts;

/* Depths begin with none. Whoever chose tests gets those, and streams only when they were chosen too. */
static int read_tests(bench_options *o, const texts *t, shoal_err *err)
{
    bool chosen = t->prompts || t->generates || t->depths;
    bench_list depths = {0};
    int rc = read_list(&o->prompts, NULL, "prompt", t->prompts ? t->prompts : "128", 0, 100000, err);
    if (rc == 0)
        rc = read_list(&o->generates, NULL, "generate", t->generates ? t->generates : "64", 0, 100000, err);
    if (rc == 0) rc = read_list(&depths, NULL, "depth", t->depths ? t->depths : "0", 0, 1000000, err);
    if (rc == 0)
        rc = read_list(&o->streams, NULL, "streams",
                       t->streams ? t->streams
                       : chosen   ? "0"
                                  : "1,4,16",
                       0, 256, err);
    if (rc == 0)
        rc = read_list(&o->texts, &o->text_lens, "shapes",
                       t->shapes ? t->shapes : "1x8,1x32,1x128,8x32,32x32", 1, 8192, err);
    if (rc == 0) rc = read_list(&o->seconds, NULL, "seconds", t->seconds ? t->seconds : "5,30", 1, 3600, err);
    if (rc == 0)
        rc = read_list(&o->clients, NULL, "clients", t->clients ? t->clients : "1,4,16", 1, 4096, err);
    if (rc == 0 && (o->rate < 0 || o->rate > 1e6))
        rc = err_set(err, SHOAL_EINVALID, "--rate wants 0 to 1000000 requests a second, not %g", o->rate);
    if (rc == 0 && o->load && !o->url)
        rc = err_set(err, SHOAL_EINVALID, "--load %.60s: of which server? --server URL says it", o->load);
    o->clients_given = t->clients != NULL;
    o->generates_given = t->generates != NULL;
    o->seconds_given = t->seconds != NULL;
    o->depths = (bench_list){.n = 1};
    for (size_t i = 0; i < depths.n; i++)
        if (depths.v[i] && o->depths.n < BENCH_LIST_MAX) o->depths.v[o->depths.n++] = depths.v[i];
    return rc;
}

static int cmd_bench_run(int argc, char **argv)
{
    bench_options o = {.repeat = 5, .dims = 384, .requests = 200};
    texts t = {0};
    const cli_option options[] = {
        CLI_STRING('s', "server", "URL",
                   "measure the Shoal that serves there: ADDRESS:PORT, http[s]://ADDRESS:PORT or unix:PATH",
                   &o.url),
        CLI_CA,
        CLI_URL(&o.url),
        CLI_STRING(0, "only", "NAMES", "with --server: some of its scenarios: intent,stream_1", &o.only),
        CLI_STRING(0, "load", "MODEL",
                   "with --server: streams of this model; any server that speaks OpenAI's", &o.load),
        CLI_STRING(0, "clients", "N,...", "of --load, each with its next request behind its last [1,4,16]",
                   &t.clients),
        CLI_NUM(0, "rate", "R", "of --load: so many requests a second, whether or not they are answered [0]",
                &o.rate),
        CLI_INT(0, "requests", "N", 1, 10000000, "of --load, for each number of clients [200]", &o.requests),
        CLI_FLAG(0, "cached", "of --load: one prompt for all, which a cache may answer", &o.cached),
        CLI_INT(0, "pid", "N", 1, 1 << 30, "of --load: the server's process [who listens at URL]", &o.pid),
        CLI_STRING('p', "prompt", "N,...", "tokens of prompt, 0: none [128]", &t.prompts),
        CLI_STRING('n', "generate", "N,...", "tokens to generate, 0: none [64]", &t.generates),
        CLI_STRING('d', "depth", "N,...", "also behind so many tokens [0]", &t.depths),
        CLI_STRING(0, "streams", "N,...", "so many together, 0: none [1,4,16, none beside -p, -n or -d]",
                   &t.streams),
        CLI_STRING(0, "shapes", "BxN,...", "of encoders: B texts of N tokens [1x8,1x32,1x128,8x32,32x32]",
                   &t.shapes),
        CLI_STRING(0, "seconds", "N,...", "of what hears speech: so much sound at once [5,30]", &t.seconds),
        CLI_FLAG(0, "drafts", "let the engine guess tokens ahead, as it does when it serves", &o.drafts),
        CLI_INT('r', "repeat", "N", 1, 1000, "runs; medians are shown [5]", &o.repeat),
        CLI_INT(0, "chunks", "N", 1, 100000000, "measure searches among so many chunks of drawn documents",
                &o.n_chunks),
        CLI_INT(0, "dims", "N", 1, 8192, "dimensions of their vectors [384]", &o.dims),
        CLI_MODEL_OPTIONS(&o.model),
        CLI_JSON(&o.json),
        CLI_END,
    };
    cli_args a;
    int rc = cli_parse(&a, &cmd_bench, options, 0, 1, argc, argv);
    if (rc != CLI_GO) return rc;
    shoal_err err = {0};
    rc = read_tests(&o, &t, &err);
    if (rc != 0) return cli_fail(&cmd_bench, &err);
    http_where where;
    if (o.url) rc = cli_process_where(&where, o.url, &err);
    if (o.url && !o.load && rc == 0) rc = cli_process_reach(&where, &err);
    if (rc != 0) return cli_fail(&cmd_bench, &err);
    if (o.n_chunks)
        rc = bench_chunks(&o, &err);
    else if (o.load)
        rc = bench_load(&o, &err);
    else if (o.url)
        rc = bench_http(&o, &err);
    else if (a.n == 1)
        rc = bench_model(&o, a.v[0], &err);
    else
        rc = bench_kernels(&o, &err);
    return rc == 0 ? CLI_OK : cli_fail(&cmd_bench, &err);
}

const cli_command cmd_bench = {"bench", "measure the kernels, a model, or a running Shoal (--server)",
                               "[MODEL]", cmd_bench_run, false};
