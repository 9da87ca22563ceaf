/* shoal calibrate ENSEMBLE FILE...: ask every member of a cascade each case, and find out what its confidence
 * is worth and from which one on it may answer.
 *
 * docs/ensembles.md says how to read the table. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/sha256.h"
#include "cli/commands.h"
#include "command/cli_process.h"
#include "ensemble/cascade_calls.h"
#include "eval/calibrate_report.h"
#include "eval/eval_ask.h"
#include "fetch/pull_manifest.h"
#include "json/json.h"

typedef struct calibrate_options {
    const char *server, *homes, *system, *out, *svg;
    cli_list headers;
    double accuracy, escalate; /* < 0: not given */
    bool json;
} calibrate_options;

/* A cascade as the server knows it. */
typedef struct cascade {
    json_t *models; /* of /v1/models; the names are borrowed from it */
    calibrate_member members[CASCADE_MEMBERS_MAX];
    size_t n;
} cascade;

/* ---- what the server has ------------------------------------------------------------------------------- */

static const json_t *cmd_calibrate_find_model(const json_t *models, const char *id)
{
    const json_t *data = json_object_get(models, "data");
    for (size_t i = 0; i < json_array_size(data); i++)
        if (strcmp(json_text_of(json_array_get(data, i), "id"), id) == 0) return json_array_get(data, i);
    return NULL;
}

static int no_cascade(const json_t *models, const char *name, const json_t *found, shoal_err *err)
{
    const json_t *data = json_object_get(models, "data");
    buf known = {0};
    buf_puts(&known, "");
    for (size_t i = 0; i < json_array_size(data); i++) {
        const json_t *m = json_array_get(data, i);
        if (strcmp(json_text_of(m, "kind"), "cascade") == 0)
            buf_printf(&known, "%s%s", known.len ? ", " : "", json_text_of(m, "id"));
    }
    int rc = err_set(err, SHOAL_EINVALID, "%s is %s; the server's cascades: %s", name,
                     found ? "no cascade, and nothing else has thresholds" : "not known to the server",
                     known.len ? known.data : "none");
    buf_done(&known);
    return rc;
}

static int take_members(cascade *c, const char *name, shoal_err *err)
{
    const json_t *found = cmd_calibrate_find_model(c->models, name),
                 *members = json_object_get(found, "members");
    size_t n = json_array_size(members);
    if (!found || strcmp(json_text_of(found, "kind"), "cascade") != 0)
        return no_cascade(c->models, name, found, err);
    if (n < 2 || n > CASCADE_MEMBERS_MAX)
        return err_set(err, SHOAL_EPROTOCOL, "the server says that %s has %zu members", name, n);
    for (size_t i = 0; i < n; i++) {
        calibrate_member *m = &c->members[i];
        m->model = json_string_value(json_array_get(members, i));
        if (!m->model) return err_set(err, SHOAL_EPROTOCOL, "the server names no member of %s", name);
        snprintf(m->cal.model, sizeof m->cal.model, "%s", m->model);
        snprintf(m->cal.digest, sizeof m->cal.digest, "%s",
                 json_text_of(cmd_calibrate_find_model(c->models, m->model), "digest"));
    }
    c->n = n;
    return 0;
}

static int find_cascade(cascade *ret, http_client *http, const char *headers, const char *name,
                        shoal_err *err)
{
    http_ask r = {.path = "/v1/models", .headers = headers};
    int rc = http_client_exchange(http, &r, err);
    if (!rc && http->status != 200)
        rc = err_set(err, SHOAL_EUNAVAILABLE, "the server answers /v1/models with status %d%s", http->status,
                     http->status == 401 ? ": give its key by --header" : "");
    if (!rc) rc = json_parse(&ret->models, http->body.data, http->body.len, "/v1/models", err);
    return rc ? rc : take_members(ret, name, err);
}

static void cascade_done(cascade *c)
{
    for (size_t i = 0; i < CASCADE_MEMBERS_MAX; i++) {
        free(c->members[i].said);
        free(c->members[i].right);
        free(c->members[i].after);
    }
    json_decref(c->models);
}

/* ---- asking ----------------------------------------------------------------------------------------- */

static void show_progress(const char *what, size_t done, size_t n)
{
    if (!isatty(STDERR_FILENO)) return;
    fprintf(stderr, "\r\033[K%s %zu/%zu", what, done, n);
    if (done == n) fputs("\r\033[K", stderr);
}

