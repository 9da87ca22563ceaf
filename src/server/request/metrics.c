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

/* Upper bounds in seconds: from a cache hit to the longest answer a client waits for. */
static const double BOUNDS_S[] = {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
                                  0.1,    0.25,    0.5,    1,     2.5,    5,     10,   30};
#define N_BOUNDS (sizeof BOUNDS_S / sizeof *BOUNDS_S)
_Static_assert(LOOP_WORK_N_BOUNDS <= N_BOUNDS, "a series has room for either");

typedef struct series {
    struct series *next;
    char *labels[METRIC_LABELS_MAX]; /* owned */
    double value;                    /* counter, gauge; sum of a histogram */
    uint64_t counts[N_BOUNDS + 1];   /* not cumulative; the last is +Inf */
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

void metrics_observe_s(metrics *m, metric_id id, double seconds, const char *l0, const char *l1)
{
    series *s = obtain(m, id, l0, l1, NULL);
    if (!s) return;
    size_t i = 0;
    while (i < N_BOUNDS && seconds > BOUNDS_S[i]) i++;
    s->counts[i]++;
    s->value += seconds;
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

void metrics_scrape(metrics *m, registry *g)
{
    for (int i = METRIC_SOURCE; i < METRIC_COUNT; i++) drop_series(m, (metric_id)i);
    for (size_t i = 0; i < registry_count_sources(g); i++) {
        const source *s = registry_source_at(g, i);
        metrics_say(m, METRIC_SOURCE, source_is_synced(s) && !*source_trouble(s), source_name(s), NULL, NULL);
    }
    for (size_t i = 0; i < registry_count(g); i++) {
        const replica *r = registry_at(g, i);
        metrics_say(m, METRIC_UP, r->state == REPLICA_READY, r->model, r->id, NULL);
        metrics_say(m, METRIC_RTT, r->rtt_ms / 1000, r->model, r->id, site_of(g, r));
        if (r->load.n_spilled)
            metrics_say(m, METRIC_SPILLS, (double)r->load.n_spilled, r->model, r->id, site_of(g, r));
        metrics_say(m, METRIC_RESTARTS, r->process.n_restarts, r->model, r->id, NULL);
        metrics_say(m, METRIC_CRASHES, r->process.n_crashes, r->model, r->id, NULL);
        metrics_say(m, METRIC_CALLS, r->load.n_in_flight, r->model, r->id, NULL);
        const Shoal__V1__Stats *s = r->stats;
        if (!s) continue;
        metrics_say(m, METRIC_RUNNING, s->n_running, r->model, r->id, NULL);
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

static void put_histogram(buf *out, const metric_point *p)
{
    uint64_t total = 0;
    for (size_t i = 0; i <= p->n_bounds; i++) {
        char le[32] = "+Inf";
        const char *form = p->family->type == METRIC_HISTOGRAM ? "%g" : "%.0f";
        if (i < p->n_bounds) snprintf(le, sizeof le, form, metric_bound(p->family, i));
        total += p->counts[i];
        metrics_put_name(out, p, "_bucket", le);
        buf_printf(out, "%llu\n", (unsigned long long)total);
    }
    metrics_put_value(out, p, "_sum", p->value);
    metrics_put_value(out, p, "_count", (double)total);
}

static void put_point(void *user, const metric_point *p)
{
    buf *out = user;
    if (is_histogram(p->family))
        put_histogram(out, p);
    else
        metrics_put_value(out, p, "", p->value);
}

void metrics_put(buf *out, const metrics *m)
{
    static const char *const TYPES[] = {"counter", "gauge", "histogram", "histogram"};
    for (int i = 0; i < METRIC_COUNT; i++) {
        const metric_family *f = &FAMILIES[i];
        buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", f->name, f->help, f->name, TYPES[f->type]);
        metrics_each(m, (metric_id)i, put_point, out);
    }
}
