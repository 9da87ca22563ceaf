/* shoal classify MODEL TEXT [--pair TEXT2], shoal classify MODEL --image FILE: labels and their
 * probabilities, best first. */
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "json/json.h"
#include "cli/commands.h"
#include "command/cli_model.h"

static int print_json(const shoal_classification *c)
{
    buf out = {0};
    buf_puts(&out, "{\"labels\":[");
    for (size_t i = 0; i < c->n_labels; i++) {
        buf_puts(&out, i ? ",{\"label\":" : "{\"label\":");
        json_put_string(&out, c->labels[i].name, strlen(c->labels[i].name));
        buf_printf(&out, ",\"score\":%.9g}", (double)c->labels[i].score);
    }
    buf_puts(&out, "],\"logits\":");
    cli_put_floats(&out, c->logits, c->n_labels);
    buf_putc(&out, '}');
    int rc = cli_print(&out);
    buf_done(&out);
    return rc;
}

static int classify_text(shoal_model *m, const char *arg, const char *pair, shoal_classification *ret,
                         shoal_err *err)
{
    buf text = {0};
    int rc = cli_text(&text, arg, err);
    if (rc == 0) rc = shoal_classify(m, text.data, pair, ret, err);
    buf_done(&text);
    return rc;
}

static int classify_file(shoal_model *m, const char *path, shoal_classification *ret, shoal_err *err)
{
    file_map map = {0};
    int rc = file_map_open(&map, path, err);
    if (rc == 0) rc = shoal_classify_image(m, map.data, map.len, ret, err);
    file_map_close(&map);
    return rc;
}

static int run(int argc, char **argv)
{
    cli_model_options mo = {0};
    const char *pair = NULL, *picture = NULL;
    long long top = 5;
    bool json = false;
    const cli_option options[] = {
        CLI_STRING(0, "image", "FILE", "a PNG or JPEG file instead of TEXT", &picture),
        CLI_STRING(0, "pair", "TEXT2", "the second text of a pair", &pair),
        CLI_INT('k', "top", "N", 1, 100000, "labels to show (not with --json) [5]", &top),
        CLI_MODEL_OPTIONS(&mo),
        CLI_JSON(&json),
        CLI_END,
    };
    cli_args a;
    int rc = cli_parse(&a, &cmd_classify, options, 1, 2, argc, argv);
    if (rc != CLI_GO) return rc;
    shoal_err err = {0};
    shoal_model *m = NULL;
    shoal_classification c = {0};
    rc = (a.n == 1) == (picture != NULL) && !(picture && pair)
             ? cli_model_open(&m, a.v[0], &mo, &err)
             : err_set(&err, SHOAL_EINVALID,
                       "missing arguments: give either TEXT (and --pair) or --image FILE");
    if (rc == 0)
        rc = picture ? classify_file(m, picture, &c, &err) : classify_text(m, a.v[1], pair, &c, &err);
    if (rc != 0) {
        rc = cli_fail(&cmd_classify, &err);
    } else if (json) {
        rc = print_json(&c);
    } else {
        for (size_t i = 0; i < c.n_labels && i < (size_t)top; i++)
            cli_printf("%6.2f %%  %s\n", 100.0 * (double)c.labels[i].score, c.labels[i].name);
        rc = CLI_OK;
    }
    shoal_classification_done(&c);
    shoal_model_close(m);
    return rc;
}

const cli_command cmd_classify = {"classify", "say which label fits a text or a picture",
                                  "MODEL TEXT|-|--image FILE", run, false};
