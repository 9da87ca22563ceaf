/* metrics.c: the series of every family, and their text. */
#include "request/metrics.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const metric_family FAMILIES[METRIC_COUNT] = {
#define METRIC_ROW(e, n, t, l, h) {.name = n, .labels = l, .help = h, .type = METRIC_##t},
    METRIC_TABLE(METRIC_ROW)
#undef METRIC_ROW
};

/* Upper bounds in seconds: from a cache hit to the longest answer a client waits for. Each is 1.6 times the one before
 * it (the series R5 of ISO 3), so that a quantile read from the buckets is off by a quarter at most. */
#define DECADE(s) s, 1.6 * s, 2.5 * s, 4 * s, 6.3 * s
static const double BOUNDS_S[] = {DECADE(1e-4), DECADE(1e-3), DECADE(1e-2), DECADE(0.1),
                                  DECADE(1.0),  DECADE(10.0), 100};
#undef DECADE
#define N_BOUNDS (sizeof BOUNDS_S / sizeof *BOUNDS_S)
_Static_assert(METRICS_BUCKETS == N_BOUNDS + 1, "metrics_quantile_s counts as a series does");
_Static_assert(LOOP_WORK_N_BOUNDS <= N_BOUNDS, "a series has room for either");

typedef struct series {
    struct series *next;
    char *labels[METRIC_LABELS_MAX]; /* owned */
    double value;                    /* counter, gauge; sum of a histogram */
    uint64_t counts[N_BOUNDS + 1];   /* not cumulative; the last is +Inf */
    metric_exemplar *exemplars;      /* [N_BOUNDS + 1], from the first on; owned */
} series;

struct metrics {
    series *first[METRIC_COUNT], **end[METRIC_COUNT]; /* end: where the next one goes */
};

metrics *metrics_new(void)
{
    metrics *m = calloc(1, sizeof *m);
    for (int i = 0; m && i < METRIC_COUNT; i++) m->end[i] = &m->first[i];
    if (m) metrics_set(m, METRIC_BUILD, 1, SHOAL_VERSION, NULL, NULL);
    return m;
}

static void series_free(series *s)
{
    for (int i = 0; i < METRIC_LABELS_MAX; i++) free(s->labels[i]);
    free(s->exemplars);
    free(s);
}

static void drop_series(metrics *m, metric_id id)
{
    for (series *s = m->first[id], *next; s; s = next) {
        next = s->next;
        series_free(s);
    }
    m->first[id] = NULL;
    m->end[id] = &m->first[id];
}

void metrics_free(metrics *m)
{
    if (!m) return;
    for (int i = 0; i < METRIC_COUNT; i++) drop_series(m, (metric_id)i);
    free(m);
}

static bool matches(const series *s, const char *const labels[METRIC_LABELS_MAX])
{
    for (int i = 0; i < METRIC_LABELS_MAX; i++)
        if (strcmp(s->labels[i], labels[i] ? labels[i] : "") != 0) return false;
    return true;
}

static series *metrics_find(const metrics *m, metric_id id, const char *const labels[METRIC_LABELS_MAX])
{
    for (series *s = m->first[id]; s; s = s->next)
        if (matches(s, labels)) return s;
    return NULL;
}

/* A series that is not there yet. NULL: out of memory. */
static series *append(metrics *m, metric_id id, const char *const labels[METRIC_LABELS_MAX])
{
    series *s = calloc(1, sizeof *s);
    if (!s) return NULL;
    for (int i = 0; i < METRIC_LABELS_MAX; i++) {
        s->labels[i] = strdup(labels[i] ? labels[i] : "");
        if (!s->labels[i]) {
            series_free(s);
            return NULL;
        }
    }
    *m->end[id] = s;
    m->end[id] = &s->next;
    return s;
}

/* Series are few and hot ones go first: a linear look is a handful of strcmp. */
static series *obtain(metrics *m, metric_id id, const char *l0, const char *l1, const char *l2)
{
    const char *labels[METRIC_LABELS_MAX] = {l0, l1, l2};
    series *s = metrics_find(m, id, labels);
    return s ? s : append(m, id, labels);
}

