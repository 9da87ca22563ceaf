/* shoal rerank MODEL QUERY DOC...: documents by how well they answer a query, best first. */
#include <stdlib.h>
#include <string.h>

#include "base/rank.h"
#include "json/json.h"
#include "cli/commands.h"
#include "cli/ask/task_run.h"

enum { DOCUMENTS_MAX = 1000 };

/* The documents as they were given, or each line of standard input ("-"). */
static int read_documents(const char **docs, size_t *n, buf *text, char **argv, size_t n_args, shoal_err *err)
{
    if (n_args != 1 || strcmp(argv[0], "-") != 0) {
        memcpy(docs, argv, n_args * sizeof *docs);
        *n = n_args;
        return 0;
    }
    int rc = cli_text(text, "-", err);
    for (char *save = NULL, *line = rc == 0 ? strtok_r(text->data, "\n", &save) : NULL; line;
         line = strtok_r(NULL, "\n", &save)) {
        if (*n == DOCUMENTS_MAX)
            return err_set(err, SHOAL_ELIMIT, "more than %d documents: ask in parts", DOCUMENTS_MAX);
        docs[(*n)++] = line;
    }
    return rc == 0 && *n == 0 ? err_set(err, SHOAL_EINVALID, "there are no documents to rank") : rc;
}

static void cmd_rerank_put_json(buf *out, const ranked *r, const char *const *docs, size_t n)
{
    buf_puts(out, "{\"results\":[");
    for (size_t i = 0; i < n; i++) {
        const char *doc = docs[r[i].index];
        buf_printf(out, "%s{\"index\":%zu,\"relevance_score\":%.9g,\"document\":", i ? "," : "", r[i].index,
                   r[i].score);
        json_put_string(out, doc, strlen(doc));
        buf_putc(out, '}');
    }
    buf_puts(out, "]}");
}

static int cmd_rerank_ask(shoal_model *m, const task_input *in, buf *out, shoal_err *err)
{
    const long long *top = in->own;
    const cli_args *a = in->args;
    buf text = {0};
    size_t n = 0;
    const char **docs = calloc(DOCUMENTS_MAX, sizeof *docs);
    float *scores = calloc(DOCUMENTS_MAX, sizeof *scores);
    ranked *order = calloc(DOCUMENTS_MAX, sizeof *order);
    int rc = docs && scores && order ? 0 : err_nomem(err);
    if (rc == 0) rc = read_documents(docs, &n, &text, a->v + 2, (size_t)a->n - 2, err);
    if (rc == 0) rc = shoal_rerank(m, in->text, docs, n, scores, err);
    for (size_t i = 0; i < n && rc == 0; i++) order[i] = (ranked){i, (double)scores[i]};
    if (rc == 0) rank_sort(order, n);
    if (rc == 0) cmd_rerank_put_json(out, order, docs, *top && (size_t)*top < n ? (size_t)*top : n);
    free(docs);
    free(scores);
    free(order);
    buf_done(&text);
    return rc;
}

static int cmd_rerank_run(int argc, char **argv)
{
    long long top = 0;
    const cli_option options[] = {CLI_INT('k', "top", "N", 1, DOCUMENTS_MAX, "documents to show [all]", &top),
                                  CLI_END};
    task_command t = {.cmd = &cmd_rerank,
                      .task = "rerank",
                      .options = options,
                      .min = 3,
                      .max = 2 + DOCUMENTS_MAX,
                      .literal = true,
                      .own = &top,
                      .ask = cmd_rerank_ask};
    return task_run(&t, argc, argv);
}

const cli_command cmd_rerank = {"rerank", "order documents by how well they answer a query",
                                "MODEL QUERY DOC...|-", cmd_rerank_run, false};