/* An answer that tells no confidence, an error for one, has nothing to calibrate by. */
static int take_answer(calibrate_member *m, size_t i, const eval_asker *a, const eval_result *r,
                       shoal_err *err)
{
    if (a->http->status != 200)
        return err_set(err, SHOAL_EUNAVAILABLE, "%s answers with status %d: %.200s", m->model,
                       a->http->status, r->got);
    if (r->said < 0) return err_set(err, SHOAL_EUNSUPPORTED, "%s does not tell how sure it is", m->model);
    m->said[i] = r->said;
    m->right[i] = r->verdict == EVAL_RIGHT;
    return 0;
}

static int ask_case(calibrate_member *m, size_t i, const eval_asker *a, const eval_case *c, shoal_err *err)
{
    eval_result *r = calloc(1, sizeof *r);
    eval_results results = {r, 1};
    int rc = r ? eval_ask(a, c, r, err) : err_nomem(err);
    if (!rc) rc = take_answer(m, i, a, r, err);
    if (!r) return rc;
    eval_results_done(&results);
    return rc;
}

static int ask_member(calibrate_member *m, eval_asker *a, const eval_cases *cases, shoal_err *err)
{
    m->said = calloc(cases->n, sizeof *m->said);
    m->right = calloc(cases->n, sizeof *m->right);
    m->after = calloc(cases->n, sizeof *m->after);
    int rc = m->said && m->right && m->after ? 0 : err_nomem(err);
    a->route = m->model;
    for (size_t i = 0; !rc && i < cases->n; i++) {
        rc = ask_case(m, i, a, &cases->v[i], err);
        if (rc) rc = err_prefix(err, rc, "case %zu %s", i + 1, cases->v[i].id);
        show_progress(m->model, i + 1, cases->n);
    }
    return rc;
}

/* ---- what comes of it ------------------------------------------------------------------------------- */

/* FILE for a cascade of two; when more members judge, "-MODEL" stands before its ending. */
static void put_path(const cascade *c, size_t i, const char *path, buf *out)
{
    const char *slash = strrchr(path, '/'), *dot = strrchr(slash ? slash : path, '.');
    if (c->n == 2) {
        buf_puts(out, path);
        return;
    }
    size_t stem = dot ? (size_t)(dot - path) : strlen(path);
    buf_append(out, path, stem);
    buf_printf(out, "-%s%s", c->members[i].model, dot ? dot : "");
}

/* Where a models.json lies beside it, that says from now on which file it is. */
static int pin(const char *path, const buf *text, buf *told, shoal_err *err)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    char *folder = slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup(".");
    sha256_digest d;
    char hex[65];
    if (!folder) return err_nomem(err);
    sha256_of(text->data, text->len, &d);
    sha256_hex(&d, hex);
    int rc = pull_manifest_pin(folder, name, hex, err);
    if (rc == 0) buf_printf(told, "\npinned:  %s/models.json", folder);
    free(folder);
    return rc == SHOAL_ENOTFOUND ? 0 : rc;
}

static int write_calibrations(const cascade *c, const char *path, buf *told, shoal_err *err)
{
    int rc = 0;
    for (size_t i = 0; !rc && i + 1 < c->n; i++) {
        buf at = {0}, text = {0};
        put_path(c, i, path, &at);
        calibration_put(&text, &c->members[i].cal);
        rc = at.failed ? err_nomem(err) : file_replace(at.data, &text, err);
        if (!rc)
            buf_printf(told, "\nwritten: %s (members: {model: %s, calibration: %s})", at.data,
                       c->members[i].model, at.data);
        if (!rc) rc = pin(at.data, &text, told, err);
        buf_done(&at);
        buf_done(&text);
    }
    if (!rc) buf_putc(told, '\n');
    return rc;
}

static int cmd_calibrate_report(const calibrate_options *o, const char *name, const cascade *c, size_t n,
                                shoal_err *err)
{
    calibrate_report r = {.ensemble = name, .members = c->members, .n_members = c->n, .n = n};
    buf out = {0}, svg = {0}, written = {0};
    int rc = 0;
    buf_puts(&written, "");
    if (o->svg) {
        calibrate_put_svg(&r, &svg);
        rc = file_replace(o->svg, &svg, err);
    }
    if (!rc && o->out) rc = write_calibrations(c, o->out, &written, err);
    if (o->json)
        calibrate_put_json(&r, &out);
    else
        calibrate_put_table(&r, &out);
    if (!o->json) buf_join(&out, &written);
    if (!rc && out.failed) rc = err_nomem(err);
    if (!rc) fputs(out.data, stdout);
    buf_done(&out);
    buf_done(&svg);
    buf_done(&written);
    return rc;
}