void metrics_add(metrics *m, metric_id id, double v, const char *l0, const char *l1, const char *l2)
{
    series *s = obtain(m, id, l0, l1, l2);
    if (s) s->value += v;
}

void metrics_set(metrics *m, metric_id id, double v, const char *l0, const char *l1, const char *l2)
{
    series *s = obtain(m, id, l0, l1, l2);
    if (s) s->value = v;
}

static size_t bucket_of(double seconds)
{
    size_t i = 0;
    while (i < N_BOUNDS && seconds > BOUNDS_S[i]) i++;
    return i;
}

void metrics_observe_many_s(metrics *m, metric_id id, double seconds, size_t n, const char *l0,
                            const char *l1)
{
    series *s = obtain(m, id, l0, l1, NULL);
    if (!s) return;
    s->counts[bucket_of(seconds)] += n;
    s->value += seconds * (double)n;
}

void metrics_observe_s(metrics *m, metric_id id, double seconds, const char *l0, const char *l1)
{
    metrics_observe_many_s(m, id, seconds, 1, l0, l1);
}

void metrics_observe_traced_s(metrics *m, metric_id id, double seconds, const char *l0, const char *l1,
                              const char *traceparent, uint64_t unix_ns)
{
    metrics_observe_many_s(m, id, seconds, 1, l0, l1);
    if (!trace_is_sampled(traceparent)) return;
    series *s = obtain(m, id, l0, l1, NULL);
    if (s && !s->exemplars) s->exemplars = calloc(N_BOUNDS + 1, sizeof *s->exemplars);
    if (!s || !s->exemplars) return;
    metric_exemplar *e = &s->exemplars[bucket_of(seconds)];
    buf_copy_str(e->trace, sizeof e->trace, traceparent);
    e->value = seconds;
    e->unix_ns = unix_ns;
}

void metrics_set_work(metrics *m, metric_id id, const loop_work *w)
{
    series *s = obtain(m, id, NULL, NULL, NULL);
    if (!s) return;
    memcpy(s->counts, w->counts, sizeof w->counts);
    s->value = (double)w->total_bytes;
}

double metrics_get(const metrics *m, metric_id id, const char *l0, const char *l1, const char *l2)
{
    const series *s = metrics_find(m, id, (const char *const[METRIC_LABELS_MAX]){l0, l1, l2});
    return s ? s->value : 0;
}

uint64_t metrics_seen(const metrics *m, metric_id id, const char *l0, const char *l1)
{
    const series *s = metrics_find(m, id, (const char *const[METRIC_LABELS_MAX]){l0, l1, NULL});
    uint64_t n = 0;
    for (size_t i = 0; s && i <= N_BOUNDS; i++) n += s->counts[i];
    return n;
}

double metrics_quantile_s(const metrics *m, metric_id id, const char *l0, const char *l1, double q,
                          uint64_t seen[METRICS_BUCKETS], uint64_t *ret_n)
{
    const series *s = metrics_find(m, id, (const char *const[METRIC_LABELS_MAX]){l0, l1, NULL});
    uint64_t fresh[METRICS_BUCKETS] = {0}, n = 0, below = 0;
    for (size_t i = 0; s && i < METRICS_BUCKETS; i++) {
        n += fresh[i] = s->counts[i] - seen[i];
        seen[i] = s->counts[i];
    }
    *ret_n = n;
    size_t at = 0;
    for (; at + 1 < METRICS_BUCKETS; at++)
        if ((double)(below += fresh[at]) >= q * (double)n) break;
    return n > 0 && at > 0 ? BOUNDS_S[at - 1] : 0;
}

const char *const *metrics_labels(const metrics *m, metric_id id, size_t i)
{
    const series *s = m->first[id];
    while (s && i-- > 0) s = s->next;
    return s ? (const char *const *)s->labels : NULL;
}

