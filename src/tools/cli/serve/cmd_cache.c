/* shoal cache: the answers that a running Shoal keeps: how often they answered, and purging them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "json/json.h"
#include "cli/serve/cache_measure.h"
#include "cli/commands.h"
#include "client/http_client.h"
#include "command/cli_process.h"
#include "command/cli_cluster.h"
#include "command/cli_model.h"
#include "view/cache_view.h"

typedef struct given {
    const char *url, *key;
    const char *model, *version, *route, *pipeline, *ensemble, *tag;
    double threshold;
    bool all, exact, json;
} given;

/* Whom to ask, and with which key; headers are the caller's. */
static int find_server(const given *g, http_where *where, buf *headers, shoal_err *err)
{
    int rc = cli_process_where(where, g->url, err);
    if (rc == 0 && g->key && (strlen(g->key) > 500 || strpbrk(g->key, "\r\n")))
        rc = err_set(err, SHOAL_EINVALID, "--key: an API key is one line of at most 500 bytes");
    if (rc == 0 && g->key) buf_printf(headers, "authorization: Bearer %s\r\n", g->key);
    return rc == 0 && headers->failed ? err_nomem(err) : rc;
}

static int cmd_cache_ask(const given *g, const char *method, const char *path, buf *ret, shoal_err *err)
{
    http_where where;
    buf headers = {0};
    int status = 0;
    int rc = find_server(g, &where, &headers, err);
    http_ask a = {.method = method, .path = path, .headers = headers.data};
    if (rc == 0) rc = http_client_once(&where, &a, &status, ret, err);
    if (rc == SHOAL_EUNAVAILABLE) rc = cli_process_nobody(err);
    buf_done(&headers);
    if (rc == 0 && status == 401)
        return err_set(err, SHOAL_EUNAVAILABLE,
                       "the server wants an API key: give one with --key or in SHOAL_API_KEY");
    if (rc == 0 && status != 200)
        return err_set(err, SHOAL_EPROTOCOL, "the server answered %s %.60s with %d: %.300s", method, path,
                       status, ret->data ? ret->data : "");
    return rc;
}

static int cmd_cache_show(const given *g, shoal_err *err)
{
    buf reply = {0}, lines = {0};
    json_t *o = NULL;
    int rc = cmd_cache_ask(g, "GET", "/v1/cache", &reply, err);
    if (rc == 0) rc = json_parse(&o, reply.data, reply.len, "the answer", err);
    if (rc == 0) cache_view_put(&lines, o);
    if (rc == 0 && lines.failed) rc = err_nomem(err);
    if (rc == 0 && g->json) cli_printf("%s\n", reply.data);
    if (rc == 0 && !g->json) {
        lines.len--; /* its last line is ended */
        cli_print_folded(&lines, 2);
    }
    json_decref(o);
    buf_done(&lines);
    buf_done(&reply);
    return rc;
}

static int purge(const given *g, shoal_err *err)
{
    const struct {
        const char *name, *value;
    } conditions[] = {{"model", g->model},       {"version", g->version},   {"route", g->route},
                      {"pipeline", g->pipeline}, {"ensemble", g->ensemble}, {"tag", g->tag}};
    buf path = {0}, reply = {0};
    json_t *o = NULL;
    size_t n = 0;
    buf_puts(&path, "/v1/cache");
    for (size_t i = 0; i < sizeof conditions / sizeof *conditions; i++) {
        if (!conditions[i].value) continue;
        buf_printf(&path, "%c%s=", n++ ? '&' : '?', conditions[i].name);
        percent_encode(&path, conditions[i].value, strlen(conditions[i].value), "");
    }
    int rc = path.failed ? err_nomem(err) : 0;
    if (rc == 0 && (n > 0) == g->all)
        rc = err_set(err, SHOAL_EINVALID,
                     "say what is to be purged: --model, --version, --route, --pipeline, "
                     "--ensemble or --tag; or everything: --all");
    if (rc == 0) rc = cmd_cache_ask(g, "DELETE", path.data, &reply, err);
    if (rc == 0) rc = json_parse(&o, reply.data, reply.len, "the answer", err);
    if (rc == 0 && g->json)
        cli_printf("%s\n", reply.data);
    else if (rc == 0)
        cli_printf("%.0f answers purged\n", json_number_value(json_object_get(o, "purged")));
    json_decref(o);
    buf_done(&path);
    buf_done(&reply);
    return rc;
}

static int cmd_cache_measure(const given *g, const char *path, shoal_err *err)
{
    http_where where;
    buf headers = {0};
    int rc = find_server(g, &where, &headers, err);
    cache_measure_ask a = {.path = path,
                           .model = g->model ? g->model : "home-embed",
                           .where = &where,
                           .headers = headers.data,
                           .threshold = g->threshold,
                           .exact = g->exact,
                           .json = g->json};
    if (rc == 0) rc = cache_measure(&a, err);
    buf_done(&headers);
    return rc;
}

static int cmd_cache_run(int argc, char **argv)
{
    static const cli_verb VERBS[] = {
        {"show", "", "show how often kept answers have answered, by whom", 0, 0},
        {"purge", "", "forget those for which all that is said holds", 0, 0},
        {"measure", "PAIRS.jsonl", "see which pairs a cache by likeness would serve, and wrongly", 1, 1},
        CLI_VERB_END};
    given g = {.key = getenv("SHOAL_API_KEY"), .threshold = 0.95};
    const cli_option options[] = {
        CLI_SERVER(&g.url),
        CLI_URL(&g.url),
        CLI_STRING('k', "key", "KEY", "its API key [SHOAL_API_KEY]", &g.key),
        CLI_STRING('m', "model", "MODEL", "purge: what it had a part in; measure: who embeds [home-embed]",
                   &g.model),
        CLI_STRING(0, "version", "VERSION", "purge: of this version, or of the file of this digest",
                   &g.version),
        CLI_STRING(0, "route", "ROUTE", "purge: what was asked of it", &g.route),
        CLI_STRING(0, "pipeline", "PIPELINE", "purge: what was asked of it", &g.pipeline),
        CLI_STRING(0, "ensemble", "ENSEMBLE", "purge: what was asked of it", &g.ensemble),
        CLI_STRING('t', "tag", "TAG", "purge: what was asked with it", &g.tag),
        CLI_FLAG(0, "all", "purge: everything", &g.all),
        CLI_NUM(0, "threshold", "X", "measure: the cosine of the table by kinds [0.95]", &g.threshold),
        CLI_FLAG(0, "exact", "measure: judge as for pipelines, which act", &g.exact),
        CLI_JSON(&g.json),
        CLI_END,
    };
    cli_args a;
    shoal_err err = {0};
    const cli_verb *verb;
    int rc = cli_parse_verb(&a, &verb, &cmd_cache, options, VERBS, argc, argv);
    if (rc != CLI_GO) return rc;
    rc = verb == &VERBS[0]   ? cmd_cache_show(&g, &err)
         : verb == &VERBS[1] ? purge(&g, &err)
                             : cmd_cache_measure(&g, a.v[0], &err);
    return cli_flush(rc == 0 ? CLI_OK : cli_fail(&cmd_cache, &err));
}

const cli_command cmd_cache = {"cache", "show, purge or measure the answers that a running Shoal keeps",
                               "show|purge|measure PAIRS.jsonl", cmd_cache_run, false};
