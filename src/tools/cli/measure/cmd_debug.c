/* shoal debug: what only those need who work on Shoal, or measure it. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "json/json_put.h"
#include "base/sha256.h"
#include "cli/commands.h"
#include "command/cli_model.h"
#include "model/make_model.h"

/* Ctrl-C leaves through on_progress, so that the half-written temporary goes. */
static volatile sig_atomic_t interrupted;

static void cmd_debug_on_signal(int number)
{
    (void)number;
    interrupted = 1;
}

typedef struct progress {
    bool live;   /* a terminal: one line that moves; else a plain line every tenth */
    size_t told; /* tenths */
} progress;

static int cmd_debug_on_progress(void *user, size_t done, size_t total, const char *tensor)
{
    progress *p = user;
    size_t tenths = 10 * done / total;
    if (p->live)
        fprintf(stderr, done < total ? "\r\033[K%3zu %%  %zu/%zu tensors  %.48s" : "\r\033[K",
                100 * done / total, done, total, tensor);
    else if (tenths > p->told)
        fprintf(stderr, "make-model: %zu of %zu tensors\n", done, total);
    p->told = tenths;
    return interrupted;
}

static int shapes(bool json)
{
    const make_shape *s;
    buf out = {0};
    if (json) buf_puts(&out, "{\"shapes\":[");
    for (size_t i = 0; (s = make_shape_at(i)); i++) {
        if (json)
            buf_printf(&out, "%s{\"name\":\"%s\",\"architecture\":\"%s\",\"like\":\"%s\"}", i ? "," : "",
                       s->name, s->arch, s->about);
        else
            buf_printf(&out, "%s%-12s %-6s %2zu layers of %4zu, vocabulary %6zu, like %s", i ? "\n" : "",
                       s->name, s->arch, s->n_layer, s->n_embd, s->n_vocab, s->about);
    }
    if (json) buf_puts(&out, "]}");
    int rc = cli_print(&out);
    buf_done(&out);
    return rc;
}

typedef struct given {
    const char *shape, *type, *out, *name;
    long long context, seed;
    bool json;
} given;

static const char *shape_name(const void *list, size_t i)
{
    (void)list;
    return make_shape_at(i)->name;
}

/* Whatever is missing or unknown, before anything is written. */
static int cmd_debug_check(const given *g, make_options *o, shoal_err *err)
{
    quantize_options q = {0};
    size_t n = 0;
    if (!g->shape)
        return err_set(err, SHOAL_EINVALID, "--shape NAME is needed: shoal debug shapes lists them");
    if (!g->out) return err_set(err, SHOAL_EINVALID, "-o FILE is needed: where the model goes");
    while (make_shape_at(n)) n++;
    if (!make_shape_find(g->shape))
        return err_set(err, SHOAL_EINVALID, "there is no shape \"%.60s\"%s; shoal debug shapes lists them",
                       g->shape, cli_did_you_mean(cli_nearest(g->shape, n, shape_name, NULL)).text);
    if (!quantize_parse_type(g->type, &q))
        return err_set(err, SHOAL_EINVALID, "--type \"%.60s\" is none of q8_0, q4_0, q4_k_m, f16, ...",
                       g->type);
    *o = (make_options){.type = q.type,
                        .medium = q.medium,
                        .n_ctx = (size_t)g->context,
                        .seed = (uint64_t)g->seed,
                        .name = g->name};
    return 0;
}

static int print_made(const given *g, const make_report *r)
{
    char hex[65];
    buf out = {0};
    sha256_hex(&r->digest, hex);
    if (g->json) {
        buf_putc(&out, '{');
        json_put_text(&out, "file", g->out);
        buf_printf(&out, ",\"sha256\":\"%s\",\"bytes\":%llu,\"tensors\":%zu,\"weights\":%llu}", hex,
                   (unsigned long long)r->bytes, r->n_tensors, (unsigned long long)r->n_weights);
    } else {
        buf_printf(&out, "%s: %llu bytes, %.1f M weights in %zu tensors\nsha256 %s", g->out,
                   (unsigned long long)r->bytes, (double)r->n_weights / 1e6, r->n_tensors, hex);
    }
    int rc = cli_print(&out);
    buf_done(&out);
    return rc;
}

static int cmd_debug_make(const given *g)
{
    shoal_err err = {0};
    progress p = {.live = isatty(STDERR_FILENO) != 0};
    make_options o;
    make_report r;
    int rc = cmd_debug_check(g, &o, &err);
    if (rc == 0) {
        o.progress = cmd_debug_on_progress;
        o.user = &p;
        signal(SIGINT, cmd_debug_on_signal);
        signal(SIGTERM, cmd_debug_on_signal);
        rc = make_model(g->shape, g->out, &o, &r, &err);
        if (rc == 0) return print_made(g, &r);
        if (p.live) fputs("\r\033[K", stderr);
    }
    return cli_fail(&cmd_debug, &err);
}

static int cmd_debug_run(int argc, char **argv)
{
    static const cli_verb VERBS[] = {
        {"make-model", "", "write a model of random weights, to measure with", 0, 0},
        {"shapes", "", "list the shapes that make-model knows", 0, 0},
        CLI_VERB_END};
    given g = {.type = "q8_0", .seed = 1};
    const cli_option options[] = {
        CLI_STRING(0, "shape", "NAME", "make-model: llama-135m, minilm, ...", &g.shape),
        CLI_STRING(0, "type", "TYPE", "make-model: type of matrices: q8_0, q4_0, q4_k_m, f16, ... [q8_0]",
                   &g.type),
        CLI_STRING('o', "output", "FILE", "make-model: the GGUF to write", &g.out),
        CLI_INT('c', "context", "N", 0, 1 << 20, "make-model: context in tokens (0: the shape's)",
                &g.context),
        CLI_INT(0, "seed", "N", 0, 1LL << 40, "make-model: another seed, other weights [1]", &g.seed),
        CLI_STRING(0, "name", "NAME", "make-model: general.name to write [the shape's]", &g.name),
        CLI_JSON(&g.json),
        CLI_END,
    };
    cli_args a;
    const cli_verb *verb;
    int rc = cli_parse_verb(&a, &verb, &cmd_debug, options, VERBS, argc, argv);
    if (rc != CLI_GO) return rc;
    return verb == &VERBS[0] ? cmd_debug_make(&g) : shapes(g.json);
}

const cli_command cmd_debug = {"debug", "make models of random weights, for measuring",
                               "make-model --shape NAME -o FILE | shapes", cmd_debug_run, false};