static int take_goal(const calibrate_options *o, calibrate_goal *ret, shoal_err *err)
{
    bool accuracy = o->accuracy >= 0, share = o->escalate >= 0;
    *ret = (calibrate_goal){CALIBRATE_BEST, 0};
    if (accuracy && share)
        return err_set(err, SHOAL_EINVALID,
                       "give --accuracy or --escalate, not both: a threshold reaches one");
    if (o->accuracy > 1 || o->escalate > 1)
        return err_set(err, SHOAL_EINVALID, "--accuracy and --escalate are shares from 0 to 1");
    if (accuracy) *ret = (calibrate_goal){CALIBRATE_ACCURACY, o->accuracy};
    if (share) *ret = (calibrate_goal){CALIBRATE_SHARE, o->escalate};
    return 0;
}

static int with_cases(const calibrate_options *o, const char *name, const eval_cases *cases,
                      const calibrate_goal *goal, shoal_err *err)
{
    http_where where;
    buf headers = {0};
    cascade c = {0};
    http_client http = {.fd = -1};
    int rc = cli_process_where(&where, o->server, err);
    if (!rc) rc = cli_process_reach(&where, err);
    if (!rc) http_client_init(&http, &where);
    if (!rc) rc = eval_put_headers(&o->headers, &headers, err);
    if (!rc) rc = find_cascade(&c, &http, headers.data, name, err);
    eval_asker asker = {
        .http = &http, .headers = headers.data, .system = o->system, .wants_confidence = true};
    for (size_t i = 0; !rc && i < c.n; i++) rc = ask_member(&c.members[i], &asker, cases, err);
    if (!rc) rc = calibrate_fit(c.members, c.n, cases->n, goal, err);
    if (!rc) rc = cmd_calibrate_report(o, name, &c, cases->n, err);
    cascade_done(&c);
    http_client_done(&http);
    buf_done(&headers);
    return rc;
}

static int calibrate(const calibrate_options *o, const cli_args *a, shoal_err *err)
{
    eval_cases cases = {0};
    calibrate_goal goal;
    int rc = take_goal(o, &goal, err);
    for (int i = 1; !rc && i < a->n; i++) rc = eval_cases_read(&cases, a->v[i], o->homes, err);
    if (!rc && !cases.n) rc = err_set(err, SHOAL_EINVALID, "%s has no cases", a->v[1]);
    if (!rc) rc = file_try_replace(o->svg, err);
    if (!rc) rc = with_cases(o, a->v[0], &cases, &goal, err);
    eval_cases_done(&cases);
    return rc;
}

static int cmd_calibrate_run(int argc, char **argv)
{
    calibrate_options o = {.accuracy = -1, .escalate = -1};
    const cli_option options[] = {
        CLI_SERVER(&o.server),
        CLI_URL(&o.server),
        CLI_NUM(0, "accuracy", "A", "what a member answers itself is right this often: 0 to 1", &o.accuracy),
        CLI_NUM(0, "escalate", "SHARE", "pass on at most this share: 0 to 1 [what makes the cascade best]",
                &o.escalate),
        CLI_STRING('o', "out", "FILE", "write the calibration that shoal.yaml names", &o.out),
        CLI_STRING(0, "svg", "FILE", "draw what is said against what is, and risk over coverage", &o.svg),
        CLI_STRING(0, "homes", "DIR", "where the cases' homes are [homes beside FILE]", &o.homes),
        CLI_STRING(0, "system", "TEXT", "of chats about a home, with {devices} in it", &o.system),
        CLI_LIST('H', "header", "LINE", "send with each request, such as \"authorization: Bearer KEY\"",
                 &o.headers),
        CLI_JSON(&o.json),
        CLI_END,
    };
    cli_args a;
    int rc = cli_parse(&a, &cmd_calibrate, options, 2, -1, argc, argv);
    if (rc != CLI_GO) return rc;
    shoal_err err = {0};
    if (calibrate(&o, &a, &err)) return cli_fail(&cmd_calibrate, &err);
    return CLI_OK;
}

const cli_command cmd_calibrate = {"calibrate",
                                   "find from which confidence on a cascade's members may answer",
                                   "ENSEMBLE FILE...", cmd_calibrate_run, false};
