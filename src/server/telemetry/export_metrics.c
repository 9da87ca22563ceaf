/* export_metrics.c: the table of /metrics as OTLP metrics; see telemetry_impl.h. */
#include <stdlib.h>
#include <string.h>

#include "observe/gateway_metrics.h"
#include "telemetry/telemetry_impl.h"

enum { BOUNDS_MAX = 64 };

/* X(name, unit, of, second label's value that counts, its operation): metrics that the conventions name, too. */
#define GENAI_TABLE(X)                                                                        \
    X("gen_ai.server.request.duration", METRIC_STAGE_S, "total", NULL)                        \
    X("gen_ai.server.time_to_first_token", METRIC_STAGE_S, "first_token", "generate_content") \
    X("gen_ai.server.time_per_output_token", METRIC_TOKEN_GAP, NULL, "generate_content")

typedef struct genai_row {
    const char *name;
    metric_id of;
    const char *second, *operation;
} genai_row;
static const genai_row GENAI[] = {
#define GENAI_ROW(n, id, s, o) {n, id, s, o},
    GENAI_TABLE(GENAI_ROW)
#undef GENAI_ROW
};

/* The points of one family; what their attributes are named is kept in `names`. */
typedef struct collecting {
    struct telemetry *t;
    const genai_row *genai; /* NULL: under its own name */
    arena *mem;
    otlp_point *points;
    size_t n, cap;
    size_t n_bounds;
    bool failed;
} collecting;

static otlp_point *point_new(collecting *c)
{
    if (c->n == c->cap) {
        size_t cap = c->cap ? 2 * c->cap : 16;
        otlp_point *more = realloc(c->points, cap * sizeof *more);
        if (!more) return NULL;
        c->points = more;
        c->cap = cap;
    }
    return &c->points[c->n++];
}

static size_t set_labels(collecting *c, otlp_attribute *to, const metric_point *p)
{
    const char *at = p->family->labels;
    size_t n = 0;
    for (size_t i = 0; *at; i++) {
        size_t len = strcspn(at, ",");
        char *key = arena_strndup(c->mem, at, len);
        if (!key) c->failed = true;
        if (key && *p->labels[i]) to[n++] = (otlp_attribute){.key = key, .text = p->labels[i]};
        at += len + (at[len] == ',');
    }
    return n;
}

/* The first label of these families is the model. */
static size_t set_genai(const collecting *c, otlp_attribute *to, const metric_point *p)
{
    config_otel_semconv v = c->t->s.semconv;
    size_t n = 0;
    to[n++] = (otlp_attribute){.key = semconv_name(v, SEM_REQUEST_MODEL), .text = p->labels[0]};
    to[n++] = (otlp_attribute){.key = semconv_name(v, SEM_PROVIDER), .text = "shoal"};
    if (c->genai->operation)
        to[n++] = (otlp_attribute){.key = semconv_name(v, SEM_OPERATION), .text = c->genai->operation};
    return n;
}

static const otlp_exemplar *exemplars_of(collecting *c, const metric_point *p)
{
    otlp_exemplar *to = p->exemplars ? arena_alloc(c->mem, (p->n_bounds + 1) * sizeof *to) : NULL;
    for (size_t i = 0; to && i <= p->n_bounds; i++) {
        const metric_exemplar *from = &p->exemplars[i];
        if (!trace_bytes(to[i].of.trace, from->trace)) continue;
        to[i].of.span = trace_span(from->trace);
        to[i].value = from->value;
        to[i].at_ns = from->unix_ns;
    }
    return to;
}

static void collect(void *user, const metric_point *p)
{
    collecting *c = user;
    const genai_row *genai = c->genai;
    if (genai && genai->second && strcmp(p->labels[1], genai->second) != 0) return;
    otlp_point *to = point_new(c);
    otlp_attribute *attributes = arena_alloc(c->mem, METRIC_LABELS_MAX * sizeof *attributes);
    if (!to || !attributes) {
        c->failed = true;
        return;
    }
    *to = (otlp_point){.value = p->value, .counts = p->counts, .attributes = attributes};
    to->n_attributes = genai ? set_genai(c, attributes, p) : set_labels(c, attributes, p);
    to->exemplars = exemplars_of(c, p);
    c->n_bounds = p->n_bounds;
}

static const char *unit_of(const metric_family *f)
{
    if (strstr(f->name, "_seconds")) return "s";
    if (strstr(f->name, "_bytes")) return "By";
    if (strstr(f->name, "_joules")) return "J";
    return "1";
}

static void put_family(struct telemetry *t, metric_id id, const genai_row *genai, uint64_t now_ns)
{
    static const otlp_metric_kind KINDS[] = {OTLP_SUM, OTLP_GAUGE, OTLP_HISTOGRAM, OTLP_HISTOGRAM};
    const metric_family *f = metrics_family(id);
    double bounds[BOUNDS_MAX];
    collecting c = {.t = t, .genai = genai, .mem = arena_new(0)};
    if (!c.mem) {
        otlp_exporter_drop(t->x, OTLP_METRICS, OTLP_DROP_MEMORY, 1);
        return;
    }
    metrics_each(t->g->metrics, id, collect, &c);
    for (size_t i = 0; i < c.n_bounds && i < BOUNDS_MAX; i++) bounds[i] = metric_bound(f, i);
    otlp_metric m = {.name = genai ? genai->name : f->name,
                     .help = f->help,
                     .unit = unit_of(f),
                     .kind = KINDS[f->type],
                     .start_ns = t->start_ns,
                     .at_ns = now_ns,
                     .bounds = bounds,
                     .n_bounds = c.n_bounds,
                     .points = c.points,
                     .n_points = c.n};
    buf *item = otlp_exporter_item(t->x);
    if (c.n > 0 && !c.failed) otlp_put_metric(item, t->s.protocol, &m);
    if (c.failed) item->failed = true;
    if (c.n > 0) otlp_exporter_add(t->x, OTLP_METRICS, item);
    free(c.points);
    arena_free(c.mem);
}

void telemetry_put_metrics(struct telemetry *t)
{
    uint64_t now_ns = (uint64_t)env_wall_ns(&t->g->time);
    gateway_metrics_collect(t->g);
    otlp_exporter_replace(t->x, OTLP_METRICS);
    for (int id = 0; id < METRIC_COUNT; id++) put_family(t, (metric_id)id, NULL, now_ns);
    for (size_t i = 0; i < sizeof GENAI / sizeof *GENAI; i++) put_family(t, GENAI[i].of, &GENAI[i], now_ns);
}
