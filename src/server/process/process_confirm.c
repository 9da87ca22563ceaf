/* process_confirm.c: questions that guards ask back, and the answers to them. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "json/json.h"
#include "pipeline/pipeline_template.h"
#include "process/confirm.h"
#include "process/stage_run.h"

enum { CONFIRM_S = 120 };

int process_ask(stage_run *s, const sha256_digest *about, json_t *details)
{
    process_run *r = s->run;
    pipeline_facts f = process_facts(s);
    bool kept = strlen(f.input) <= PIPELINE_INPUT_MAX_BYTES; /* many may wait */
    if (!r->in->confirms || !kept) return 0;
    unsigned seconds = s->stage->confirm_s ? s->stage->confirm_s : CONFIRM_S;
    uint8_t draw[CONFIRM_TOKEN_BYTES];
    char token[2 * CONFIRM_TOKEN_BYTES + 1];
    confirm_question q = {.input = (char *)f.input,
                          .pipeline = r->in->pipeline->name,
                          .stage = s->stage->name,
                          .about = *about,
                          .expires_ns = env_now_ns(r->in->time) + seconds * 1000000000ull};
    rng_bytes(draw, sizeof draw);
    if (confirm_put(r->in->confirms, &q, draw, token)) return SHOAL_ENOMEM;
    process_put(r, details, "confirm", json_pack("{s:s,s:i}", "token", token, "expires_s", (int)seconds));
    r->asks = true;
    return 0;
}

/* ---- answers ----------------------------------------------------------------------------------- */

static int no_such_question(api_error *e)
{
    return api_error_bad(e, "confirm",
                         "this question is no longer open: it was answered, its time is over, or another "
                         "gateway asked it; send the request again without 'confirm'");
}

static const config_stage *guard_named(const config_pipeline *p, const char *name)
{
    int i = pipeline_stage_index(p, name, strlen(name));
    return i < 0 || !p->stages[i].kind->passes ? NULL : &p->stages[i];
}

/* The token alone, or with the request itself, is a yes. */
static int process_confirm_read_answer(const process_input *in, const confirm_question *q,
                                       const config_stage *by, stage_answer *ret)
{
    *ret = STAGE_ANSWER_YES;
    if (!*in->text || strcmp(in->text, q->input) == 0) return 0;
    const stage_row *row = stage_registry_row(in->pipeline->kinds, by->kind);
    assert(row && row->runner && row->runner->read_answer); /* it asked */
    return row->runner->read_answer(ret, by, in->text, in->memory);
}

static int take_up(process_input *in, const confirm_question *q, const config_stage *by, api_error *e)
{
    stage_answer answer;
    if (process_confirm_read_answer(in, q, by, &answer)) return api_error_nomem(e);
    if (answer == STAGE_ANSWER_OTHER) return 0; /* another request: the question is dropped */
    char *text = arena_strdup(in->memory, q->input);
    if (!text) return api_error_nomem(e);
    in->text = text;
    in->asked_by = by->name;
    in->asked_about = q->about;
    in->agrees = answer == STAGE_ANSWER_YES;
    return 0;
}

int process_take_answer(process_input *in, api_error *e)
{
    confirm_question q;
    if (!in->confirm) return 0;
    for (int m = 0; m < N_MEDIA; m++)
        if (in->files[m].data)
            return api_error_bad(e, "confirm",
                                 "an answer to a question is text: give 'confirm' with 'input'");
    if (!in->confirms || !confirm_take(in->confirms, in->confirm, env_now_ns(in->time), &q))
        return no_such_question(e);
    const config_stage *by = guard_named(in->pipeline, q.stage);
    int status =
        strcmp(q.pipeline, in->pipeline->name) != 0 || !by ? no_such_question(e) : take_up(in, &q, by, e);
    free(q.input);
    return status;
}
