/* pipelines_list.c: GET /v1/pipelines. */
#include "inference/pipelines.h"

#include <string.h>

#include "request/admission.h"
#include "json/json.h"
#include "pipeline/pipeline.h"

/* A comma in front, unless it is an object's first member. */
static void put_str(buf *out, const char *key, const char *v)
{
    bool first = out->len > 0 && out->data[out->len - 1] == '{';
    buf_printf(out, "%s\"%s\":", first ? "" : ",", key);
    json_put_string(out, v ? v : "", v ? strlen(v) : 0);
}

static void put_stage(buf *out, const config_stage *s)
{
    buf_putc(out, '{');
    put_str(out, "stage", s->name);
    put_str(out, "kind", s->kind->name);
    if (s->model) put_str(out, "model", s->model);
    buf_printf(out, ",\"optional\":%s}", s->optional ? "true" : "false");
}

static void put_device(buf *out, const config_device *d)
{
    buf_putc(out, '{');
    put_str(out, "id", d->id);
    put_str(out, "name", d->name);
    if (d->state) put_str(out, "state", d->state);
    buf_putc(out, '}');
}

static void put_pipeline(buf *out, const config_pipeline *p)
{
    buf_putc(out, '{');
    put_str(out, "id", p->name);
    buf_puts(out, ",\"object\":\"pipeline\",\"stages\":[");
    for (unsigned i = 0; i < p->n_stages; i++) {
        if (i) buf_putc(out, ',');
        put_stage(out, &p->stages[i]);
    }
    buf_puts(out, "],\"devices\":[");
    for (unsigned i = 0; i < p->n_devices; i++) {
        if (i) buf_putc(out, ',');
        put_device(out, &p->devices[i]);
    }
    buf_puts(out, "]}");
}

void pipelines_list(gateway_request *rq)
{
    const gateway_config *c = rq->config;
    buf out = {0};
    buf_puts(&out, "{\"object\":\"list\",\"data\":[");
    bool first = true;
    for (size_t i = 0; i < c->n_pipelines && !out.failed; i++) {
        if (!admission_shows(rq, c->pipelines[i].name)) continue;
        if (!first) buf_putc(&out, ',');
        first = false;
        put_pipeline(&out, &c->pipelines[i]);
    }
    buf_puts(&out, "]}");
    request_json(rq, 200, &out);
    buf_done(&out);
}
