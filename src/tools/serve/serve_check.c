/* serve_check.c: see serve_check.h. */
#include "serve/serve_check.h"

#include <stdio.h>
#include <uv.h>

#include "converse/pipeline_calls.h"
#include "endpoints/table.h"
#include "request/admission.h"
#include "request/ensembles.h"
#include "hosts/hosts.h"
#include "mcp/mcp_client.h"
#include "serve/serve_models.h"

/* The files of their headers hold what they should. */
static int check_hosts(const gateway_config *c, shoal_err *err)
{
    uv_loop_t loop;
    hosts *h = NULL;
    shoal_err why;
    if (c->n_hosts == 0) return 0;
    if (uv_loop_init(&loop) != 0) return err_nomem(err);
    int rc = hosts_open(&h, &loop, c->hosts, c->n_hosts, &why);
    hosts_free(h);
    uv_run(&loop, UV_RUN_DEFAULT);
    uv_loop_close(&loop);
    if (rc == SHOAL_ENOMEM) return err_nomem(err);
    return rc ? config_fail(c, err, "%s", why.message) : 0;
}

static int check_mcp(const gateway_config *c, shoal_err *err)
{
    uv_loop_t loop;
    mcp_client *m = NULL;
    shoal_err why;
    if (c->n_mcp_servers == 0) return 0;
    if (uv_loop_init(&loop) != 0) return err_nomem(err);
    int rc = mcp_open(&m, &loop, c->mcp_servers, c->n_mcp_servers, NULL, NULL, &why);
    mcp_free(m);
    uv_run(&loop, UV_RUN_DEFAULT);
    uv_loop_close(&loop);
    if (rc == SHOAL_ENOMEM) return err_nomem(err);
    return rc ? config_fail(c, err, "%s", why.message) : 0;
}

int serve_check(const gateway_config *c, const worker_spec *specs, json_t *notes, shoal_err *err)
{
    serve_stages stages = {0};
    int rc = config_found(c, serve_models_check(c, specs, notes, err), err);
    bool fit = rc == 0 && config_found_none(c, 0, err) == 0;
    if (fit) rc = config_found(c, serve_stages_open(&stages, c, specs, err), err);
    if (rc == 0) rc = config_found(c, ensembles_check(c, err), err);
    if (rc == 0) rc = config_found(c, pipeline_calls_check(c, err), err);
    if (rc == 0) rc = config_found(c, admission_check_config(c, &ENDPOINTS, err), err);
    if (rc == 0) rc = config_found(c, check_hosts(c, err), err);
    if (rc == 0) rc = config_found(c, check_mcp(c, err), err);
    serve_stages_done(&stages);
    return config_found_none(c, rc, err);
}

/* ---- notes --------------------------------------------------------------------------------------- */

static bool adapter_matches(const config_model *m, const char *pattern)
{
    char name[200];
    for (size_t i = 0; i < m->n_adapters; i++) {
        snprintf(name, sizeof name, "%s:%s", m->name, m->adapters[i].name);
        if (auth_matches(pattern, name)) return true;
    }
    return false;
}

/* Is there anything in the file that a request could name so? */
static bool matches_any(const gateway_config *c, const char *pattern)
{
    for (size_t i = 0; i < c->n_models; i++)
        if (auth_matches(pattern, c->models[i].name) || adapter_matches(&c->models[i], pattern)) return true;
    for (size_t i = 0; i < c->n_ensembles; i++)
        if (auth_matches(pattern, c->ensembles[i].name)) return true;
    for (size_t i = 0; i < c->n_pipelines; i++)
        if (auth_matches(pattern, c->pipelines[i].name)) return true;
    for (size_t i = 0; i < c->book.n_routes; i++)
        if (auth_matches(pattern, c->book.routes[i].name)) return true;
    return false;
}

/* The sentence with file and line. */
static int add_note(json_t *to, const gateway_config *c, const char *sentence, shoal_err *err)
{
    shoal_err at;
    config_fail(c, &at, "%s", sentence);
    return json_array_append_new(to, json_string(at.message)) == 0 ? 0 : err_nomem(err);
}

static int note_key(json_t *to, const gateway_config *c, size_t i, int64_t now_s, shoal_err *err)
{
    char sentence[320];
    const config_key *k = &c->api_keys[i];
    int rc = 0;
    if (k->expires && now_s >= k->expires_s) {
        snprintf(sentence, sizeof sentence, "api_keys[%zu].expires: the key %s has ended (%s)", i, k->name,
                 k->expires);
        rc = add_note(to, c, sentence, err);
    }
    for (size_t m = 0; rc == 0 && m < k->n_models; m++) {
        if (matches_any(c, k->models[m])) continue;
        snprintf(sentence, sizeof sentence,
                 "api_keys[%zu].models[%zu]: no model, route, ensemble or pipeline of this file matches '%s'",
                 i, m, k->models[m]);
        rc = add_note(to, c, sentence, err);
    }
    return rc;
}

int serve_check_notes(json_t *to, const gateway_config *c, int64_t now_s, shoal_err *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < c->n_api_keys; i++) rc = note_key(to, c, i, now_s, err);
    return rc;
}
