/* replay.c: facts and evidence as JSON, there and back; see replay.h. */
#include "routes/replay.h"

#include <stdio.h>
#include <string.h>

#include "json/json.h"
#include "json/json_put.h"

static const char *const questions[] = {[ROUTE_HEADER_HOLDS] = "header", [ROUTE_PATTERN_HOLDS] = "matches"};

/* ---- asking and remembering ---------------------------------------------------------------------- */

static int replay_holds(void *user, const config_rule *r, route_question q)
{
    evidence *e = user;
    for (size_t i = 0; i < e->n_holds; i++)
        if (e->holds[i].rule == r && e->holds[i].question == q) return e->holds[i].said;
    int said = e->inner ? e->inner->holds(e->inner->user, r, q) : 0;
    if (e->n_holds < EVIDENCE_MAX) e->holds[e->n_holds++] = (struct evidence_hold){r, q, said};
    return said;
}

static void replay_estimate(void *user, const char *model, route_estimate *ret)
{
    evidence *e = user;
    size_t i = 0;
    while (i < e->n_looks && strcmp(e->looks[i].model, model) != 0) i++;
    *ret = (route_estimate){0};
    if (e->inner)
        e->inner->estimate(e->inner->user, model, ret);
    else if (i < e->n_looks)
        *ret = e->looks[i].said;
    if (i == EVIDENCE_MAX || !e->inner) return;
    snprintf(e->looks[i].model, sizeof e->looks[i].model, "%s", model);
    e->looks[i].said = *ret;
    if (i == e->n_looks) e->n_looks++;
}

route_view evidence_view(evidence *e)
{
    return (route_view){.user = e, .holds = replay_holds, .estimate = replay_estimate};
}

/* ---- writing ------------------------------------------------------------------------------------- */

static void put_facts(buf *out, const route_book *b, const route_facts *f)
{
    json_put_text(out, "endpoint", f->endpoint);
    json_put_text(out, "path", f->path);
    json_put_text(out, "api_key", f->api_key);
    json_put_text(out, "language", f->language);
    buf_printf(out, ",\"bytes\":%zu,\"tokens\":%zu,\"wants\":%u", f->n_bytes, f->n_tokens, f->wants);
    json_put_text(out, "latency", route_latency_name(f->latency));
    if (f->has_deadline) buf_printf(out, ",\"left_ms\":%.17g", f->left_ms);
    if (f->n_reply) buf_printf(out, ",\"reply\":%zu", f->n_reply);
    if (f->max_cost > 0) buf_printf(out, ",\"max_cost\":%.17g", f->max_cost);
    if (f->max_energy_j > 0) buf_printf(out, ",\"max_energy_j\":%.17g", f->max_energy_j);
    buf_puts(out, ",\"keys\":[");
    for (int i = 0; i < N_ROUTE_KEYS; i++)
        buf_printf(out, i ? ",\"%016llx\"" : "\"%016llx\"", (unsigned long long)f->keys[i]);
    buf_printf(out, "],\"resumes\":%d,\"domains\":[", f->resumes);
    for (size_t i = 0; i < b->n_domains; i++) {
        const domain_fact *d = &f->domains[i];
        if (d->state == DOMAIN_NOT_ASKED) continue;
        json_put_open(out, NULL, '{');
        json_put_text(out, "set", b->domains[i].name);
        if (d->state == DOMAIN_KNOWN) json_put_text(out, "label", d->label);
        if (d->state == DOMAIN_KNOWN) buf_printf(out, ",\"score\":%.17g", d->score);
        if (d->state == DOMAIN_UNKNOWN) json_put_text(out, "why", d->why);
        buf_printf(out, ",\"ms\":%.3f}", d->ms);
    }
    buf_putc(out, ']');
}

/* Whose rule this is. */
static const config_route *owner(const route_book *b, const config_rule *r)
{
    for (size_t i = 0; i < b->n_routes; i++)
        for (size_t k = 0; k < b->routes[i].n_rules; k++)
            if (&b->routes[i].rules[k] == r) return &b->routes[i];
    return NULL;
}

