/* shoal quantize IN OUT: write a GGUF of another type, and say what it cost. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "json/json_put.h"
#include "base/sha256.h"
#include "cli/models/cli_importance.h"
#include "cli/commands.h"
#include "command/cli_model.h"
#include "model/model.h"

typedef struct progress {
    bool live;    /* a terminal: one line that moves; else a plain line every quarter */
    size_t shown; /* thousandths on the line, or quarters said */
} progress;

/* Ctrl-C leaves through on_progress, so that the half-written temporary goes. */
static volatile sig_atomic_t interrupted;

static void cmd_quantize_on_signal(int number)
{
    (void)number;
    interrupted = 1;
}

/* done of total `things`; note: what is being worked on. */
static int cmd_quantize_show(progress *p, size_t done, size_t total, const char *things, const char *note)
{
    size_t parts = p->live ? 1000 : 4,
           at = total ? (size_t)((double)parts * (double)done / (double)total) : parts;
    bool ended = done == total;
    if (at > p->shown && p->live && !ended)
        cli_live_line("%3zu %%  %zu/%zu %s  %.48s", at / 10, done, total, things, note);
    else if (at > p->shown && !p->live)
        fprintf(stderr, "quantize: %zu of %zu %s\n", done, total, things);
    if (p->live && ended) cli_live_line("%s", "");
    if (at > p->shown) p->shown = at;
    if (ended) p->shown = 0; /* what comes next begins anew */
    return interrupted;
}

static int cmd_quantize_on_progress(void *user, size_t done, size_t total, const char *tensor)
{
    return cmd_quantize_show(user, done, total, "tensors", tensor);
}

static int on_read(void *user, size_t done, size_t total)
{
    return cmd_quantize_show(user, done, total, "bytes read", "");
}

static double relative(const quantize_class *c)
{
    return c->rms_value > 0 ? c->rms_error / c->rms_value : 0;
}

/* A table of 79 columns. */
static void print_plain(const quantize_report *r, const char *out)
{
    char hex[65];
    sha256_hex(&r->digest, hex);
    printf("%-22s %-11s %3s %10s %10s %8s %9s\n", "CLASS", "TYPE", "N", "BYTES IN", "BYTES OUT", "RMS ERR",
           "MAX ERR");
    for (size_t i = 0; i < r->n_classes; i++) {
        const quantize_class *c = &r->classes[i];
        char types[32];
        snprintf(types, sizeof types, "%s>%s", dtype_name(c->from), dtype_name(c->to));
        printf("%-22s %-11s %3zu %10llu %10llu %7.4f%% %9.3g\n", c->name, types, c->n_tensors,
               (unsigned long long)c->bytes_in, (unsigned long long)c->bytes_out, 100 * relative(c),
               c->max_error);
    }
    for (size_t i = 0; i < r->n_fallbacks; i++) {
        const quantize_fallback *f = &r->fallbacks[i];
        cli_print_line(2, "%zu tensor%s became %s, not %s: rows that are no multiple of %zu", f->n_tensors,
                       f->n_tensors == 1 ? "" : "s", dtype_name(f->got), dtype_name(f->wanted),
                       dtype_block(f->wanted));
    }
    printf("%s: %llu bytes, %.1f %% of the source\nsha256 %s\n", out, (unsigned long long)r->bytes_out,
           r->bytes_in ? 100.0 * (double)r->bytes_out / (double)r->bytes_in : 0.0, hex);
}

