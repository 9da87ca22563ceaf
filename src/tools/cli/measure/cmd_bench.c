/* shoal bench: how fast kernels, a model, or a running Shoal are on this machine. */
#include "base/file.h"
#include "bench/bench.h"
#include "cli/commands.h"
#include "command/cli_process.h"

/* What the options say as texts; NULL: not said. */
typedef struct texts {
    const char *prompts, *generates, *depths, *streams, *shapes, *clients, *seconds, *threads;
} texts;

/* One number is what every command with a model takes; several are compared. */
static int read_threads(bench_options *o, const texts *t, bool has_model, shoal_err *err)
{
    int rc = t->threads ? bench_threads_read(&o->threads, t->threads, err) : 0;
    if (rc != 0) return rc;
    bool several = o->threads.n > 1, of_model = has_model && !o->url && !o->n_chunks;
    if (several && !of_model)
        return err_set(err, SHOAL_EINVALID, "--threads %.60s compares the speeds of a MODEL: name one",
                       t->threads);
    if (o->svg && !several && !o->is_load)
        return err_set(
            err, SHOAL_EINVALID,
            "--svg draws how a model scales with threads, as --threads 1,2,4, or a load, as --load MODEL");
    if (o->threads.n == 1) o->model.threads = (long long)o->threads.v[0];
    return file_try_replace(o->svg, err);
}

/* Depths begin with none. Whoever chose tests gets those, and streams only when they were chosen too; where
 * thread counts are compared, only when they were chosen. */