static void put_evidence(buf *out, const route_book *b, const evidence *e)
{
    buf_puts(out, ",\"holds\":[");
    for (size_t i = 0; i < e->n_holds; i++) {
        const config_route *r = owner(b, e->holds[i].rule);
        json_put_open(out, NULL, '[');
        json_put_text(out, NULL, r ? r->name : "");
        buf_printf(out, ",%zu,\"%s\",%d]", r ? (size_t)(e->holds[i].rule - r->rules) : 0,
                   questions[e->holds[i].question], e->holds[i].said);
    }
    buf_puts(out, "],\"models\":[");
    for (size_t i = 0; i < e->n_looks; i++) {
        const route_estimate *o = &e->looks[i].said;
        json_put_open(out, NULL, '{');
        json_put_text(out, "model", e->looks[i].model);
        buf_printf(out, ",\"known\":%d,\"fits\":%d,\"ready\":%d,\"may_return\":%d,\"late\":%d,\"began\":%d",
                   o->known, o->fits, o->ready, o->may_return, o->late, o->began);
        buf_printf(out, ",\"ms\":%.17g,\"load\":%.17g", o->expected_ms, o->load);
        if (o->has_cost) buf_printf(out, ",\"cost\":%.17g", o->cost);
        if (o->energy_by != ENERGY_UNKNOWN)
            buf_printf(out, ",\"energy_j\":%.17g,\"energy_by\":\"%s\"", o->energy_j,
                       energy_name(o->energy_by));
        buf_putc(out, '}');
    }
    buf_putc(out, ']');
}

void replay_put(buf *out, const route_book *b, const route_facts *f, const evidence *e, const decision *d)
{
    json_put_open(out, NULL, '{');
    json_put_text(out, "route", d->route->name);
    put_facts(out, b, f);
    put_evidence(out, b, e);
    buf_puts(out, ",\"steps\":[");
    for (size_t i = 0; i < d->n; i++) json_put_text(out, NULL, d->steps[i].model);
    buf_puts(out, "]}");
}

/* ---- reading ------------------------------------------------------------------------------------- */

static size_t size_of(const json_t *o, const char *key)
{
    json_int_t v = json_integer_value(json_object_get(o, key));
    return v > 0 ? (size_t)v : 0;
}

static void read_domains(route_facts *f, const route_book *b, const json_t *list)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *from = json_array_get(list, i);
        size_t at = 0;
        while (at < b->n_domains && strcmp(b->domains[at].name, json_text_of(from, "set")) != 0) at++;
        if (at == b->n_domains || at >= ROUTE_DOMAINS_MAX) continue;
        domain_fact *d = &f->domains[at];
        d->state = json_object_get(from, "label") ? DOMAIN_KNOWN : DOMAIN_UNKNOWN;
        snprintf(d->label, sizeof d->label, "%s", json_text_of(from, "label"));
        snprintf(d->why, sizeof d->why, "%s", json_text_of(from, "why"));
        d->score = json_number_of(from, "score");
        d->ms = json_number_of(from, "ms");
    }
}

static void read_facts(route_facts *f, const route_book *b, const json_t *line)
{
    const json_t *keys = json_object_get(line, "keys");
    *f = (route_facts){.endpoint = json_text_of(line, "endpoint"),
                       .path = json_text_of(line, "path"),
                       .api_key = json_text_of(line, "api_key"),
                       .language = json_text_of(line, "language"),
                       .n_bytes = size_of(line, "bytes"),
                       .n_tokens = size_of(line, "tokens"),
                       .wants = (unsigned)size_of(line, "wants"),
                       .has_deadline = json_object_get(line, "left_ms") != NULL,
                       .left_ms = json_number_of(line, "left_ms"),
                       .n_reply = size_of(line, "reply"),
                       .max_cost = json_number_of(line, "max_cost"),
                       .max_energy_j = json_number_of(line, "max_energy_j"),
                       .resumes = size_of(line, "resumes") != 0};
    route_latency_of(json_text_of(line, "latency"), &f->latency);
    for (size_t i = 0; i < N_ROUTE_KEYS; i++) {
        const char *hex = json_string_value(json_array_get(keys, i));
        unsigned long long v = 0;
        if (hex && sscanf(hex, "%16llx", &v) == 1) f->keys[i] = v;
    }
    read_domains(f, b, json_object_get(line, "domains"));
}

