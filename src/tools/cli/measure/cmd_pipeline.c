/* shoal pipeline check|graph|test: what a configuration's pipelines come to, their picture, and cases of what
 * they should answer. docs/pipelines.md has examples. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "cli/commands.h"
#include "cli/measure/pipeline_survey.h"
#include "command/cli_model.h"
#include "eval/pipeline_test.h"
#include "pipeline/pipeline_graph.h"
#include "rules/home.h"

typedef struct options {
    pipeline_test_options test;
    const char *svg;
    bool dot;
} options;

/* ---- check ------------------------------------------------------------------------------------------- */

static int cmd_pipeline_check(const options *o, const char *path, shoal_err *err)
{
    pipeline_survey s;
    buf out = {0};
    int rc = pipeline_survey_open(&s, path, o->test.pipeline, err);
    if (rc == 0 && o->test.json)
        pipeline_report_json(&s, &out);
    else if (rc == 0)
        pipeline_report_table(&s, &out);
    if (rc == 0 && out.failed) rc = err_nomem(err);
    if (rc == 0) cli_printf("%s%s", out.data, o->test.json ? "\n" : "");
    fflush(stdout);
    size_t n = json_array_size(s.problems);
    for (size_t i = 0; rc == 0 && !o->test.json && i < n; i++)
        cli_say("shoal pipeline: %s\n", json_string_value(json_array_get(s.problems, i)));
    buf_done(&out);
    pipeline_survey_done(&s);
    return rc ? rc : n ? CLI_FAILED : 0;
}

/* ---- graph ------------------------------------------------------------------------------------------- */

static const char *name_at(const void *config, size_t i)
{
    return ((const gateway_config *)config)->pipelines[i].name;
}

static int no_pipeline(const gateway_config *c, const char *path, const char *only, shoal_err *err)
{
    if (c->n_pipelines == 0) return err_set(err, SHOAL_EFORMAT, "%s: has no pipelines", path);
    const char *near = cli_nearest(only, c->n_pipelines, name_at, c);
    return err_set(err, SHOAL_EINVALID, "there is no pipeline '%.64s'%s%s%s", only,
                   near ? ", did you mean \"" : "", near ? near : "", near ? "\"?" : "");
}

/* One below the other. */
static void put_svg(const pipeline_graph *graphs, size_t n, buf *out)
{
    double width = 0, height = 0, y = 0;
    for (size_t i = 0; i < n; i++) {
        if (graphs[i].width > width) width = graphs[i].width;
        height += graphs[i].height;
    }
    pipeline_graph_begin_svg(width, height, out);
    for (size_t i = 0; i < n; i++) {
        pipeline_graph_put_svg(&graphs[i], y, out);
        y += graphs[i].height;
    }
    pipeline_graph_end_svg(out);
}

static int write_file(const char *path, const buf *b, shoal_err *err)
{
    if (strcmp(path, "-") == 0)
        return cli_write(b->data, b->len) < 0 ? err_set(err, SHOAL_EIO, "standard output") : 0;
    return file_replace(path, b, err);
}

static int cmd_pipeline_show(const options *o, const pipeline_graph *graphs, size_t n, shoal_err *err)
{
    buf out = {0};
    if (o->svg) put_svg(graphs, n, &out);
    for (size_t i = 0; !o->svg && i < n; i++) {
        if (o->dot) {
            pipeline_graph_put_dot(&graphs[i], &out);
        } else {
            if (i) buf_putc(&out, '\n');
            pipeline_graph_put_text(&graphs[i], &out);
        }
    }
    int rc = out.failed ? err_nomem(err) : write_file(o->svg ? o->svg : "-", &out, err);
    if (rc == 0 && o->svg && strcmp(o->svg, "-") != 0) cli_printf("wrote %s\n", o->svg);
    buf_done(&out);
    return rc;
}

static int graph(const options *o, const char *path, shoal_err *err)
{
    gateway_config *c = NULL;
    pipeline_graph *graphs = NULL;
    size_t n = 0;
    const char *only = o->test.pipeline;
    int rc = cli_opened(config_load(&c, &HOME_STAGES, path, err), err);
    if (rc == 0 && !(graphs = calloc(c->n_pipelines + 1, sizeof *graphs))) rc = err_nomem(err);
    for (size_t i = 0; rc == 0 && i < c->n_pipelines; i++)
        if (!only || strcmp(c->pipelines[i].name, only) == 0)
            rc = pipeline_graph_make(&graphs[n++], &c->pipelines[i], err);
    if (rc == 0 && n == 0) rc = no_pipeline(c, path, only ? only : "", err);
    if (rc == 0) rc = cmd_pipeline_show(o, graphs, n, err);
    for (size_t i = 0; i < n; i++) pipeline_graph_done(&graphs[i]);
    free(graphs);
    config_free(c);
    return rc;
}

/* ---- test -------------------------------------------------------------------------------------------- */

static int test(const options *o, const char *path, shoal_err *err)
{
    bool passed = false;
    int rc = pipeline_test_run(&o->test, path, &passed, err);
    return rc ? rc : passed ? 0 : CLI_FAILED;
}

/* Each 0, CLI_FAILED when it has said what is wrong, or an error of err's. */
static int (*const RUN[])(const options *o, const char *path, shoal_err *err) = {cmd_pipeline_check, graph,
                                                                                 test};
static const cli_verb VERBS[] = {
    {"check", "FILE", "look the pipelines of a configuration over", 1, 1},
    {"graph", "FILE", "show who leads to whom, and on what condition", 1, 1},
    {"test", "FILE.jsonl", "put cases to a pipeline, and show what differs", 1, 1},
    CLI_VERB_END};

static int cmd_pipeline_run(int argc, char **argv)
{
    options o = {.test.key = getenv("SHOAL_API_KEY")};
    const cli_option opts[] = {
        CLI_STRING('p', "pipeline", "NAME", "this pipeline; test: of cases that name none", &o.test.pipeline),
        CLI_STRING(0, "svg", "FILE", "graph: draw it into FILE; - is standard output", &o.svg),
        CLI_FLAG(0, "dot", "graph: print DOT, for Graphviz", &o.dot),
        CLI_STRING('c', "config", "FILE", "test: serve this configuration on a free port meanwhile",
                   &o.test.config),
        CLI_STRING('s', "server", "URL", "test: " CLI_SERVER_HELP, &o.test.server),
        CLI_STRING(0, "ca", "FILE", "test: " CLI_CA_HELP, cli_ca()),
        CLI_STRING(0, "homes", "DIR", "test: where the cases' homes are [homes beside FILE]", &o.test.homes),
        CLI_FLAG('f', "failures", "test: list only cases that differ", &o.test.failures),
        CLI_STRING(0, "key", "KEY", "test: the API key [SHOAL_API_KEY]", &o.test.key),
        CLI_JSON(&o.test.json),
        CLI_END,
    };
    cli_args a;
    shoal_err err = {0};
    const cli_verb *verb;
    int rc = cli_parse_verb(&a, &verb, &cmd_pipeline, opts, VERBS, argc, argv);
    if (rc != CLI_GO) return rc;
    rc = RUN[verb - VERBS](&o, a.v[0], &err);
    return rc < 0 ? cli_fail(&cmd_pipeline, &err) : cli_flush(rc);
}

const cli_command cmd_pipeline = {"pipeline", "check and draw pipelines, and test what they answer",
                                  "check|graph FILE, test FILE.jsonl", cmd_pipeline_run, false};