static int read_tests(bench_options *o, const texts *t, shoal_err *err)
{
    bool chosen = t->prompts || t->generates || t->depths || o->threads.n > 1;
    bench_list depths = {0};
    const char *prompts = t->prompts && !o->is_load ? t->prompts : "128"; /* a load reads its own */
    const char *generates = t->generates && !o->is_load ? t->generates : "64";
    int rc = bench_list_read(&o->prompts, NULL, "prompt", prompts, 0, 100000, err);
    if (rc == 0) rc = bench_list_read(&o->generates, NULL, "generate", generates, 0, 100000, err);
    if (rc == 0) rc = bench_list_read(&depths, NULL, "depth", t->depths ? t->depths : "0", 0, 1000000, err);
    if (rc == 0)
        rc = bench_list_read(&o->streams, NULL, "streams",
                             t->streams ? t->streams
                             : chosen   ? "0"
                                        : "1,4,16",
                             0, 256, err);
    if (rc == 0)
        rc = bench_list_read(&o->texts, &o->text_lens, "shapes",
                             t->shapes ? t->shapes : "1x8,1x32,1x128,8x32,32x32", 1, 8192, err);
    if (rc == 0)
        rc = bench_list_read(&o->seconds, NULL, "seconds", t->seconds ? t->seconds : "5,30", 1, 3600, err);
    if (rc == 0)
        rc = bench_list_read(&o->clients, NULL, "clients", t->clients ? t->clients : "1,4,16", 1, 4096, err);
    if (rc == 0 && (o->duration_s < 0 || o->duration_s > 86400))
        rc = err_set(err, SHOAL_EINVALID, "--duration wants 0 to 86400 seconds, not %g", o->duration_s);
    if (rc == 0 && (o->is_load || o->more.save_trace) && !o->url)
        rc = err_set(err, SHOAL_EINVALID, "a load, of which server? --server URL says it");
    o->more.prompt = t->prompts;
    o->more.generate = t->generates;
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
    bench_options o = {.repeat = 5, .dims = 384, .more.speed = 1};
    bench_load_options *m = &o.more;
    texts t = {0};
    const cli_option options[] = {
        CLI_STRING('s', "server", "URL",
                   "measure the Shoal that serves there: ADDRESS:PORT, http[s]://ADDRESS:PORT or unix:PATH",
                   &o.url),
        CLI_CA,
        CLI_URL(&o.url),
        CLI_STRING(0, "only", "NAMES", "with --server: some of its scenarios: intent,stream_1", &o.only),
        CLI_STRING(0, "load", "MODEL",
                   "with --server: send a load to this model; any server that speaks OpenAI's API", &o.load),
        CLI_STRING(
            0, "path", "PATH",
            "with --load: the path of requests: /v1/chat/completions, /v1/embeddings, ... [/v1/completions]",
            &m->path),
        CLI_STRING(0, "body", "FILE", "with --load: send these bodies unchanged; FILE.jsonl has one a line",
                   &m->body),
        CLI_STRING(0, "prompts", "FILE", "with --load: prompts, one a line [random words]", &m->prompts),
        CLI_STRING(0, "prompt-tokens", "N|A..B|N~D",
                   "with --load: tokens of prompt, as the server counts them [-p: words]", &m->prompt_tokens),
        CLI_FLAG(0, "no-stream", "with --load: ask for whole answers instead of streams", &m->no_stream),
        CLI_KEY(&m->key),
        CLI_STRING(0, "clients", "N,...",
                   "with --server: concurrent clients; each sends its next request after its last answer "
                   "[1,4,16; a scenario's own]",
                   &t.clients),
        CLI_NUM(0, "think", "S", "with --load: seconds between an answer and the client's next request [0]",
                &m->think_s),
        CLI_STRING(
            0, "rate", "R|A..B",
            "with --load: requests per second, also while earlier ones are unanswered; A..B: from A to B",
            &m->rate),
        CLI_NUM(0, "step", "D",
                "with --rate A..B: A, A+D, ..., B, each for --duration, until --objective is missed",
                &m->step),
        CLI_STRING(0, "arrivals", "KIND", "with --rate: constant or poisson [constant]", &m->arrivals),
        CLI_STRING(0, "objective", "NAME=MS",
                   "with --load: a limit in ms that must hold: p95=500, first_p95=200, gap_p99=30",
                   &m->objective),
        CLI_STRING(0, "trace", "FILE", "with --load: requests with their times, one JSON object a line",
                   &m->trace),
        CLI_NUM(0, "speed", "X", "with --trace: replay it X times as fast [1]", &m->speed),
        CLI_STRING(0, "save-trace", "FILE", "with --server: write its latest requests as a trace",
                   &m->save_trace),
        CLI_NUM(0, "timeout", "S",
                "with --load: an answer that is incomplete by then has failed [60 s between two pieces]",
                &m->timeout_s),
        CLI_STRING(0, "html", "FILE", "with --load: also write an HTML report", &m->html),
        CLI_INT(0, "requests", "N", 1, 10000000,
                "requests for each number of clients [200; a scenario's own]", &o.requests),
        CLI_NUM(0, "duration", "S", "send requests for S seconds [until all of --requests are sent]",
                &o.duration_s),
        CLI_FLAG(0, "cached", "with --load: send one prompt every time, which a cache may answer", &o.cached),
        CLI_INT(0, "pid", "N", 1, 1 << 30,
                "with --load: the process ID of the server [the one that listens at URL]", &o.pid),
        CLI_STRING('p', "prompt", "N,...", "tokens of prompt; 0: without this test [128]", &t.prompts),
        CLI_STRING('n', "generate", "N,...", "tokens to generate; 0: without this test [64]", &t.generates),
        CLI_STRING('d', "depth", "N,...", "repeat the tests behind N tokens of context [0]", &t.depths),
        CLI_STRING(0, "streams", "N,...",
                   "concurrent streams; 0: without this test [1,4,16; none with -p, -n or -d]", &t.streams),
        CLI_STRING(0, "shapes", "BxN,...", "encoders: B texts of N tokens [1x8,1x32,1x128,8x32,32x32]",
                   &t.shapes),
        CLI_STRING(0, "seconds", "N,...", "speech models: seconds of audio at once [5,30]", &t.seconds),
        CLI_FLAG(0, "drafts", "let the engine guess tokens ahead, as it does when it serves", &o.drafts),
        CLI_INT('r', "repeat", "N", 1, 1000, "runs of each test; medians are shown [5]", &o.repeat),
        CLI_INT(0, "chunks", "N", 1, 100000000, "measure searches in N chunks of generated documents",
                &o.n_chunks),
        CLI_INT(0, "dims", "N", 1, 8192, "dimensions of their vectors [384]", &o.dims),
        CLI_STRING('t', "threads", "N,...", "threads (0: all cores); several: compare the speeds of MODEL",
                   &t.threads),
        CLI_STRING(0, "svg", "FILE", "also draw a chart into FILE: of several --threads, or of a load",
                   &o.svg),
        CLI_MODEL_OPTIONS_BUT_THREADS(&o.model),
        CLI_JSON(&o.json),
        CLI_END,
    };
    cli_args a;
    int rc = cli_parse(&a, &cmd_bench, options, 0, 1, argc, argv);
    if (rc != CLI_GO) return rc;
    shoal_err err = {0};
    o.is_load = o.load || m->path || m->body || m->trace;
    rc = read_threads(&o, &t, a.n == 1, &err);
    if (rc == 0) rc = read_tests(&o, &t, &err);
    if (rc != 0) return cli_fail(&cmd_bench, &err);
    http_where where;
    if (o.url) rc = cli_process_where(&where, o.url, &err);
    if (o.url && !o.is_load && rc == 0) rc = cli_process_reach(&where, &err);
    if (rc != 0) return cli_fail(&cmd_bench, &err);
    if (o.n_chunks)
        rc = bench_chunks(&o, &err);
    else if (m->save_trace)
        rc = bench_save_trace(&o, &err);
    else if (o.is_load)
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