double metrics_sum(const metrics *m, metric_id id)
{
    double sum = 0;
    for (const series *s = m->first[id]; s; s = s->next) sum += s->value;
    return sum;
}

/* Of this machine: where the gateway stands. */
static const char *site_of(const registry *g, const replica *r)
{
    return r->node ? r->node->site : registry_site(g);
}

/* What the registry says now, of a source or of a replica. */
static void metrics_say(metrics *m, metric_id id, double v, const char *l0, const char *l1, const char *l2)
{
    series *s = append(m, id, (const char *const[METRIC_LABELS_MAX]){l0, l1, l2});
    if (s) s->value = v;
}

/* A model's, also of one without a replica: what scales from nothing must see who waits. */
static void scrape_model(metrics *m, const replica_set *set)
{
    double n_running = 0, n_waiting = metrics_get(m, METRIC_HELD, set->model, NULL, NULL), used = 0,
           total = 0;
    for (size_t i = 0; i < set->n; i++) {
        const Shoal__V1__Stats *s = set->replicas[i]->stats;
        if (!s) continue;
        n_running += s->n_running;
        n_waiting += s->n_waiting;
        used += (double)s->kv_pages_used;
        total += (double)s->kv_pages_total;
    }
    metrics_say(m, METRIC_MODEL_READY, (double)set->n_ready, set->model, NULL, NULL);
    metrics_say(m, METRIC_MODEL_RUNNING, n_running, set->model, NULL, NULL);
    metrics_say(m, METRIC_MODEL_WAITING, n_waiting, set->model, NULL, NULL);
    metrics_say(m, METRIC_MODEL_KV, total > 0 ? used / total : 0, set->model, NULL, NULL);
}

static void scrape_node(metrics *m, const node *n)
{
    metrics_say(m, METRIC_NODE_CORES, n->n_cores, n->name, NULL, NULL);
    metrics_say(m, METRIC_NODE_LOAD, n->load_1m, n->name, NULL, NULL);
    metrics_say(m, METRIC_NODE_MEMORY, (double)n->memory_bytes, n->name, NULL, NULL);
    metrics_say(m, METRIC_NODE_FREE, (double)n->memory_free_bytes, n->name, NULL, NULL);
}

/* This machine is not among the registry's, unless it has joined a cluster. */
static void scrape_nodes(metrics *m, const registry *g, const node *own)
{
    size_t at = 0;
    for (const node *n; (n = registry_next_node(g, &at));) scrape_node(m, n);
    if (own && !registry_node(g, own->name)) scrape_node(m, own);
}

