/* cli_generate.c: sampling options checked against json/sampling.h's ranges, with errors that name the option
 * as it was typed; a schema file may have 1 MiB. */
#include "command/cli_generate.h"

#include <math.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "json/sampling.h"

static int cli_generate_check(const char *option, const char *field, double v, shoal_err *err)
{
    int rc = isnan(v) ? 0 : sampling_check(field, v, err);
    return rc == 0 ? 0 : err_prefix(err, rc, "%s", option);
}

static void cli_generate_take(float *ret, double v)
{
    if (!isnan(v)) *ret = (float)v;
}

int cli_sampling_resolve(cli_sampling *s, shoal_generate_options *ret, shoal_err *err)
{
    int rc = cli_generate_check("--temp", "temperature", s->temperature, err);
    if (rc == 0) rc = cli_generate_check("--top-p", "top_p", s->top_p, err);
    if (rc == 0) rc = cli_generate_check("--min-p", "min_p", s->min_p, err);
    if (rc == 0)
        rc = cli_generate_check("--repetition-penalty", "repetition_penalty", s->repetition_penalty, err);
    if (rc != 0) return rc;
    if (s->schema_file) {
        buf text = {0};
        rc = file_read(&text, s->schema_file, 1 << 20, err);
        if (rc == 0 && !(s->schema = buf_take(&text))) rc = err_nomem(err);
        buf_done(&text);
        if (rc != 0) return rc;
    }
    cli_generate_take(&ret->temperature, s->temperature);
    cli_generate_take(&ret->top_p, s->top_p);
    cli_generate_take(&ret->min_p, s->min_p);
    cli_generate_take(&ret->repetition_penalty, s->repetition_penalty);
    if (s->top_k >= 0) ret->top_k = (int)s->top_k;
    if (s->seed >= 0)
        ret->seed = (uint64_t)s->seed;
    else
        rng_draw(&ret->seed, sizeof ret->seed);
    ret->max_tokens = (size_t)s->max_tokens;
    ret->stop = s->stop.v;
    ret->n_stop = s->stop.n;
    ret->json_object = s->json_object;
    ret->json_schema = s->schema;
    return 0;
}

static void cli_generate_put_number(json_t *o, const char *key, double v)
{
    if (!isnan(v)) json_object_set_new(o, key, json_real(v));
}

void cli_sampling_put(json_t *o, const cli_sampling *s)
{
    cli_generate_put_number(o, "temperature", s->temperature);
    cli_generate_put_number(o, "top_p", s->top_p == 0 ? 1 : s->top_p); /* there 0 means the likeliest alone */
    cli_generate_put_number(o, "min_p", s->min_p);
    cli_generate_put_number(o, "repetition_penalty", s->repetition_penalty);
    if (s->top_k >= 0) json_object_set_new(o, "top_k", json_integer(s->top_k));
    if (s->seed >= 0) json_object_set_new(o, "seed", json_integer(s->seed));
    json_object_set_new(o, "max_tokens", json_integer(s->max_tokens));
    json_t *stop = s->stop.n ? json_array() : NULL;
    for (size_t i = 0; stop && i < s->stop.n; i++) json_array_append_new(stop, json_string(s->stop.v[i]));
    if (stop) json_object_set_new(o, "stop", stop);
}

void cli_sampling_say_cut(const cli_sampling *s, size_t n_tokens)
{
    if ((long long)n_tokens < s->max_tokens)
        cli_say("cut at %zu tokens, where the context is full\n", n_tokens);
    else
        cli_say("cut at %zu tokens; -n N allows more\n", n_tokens);
}
