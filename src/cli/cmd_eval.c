/* shoal eval FILE...: send cases to a running server, judge the answers, count them by tag.
 *
 * docs/evaluation.md has the file format and the verdicts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "cli/cli.h"
#include "cli/eval_report.h"
#include "cli/http_client.h"

typedef struct eval_options {
    const char *server, *pipeline, *homes, *svg, *title;
    cli_list headers;
    bool json, markdown, failures;
    eval_aims aims;
} eval_options;

/* The answer in one line: text, then calls. */
static char *one_line(const eval_answer *a)
{
    buf b = {0};
    json_t *calls = eval_answer_calls(a);
    const char *text = eval_answer_text(a);
    json_put_string(&b, text, strlen(text));
    for (size_t i = 0; i < json_array_size(calls); i++) {
        buf_putc(&b, ' ');
        json_put(&b, json_array_get(calls, i));
    }
    json_decref(calls);
    return buf_take(&b);
}

static int judge(const eval_case *c, const http_client *answered, double ms, eval_result *ret, shoal_err *err)
{
    json_t *body = NULL;
    const buf *b = &answered->body;
    json_parse(&body, b->data, b->len, "the answer",
               NULL); /* not JSON: judged as an answer without content */
    eval_answer a = {.status = answered->status, .body = body};
    buf why = {0};
    buf_puts(&why, "");
    eval_result r = {.c = c, .ms = ms, .verdict = eval_judge(c->expect, c->input, &a, &why)};
    r.got = one_line(&a);
    r.why = buf_take(&why);
    json_decref(body);
    *ret = r;
    return r.got && r.why ? 0 : err_nomem(err);
}

/* Every answer is computed: times of cached ones would say nothing. */
static int put_headers(const cli_list *list, buf *out, shoal_err *err)
{
    buf_puts(out, "cache-control: no-cache\r\n");
    for (size_t i = 0; i < list->n; i++) {
        if (!strchr(list->v[i], ':') || strpbrk(list->v[i], "\r\n"))
            return err_set(err, SHOAL_EINVALID, "--header wants \"NAME: VALUE\", not \"%s\"", list->v[i]);
        buf_printf(out, "%s\r\n", list->v[i]);
    }
    return out->failed ? err_nomem(err) : 0;
}

static int ask(http_client *c, const eval_case *x, const eval_options *o, const char *headers,
               eval_result *ret, shoal_err *err)
{
    buf body = {0};
    eval_case_put_request(x, o->pipeline, &body);
    http_ask r = {.path = "/v1/process", .body = body.data, .headers = headers};
    uint64_t start = clock_ns();
    int rc = body.failed ? err_nomem(err) : http_client_exchange(c, &r, err);
    double ms = clock_ms_since(start);
    buf_done(&body);
    return rc ? rc : judge(x, c, ms, ret, err);
}

static void show_progress(size_t done, size_t n)
{
    if (!isatty(STDERR_FILENO)) return;
    fprintf(stderr, "\r\033[K%zu/%zu", done, n);
    if (done == n) fputs("\r\033[K", stderr);
}

static int ask_all(const eval_options *o, const eval_cases *cases, eval_results *ret, shoal_err *err)
{
    http_where where;
    http_client c = {.fd = -1};
    buf headers = {0};
    ret->v = calloc(cases->n + 1, sizeof *ret->v);
    int rc = ret->v ? http_where_parse(&where, o->server, err) : err_nomem(err);
    if (!rc) http_client_init(&c, &where);
    if (!rc) rc = put_headers(&o->headers, &headers, err);
    for (size_t i = 0; !rc && i < cases->n; i++) {
        rc = ask(&c, &cases->v[i], o, headers.data, &ret->v[i], err);
        ret->n = i + 1;
        if (rc) rc = err_prefix(err, rc, "case %s", cases->v[i].id);
        show_progress(i + 1, cases->n);
    }
    buf_done(&headers);
    http_client_done(&c);
    return rc;
}

static int write_svg(const eval_options *o, const eval_scores *s, shoal_err *err)
{
    buf svg = {0};
    file_writer *w = NULL;
    eval_report_svg(o->title, s, &svg);
    int rc = svg.failed ? err_nomem(err) : file_writer_open(&w, o->svg, err);
    if (!rc) rc = file_writer_write(w, svg.data, svg.len, err);
    if (!rc) rc = file_writer_commit(w, err);
    file_writer_close(w);
    buf_done(&svg);
    return rc;
}

