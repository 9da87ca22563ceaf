/* shoal eval FILE...: send cases to a running server, judge the answers, count them by tag, or by route.
 *
 * docs/evaluation.md has the file format and the verdicts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/file.h"
#include "cli/commands.h"
#include "client/http_client.h"
#include "command/cli_process.h"
#include "eval/eval_ask.h"
#include "eval/eval_baseline.h"
#include "eval/eval_routes.h"

typedef struct eval_options {
    const char *server, *pipeline, *homes, *svg, *title, *system, *key;
    const char *baseline, *report; /* files */
    bool accept;
    cli_list headers, routes;
    bool json, markdown, failures;
    eval_aims aims;
} eval_options;

static void show_progress(const char *what, size_t done, size_t n)
{
    if (!isatty(STDERR_FILENO)) return;
    fprintf(stderr, "\r\033[K%s %zu/%zu", what, done, n);
    if (done == n) fputs("\r\033[K", stderr);
}

/* Routes take turns, so that what the machine does besides, and what their members still have of the case
 * from each other, is the same for all. A route without a name is the pipeline. */
static int ask_each(eval_asker *a, const eval_cases *cases, eval_route *routes, size_t n_routes,
                    shoal_err *err)
{
    int rc = 0;
    for (size_t i = 0; !rc && i < cases->n; i++) {
        for (size_t k = 0; !rc && k < n_routes; k++) {
            eval_route *r = &routes[(i + k) % n_routes];
            a->route = r->name;
            rc = eval_ask(a, &cases->v[i], &r->results.v[i], err);
            r->results.n = i + 1;
        }
        if (rc) rc = err_prefix(err, rc, "case %s", cases->v[i].id);
        show_progress("cases", i + 1, cases->n);
    }
    return rc;
}

/* A header is said for this command, a key of the environment for all. */
static bool names_key(const cli_list *headers)
{
    for (size_t i = 0; i < headers->n; i++)
        if (strncasecmp(headers->v[i], "authorization:", 14) == 0) return true;
    return false;
}

static int ask_all(const eval_options *o, const eval_cases *cases, eval_route *routes, size_t n_routes,
                   shoal_err *err)
{
    http_where where;
    http_client c = {.fd = -1};
    buf headers = {0};
    int rc = cli_process_where(&where, o->server, err);
    if (!rc) rc = cli_process_reach(&where, err);
    if (!rc) http_client_init(&c, &where);
    if (!rc) rc = eval_put_headers(&o->headers, &headers, err);
    if (!rc && !names_key(&o->headers)) rc = cli_process_headers(&headers, o->key, err);
    for (size_t k = 0; !rc && k < n_routes; k++)
        if (!(routes[k].results.v = calloc(cases->n + 1, sizeof *routes[k].results.v))) rc = err_nomem(err);
    eval_asker asker = {.http = &c, .headers = headers.data, .pipeline = o->pipeline, .system = o->system};
    if (!rc) rc = ask_each(&asker, cases, routes, n_routes, err);
    buf_done(&headers);
    http_client_done(&c);
    return rc;
}

static int write_svg(const eval_options *o, const eval_scores *s, shoal_err *err)
{
    buf svg = {0};
    eval_report_svg(o->title, s, &svg);
    int rc = file_replace(o->svg, &svg, err);
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

static int cmd_eval_report(const eval_options *o, const eval_results *r, bool *ret_met, shoal_err *err)
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
        else if (o->report)
            rc = file_replace(o->report, &out, err);
        else
            cli_write(out.data, out.len);
    }
    buf_done(&out);
    eval_scores_done(&s);
    return rc;
}

static int accept_run(const eval_options *o, const eval_results *r, shoal_err *err)
{
    buf text = {0};
    eval_baseline_put(r, &text);
    int rc = file_replace(o->baseline, &text, err);
    buf_done(&text);
    if (!rc) cli_say("shoal eval: %zu cases are accepted in %s\n", r->n, o->baseline);
    return rc;
}

static int compare_run(const eval_options *o, const eval_baseline *b, const eval_results *r, bool *ret_met,
                       shoal_err *err)
{
    eval_comparison c;
    buf line = {0};
    int rc = eval_compare(&c, b, r, err);
    if (!rc) {
        eval_comparison_put(&c, o->baseline, &line);
        if (line.failed) rc = err_nomem(err);
    }
    if (!rc) {
        cli_say("shoal eval: %s\n", line.data);
        *ret_met &= c.n_worse == 0 || o->accept;
    }
    buf_done(&line);
    eval_comparison_done(&c);
    return rc;
}

static int compare_with_accepted(const eval_options *o, const eval_baseline *b, const eval_results *r,
                                 bool *ret_met, shoal_err *err)
{
    if (!o->baseline) return 0;
    int rc = b->verdicts ? compare_run(o, b, r, ret_met, err) : 0;
    return !rc && (o->accept || !b->verdicts) ? accept_run(o, r, err) : rc;
}

/* Before the cases are asked: hours of them would be for nothing. A file that is not there yet is none. */
static int read_accepted(const eval_options *o, eval_baseline *ret, shoal_err *err)
{
    buf text = {0};
    shoal_err why;
    if (!o->baseline) return 0;
    int rc = file_read(&text, o->baseline, EVAL_BASELINE_BYTES_MAX, &why);
    bool none = rc == SHOAL_ENOTFOUND;
    if (!rc) rc = eval_baseline_parse(ret, buf_text(&text), text.len, o->baseline, &why);
    buf_done(&text);
    return !rc || none ? file_try_replace(none || o->accept ? o->baseline : NULL, err)
                       : err_set(err, rc, "%s", why.message);
}

