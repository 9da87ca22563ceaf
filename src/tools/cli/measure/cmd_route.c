/* shoal route list|explain|train|replay: what routes there are, what one comes to and why, their domains, and
 * decisions of the past. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "json/json.h"
#include "json/json_put.h"
#include "cli/measure/cli_route.h"
#include "cli/commands.h"
#include "command/cli_home.h"
#include "command/cli_model.h"
#include "command/cli_process.h"
#include "routes/replay.h"
#include "rules/home.h"

enum { LINES_MAX_BYTES = 256 << 20 };

typedef struct options {
    const char *server, *key, *config;
    cli_route_ask ask;
    bool json;
} options;

static int cmd_route_load(gateway_config **ret, const char *path, shoal_err *err)
{
    char *found = NULL;
    int rc = path ? 0 : cli_home_find(&found, err);
    if (rc == 0) rc = config_load(ret, &HOME_STAGES, path ? path : found, err);
    free(found);
    return rc;
}

/* ---- list ---------------------------------------------------------------------------------------- */

static void print_route(const config_route *r)
{
    cli_printf("%s\n", r->name);
    for (size_t i = 0; i < r->n_rules; i++) {
        char name[80];
        const config_rule *rule = &r->rules[i];
        cli_printf("  %-16s ", route_rule_name(r, i, name));
        for (size_t k = 0; k < rule->n_split; k++)
            cli_printf("%s%s (%g)", k ? ", " : "", rule->split[k].model, rule->split[k].share);
        for (size_t k = 0; k < rule->n_any; k++) cli_printf("%s%s", k ? " or " : "", rule->any[k]);
        cli_printf("%s\n", rule->model ? rule->model : "");
    }
    for (size_t i = 0; i < r->n_fallback; i++)
        cli_printf("  %-16s %s\n", i ? "" : "fallback", r->fallback[i]);
    if (r->shadow) cli_printf("  %-16s %s\n", "shadow", r->shadow);
}

static void cmd_route_put_name(void *user, const char *name)
{
    json_put_text(user, NULL, name);
}

static int cmd_route_list(const options *o, const char *arg, shoal_err *err)
{
    gateway_config *c = NULL;
    buf out = {0};
    int rc = cmd_route_load(&c, o->config, err);
    buf_puts(&out, "{\"routes\":[");
    for (size_t i = 0; rc == 0 && i < c->book.n_routes; i++) {
        if (!o->json) print_route(&c->book.routes[i]);
        json_put_open(&out, NULL, '{');
        json_put_text(&out, "name", c->book.routes[i].name);
        buf_puts(&out, ",\"routes_to\":[");
        route_each(&c->book.routes[i], cmd_route_put_name, &out);
        buf_puts(&out, "]}");
    }
    buf_puts(&out, "]}");
    if (rc == 0 && !o->json && c->book.n_routes == 0) cli_printf("no routes\n");
    if (rc == 0 && o->json) rc = cli_print(&out) == CLI_OK ? 0 : err_nomem(err);
    buf_done(&out);
    config_free(c);
    return rc;
}

/* ---- explain ------------------------------------------------------------------------------------- */

/* What it takes, as far as that is known. */
static void print_price(const json_t *s)
{
    const json_t *cost = json_object_get(s, "cost"), *j = json_object_get(s, "energy_j");
    if (cost) cli_printf("; costs about %.3g", json_number_value(cost));
    if (j) cli_printf("; takes about %.3g J (%s)", json_number_value(j), json_text_of(s, "energy_by"));
    cli_printf("\n");
}

static void print_decision(const json_t *a)
{
    const json_t *steps = json_object_get(a, "steps"), *skipped = json_object_get(a, "skipped");
    for (size_t i = 0; i < json_array_size(steps); i++) {
        const json_t *s = json_array_get(steps, i);
        cli_printf("  %-8s %-20s %s",
                   !i                           ? "asks"
                   : json_object_get(a, "kind") ? "and"
                                                : "else",
                   json_text_of(s, "model"), json_text_of(s, "why"));
        print_price(s);
    }
    if (json_array_size(steps) == 0) cli_printf("  nobody\n");
    for (size_t i = 0; i < json_array_size(skipped); i++)
        cli_printf("  %-8s %-20s %s\n", "not", json_text_of(json_array_get(skipped, i), "model"),
                   json_text_of(json_array_get(skipped, i), "why"));
    if (!json_object_get(a, "kind"))
        cli_printf("  decided in %.3f ms\n", json_number_value(json_object_get(a, "ms")));
}