static void put_report(const eval_options *o, const eval_results *r, const eval_scores *s, bool met, buf *out)
{
    if (o->json) {
        eval_report_json(s, r, o->failures, met, out);
    } else if (o->markdown) {
        eval_report_markdown(o->title, s, r, o->failures, out);
    } else {
        eval_report_table(s, out);
        if (o->failures) eval_report_failures(r, out);
        if (!met)
            buf_printf(out, "\nThe aims are missed: right %.2f %%, harmful %.2f %%, silent %.2f %%.\n",
                       eval_percent(&s->all, EVAL_RIGHT), eval_percent(&s->all, EVAL_HARMFUL),
                       eval_percent(&s->all, EVAL_SILENT));
    }
}

static int report(const eval_options *o, const eval_results *r, bool *ret_met, shoal_err *err)
{
    eval_scores s = {0};
    buf out = {0};
    int rc = eval_scores_init(&s, r, err);
    if (!rc && o->svg) rc = write_svg(o, &s, err);
    if (!rc) {
        *ret_met = eval_aims_met(&s, &o->aims);
        put_report(o, r, &s, *ret_met, &out);
        if (out.failed)
            rc = err_nomem(err);
        else
            fputs(out.data, stdout);
    }
    buf_done(&out);
    eval_scores_done(&s);
    return rc;
}

static int evaluate(const eval_options *o, const cli_args *files, bool *ret_met, shoal_err *err)
{
    eval_cases cases = {0};
    eval_results results = {0};
    int rc = 0;
    for (int i = 0; !rc && i < files->n; i++) rc = eval_cases_read(&cases, files->v[i], o->homes, err);
    if (!rc && !cases.n) rc = err_set(err, SHOAL_EINVALID, "%s has no cases", files->v[0]);
    if (!rc) rc = ask_all(o, &cases, &results, err);
    if (!rc) rc = report(o, &results, ret_met, err);
    eval_results_done(&results);
    eval_cases_done(&cases);
    return rc;
}

static int run(int argc, char **argv)
{
    eval_options o = {.server = "http://127.0.0.1:8080", .aims = {0, 100, 100}};
    const cli_option options[] = {
        CLI_STRING('u', "server", "URL", "where Shoal serves [http://127.0.0.1:8080]", &o.server),
        CLI_STRING(0, "pipeline", "NAME", "the pipeline of cases that name none", &o.pipeline),
        CLI_STRING(0, "homes", "DIR", "where the cases' homes are [homes beside FILE]", &o.homes),
        CLI_LIST('H', "header", "LINE", "send with each request, such as \"authorization: Bearer KEY\"",
                 &o.headers),
        CLI_FLAG('f', "failures", "list every case that is not right", &o.failures),
        CLI_NUM(0, "min-right", "PERCENT", "fail when less is right [0]", &o.aims.min_right),
        CLI_NUM(0, "max-harmful", "PERCENT", "fail when more is harmful [100]", &o.aims.max_harmful),
        CLI_NUM(0, "max-silent", "PERCENT", "fail when more is silent [100]", &o.aims.max_silent),
        CLI_FLAG(0, "markdown", "print Markdown", &o.markdown),
        CLI_STRING(0, "title", "TEXT", "heading of Markdown and picture [FILE]", &o.title),
        CLI_STRING(0, "svg", "FILE", "also draw the table into FILE", &o.svg),
        CLI_JSON(&o.json),
        CLI_END,
    };
    cli_args a;
    int rc = cli_parse(&a, &cmd_eval, options, 1, -1, argc, argv);
    if (rc != CLI_GO) return rc;
    if (!o.title) o.title = a.v[0];
    shoal_err err = {0};
    bool met = false;
    if (evaluate(&o, &a, &met, &err)) return cli_fail(&cmd_eval, &err);
    return met ? CLI_OK : CLI_FAILED;
}

const cli_command cmd_eval = {"eval", "judge a running server's answers to a file of cases", "FILE...", run,
                              false};
