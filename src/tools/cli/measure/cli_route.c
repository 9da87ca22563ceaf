/* cli_route.c: a decision without a server; see cli_route.h. */
#include "cli/measure/cli_route.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "json/json.h"
#include "command/cli_model.h"
#include "config/ensemble_words.h"
#include "request/model_resolve.h"
#include "routes/language.h"
#include "routes/price.h"
#include "routes/replay.h"

typedef struct deciding {
    const gateway_config *config;
    const cli_route_ask *ask;
    route_facts facts;
    shoal_err *err;
    int rc;            /* what opening a model came to */
    double opening_ms; /* which no server would need */
} deciding;

static int cli_route_find_model(shoal_model **ret, const gateway_config *c, const char *name, shoal_err *err)
{
    cli_model_options o = {.manifest = c->manifest};
    size_t n = strcspn(name, ":");
    for (size_t i = 0; i < c->n_models; i++)
        if (strlen(c->models[i].name) == n && memcmp(c->models[i].name, name, n) == 0)
            return cli_model_open(ret, c->models[i].path ? c->models[i].path : c->models[i].name, &o, err);
    return err_set(err, SHOAL_ENOTFOUND, "there is no model '%.64s' in the configuration", name);
}

static int open_model(shoal_model **ret, deciding *x, const char *name)
{
    uint64_t begun = clock_ns();
    int rc = cli_route_find_model(ret, x->config, name, x->err);
    x->opening_ms += clock_ms_since(begun);
    return rc;
}

/* ---- the view ------------------------------------------------------------------------------------ */

static int cli_route_holds(void *user, const config_rule *r, route_question q)
{
    const deciding *x = user;
    if (q == ROUTE_HEADER_HOLDS) return 0; /* a command brings none */
    regex_result found = regex_find(r->pattern, x->ask->text, strlen(x->ask->text));
    return found == REGEX_FOUND ? 1 : found == REGEX_NONE ? 0 : -1;
}

/* What the endpoint asks of a model; of one that is not of models, what a chat asks. */
static const char *asked_at(const char *endpoint)
{
    const task_endpoint *at = task_endpoint_named(endpoint);
    return at && at->does ? at->does : "generate";
}

/* Every model of the file is there, and idle. */
static void cli_route_estimate(void *user, const char *model, route_estimate *ret)
{
    deciding *x = user;
    shoal_model *m = NULL;
    shoal_model_info info;
    *ret = (route_estimate){0};
    if (x->rc == 0) x->rc = open_model(&m, x, model);
    if (x->rc == 0) x->rc = shoal_model_describe(m, &info, x->err);
    if (x->rc == 0) {
        bool replies = task_fits(TASK_COMPLETES, info.task, info.n_labels);
        *ret = (route_estimate){.known = true,
                                .fits = task_fits(asked_at(x->facts.endpoint), info.task, info.n_labels),
                                .ready = true};
        price_estimate(&x->config->book, model, price_tokens(&x->facts, replies, 0), (energy){0}, ret);
    }
    shoal_model_close(m);
}

/* ---- domains ------------------------------------------------------------------------------------- */

static int nearest(domain_fact *d, const config_domains *set, shoal_model *m, const char *text,
                   shoal_err *err)
{
    shoal_embedding e = {0};
    shoal_model_info info;
    double cosine = 0;
    int rc = shoal_model_describe(m, &info, err);
    if (rc == 0 && strcmp(info.digest, set->centroids->digest) != 0)
        rc = err_set(err, SHOAL_EINVALID,
                     "the centroids are of another file than %.64s is: make them again with "
                     "\"shoal route train\"",
                     set->model);
    if (rc == 0) rc = shoal_embed(m, text, &e, err);
    if (rc == 0) {
        int at =
            e.n == set->centroids->n_dimensions ? centroids_nearest(set->centroids, e.values, &cosine) : -1;
        d->state = DOMAIN_KNOWN;
        d->score = cosine;
        snprintf(d->label, sizeof d->label, "%s", at >= 0 ? set->centroids->at[at].name : "");
    }
    shoal_embedding_done(&e);
    return rc;
}

