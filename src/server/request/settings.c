/* settings.c: see settings.h. */
#include "request/settings.h"

#include <stdlib.h>
#include <string.h>

#include "calls/borrow_calls.h"
#include "calls/limit_calls.h"
#include "calls/route_calls.h"
#include "config/config_put.h"
#include "converse/pipeline_calls.h"
#include "request/admission.h"
#include "request/gateway_state.h"
#include "request/routed.h"
#include "request/watch.h"

static int open_fallbacks(settings *s, const env *e, shoal_err *err)
{
    const gateway_config *c = s->config;
    fallback_options o = {.observer = &s->gateway->observer};
    s->fallbacks = calloc(c->n_models + 1, sizeof *s->fallbacks);
    if (!s->fallbacks) return err_nomem(err);
    for (size_t i = 0; i < c->n_models; i++) {
        const config_model *m = &c->models[i];
        if (m->n_fallback > 0)
            s->fallbacks[o.n_rules++] = (fallback_rule){m->name, m->fallback, m->n_fallback};
    }
    o.rules = s->fallbacks;
    return o.n_rules > 0 || c->book.n_routes > 0 ? fallback_calls_new(&s->calls, e, s->calls, &o, err) : 0;
}

/* The decorators that follow rules of the file, over those that do not. */
static int open_calls(settings *s, shoal_err *err)
{
    const gateway_config *c = s->config;
    const env *e = &s->gateway->time;
    int rc = borrow_calls_new(&s->calls, s->gateway->base, err);
    if (rc == 0) rc = open_fallbacks(s, e, err);
    if (rc == 0 && c->n_ensembles > 0)
        rc = ensembles_open(&s->ensembles, &s->calls, c, e, s->gateway->metrics, err);
    if (rc == 0 && c->book.n_routes > 0)
        rc = route_calls_new(&s->calls, e, s->calls, &c->book, routed_heard, s, err);
    if (rc == 0) rc = limit_calls_new(&s->calls, e, s->calls, &c->reply_limits, &c->book, err);
    /* On top: the limits are for the calls of its stages. */
    pipeline_options o = {.config = c, .executor = &s->gateway->executor, .hosts = &s->hosts, .mcp = &s->mcp};
    return rc == 0 && c->n_pipelines > 0 ? pipeline_calls_new(&s->calls, e, s->calls, &o, err) : rc;
}

/* What is wrong with a file that a host names is told with its line. */
static int open_hosts(settings *s, shoal_err *err)
{
    shoal_err why;
    const gateway_config *c = s->config;
    int rc = c->n_hosts ? hosts_open(&s->hosts, s->gateway->loop, c->hosts, c->n_hosts, &why) : 0;
    if (rc == SHOAL_ENOMEM) return err_nomem(err);
    return rc ? config_fail(c, err, "%s", why.message) : 0;
}

static void note_mcp(void *user, const char *server, const char *tool, int status, double ms)
{
    const settings *s = user;
    const char *result = status == 0 ? "ok" : status == SHOAL_EDEADLINE ? "late" : "error";
    metrics_add(s->gateway->metrics, METRIC_MCP, 1, server, tool ? tool : "", result);
    metrics_observe_s(s->gateway->metrics, METRIC_MCP_S, ms / 1000, server, NULL);
}

/* As with hosts. Programs start with the first call. */
static int open_mcp(settings *s, shoal_err *err)
{
    shoal_err why;
    const gateway_config *c = s->config;
    int rc = c->n_mcp_servers
                 ? mcp_open(&s->mcp, s->gateway->loop, c->mcp_servers, c->n_mcp_servers, note_mcp, s, &why)
                 : 0;
    if (rc == SHOAL_ENOMEM) return err_nomem(err);
    return rc ? config_fail(c, err, "%s", why.message) : 0;
}

static void settings_free(settings *s)
{
    settings **at = &s->gateway->all_settings;
    while (*at != s) at = &(*at)->next;
    *at = s->next;
    calls_free(s->calls); /* runs of pipelines ask hosts */
    hosts_free(s->hosts);
    mcp_free(s->mcp);
    ensembles_free(s->ensembles);
    free(s->fallbacks);
    auth_free(s->auth);
    config_free(s->own);
    free(s);
}

/* Answers that were kept are good as long as nothing changes that they depend on. */
static uint64_t number_of(const settings *s, const settings *before)
{
    if (!before) return 0;
    bool same = memcmp(&s->print, &before->print, sizeof s->print) == 0;
    return same ? before->number : before->number + 1;
}

int settings_new(settings **ret, gateway *g, const gateway_config *c, shoal_err *err)
{
    settings *s = calloc(1, sizeof *s);
    if (!s) return err_nomem(err);
    *s = (settings){.refs = 1, .gateway = g, .config = c, .next = g->all_settings};
    g->all_settings = s;
    int rc = config_fingerprint(&s->print, c, err);
    if (rc == 0) s->number = number_of(s, g->settings);
    if (rc == 0) rc = admission_check_config(c, g->endpoints, err);
    if (rc == 0)
        rc = auth_new(&s->auth, c->api_keys, c->n_api_keys, g->settings ? g->settings->auth : NULL, err);
    if (rc == 0) rc = open_calls(s, err);
    if (rc == 0) rc = open_hosts(s, err);
    if (rc == 0) rc = open_mcp(s, err);
    if (rc == 0)
        *ret = s;
    else
        settings_free(s);
    return rc;
}

settings *settings_ref(settings *s)
{
    s->refs++;
    return s;
}

void settings_unref(settings *s)
{
    if (s && --s->refs == 0) watch_requests(s->gateway);
}

void settings_sweep(gateway *g)
{
    for (settings *s = g->all_settings, *next; s; s = next) {
        next = s->next;
        if (s->refs == 0) settings_free(s);
    }
}

void settings_free_all(gateway *g)
{
    while (g->all_settings) settings_free(g->all_settings);
    g->settings = NULL;
}
