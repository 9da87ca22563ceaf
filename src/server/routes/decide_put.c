/* decide_put.c: decisions in words; see decide.h. */
#include <string.h>

#include "json/json_put.h"
#include "routes/decide.h"

static const char *const why_names[] = {
#define WHY_NAME(e, name) [e] = name,
    DECIDE_WHY_TABLE(WHY_NAME)
#undef WHY_NAME
};

const char *decide_why_name(decide_why w)
{
    return (size_t)w < sizeof why_names / sizeof *why_names ? why_names[w] : "unknown";
}

static void put_place(buf *out, const decide_note *n)
{
    char name[80];
    if (n->rule < n->route->n_rules)
        buf_printf(out, "rule %s", route_rule_name(n->route, n->rule, name));
    else
        buf_printf(out, "fallback %zu", n->rule - n->route->n_rules + 1);
}

static void put_wants(buf *out, unsigned wants)
{
    bool first = true;
#define PUT_WANT(bit, e, name)                       \
    if (wants & (bit)) {                             \
        buf_printf(out, first ? "%s" : "+%s", name); \
        first = false;                               \
    }
    ROUTE_WANT_TABLE(PUT_WANT)
#undef PUT_WANT
    if (first) buf_puts(out, "plain text");
}

static bool demands(const config_rule *r, route_condition c)
{
    switch (c) {
    case COND_ENDPOINT: return r->n_endpoint > 0;
    case COND_PATH: return r->n_path > 0;
    case COND_API_KEY: return r->n_api_key > 0;
    case COND_LANGUAGE: return r->n_language > 0;
    case COND_WANTS: return r->n_wants > 0;
    case COND_LATENCY: return r->n_latency > 0;
    case COND_LENGTH: return r->min_bytes || r->max_bytes || r->min_tokens || r->max_tokens;
    case COND_DEADLINE: return r->min_deadline_ms || r->max_deadline_ms;
    case COND_HEADER: return r->n_header > 0;
    case COND_PATTERN: return r->matches != NULL;
    default: return r->n_domain > 0;
    }
}

/* What the request is, in that respect. */
static void put_fact(buf *out, const route_book *b, const decide_note *n, route_condition c,
                     const route_facts *f)
{
    const config_domains *set = route_domains(b, n->route);
    switch (c) {
    case COND_ENDPOINT: buf_printf(out, "endpoint %s", f->endpoint); return;
    case COND_PATH: buf_puts(out, "path"); return;
    case COND_API_KEY: buf_printf(out, "api key %s", *f->api_key ? f->api_key : "without name"); return;
    case COND_LANGUAGE: buf_printf(out, "language %s", *f->language ? f->language : "unknown"); return;
    case COND_WANTS:
        buf_puts(out, "wants ");
        put_wants(out, f->wants);
        return;
    case COND_LATENCY: buf_printf(out, "latency %s", route_latency_name(f->latency)); return;
    case COND_LENGTH: buf_printf(out, "%zu bytes", f->n_bytes); return;
    case COND_DEADLINE:
        if (f->has_deadline)
            buf_printf(out, "%.0f ms left", f->left_ms);
        else
            buf_puts(out, "no deadline");
        return;
    case COND_HEADER: buf_puts(out, "header"); return;
    case COND_PATTERN: buf_puts(out, "pattern"); return;
    default: break;
    }
    const domain_fact *d = set ? &f->domains[set - b->domains] : NULL;
    if (!d || d->state != DOMAIN_KNOWN)
        buf_puts(out, "domain unknown");
    else
        buf_printf(out, "domain %s %.2f", *d->label ? d->label : "none", d->score);
}

static void put_held(buf *out, const route_book *b, const decide_note *n, const route_facts *f)
{
    const config_rule *r = &n->route->rules[n->rule];
    const char *before = ": ";
    for (int c = 0; c < N_CONDITIONS; c++) {
        if (!demands(r, (route_condition)c)) continue;
        buf_puts(out, before);
        put_fact(out, b, n, (route_condition)c, f);
        before = ", ";
    }
    if (n->share >= 0)
        buf_printf(out, "%sshare %d by %s", before, n->share + 1,
                   (const char *const[]){
#define KEY_NAME(e, name) name,
                       ROUTE_KEY_TABLE(KEY_NAME)
#undef KEY_NAME
                   }[r->split_by]);
    else if (*before == ':')
        buf_puts(out, ": always");
}

static void put_budget(buf *out, const char *word, const char *unit, bool known, double is, double most)
{
    if (!known)
        buf_printf(out, "its %s is not known, and at most %g%s are allowed", word, most, unit);
    else
        buf_printf(out, "it would take about %.3g%s of %s, and %g are allowed", is, unit, word, most);
}

/* The smaller of two bounds; 0: none. */
static double decide_put_least(double a, double b)
{
    return a > 0 && (b <= 0 || a < b) ? a : b;
}

