/* cli_generate.c: sampling options checked against base/sampling.h's ranges, with errors that name the option
 * as it was typed; a schema file may have 1 MiB. */
#include "command/cli_generate.h"

#include "base/buf.h"
#include "base/file.h"
#include "base/sampling.h"

static int check(const char *option, const char *field, double v, shoal_err *err)
{
    int rc = sampling_check(field, v, err);
    return rc == 0 ? 0 : err_prefix(err, rc, "%s", option);
}

int cli_sampling_resolve(cli_sampling *s, shoal_generate_options *ret, shoal_err *err)
{
    int rc = check("--temp", "temperature", s->temperature, err);
    if (rc == 0) rc = check("--top-p", "top_p", s->top_p, err);
    if (rc == 0) rc = check("--min-p", "min_p", s->min_p, err);
    if (rc == 0) rc = check("--repetition-penalty", "repetition_penalty", s->repetition_penalty, err);
    if (rc != 0) return rc;
    if (s->schema_file) {
        buf text = {0};
        rc = file_read(&text, s->schema_file, 1 << 20, err);
        if (rc == 0 && !(s->schema = buf_take(&text))) rc = err_nomem(err);
        buf_done(&text);
        if (rc != 0) return rc;
    }
    *ret = (shoal_generate_options){
        .max_tokens = (size_t)s->max_tokens,
        .temperature = (float)s->temperature,
        .top_k = (int)s->top_k,
        .top_p = (float)s->top_p,
        .min_p = (float)s->min_p,
        .repetition_penalty = (float)s->repetition_penalty,
        .seed = (uint64_t)s->seed,
        .stop = s->stop.v,
        .n_stop = s->stop.n,
        .json_object = s->json_object,
        .json_schema = s->schema,
    };
    return 0;
}
