/* cli_model.h: what the model commands share: opening MODEL, reading TEXT, printing JSON. */
#ifndef COMMAND_CLI_MODEL_H
#define COMMAND_CLI_MODEL_H

#include "base/buf.h"
#include "command/cli.h"
#include "infer/engine.h"
#include "model/model.h"

/* Options that every command with a MODEL takes. */
typedef struct cli_model_options {
    const char *manifest;              /* models.json to look names up in, NULL: the usual places */
    long long threads, context, kv_mb; /* 0: default */
    const char *adapter;               /* "PATH" or "PATH:STRENGTH"; NULL: none */
    const char *regroup; /* a type that matrices are brought to (model/packed/regroup.h); NULL: their own */
    const char *kv_type; /* what keys and values are kept as; NULL: what its weights ask for */
} cli_model_options;

#define CLI_KV_MB(t)                     \
    CLI_INT(0, "kv-mb", "N", 1, 1 << 20, \
            "ceiling of the cache of keys and values, in MiB [room for 8,192 tokens]", t)
/* All of them but the threads. */
#define CLI_MODEL_OPTIONS_BUT_THREADS(o)                                                                  \
    CLI_STRING(0, "manifest", "FILE", "models.json to look names up in", &(o)->manifest),                 \
        CLI_INT('c', "context", "N", 0, 1 << 20, "context in tokens (0: the model's)", &(o)->context),    \
        CLI_KV_MB(&(o)->kv_mb),                                                                           \
        CLI_STRING(0, "adapter", "PATH[:X]", "a LoRA adapter, X times as strong [1]", &(o)->adapter),     \
        CLI_STRING(0, "kv-type", "TYPE",                                                                  \
                   "keep keys and values as f32, f16 or q8_0 [f16 of quantised weights]", &(o)->kv_type), \
        CLI_STRING(0, "regroup", "TYPE", "bring matrices to s8_128 or another type with wide groups",     \
                   &(o)->regroup)
#define CLI_MODEL_OPTIONS(o)                                                      \
    CLI_INT('t', "threads", "N", 0, 64, "threads (0: all cores)", &(o)->threads), \
        CLI_MODEL_OPTIONS_BUT_THREADS(o)

/* MODEL is a folder, a GGUF file or a name from the manifest. The caller closes *ret. */
int cli_model_open(shoal_model **ret, const char *arg, const cli_model_options *o, shoal_err *err);

/* The first option that is about a model of this process, "--threads"; NULL: there is none. */
const char *cli_model_option(const cli_model_options *o);

/* What the manifest says that a model is for ("device commands and ..."): malloc'd, NULL when it says
 * nothing. manifest NULL: the usual places. */
char *cli_model_use(const char *name, const char *manifest);

/* The same, one layer down: model and engine apart, for raw ids and logits. */
typedef struct cli_engine {
    model *m;
    engine *e; /* NULL unless asked for */
} cli_engine;
int cli_engine_open(cli_engine *ret, const char *arg, const cli_model_options *o, bool with_engine,
                    shoal_err *err);
/* The engine of a model that was opened without one; what o does not say is as in `more` (NULL: zero). */
int cli_engine_start(cli_engine *c, const cli_model_options *o, const engine_options *more, shoal_err *err);
void cli_engine_close(cli_engine *c);

/* What --kv-type says; NULL: nothing. */
int cli_kv_type(kv_type *ret, const char *name, shoal_err *err);

/* TEXT as given, or all of standard input when it is "-" (without its last line end). */
int cli_text(buf *ret, const char *arg, shoal_err *err);

/* [1,2] of floats, enough digits to give the same bits back; what is not finite is null, as in JSON. */
void cli_put_floats(buf *out, const float *v, size_t n);
/* Print what `out` holds and a line end, as cli_write does; the exit code. And the same of JSON, with
 * jansson's flags. */
int cli_print(buf *out);
/* The same, on a terminal each line folded as cli_end_line does. */
int cli_print_folded(buf *out, size_t indent);
int cli_print_json(const json_t *v, size_t flags);

#endif