void metrics_scrape(metrics *m, registry *g, const node *own)
{
    const char *here = own ? own->name : "";
    for (int i = METRIC_SOURCE; i < METRIC_COUNT; i++) drop_series(m, (metric_id)i);
    for (size_t i = 0; i < registry_count_sources(g); i++) {
        const source *s = registry_source_at(g, i);
        metrics_say(m, METRIC_SOURCE, source_is_synced(s) && !*source_trouble(s), source_name(s), NULL, NULL);
    }
    scrape_nodes(m, g, own);
    for (size_t i = 0; i < registry_count_models(g); i++) scrape_model(m, registry_model_at(g, i));
    for (size_t i = 0; i < registry_count(g); i++) {
        const replica *r = registry_at(g, i);
        metrics_say(m, METRIC_UP, r->state == REPLICA_READY, r->model, r->id, NULL);
        metrics_say(m, METRIC_RTT, r->rtt_ms / 1000, r->model, r->id, site_of(g, r));
        if (r->load.n_spilled)
            metrics_say(m, METRIC_SPILLS, (double)r->load.n_spilled, r->model, r->id, site_of(g, r));
        metrics_say(m, METRIC_RESTARTS, r->process.n_restarts, r->model, r->id, NULL);
        metrics_say(m, METRIC_CRASHES, r->process.n_crashes, r->model, r->id, NULL);
        metrics_say(m, METRIC_CALLS, r->load.n_in_flight, r->model, r->id, NULL);
        metrics_say(m, METRIC_WORKER_INFO, 1, r->model, r->id, r->node ? r->node->name : here);
        const Shoal__V1__Stats *s = r->stats;
        if (!s) continue;
        metrics_say(m, METRIC_RUNNING, s->n_running, r->model, r->id, NULL);
        metrics_say(m, METRIC_QUEUE_AGE, s->queue_ms / 1000, r->model, r->id, NULL);
        metrics_say(m, METRIC_WAITING, s->n_waiting, r->model, r->id, NULL);
        metrics_say(m, METRIC_KV_USED, (double)s->kv_pages_used, r->model, r->id, NULL);
        metrics_say(m, METRIC_KV_KEPT, (double)s->kv_pages_kept, r->model, r->id, NULL);
        metrics_say(m, METRIC_KV_TOTAL, (double)s->kv_pages_total, r->model, r->id, NULL);
        metrics_say(m, METRIC_SPEED, s->prefill_tokens_per_s, r->model, r->id, "prefill");
        metrics_say(m, METRIC_SPEED, s->decode_tokens_per_s, r->model, r->id, "decode");
        metrics_say(m, METRIC_STEP_S, s->step_ms / 1000, r->model, r->id, NULL);
        metrics_say(m, METRIC_CPU_S, s->cpu_s, r->model, r->id, NULL);
        if (s->energy_j > 0) metrics_say(m, METRIC_WORKER_J, s->energy_j, r->model, r->id, NULL);
        metrics_say(m, METRIC_RSS, (double)s->rss_bytes, r->model, r->id, NULL);
    }
}

static void put_escaped(buf *out, const char *v)
{
    for (; *v; v++) {
        if (*v == '\\' || *v == '"') buf_putc(out, '\\');
        if (*v == '\n')
            buf_puts(out, "\\n");
        else
            buf_putc(out, *v);
    }
}

static void metrics_put_number(buf *out, double v)
{
    if (v == floor(v) && fabs(v) < 1e15)
        buf_printf(out, "%.0f", v);
    else
        buf_printf(out, "%.9g", v);
}

const metric_family *metrics_family(metric_id id)
{
    return &FAMILIES[id];
}

static bool is_histogram(const metric_family *f)
{
    return f->type == METRIC_HISTOGRAM || f->type == METRIC_BYTES_HISTOGRAM;
}

double metric_bound(const metric_family *f, size_t i)
{
    return f->type == METRIC_HISTOGRAM ? BOUNDS_S[i] : (double)LOOP_WORK_BOUNDS[i];
}

void metrics_each(const metrics *m, metric_id id, void (*visit)(void *user, const metric_point *p),
                  void *user)
{
    metric_point p = {.family = &FAMILIES[id]};
    if (is_histogram(p.family))
        p.n_bounds = p.family->type == METRIC_HISTOGRAM ? N_BOUNDS : LOOP_WORK_N_BOUNDS;
    for (const series *s = m->first[id]; s; s = s->next) {
        p.labels = (const char *const *)s->labels;
        p.value = s->value;
        p.counts = p.n_bounds ? s->counts : NULL;
        p.exemplars = s->exemplars;
        visit(user, &p);
    }
}

/* name{a="x",b="y",le="0.1"}, and a space; `le` NULL for all but buckets. */
static void metrics_put_name(buf *out, const metric_point *p, const char *suffix, const char *le)
{
    buf_printf(out, "%s%s", p->family->name, suffix);
    char sep = '{';
    const char *at = p->family->labels;
    for (int i = 0; *at; i++) {
        size_t n = strcspn(at, ",");
        buf_printf(out, "%c%.*s=\"", sep, (int)n, at);
        put_escaped(out, p->labels[i]);
        buf_putc(out, '"');
        sep = ',';
        at += at[n] ? n + 1 : n;
    }
    if (le) buf_printf(out, "%cle=\"%s\"", sep, le);
    if (le || sep == ',') buf_putc(out, '}');
    buf_putc(out, ' ');
}

