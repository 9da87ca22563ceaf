/* stage_image.c: image stages: what the picture of a request shows. */
#include "stages/stages.h"

#define LABELS_IN_TRACE 5

static void image_put_labels(stage_run *s, const Shoal__V1__Classification *c)
{
    s->results = json_array();
    for (size_t i = 0; i < c->n_labels && i < LABELS_IN_TRACE; i++) {
        json_t *o = json_object();
        process_put(s->run, o, "label", json_string(c->labels[i]->label));
        process_put(s->run, o, "score", process_rounded((double)c->labels[i]->score));
        process_add(s->run, s->results, o);
    }
}

static void on_seen(void *user, const call_result *r, const Shoal__V1__ClassifyReply *reply)
{
    stage_run *s = user;
    if (reply) process_note_timing(s, reply->timing);
    if (r->status) {
        process_settle(s, r);
        return;
    }
    if (!reply || reply->n_results != 1 || reply->results[0]->n_labels == 0) {
        process_settle_broken(s, r, "the worker sent no label");
        return;
    }
    image_put_labels(s, reply->results[0]);
    buf_puts(&s->label, reply->results[0]->labels[0]->label);
    process_fact(s)->score = (double)reply->results[0]->labels[0]->score;
    process_settle(s, r);
}

static int start_image(stage_run *s, const call_context *ctx)
{
    Shoal__V1__ImageRequest req = SHOAL__V1__IMAGE_REQUEST__INIT;
    req.image = process_file_of(s);
    s->call = calls_classify_image(s->run->calls, s->stage->model, &req, ctx, on_seen, s);
    return s->call ? 0 : SHOAL_ENOMEM;
}

const stage_runner stage_image = {.start = start_image};