static int ask_server(const options *o, buf *ret_json, shoal_err *err)
{
    http_where where;
    buf body = {0};
    int rc = cli_process_where(&where, o->server, err);
    buf_putc(&body, '{');
    json_put_text(&body, "route", o->ask.route);
    json_put_text(&body, "input", o->ask.text);
    if (o->ask.endpoint) buf_puts(&body, ",\"endpoint\":");
    if (o->ask.endpoint) json_put_string(&body, o->ask.endpoint, strlen(o->ask.endpoint));
    if (o->ask.latency) buf_puts(&body, ",\"latency\":");
    if (o->ask.latency) json_put_string(&body, o->ask.latency, strlen(o->ask.latency));
    if (o->ask.deadline_ms) buf_printf(&body, ",\"deadline_ms\":%lld", o->ask.deadline_ms);
    if (o->ask.max_cost > 0) buf_printf(&body, ",\"max_cost\":%.17g", o->ask.max_cost);
    if (o->ask.max_energy_j > 0) buf_printf(&body, ",\"max_energy_j\":%.17g", o->ask.max_energy_j);
    buf_putc(&body, '}');
    if (rc == 0 && body.failed) rc = err_nomem(err);
    if (rc == 0) rc = cli_process_post_json(&where, "/v1/route", body.data, o->key, ret_json, err);
    buf_done(&body);
    return rc;
}

/* Without a server the decision is made here, unless one was named. */
static int decide_here(const options *o, buf *ret_json, shoal_err *err)
{
    gateway_config *c = NULL;
    int rc = cmd_route_load(&c, o->config, err);
    if (rc == 0) rc = cli_route_decide(c, &o->ask, ret_json, err);
    config_free(c);
    if (rc == 0) fprintf(stderr, "no server answers: decided here, as if every model were idle\n");
    return rc;
}

static int explain(const options *o, const char *arg, shoal_err *err)
{
    options with = *o;
    buf text = {0}, reply = {0};
    json_t *parsed = NULL;
    int rc = cli_text(&text, arg, err);
    with.ask.text = rc == 0 ? text.data : NULL;
    if (rc == 0 && !o->config) rc = ask_server(&with, &reply, err);
    if (o->config || (rc == SHOAL_EUNAVAILABLE && !cli_process_named(o->server) &&
                      strncmp(err->message, "no Shoal", 8) == 0))
        rc = decide_here(&with, &reply, err);
    if (rc == 0) rc = json_parse(&parsed, reply.data, reply.len, "the answer", err);
    if (rc == 0 && o->json)
        cli_printf("%s\n", reply.data);
    else if (rc == 0)
        print_decision(parsed);
    json_decref(parsed);
    buf_done(&text);
    buf_done(&reply);
    return rc;
}

/* ---- train --------------------------------------------------------------------------------------- */

static int train(const options *o, const char *arg, shoal_err *err)
{
    gateway_config *c = NULL;
    int rc = config_load_untrained(&c, &HOME_STAGES, arg, err);
    if (rc == 0) rc = cli_route_train(c, err);
    config_free(c);
    return rc;
}

/* ---- replay -------------------------------------------------------------------------------------- */

/* The decision in a line of the log: JSON by itself, of a JSON log, or what stands behind replay=. NULL:
 * none. */
static json_t *decision_of(const char *line, size_t len)
{
    static const char KEY[] = "replay=";
    json_t *root = NULL, *inner = NULL;
    char *copy = strndup(line, len);
    const char *at = copy ? strstr(copy, KEY) : NULL;
    if (at && at[sizeof KEY - 1] == '"') { /* quoted as a string of JSON is */
        root = json_loads(at + sizeof KEY - 1, JSON_DECODE_ANY | JSON_DISABLE_EOF_CHECK, NULL);
    } else if (copy) {
        root = json_loads(copy, 0, NULL);
        json_t *replayed = json_object_get(root, "replay");
        if (replayed) {
            json_incref(replayed);
            json_decref(root);
            root = replayed;
        }
    }
    if (json_is_string(root)) {
        inner = json_loads(json_string_value(root), 0, NULL);
        json_decref(root);
        root = inner;
    }
    free(copy);
    return root;
}

