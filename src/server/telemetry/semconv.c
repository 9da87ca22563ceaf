/* semconv.c: see semconv.h. */
#include "telemetry/semconv.h"

#include <string.h>

#include "base/number.h"

typedef struct sem_row {
    const char *names[2]; /* as OTEL_SEMCONV_TABLE */
    otlp_kind kind;
} sem_row;
static const sem_row ROWS[] = {
#define SEMCONV_ROW(e, now, before, k, spans, meaning) [e] = {{now, before}, k},
    SEMCONV_TABLE(SEMCONV_ROW)
#undef SEMCONV_ROW
};

/* Recorded keys, and what they are called. "why", "decision" are not among them: verdicts of rules and labels of texts may
 * stand there. */
static const struct {
    const char *key;
    sem sem;
} RECORDED[] = {{"model", SEM_REQUEST_MODEL}, {"answered_by", SEM_RESPONSE_MODEL},
                {"replica", SEM_REPLICA},     {"cpu_ms", SEM_CPU_MS},
                {"prompt_tokens", SEM_INPUT}, {"completion_tokens", SEM_OUTPUT},
                {"finish", SEM_FINISH},       {"pipeline", SEM_PIPELINE},
                {"kind", SEM_STAGE_KIND},     {"ensemble", SEM_ENSEMBLE},
                {"reason", SEM_REASON},       {"decision_ms", SEM_DECISION_MS}};

const char *semconv_name(config_otel_semconv v, sem s)
{
    return ROWS[s].names[v];
}

const char *semconv_schema_url(config_otel_semconv v)
{
    static const char *const URLS[] = {
#define SEMCONV_URL(e, name) [e] = "https://opentelemetry.io/schemas/" name,
        OTEL_SEMCONV_TABLE(SEMCONV_URL)
#undef SEMCONV_URL
    };
    return URLS[v];
}

/* The items are two KiB, which are not written before they are needed. */
void sem_begin(sem_list *l, config_otel_semconv version)
{
    l->version = version;
    l->n = 0;
}

static otlp_attribute *sem_add(sem_list *l, sem s)
{
    if (l->n == OTLP_ATTRIBUTES_MAX) return NULL;
    otlp_attribute *a = &l->items[l->n++];
    *a = (otlp_attribute){.key = semconv_name(l->version, s), .kind = ROWS[s].kind};
    return a;
}

void sem_text(sem_list *l, sem s, const char *value)
{
    otlp_attribute *a = value && *value ? sem_add(l, s) : NULL;
    if (a) a->text = value;
}

void sem_int(sem_list *l, sem s, int64_t value)
{
    otlp_attribute *a = sem_add(l, s);
    if (a) a->i = value;
}

void sem_bool(sem_list *l, sem s, bool value)
{
    otlp_attribute *a = value ? sem_add(l, s) : NULL;
    if (a) a->i = 1;
}

/* Numbers were written by us; others are left out. */
static void sem_value(sem_list *l, sem s, const char *value)
{
    otlp_attribute a = {.kind = ROWS[s].kind, .text = value};
    bool fine = true;
    if (a.kind == OTLP_INT) fine = number_i64(value, &a.i);
    if (a.kind == OTLP_DOUBLE) fine = number_double(value, &a.d);
    otlp_attribute *to = fine ? sem_add(l, s) : NULL;
    if (!to) return;
    a.key = to->key;
    *to = a;
}

void sem_recorded(sem_list *l, span_kind k, const char *key, const char *value)
{
    if (strcmp(key, "fault") == 0) {
        if (strcmp(value, "none") != 0) sem_value(l, SEM_FAULT, value);
        return;
    }
    if (strcmp(key, "error") == 0) {
        if (strcmp(value, "SHOAL_ECANCELLED") == 0)
            sem_bool(l, SEM_CANCELLED, true);
        else
            sem_text(l, SEM_ERROR, value);
        return;
    }
    for (size_t i = 0; i < sizeof RECORDED / sizeof *RECORDED; i++) {
        if (strcmp(RECORDED[i].key, key) != 0) continue;
        sem_value(l, RECORDED[i].sem, value);
        if (k == SPAN_CALL && RECORDED[i].sem == SEM_REQUEST_MODEL) sem_value(l, SEM_RESPONSE_MODEL, value);
        return;
    }
}
