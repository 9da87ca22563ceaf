/* shoal logits MODEL --ids 1,2,3: what the model thinks of every next token, for checking engines. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/cli_model.h"

/* "1,2,3" into a malloc'd array. */
static int parse_ids(const char *s, int32_t **ret, size_t *ret_n, shoal_err *err)
{
    size_t cap = 16, n = 0;
    int32_t *ids = malloc(cap * sizeof *ids);
    if (!ids) return err_nomem(err);
    for (const char *p = s;; p++) {
        char *end;
        errno = 0;
        long v = strtol(p, &end, 10);
        if (end == p || errno != 0 || v < 0 || v > INT32_MAX || (*end != ',' && *end != '\0')) {
            free(ids);
            return err_set(err, SHOAL_EINVALID, "--ids wants numbers with commas between them, not \"%s\"",
                           s);
        }
        if (n == cap) {
            int32_t *more = realloc(ids, (cap *= 2) * sizeof *ids);
            if (!more) {
                free(ids);
                return err_nomem(err);
            }
            ids = more;
        }
        ids[n++] = (int32_t)v;
        p = end;
        if (*p == '\0') break;
    }
    *ret = ids;
    *ret_n = n;
    return 0;
}

static void put_rows(buf *out, const float *logits, size_t rows, size_t cols, bool json)
{
    if (json) buf_puts(out, "{\"logits\":[");
    for (size_t i = 0; i < rows; i++) {
        if (i) buf_puts(out, json ? "," : "\n");
        if (json) {
            cli_put_floats(out, logits + i * cols, cols);
        } else {
            size_t best = 0;
            for (size_t k = 1; k < cols; k++)
                if (logits[i * cols + k] > logits[i * cols + best]) best = k;
            buf_printf(out, "position %zu: best id %zu, logit %.6g", i, best,
                       (double)logits[i * cols + best]);
        }
    }
    if (json) buf_puts(out, "]}");
}

static int run(int argc, char **argv)
{
    cli_model_options mo = {0};
    const char *ids_text = NULL;
    long long last = 0;
    bool json = false;
    const cli_option options[] = {
        CLI_STRING(0, "ids", "1,2,3", "the prompt as token ids", &ids_text),
        CLI_INT(0, "last", "N", 1, 1 << 20, "only the last N positions [all]", &last),
        CLI_MODEL_OPTIONS(&mo),
        CLI_JSON(&json),
        CLI_END,
    };
    cli_args a;
    int rc = cli_parse(&a, &cmd_logits, options, 1, 1, argc, argv);
    if (rc != CLI_GO) return rc;
    shoal_err err = {0};
    cli_engine c = {0};
    int32_t *ids = NULL;
    float *logits = NULL;
    size_t n = 0, rows = 0, cols = 0;
    buf out = {0};
    rc = ids_text ? parse_ids(ids_text, &ids, &n, &err) : err_set(&err, SHOAL_EINVALID, "--ids is missing");
    if (rc == 0) rc = cli_engine_open(&c, a.v[0], &mo, true, &err);
    if (rc == 0 && model_get_config(c.m)->task != TASK_GENERATE)
        rc = err_set(&err, SHOAL_EUNSUPPORTED, "%s is a model for \"%s\" and has no next-token logits",
                     model_name(c.m), task_name(model_get_config(c.m)->task));
    if (rc == 0) {
        rows = last == 0 || (size_t)last > n ? n : (size_t)last;
        cols = model_get_config(c.m)->n_vocab;
        logits = calloc(rows * cols, sizeof *logits);
        rc = logits ? engine_logits(c.e, NULL, ids, n, rows, logits, &err) : err_nomem(&err);
    }
    if (rc != 0) {
        rc = cli_fail(&cmd_logits, &err);
    } else {
        put_rows(&out, logits, rows, cols, json);
        rc = cli_print(&out);
    }
    buf_done(&out);
    free(logits);
    free(ids);
    cli_engine_close(&c);
    return rc;
}

const cli_command cmd_logits = {"logits", "show a decoder's raw output for token ids", "MODEL --ids 1,2,3",
                                run, false};