static int best_label(domain_fact *d, shoal_model *m, const char *text, shoal_err *err)
{
    shoal_classification c = {0};
    int rc = shoal_classify(m, text, NULL, &c, err);
    if (rc == 0 && c.n_labels > 0) {
        d->state = DOMAIN_KNOWN;
        d->score = (double)c.labels[0].score;
        snprintf(d->label, sizeof d->label, "%s", c.labels[0].name);
    }
    shoal_classification_done(&c);
    return rc;
}

static int ask_domain(deciding *x, size_t at)
{
    const config_domains *set = &x->config->book.domains[at];
    domain_fact *d = &x->facts.domains[at];
    shoal_model *m = NULL;
    int rc = open_model(&m, x, set->model);
    uint64_t begun = clock_ns();
    if (rc == 0 && set->centroids) rc = nearest(d, set, m, x->ask->text, x->err);
    if (rc == 0 && !set->centroids) rc = best_label(d, m, x->ask->text, x->err);
    d->ms = clock_ms_since(begun);
    if (d->state == DOMAIN_NOT_ASKED) d->state = DOMAIN_UNKNOWN;
    shoal_model_close(m);
    return rc;
}

/* ---- the decision -------------------------------------------------------------------------------- */

static int fill_facts(deciding *x)
{
    size_t n = strlen(x->ask->text);
    x->facts = (route_facts){.endpoint = x->ask->endpoint ? x->ask->endpoint : "chat_completions",
                             .path = "",
                             .api_key = "",
                             .language = language_guess(x->ask->text, n),
                             .n_bytes = n,
                             .n_tokens = n / 4,
                             .has_deadline = x->ask->deadline_ms > 0,
                             .left_ms = (double)x->ask->deadline_ms,
                             .max_cost = x->ask->max_cost,
                             .max_energy_j = x->ask->max_energy_j,
                             .keys = {[KEY_REQUEST] = route_hash(x->ask->text, n)}};
    if (x->ask->latency && !route_latency_of(x->ask->latency, &x->facts.latency))
        return err_set(x->err, SHOAL_EINVALID, "'%s' is not realtime, interactive or batch", x->ask->latency);
    return 0;
}

int cli_route_decide(const gateway_config *c, const cli_route_ask *ask, buf *ret_json, shoal_err *err)
{
    deciding x = {.config = c, .ask = ask, .err = err};
    const config_route *r = route_find(&c->book, ask->route);
    const config_ensemble *together = config_ensemble_find(c, ask->route);
    decision d;
    if (together) {
        ensemble_words_put(ret_json, together);
        buf_puts(ret_json, ",\"ms\":0.0}");
        return ret_json->failed ? err_nomem(err) : 0;
    }
    if (!r) return err_set(err, SHOAL_EINVALID, "there is no route '%.64s' in the configuration", ask->route);
    route_view inner = {.user = &x, .holds = cli_route_holds, .estimate = cli_route_estimate};
    evidence *e = calloc(1, sizeof *e);
    if (!e) return err_nomem(err);
    e->inner = &inner;
    route_view v = evidence_view(e);
    uint64_t begun = clock_ns();
    int rc = fill_facts(&x);
    while (rc == 0 && decide_route(&c->book, r, &x.facts, &v, &d) == DECIDE_ASK) rc = ask_domain(&x, d.ask);
    if (rc == 0) rc = x.rc;
    if (rc == 0) {
        decide_put_json(ret_json, &c->book, &d, &x.facts);
        buf_puts(ret_json, ",\"object\":\"shoal.route\",\"facts\":");
        replay_put(ret_json, &c->book, &x.facts, e, &d);
        buf_printf(ret_json, ",\"ms\":%.3f}", clock_ms_since(begun) - x.opening_ms);
    }
    free(e);
    return rc == 0 && ret_json->failed ? err_nomem(err) : rc;
}