static int cmd_quantize_print_json(const quantize_report *r, const char *path)
{
    char hex[65];
    sha256_hex(&r->digest, hex);
    buf out = {0};
    buf_putc(&out, '{');
    json_put_text(&out, "file", path);
    buf_printf(&out, ",\"sha256\":\"%s\",\"bytes_in\":%llu,\"bytes_out\":%llu,\"classes\":[", hex,
               (unsigned long long)r->bytes_in, (unsigned long long)r->bytes_out);
    for (size_t i = 0; i < r->n_classes; i++) {
        const quantize_class *c = &r->classes[i];
        buf_printf(&out,
                   "%s{\"class\":\"%s\",\"from\":\"%s\",\"to\":\"%s\",\"tensors\":%zu,\"bytes_in\":%llu,"
                   "\"bytes_out\":%llu,"
                   "\"rms_error\":%.6g,\"max_error\":%.6g,\"relative_error\":%.6g}",
                   i ? "," : "", c->name, dtype_name(c->from), dtype_name(c->to), c->n_tensors,
                   (unsigned long long)c->bytes_in, (unsigned long long)c->bytes_out, c->rms_error,
                   c->max_error, relative(c));
    }
    buf_puts(&out, "],\"fallbacks\":[");
    for (size_t i = 0; i < r->n_fallbacks; i++)
        buf_printf(&out, "%s{\"wanted\":\"%s\",\"got\":\"%s\",\"tensors\":%zu}", i ? "," : "",
                   dtype_name(r->fallbacks[i].wanted), dtype_name(r->fallbacks[i].got),
                   r->fallbacks[i].n_tensors);
    buf_puts(&out, "]}");
    int rc = cli_print(&out);
    buf_done(&out);
    return rc;
}

static int unknown_type(const char *type)
{
    shoal_err err = {0};
    buf names = {0};
    for (int t = 0; t < DT_COUNT; t++)
        for (const char *p = dtype_name((dtype)t); p && *p; p++) {
            if (p == dtype_name((dtype)t) && t > 0) buf_puts(&names, ", ");
            buf_printf(&names, "%c", *p >= 'A' && *p <= 'Z' ? *p - 'A' + 'a' : *p);
        }
    err_set(&err, SHOAL_EINVALID, "--type \"%s\" is not one of q4_k_m, q5_k_m, %s", type,
            names.data ? names.data : "q8_0");
    buf_done(&names);
    return cli_fail(&cmd_quantize, &err);
}

static int quantize(const char *in, const char *out, const char *text, quantize_options *o,
                    quantize_report *ret, shoal_err *err)
{
    importance *imp = NULL;
    size_t n_tokens = 0;
    int rc = text ? cli_importance(&imp, in, text, on_read, o->user, &n_tokens, err) : 0;
    if (rc == 0 && text)
        fprintf(stderr, "quantize: importance of %zu matrices from %zu tokens\n", importance_count(imp),
                n_tokens);
    o->importance = imp;
    if (rc == 0) rc = quantize_model(in, out, o, ret, err);
    importance_free(imp);
    return rc;
}

static int cmd_quantize_run(int argc, char **argv)
{
    const char *type = "q8_0", *name = NULL, *version = NULL, *text = NULL;
    cli_list overrides = {0};
    bool json = false;
    const cli_option options[] = {
        CLI_STRING('t', "type", "TYPE", "type of matrices: q8_0, s8_128, q4_k_m, f16, ... [q8_0]", &type),
        CLI_LIST(0, "override", "NAME=TYPE",
                 "another type for some tensors (token_embd=q8_0, 'blk.*.ffn_down=q6_k')", &overrides),
        CLI_STRING(0, "importance", "FILE", "a text like what the model will read: spare what it needs most",
                   &text),
        CLI_STRING(0, "name", "NAME", "general.name to write", &name),
        CLI_STRING(0, "model-version", "V", "general.version to write", &version),
        CLI_JSON(&json),
        CLI_END,
    };
    cli_args a;
    int rc = cli_parse(&a, &cmd_quantize, options, 2, 2, argc, argv);
    if (rc != CLI_GO) return rc;
    shoal_err err = {0};
    progress p = {.live = isatty(STDERR_FILENO)};
    quantize_options o = {.overrides = overrides.v,
                          .n_overrides = overrides.n,
                          .name = name,
                          .version = version,
                          .progress = cmd_quantize_on_progress,
                          .user = &p};
    if (!quantize_parse_type(type, &o)) return unknown_type(type);
    quantize_report r = {0};
    signal(SIGINT, cmd_quantize_on_signal);
    signal(SIGTERM, cmd_quantize_on_signal);
    if (quantize(a.v[0], a.v[1], text, &o, &r, &err) != 0) return cli_fail(&cmd_quantize, &err);
    if (json) return cmd_quantize_print_json(&r, a.v[1]);
    print_plain(&r, a.v[1]);
    return CLI_OK;
}

const cli_command cmd_quantize = {"quantize", "write a smaller GGUF from a folder or a GGUF", "IN OUT",
                                  cmd_quantize_run, false};