static int replay_line(const gateway_config *c, const json_t *line, bool *ret_same, shoal_err *err)
{
    replay *r = calloc(1, sizeof *r);
    decision d;
    int rc = r ? replay_read(r, &c->book, line, err) : err_nomem(err);
    if (rc == 0) {
        replay_decide(r, &c->book, &d, ret_same);
        cli_printf("%-5s %s: %s%s%s\n", *ret_same ? "same" : "OTHER", d.route->name,
                   d.n ? d.steps[0].model : "nobody", *ret_same ? "" : ", and it was ",
                   *ret_same    ? ""
                   : r->n_steps ? r->steps[0]
                                : "nobody");
    }
    free(r);
    return rc;
}

static int replay_all(const options *o, const char *arg, shoal_err *err)
{
    gateway_config *c = NULL;
    buf text = {0};
    size_t n = 0, n_other = 0;
    int rc = cmd_route_load(&c, o->config, err);
    if (rc == 0) rc = file_read(&text, strcmp(arg, "-") == 0 ? "/dev/stdin" : arg, LINES_MAX_BYTES, err);
    for (const char *at = text.data; rc == 0 && at && *at;) {
        size_t len = strcspn(at, "\n");
        json_t *line = decision_of(at, len);
        bool same = false;
        if (json_is_object(line) && json_object_get(line, "steps")) {
            rc = replay_line(c, line, &same, err);
            n++;
            n_other += rc == 0 && !same;
        }
        json_decref(line);
        at += len + (at[len] == '\n');
    }
    if (rc == 0) cli_printf("%zu decisions, %zu come out otherwise\n", n, n_other);
    buf_done(&text);
    config_free(c);
    return rc;
}

static int (*const RUN[])(const options *o, const char *arg, shoal_err *err) = {cmd_route_list, explain,
                                                                                train, replay_all};
static const cli_verb VERBS[] = {
    {"list", "", "list the routes, and what each may come to", 0, 0},
    {"explain", "TEXT", "say which model would answer, and why", 1, 1},
    {"train", "FILE", "make the means of a configuration's domains", 1, 1},
    {"replay", "FILE", "decide anew what log lines tell; - reads standard input", 1, 1},
    CLI_VERB_END};

static int cmd_route_run(int argc, char **argv)
{
    options o = {.key = getenv("SHOAL_API_KEY"), .ask.route = "auto"};
    const cli_option opts[] = {
        CLI_STRING('r', "route", "NAME", "explain: the route [auto]", &o.ask.route),
        CLI_STRING('e', "endpoint", "NAME", "explain: where it is asked [chat_completions]", &o.ask.endpoint),
        CLI_STRING(0, "latency", "CLASS", "explain: realtime, interactive or batch", &o.ask.latency),
        CLI_INT(0, "deadline-ms", "N", 0, 86400000, "explain: how much time there is", &o.ask.deadline_ms),
        CLI_NUM(0, "max-cost", "N", "explain: what it may cost", &o.ask.max_cost),
        CLI_NUM(0, "max-energy-j", "N", "explain: how many joules it may take", &o.ask.max_energy_j),
        CLI_STRING('c', "config", "FILE", "decide by this configuration, without a server", &o.config),
        CLI_SERVER(&o.server),
        CLI_KEY(&o.key),
        CLI_JSON(&o.json),
        CLI_END,
    };
    cli_args a;
    shoal_err err = {0};
    const cli_verb *verb;
    int rc = cli_parse_verb(&a, &verb, &cmd_route, opts, VERBS, argc, argv);
    if (rc != CLI_GO) return rc;
    rc = RUN[verb - VERBS](&o, a.n ? a.v[0] : "", &err);
    return rc ? cli_fail(&cmd_route, &err) : cli_flush(CLI_OK);
}

const cli_command cmd_route = {"route", "what a route comes to and why; its domains; decisions of the past",
                               "list|explain TEXT|train FILE|replay FILE", cmd_route_run, false};