static void read_holds(evidence *e, const route_book *b, const json_t *list)
{
    for (size_t i = 0; i < json_array_size(list) && e->n_holds < EVIDENCE_MAX; i++) {
        const json_t *from = json_array_get(list, i);
        const char *name = json_string_value(json_array_get(from, 0));
        const char *question = json_string_value(json_array_get(from, 2));
        const config_route *r = name ? route_find(b, name) : NULL;
        json_int_t rule = json_integer_value(json_array_get(from, 1));
        if (!r || !question || rule < 0 || (size_t)rule >= r->n_rules) continue;
        route_question q = strcmp(question, "header") == 0 ? ROUTE_HEADER_HOLDS : ROUTE_PATTERN_HOLDS;
        int said = (int)json_integer_value(json_array_get(from, 3));
        e->holds[e->n_holds++] = (struct evidence_hold){&r->rules[rule], q, said};
    }
}

static energy_by energy_of_name(const char *name)
{
    int by = N_ENERGIES;
    while (by > 0 && strcmp(energy_name((energy_by)--by), name) != 0) continue;
    return (energy_by)by;
}

static void read_looks(evidence *e, const json_t *list)
{
    for (size_t i = 0; i < json_array_size(list) && e->n_looks < EVIDENCE_MAX; i++) {
        const json_t *from = json_array_get(list, i);
        struct evidence_estimate *to = &e->looks[e->n_looks++];
        snprintf(to->model, sizeof to->model, "%s", json_text_of(from, "model"));
        to->said = (route_estimate){.known = size_of(from, "known") != 0,
                                    .fits = size_of(from, "fits") != 0,
                                    .ready = size_of(from, "ready") != 0,
                                    .may_return = size_of(from, "may_return") != 0,
                                    .late = size_of(from, "late") != 0,
                                    .began = size_of(from, "began") != 0,
                                    .expected_ms = json_number_of(from, "ms"),
                                    .load = json_number_of(from, "load"),
                                    .has_cost = json_object_get(from, "cost") != NULL,
                                    .cost = json_number_of(from, "cost"),
                                    .energy_j = json_number_of(from, "energy_j"),
                                    .energy_by = energy_of_name(json_text_of(from, "energy_by"))};
    }
}

int replay_read(replay *ret, const route_book *b, const json_t *line, shoal_err *err)
{
    const char *name = json_text_of(line, "route");
    const json_t *steps = json_object_get(line, "steps");
    if (!*name || !json_is_array(steps))
        return err_set(err, SHOAL_EINVALID, "it is no decision: \"route\" and \"steps\" are missing");
    memset(ret, 0, sizeof *ret);
    ret->route = route_find(b, name);
    if (!ret->route)
        return err_set(err, SHOAL_EINVALID, "there is no route '%.64s' in this configuration", name);
    read_facts(&ret->facts, b, line);
    ret->evidence.book = b;
    read_holds(&ret->evidence, b, json_object_get(line, "holds"));
    read_looks(&ret->evidence, json_object_get(line, "models"));
    for (size_t i = 0; i < json_array_size(steps) && i < DECIDE_STEPS_MAX; i++) {
        const char *model = json_string_value(json_array_get(steps, i));
        snprintf(ret->steps[ret->n_steps++], sizeof ret->steps[0], "%s", model ? model : "");
    }
    return 0;
}

decide_what replay_decide(replay *r, const route_book *b, decision *ret, bool *ret_same)
{
    route_view v = evidence_view(&r->evidence);
    decide_what what;
    while ((what = decide_route(b, r->route, &r->facts, &v, ret)) == DECIDE_ASK) {
        domain_fact *d = &r->facts.domains[ret->ask];
        d->state = DOMAIN_UNKNOWN;
        snprintf(d->why, sizeof d->why, "it was not asked then");
    }
    *ret_same = ret->n == r->n_steps;
    for (size_t i = 0; *ret_same && i < ret->n; i++)
        *ret_same = strcmp(ret->steps[i].model, r->steps[i]) == 0;
    return what;
}
