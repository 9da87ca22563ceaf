/* shoal bench: how fast kernels, a model, or a running Shoal are on this machine. */
#include "cli/bench.h"

static int run(int argc, char **argv)
{
    bench_options o = {.n_prompt = 128, .n_generate = 64, .repeat = 5, .dims = 384};
    const cli_option options[] = {
        CLI_STRING('u', "url", "URL", "measure the Shoal that serves there (http://127.0.0.1:8080)", &o.url),
        CLI_STRING(0, "only", "NAMES", "with --url: some of its scenarios: intent,stream_1", &o.only),
        CLI_INT('p', "prompt", "N", 1, 100000, "tokens of prompt [128]", &o.n_prompt),
        CLI_INT('n', "generate", "N", 1, 100000, "tokens to generate [64]", &o.n_generate),
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
    if (o.n_chunks)
        rc = bench_chunks(&o, &err);
    else if (o.url)
        rc = bench_http(&o, &err);
    else if (a.n == 1)
        rc = bench_model(&o, a.v[0], &err);
    else
        rc = bench_kernels(&o, &err);
    return rc == 0 ? CLI_OK : cli_fail(&cmd_bench, &err);
}

const cli_command cmd_bench = {"bench", "measure the kernels, a model, or a running Shoal (--url)", "[MODEL]",
                               run, false};
