/* pipelines_list.c: GET /v1/pipelines. */
#include "inference/pipelines.h"

#include <string.h>

#include "request/admission.h"
#include "json/json_put.h"
#include "pipeline/pipeline.h"

static void put_stage(buf *out, const config_stage *s)
{
    json_put_open(out, NULL, '{');
    json_put_text(out, "stage", s->name);
    json_put_text(out, "kind", s->kind->name);
    if (s->model) json_put_text(out, "model", s->model);
    buf_printf(out, ",\"optional\":%s}", s->optional ? "true" : "false");
}

static void put_device(buf *out, const config_device *d)
{
    json_put_open(out, NULL, '{');
    json_put_text(out, "id", d->id);
    json_put_text(out, "name", d->name);
    if (d->state) json_put_text(out, "state", d->state);
    buf_putc(out, '}');
}

static void put_pipeline(buf *out, const config_pipeline *p)
{
    json_put_open(out, NULL, '{');
    json_put_text(out, "id", p->name);
    buf_puts(out, ",\"object\":\"pipeline\",\"stages\":[");
    for (unsigned i = 0; i < p->n_stages; i++) put_stage(out, &p->stages[i]);
    buf_puts(out, "],\"devices\":[");
    for (unsigned i = 0; i < p->n_devices; i++) put_device(out, &p->devices[i]);
    buf_puts(out, "]}");
}

void pipelines_list(gateway_request *rq)
{
    const gateway_config *c = rq->config;
    buf out = {0};
    buf_puts(&out, "{\"object\":\"list\",\"data\":[");
    for (size_t i = 0; i < c->n_pipelines && !out.failed; i++) {
        if (!admission_shows(rq, c->pipelines[i].name)) continue;
        put_pipeline(&out, &c->pipelines[i]);
    }
    buf_puts(&out, "]}");
    request_json(rq, 200, &out);
    buf_done(&out);
}
