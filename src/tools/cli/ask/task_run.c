/* task_run.c: the frame of the commands over one input. */
#include "cli/ask/task_run.h"

#include <stdlib.h>
#include <string.h>

#include "cli/ask/run_served.h"
#include "cli/ask/task_print.h"
#include "json/json.h"

enum { OPTIONS_MAX = 24 };

static int print_lines(const task_command *t, const buf *out, shoal_err *err)
{
    json_t *answer = NULL;
    int rc = out->failed ? err_nomem(err) : json_parse(&answer, out->data, out->len, "the answer", err);
    if (rc == 0) task_print(t->task, answer);
    json_decref(answer);
    return rc;
}

static int task_run_ask(const task_command *t, const cli_model_options *mo, task_input *in, buf *out,
                        shoal_err *err)
{
    shoal_model *m = NULL;
    buf text = {0};
    int rc = t->check ? t->check(in, err) : 0;
    if (rc == 0 && in->args->n > 1 && !t->literal) rc = cli_text(&text, in->args->v[1], err);
    in->text = t->literal ? in->args->v[1] : text.data;
    if (rc == 0) rc = cli_model_open(&m, in->args->v[0], mo, err);
    if (rc == 0) rc = t->ask(m, in, out, err);
    shoal_model_close(m);
    buf_done(&text);
    return rc;
}

/* Where the model is asked for. */
typedef struct task_place {
    const char *server, *key;
} task_place;

static int ask_there(const task_command *t, const task_place *place, const cli_model_options *mo,
                     const task_input *in, shoal_err *err)
{
    served at;
    run_input question = {.json = in->json, .extra = json_object()};
    const char *model = in->args->v[0];
    int rc = 0;
    if (mo->manifest || mo->threads || mo->context || mo->adapter || mo->kv_type || mo->regroup)
        rc = err_set(err, SHOAL_EINVALID,
                     "--manifest, --threads, --context, --adapter, --kv-type and --regroup are of a model in "
                     "this process, and do not go with --server");
    if (rc == 0 && !question.extra) rc = err_nomem(err);
    if (rc == 0 && !(question.text = t->serve(in, question.extra, err))) rc = SHOAL_EINVALID;
    if (rc == 0) rc = served_find(&at, place->server, model, NULL, place->key, err);
    if (rc == 0 && !*at.model) rc = served_missing(&at, model, err);
    if (rc == 0 && strncmp(at.task, t->task, strlen(t->task)) != 0)
        rc = err_set(err, SHOAL_EINVALID, "%s is for \"%s\"; shoal run gives it a text", at.model,
                     *at.task ? at.task : "generate");
    if (rc == 0) rc = run_served(&at, &question, place->key, err);
    json_decref(question.extra);
    return rc;
}

static int task_run_there(const task_command *t, const task_place *place, const cli_model_options *mo,
                          task_input *in, shoal_err *err)
{
    buf text = {0};
    int rc = t->check ? t->check(in, err) : 0;
    if (rc == 0 && in->args->n > 1) rc = cli_text(&text, in->args->v[1], err);
    in->text = text.data;
    if (rc == 0) rc = ask_there(t, place, mo, in, err);
    buf_done(&text);
    return cli_flush(rc ? cli_fail(t->cmd, err) : CLI_OK);
}

int task_run(const task_command *t, int argc, char **argv)
{
    cli_model_options mo = {0};
    task_place place = {.key = getenv("SHOAL_API_KEY")};
    cli_args a;
    task_input in = {.args = &a, .own = t->own};
    const cli_option common[] = {CLI_MODEL_OPTIONS(&mo), CLI_JSON(&in.json), CLI_END};
    cli_option options[OPTIONS_MAX];
    size_t n = 0;
    for (const cli_option *o = t->options; o && o->kind != CLI_KIND_END; o++) options[n++] = *o;
    const cli_option serves[] = {
        CLI_STRING('s', "server", "URL",
                   "ask the Shoal that serves at ADDRESS:PORT, http[s]://ADDRESS:PORT or "
                   "unix:PATH",
                   &place.server),
        CLI_CA, CLI_KEY(&place.key)};
    if (t->serve) memcpy(options + n, serves, sizeof serves), n += sizeof serves / sizeof *serves;
    memcpy(options + n, common, sizeof common);
    int rc = cli_parse(&a, t->cmd, options, t->min ? t->min : 2, t->max ? t->max : 2, argc, argv);
    if (rc != CLI_GO) return rc;
    shoal_err err = {0};
    buf out = {0};
    if (place.server) return task_run_there(t, &place, &mo, &in, &err);
    rc = task_run_ask(t, &mo, &in, &out, &err);
    bool lines = t->task && !in.json;
    if (rc == 0 && lines) rc = print_lines(t, &out, &err);
    rc = rc ? cli_fail(t->cmd, &err) : lines ? cli_flush(CLI_OK) : cli_print(&out);
    buf_done(&out);
    return rc;
}
