/* shoal cache: the answers that a running Shoal keeps: how often they answered, and purging them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "cli/cache_view.h"
#include "cli/cli_cluster.h"
#include "cli/http_client.h"

typedef struct given {
    const char *url, *key;
    const char *model, *version, *route, *pipeline, *ensemble, *tag;
    bool all, json;
} given;

static int ask(const given *g, const char *method, const char *path, buf *ret, shoal_err *err)
{
    http_where where;
    buf headers = {0};
    int status = 0;
    int rc = http_where_parse(&where, g->url, err);
    if (rc == 0 && g->key && (strlen(g->key) > 500 || strpbrk(g->key, "\r\n")))
        rc = err_set(err, SHOAL_EINVALID, "--key: an API key is one line of at most 500 bytes");
    if (rc != 0) return rc;
    if (g->key) buf_printf(&headers, "authorization: Bearer %s\r\n", g->key);
    http_ask a = {.method = method, .path = path, .headers = headers.data};
    rc = headers.failed ? err_nomem(err) : http_client_once(&where, &a, &status, ret, err);
    buf_done(&headers);
    if (rc == 0 && status == 401)
        return err_set(err, SHOAL_EUNAVAILABLE,
                       "%s wants an API key: give one with --key or in SHOAL_API_KEY", g->url);
    if (rc == 0 && status != 200)
        return err_set(err, SHOAL_EPROTOCOL, "%s answered %s %.60s with %d: %.300s", g->url, method, path,
                       status, ret->data ? ret->data : "");
    return rc;
}

static int show(const given *g, shoal_err *err)
{
    buf reply = {0}, lines = {0};
    json_t *o = NULL;
    int rc = ask(g, "GET", "/v1/cache", &reply, err);
    if (rc == 0) rc = json_parse(&o, reply.data, reply.len, g->url, err);
    if (rc == 0) cache_view_put(&lines, o);
    if (rc == 0 && lines.failed) rc = err_nomem(err);
    if (rc == 0) printf("%s%s", g->json ? reply.data : lines.data, g->json ? "\n" : "");
    json_decref(o);
    buf_done(&lines);
    buf_done(&reply);
    return rc;
}

/* Percent-encoded (RFC 3986, section 2.1). */
static void put_encoded(buf *out, const char *s)
{
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        bool plain =
            (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || strchr("-._~", c);
        if (plain)
            buf_putc(out, *s);
        else
            buf_printf(out, "%%%02X", c);
    }
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
        put_encoded(&path, conditions[i].value);
    }
    int rc = path.failed ? err_nomem(err) : 0;
    if (rc == 0 && (n > 0) == g->all)
        rc = err_set(err, SHOAL_EINVALID,
                     "say what is to be purged: --model, --version, --route, --pipeline, "
                     "--ensemble or --tag; or everything: --all");
    if (rc == 0) rc = ask(g, "DELETE", path.data, &reply, err);
    if (rc == 0) rc = json_parse(&o, reply.data, reply.len, g->url, err);
    if (rc == 0 && g->json)
        puts(reply.data);
    else if (rc == 0)
        printf("%.0f answers purged\n", json_number_value(json_object_get(o, "purged")));
    json_decref(o);
    buf_done(&path);
    buf_done(&reply);
    return rc;
}

static int run(int argc, char **argv)
{
    static const cli_verb VERBS[] = {{"show", 0, 0}, {"purge", 0, 0}};
    given g = {.url = "http://127.0.0.1:8080", .key = getenv("SHOAL_API_KEY")};
    const cli_option options[] = {
        CLI_STRING('u', "url", "URL", "the gateway to ask [http://127.0.0.1:8080]", &g.url),
        CLI_STRING('k', "key", "KEY", "its API key [SHOAL_API_KEY]", &g.key),
        CLI_STRING('m', "model", "MODEL", "purge: what it had a part in", &g.model),
        CLI_STRING(0, "version", "VERSION", "purge: of this version, or of the file of this digest",
                   &g.version),
        CLI_STRING(0, "route", "ROUTE", "purge: what was asked of it", &g.route),
        CLI_STRING(0, "pipeline", "PIPELINE", "purge: what was asked of it", &g.pipeline),
        CLI_STRING(0, "ensemble", "ENSEMBLE", "purge: what was asked of it", &g.ensemble),
        CLI_STRING('t', "tag", "TAG", "purge: what was asked with it", &g.tag),
        CLI_FLAG(0, "all", "purge: everything", &g.all),
        CLI_JSON(&g.json),
        CLI_END,
    };
    cli_args a;
    shoal_err err = {0};
    int rc = cli_parse(&a, &cmd_cache, options, 1, 1, argc, argv);
    if (rc != CLI_GO) return rc;
    const cli_verb *verb = cli_verb_of(&cmd_cache, VERBS, sizeof VERBS / sizeof *VERBS, &a);
    if (!verb) return CLI_USAGE;
    rc = strcmp(verb->name, "show") == 0 ? show(&g, &err) : purge(&g, &err);
    return cli_flush(rc == 0 ? CLI_OK : cli_fail(&cmd_cache, &err));
}

const cli_command cmd_cache = {"cache", "show or purge the answers that a running Shoal keeps", "show|purge",
                               run, false};
