/* shoal classify MODEL TEXT [--pair TEXT2], shoal classify MODEL --image FILE: labels and their
 * probabilities, best first. */
#include <string.h>

#include "base/file.h"
#include "json/json.h"
#include "cli/commands.h"
#include "cli/ask/task_run.h"

typedef struct asked {
    const char *pair, *picture;
    long long top;
} asked;

static int cmd_classify_check(task_input *in, shoal_err *err)
{
    const asked *o = in->own;
    if ((in->args->n == 1) == (o->picture != NULL) && !(o->picture && o->pair)) return 0;
    return err_set(err, SHOAL_EINVALID, "missing arguments: give either TEXT (and --pair) or --image FILE");
}

static int classify_file(shoal_model *m, const char *path, shoal_classification *ret, shoal_err *err)
{
    file_map map = {0};
    int rc = file_map_open(&map, path, err);
    if (rc == 0) rc = shoal_classify_image(m, map.data, map.len, ret, err);
    file_map_close(&map);
    return rc;
}

static int cmd_classify_ask(shoal_model *m, const task_input *in, buf *out, shoal_err *err)
{
    const asked *o = in->own;
    shoal_classification c = {0};
    int rc =
        o->picture ? classify_file(m, o->picture, &c, err) : shoal_classify(m, in->text, o->pair, &c, err);
    size_t n = in->json || (size_t)o->top > c.n_labels ? c.n_labels : (size_t)o->top;
    buf_puts(out, "{\"labels\":[");
    for (size_t i = 0; i < n; i++) {
        buf_puts(out, i ? ",{\"label\":" : "{\"label\":");
        json_put_string(out, c.labels[i].name, strlen(c.labels[i].name));
        buf_printf(out, ",\"score\":%.9g}", (double)c.labels[i].score);
    }
    buf_puts(out, "],\"logits\":");
    cli_put_floats(out, c.logits, c.n_labels);
    buf_putc(out, '}');
    shoal_classification_done(&c);
    return rc;
}

static const char *cmd_classify_serve(const task_input *in, json_t *question, shoal_err *err)
{
    const asked *o = in->own;
    bool failed = o->pair && json_object_set_new(question, "pair", json_string(o->pair)) != 0;
    if (!in->json && json_object_set_new(question, "top_k", json_integer(o->top)) != 0) failed = true;
    if (failed) err_set(err, SHOAL_EINVALID, "the text is not UTF-8");
    return failed ? NULL : o->picture ? o->picture : in->text;
}

static int cmd_classify_run(int argc, char **argv)
{
    asked o = {.top = 5};
    const cli_option options[] = {
        CLI_STRING(0, "image", "FILE", "a PNG or JPEG file instead of TEXT", &o.picture),
        CLI_STRING(0, "pair", "TEXT2", "the second text of a pair", &o.pair),
        CLI_INT('k', "top", "N", 1, 100000, "labels to show (not with --json) [5]", &o.top),
        CLI_END,
    };
    task_command t = {.cmd = &cmd_classify,
                      .task = "classify",
                      .options = options,
                      .min = 1,
                      .own = &o,
                      .check = cmd_classify_check,
                      .ask = cmd_classify_ask,
                      .serve = cmd_classify_serve};
    return task_run(&t, argc, argv);
}

const cli_command cmd_classify = {"classify", "say which label fits a text or a picture",
                                  "MODEL TEXT|-|--image FILE", cmd_classify_run, false};