static void put_over(buf *out, const decide_note *n, const route_facts *f)
{
    const config_rule *r = n->rule < n->route->n_rules ? &n->route->rules[n->rule] : NULL;
    double cost = decide_put_least(f->max_cost, r ? r->max_cost : 0),
           j = decide_put_least(f->max_energy_j, r ? r->max_energy_j : 0);
    bool known = n->energy_by != ENERGY_UNKNOWN;
    buf_printf(out, ": %s is over the budget: ", n->model);
    if (cost > 0 && (!n->has_cost || n->cost > cost))
        put_budget(out, "cost", "", n->has_cost, n->cost, cost);
    else
        put_budget(out, "energy", " J", known, n->energy_j, j);
}

static void put_no(buf *out, const route_book *b, const decide_note *n, const route_facts *f)
{
    const config_domains *set = route_domains(b, n->route);
    switch (n->why) {
    case DECIDE_NO:
        buf_puts(out, n->cond == COND_PATTERN  ? ": not found: its "
                      : n->cond == COND_HEADER ? ": not there: its "
                                               : ": no match: ");
        put_fact(out, b, n, n->cond, f);
        return;
    case DECIDE_GAVE_UP: buf_puts(out, ": the search for its pattern took too long"); return;
    case DECIDE_UNASKED:
        buf_printf(out, ": domain unknown: %s", set ? f->domains[set - b->domains].why : "");
        return;
    case DECIDE_UNKNOWN: buf_printf(out, ": no model %s here", n->model); return;
    case DECIDE_UNFIT: buf_printf(out, ": %s does another task", n->model); return;
    case DECIDE_AWAY: buf_printf(out, ": no replica serves %s now", n->model); return;
    case DECIDE_LATE:
        buf_printf(out, ": %s would be late: about %.0f ms, %.0f are left", n->model, n->expected_ms,
                   f->left_ms > 0 ? f->left_ms : 0);
        return;
    case DECIDE_BUSY:
        buf_printf(out, ": %s is busy: load %.2f, about %.0f ms", n->model, n->load, n->expected_ms);
        return;
    case DECIDE_OVER: put_over(out, n, f); return;
    case DECIDE_EMPTY: buf_printf(out, ": no target of %s can be asked", n->model); return;
    default: return;
    }
}

void decide_put_why(buf *out, const route_book *b, const decide_note *n, const route_facts *f)
{
    if (n->why == DECIDE_RESUMES) {
        buf_puts(out, "began this answer");
        return;
    }
    put_place(out, n);
    if (n->why == DECIDE_RULE)
        put_held(out, b, n, f);
    else if (n->why == DECIDE_LAST)
        buf_printf(out, ": nothing else: about %.0f ms, load %.2f", n->expected_ms, n->load);
    else
        put_no(out, b, n, f);
}

void decide_put_header(buf *out, const route_book *b, const decision *d, const route_facts *f)
{
    size_t from = out->len;
    buf_puts(out, d->route->name);
    for (size_t i = 0; i < d->n; i++) {
        buf_printf(out, "; %s (", d->steps[i].model);
        if (d->steps[i].route != d->route) buf_printf(out, "%s ", d->steps[i].route->name);
        decide_put_why(out, b, &d->steps[i], f);
        buf_putc(out, ')');
    }
    for (size_t i = from; !out->failed && i < out->len; i++) /* labels and rules' names may hold anything */
        if ((unsigned char)out->data[i] < 0x20 || (unsigned char)out->data[i] > 0x7E) out->data[i] = '?';
}

static void put_note(buf *out, const route_book *b, const decide_note *n, const route_facts *f)
{
    buf why = {0};
    char name[80];
    json_put_open(out, NULL, '{');
    json_put_text(out, "route", n->route->name);
    if (n->rule < n->route->n_rules)
        json_put_text(out, "rule", route_rule_name(n->route, n->rule, name));
    else
        buf_printf(out, ",\"fallback\":%zu", n->rule - n->route->n_rules + 1);
    if (n->model) json_put_text(out, "model", n->model);
    json_put_text(out, "reason", decide_why_name(n->why));
    decide_put_why(&why, b, n, f);
    json_put_text(out, "why", why.data ? why.data : "");
    out->failed |= why.failed;
    buf_done(&why);
    if (n->has_cost) buf_printf(out, ",\"cost\":%.6g", n->cost);
    if (n->energy_by != ENERGY_UNKNOWN)
        buf_printf(out, ",\"energy_j\":%.6g,\"energy_by\":\"%s\"", n->energy_j, energy_name(n->energy_by));
    buf_putc(out, '}');
}

void decide_put_json(buf *out, const route_book *b, const decision *d, const route_facts *f)
{
    json_put_open(out, NULL, '{');
    json_put_text(out, "route", d->route->name);
    buf_puts(out, ",\"steps\":[");
    for (size_t i = 0; i < d->n; i++) put_note(out, b, &d->steps[i], f);
    buf_puts(out, "],\"skipped\":[");
    for (size_t i = 0; i < d->n_skipped; i++) put_note(out, b, &d->skipped[i], f);
    buf_putc(out, ']');
}