static void metrics_put_value(buf *out, const metric_point *p, const char *suffix, double v)
{
    metrics_put_name(out, p, suffix, NULL);
    metrics_put_number(out, v);
    buf_putc(out, '\n');
}

/* As OpenMetrics wants bounds: 1.0, 2.5, 4.194304e+06. */
static void format_bound_open(char out[32], double v)
{
    if (v < 1e6) {
        snprintf(out, 32, v == floor(v) ? "%.1f" : "%.15g", v);
        return;
    }
    snprintf(out, 32, "%.15e", v);
    char *e = strchr(out, 'e'), *end = e;
    while (end[-1] == '0') end--;
    if (end[-1] == '.') end--;
    memmove(end, e, strlen(e) + 1);
}

static void format_bound(char out[32], const metric_family *f, size_t i, metrics_form form)
{
    if (form == METRICS_OPEN)
        format_bound_open(out, metric_bound(f, i));
    else
        snprintf(out, 32, f->type == METRIC_HISTOGRAM ? "%g" : "%.0f", metric_bound(f, i));
}

/* " # {trace_id="..",span_id=".."} 0.067 1520879607.789" */
static void put_exemplar(buf *out, const metric_exemplar *e)
{
    char id[TRACE_ID_SIZE];
    if (!*e->trace) return;
    trace_id(id, e->trace);
    buf_printf(out, " # {trace_id=\"%s\",span_id=\"%016llx\"} %.9g %.3f", id,
               (unsigned long long)trace_span(e->trace), e->value, (double)e->unix_ns / 1e9);
}

static void put_histogram(buf *out, const metric_point *p, metrics_form form)
{
    uint64_t total = 0;
    for (size_t i = 0; i <= p->n_bounds; i++) {
        char le[32] = "+Inf";
        if (i < p->n_bounds) format_bound(le, p->family, i, form);
        total += p->counts[i];
        metrics_put_name(out, p, "_bucket", le);
        buf_printf(out, "%llu", (unsigned long long)total);
        if (form == METRICS_OPEN && p->exemplars) put_exemplar(out, &p->exemplars[i]);
        buf_putc(out, '\n');
    }
    metrics_put_value(out, p, "_sum", p->value);
    metrics_put_value(out, p, "_count", (double)total);
}

void metrics_put_point(buf *out, const metric_point *p, metrics_form form)
{
    if (is_histogram(p->family))
        put_histogram(out, p, form);
    else
        metrics_put_value(out, p, "", p->value);
}

typedef struct putting {
    buf *out;
    metrics_form form;
} putting;

static void put_point(void *user, const metric_point *p)
{
    const putting *to = user;
    metrics_put_point(to->out, p, to->form);
}

/* OpenMetrics names a counter's family without the ending of its samples. */
void metrics_put_head(buf *out, const metric_family *f, metrics_form form)
{
    static const char *const TYPES[] = {"counter", "gauge", "histogram", "histogram"};
    static const char TOTAL[] = "_total";
    size_t n = strlen(f->name), n_total = sizeof TOTAL - 1;
    bool ends = n > n_total && strcmp(f->name + n - n_total, TOTAL) == 0;
    if (form == METRICS_OPEN && f->type == METRIC_COUNTER && ends) n -= n_total;
    buf_printf(out, "# HELP %.*s %s\n# TYPE %.*s %s\n", (int)n, f->name, f->help, (int)n, f->name,
               TYPES[f->type]);
}

void metrics_put(buf *out, const metrics *m, metrics_form form)
{
    putting to = {out, form};
    for (int i = 0; i < METRIC_COUNT; i++) {
        metrics_put_head(out, &FAMILIES[i], form);
        metrics_each(m, (metric_id)i, put_point, &to);
    }
}

void metrics_put_end(buf *out, metrics_form form)
{
    if (form == METRICS_OPEN) buf_puts(out, "# EOF\n");
}
