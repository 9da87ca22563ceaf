#include "cli/cli_generate.h"

#include "base/buf.h"
#include "base/sys.h"

int cli_sampling_resolve(cli_sampling *s, shoal_generate_options *ret, shoal_err *err)
{
    if (s->temperature < 0 || s->temperature > 100)
        return err_set(err, SHOAL_EINVALID, "--temp is %g, must be between 0 and 100", s->temperature);
    if (s->top_p < 0 || s->top_p > 1 || s->min_p < 0 || s->min_p > 1)
        return err_set(err, SHOAL_EINVALID, "--top-p and --min-p must be between 0 and 1");
    if (s->repetition_penalty < 0)
        return err_set(err, SHOAL_EINVALID, "--repetition-penalty must not be negative");
    if (s->schema_file) {
        buf text = {0};
        int rc = file_read(&text, s->schema_file, 1 << 20, err);
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