static int of_pipeline(const eval_options *o, const eval_cases *cases, bool *ret_met, shoal_err *err)
{
    eval_route r = {0};
    eval_baseline accepted = {0};
    int rc = read_accepted(o, &accepted, err);
    if (!rc) rc = ask_all(o, cases, &r, 1, err);
    if (!rc) rc = cmd_eval_report(o, &r.results, ret_met, err);
    if (!rc) rc = compare_with_accepted(o, &accepted, &r.results, ret_met, err);
    eval_results_done(&r.results);
    eval_baseline_done(&accepted);
    return rc;
}

static int report_routes(const eval_options *o, const eval_route *routes, size_t n, shoal_err *err)
{
    buf out = {0};
    int rc = o->json ? eval_routes_put_json(routes, n, &out, err) : eval_routes_put(routes, n, &out, err);
    for (size_t i = 0; !rc && !o->json && o->failures && i < n; i++) {
        buf_printf(&out, "\n%s\n", routes[i].name);
        eval_report_failures(&routes[i].results, &out);
    }
    if (!rc && out.failed) rc = err_nomem(err);
    if (!rc) cli_write(out.data, out.len);
    buf_done(&out);
    return rc;
}

/* The aims are each route's. */
static int routes_met(const eval_options *o, const eval_route *routes, size_t n, bool *ret_met,
                      shoal_err *err)
{
    int rc = 0;
    *ret_met = true;
    for (size_t i = 0; !rc && i < n; i++) {
        eval_scores s = {0};
        rc = eval_scores_init(&s, &routes[i].results, err);
        if (!rc) *ret_met &= eval_aims_met(&s, &o->aims);
        eval_scores_done(&s);
    }
    return rc;
}

static int of_routes(const eval_options *o, const eval_cases *cases, bool *ret_met, shoal_err *err)
{
    eval_route *routes = calloc(o->routes.n, sizeof *routes);
    int rc = routes ? 0 : err_nomem(err);
    for (size_t i = 0; !rc && i < o->routes.n; i++) routes[i].name = o->routes.v[i];
    if (!rc) rc = ask_all(o, cases, routes, o->routes.n, err);
    if (!rc) rc = report_routes(o, routes, o->routes.n, err);
    if (!rc) rc = routes_met(o, routes, o->routes.n, ret_met, err);
    for (size_t i = 0; routes && i < o->routes.n; i++) eval_results_done(&routes[i].results);
    free(routes);
    return rc;
}

static int evaluate(const eval_options *o, const cli_args *files, bool *ret_met, shoal_err *err)
{
    eval_cases cases = {0};
    int rc = 0;
    for (int i = 0; !rc && i < files->n; i++) rc = eval_cases_read(&cases, files->v[i], o->homes, err);
    if (!rc && !cases.n) rc = err_set(err, SHOAL_EINVALID, "%s has no cases", files->v[0]);
    if (!rc && o->routes.n && (o->markdown || o->svg || o->pipeline || o->baseline || o->report))
        rc = err_set(err, SHOAL_EINVALID,
                     "--route goes without --pipeline, --markdown, --svg, --baseline and --report");
    if (!rc && o->accept && !o->baseline)
        rc = err_set(err, SHOAL_EINVALID, "--accept writes the run to the file of --baseline: name one");
    if (!rc) rc = file_try_replace(o->svg, err);
    if (!rc) rc = file_try_replace(o->report, err);
    if (!rc) rc = o->routes.n ? of_routes(o, &cases, ret_met, err) : of_pipeline(o, &cases, ret_met, err);
    eval_cases_done(&cases);
    return rc;
}

static int cmd_eval_run(int argc, char **argv)
{
    eval_options o = {.aims = {0, 100, 100}, .key = getenv("SHOAL_API_KEY")};
    const cli_option options[] = {
        CLI_SERVER(&o.server),
        CLI_URL(&o.server),
        CLI_STRING(0, "pipeline", "NAME", "the pipeline of cases that name none", &o.pipeline),
        CLI_LIST('r', "route", "NAME", "ask this model or ensemble; several are compared with the first",
                 &o.routes),
        CLI_STRING(0, "system", "TEXT", "of chats about a home, with {devices} in it", &o.system),
        CLI_STRING(0, "homes", "DIR", "where the cases' homes are [homes beside FILE]", &o.homes),
        CLI_LIST('H', "header", "LINE", "send with each request, such as \"authorization: Bearer KEY\"",
                 &o.headers),
        CLI_KEY(&o.key),
        CLI_FLAG('f', "failures", "list every case that is not right", &o.failures),
        CLI_NUM(0, "min-right", "PERCENT", "fail when less is right [0]", &o.aims.min_right),
        CLI_NUM(0, "max-harmful", "PERCENT", "fail when more is harmful [100]", &o.aims.max_harmful),
        CLI_NUM(0, "max-silent", "PERCENT", "fail when more is silent [100]", &o.aims.max_silent),
        CLI_STRING(0, "baseline", "FILE",
                   "fail when a case is worse than in this accepted run; made if missing", &o.baseline),
        CLI_FLAG(0, "accept", "write this run to the file of --baseline, whatever became worse", &o.accept),
        CLI_STRING(0, "report", "FILE", "write the report into FILE and print none", &o.report),
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

const cli_command cmd_eval = {"eval", "judge a running server's answers to a file of cases", "FILE...",
                              cmd_eval_run, false};
