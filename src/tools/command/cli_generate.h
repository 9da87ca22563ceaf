/* cli_generate.h: the sampling options of `run` and `chat`. */
#ifndef COMMAND_CLI_GENERATE_H
#define COMMAND_CLI_GENERATE_H

#include <jansson.h>
#include <math.h>

#include "command/cli.h"
#include "shoal.h"

typedef struct cli_sampling {
    long long max_tokens, top_k, seed;                    /* of the last two -1: not said */
    double temperature, top_p, min_p, repetition_penalty; /* NaN: not said */
    cli_list stop;
    bool json_object;
    const char *schema_file;
    char *schema; /* what schema_file holds */
} cli_sampling;

/* Nothing is said but the longest reply. */
#define CLI_SAMPLING_UNSAID(tokens)                                                                    \
    {                                                                                                  \
        .max_tokens = tokens, .top_k = -1, .seed = -1, .temperature = NAN, .top_p = NAN, .min_p = NAN, \
        .repetition_penalty = NAN                                                                      \
    }

/* tokens: the longest reply where -n is not given, as a literal number */
#define CLI_SAMPLING_OPTIONS(s, tokens)                                                                     \
    CLI_INT('n', "max-tokens", "N", 1, 1 << 20, "longest reply in tokens [" #tokens "]", &(s)->max_tokens), \
        CLI_NUM(0, "temp", "T", "temperature; 0 takes the likeliest token [the model's]",                   \
                &(s)->temperature),                                                                         \
        CLI_INT(0, "top-k", "K", 0, 1 << 20, "draw among the K likeliest (0: off)", &(s)->top_k),           \
        CLI_NUM(0, "top-p", "P", "draw among the likeliest that sum to P (0: off)", &(s)->top_p),           \
        CLI_NUM(0, "min-p", "P", "drop tokens below P times the likeliest (0: off)", &(s)->min_p),          \
        CLI_NUM(0, "repetition-penalty", "R", "divide logits of seen tokens (0: off)",                      \
                &(s)->repetition_penalty),                                                                  \
        CLI_INT(0, "seed", "N", 0, INT64_MAX, "what the draws depend on [drawn]", &(s)->seed),              \
        CLI_LIST(0, "stop", "TEXT", "end the reply before TEXT (may repeat)", &(s)->stop),                  \
        CLI_FLAG(0, "json-object", "the reply is one JSON object", &(s)->json_object),                      \
        CLI_STRING(0, "json-schema", "FILE", "the reply is JSON that satisfies this schema",                \
                   &(s)->schema_file)

/* Checks ranges and reads the schema; free(s->schema) after use. What is not said stays as it is in *ret: before that,
 * shoal_generate_defaults has filled it, or it is zeroed. */
int cli_sampling_resolve(cli_sampling *s, shoal_generate_options *ret, shoal_err *err);
/* What is said of it, as fields of an OpenAI request. */
void cli_sampling_put(json_t *o, const cli_sampling *s);
/* Say on standard error that a reply of n_tokens was cut, and what allows more. */
void cli_sampling_say_cut(const cli_sampling *s, size_t n_tokens);

#endif
