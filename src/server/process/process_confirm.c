/* process_confirm.c: questions that stages ask back, and the answers to them: by a token, in a session, or told by
 * the text of the reply before. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "json/json.h"
#include "pipeline/pipeline_template.h"
#include "process/confirm.h"
#include "process/turns.h"
#include "process/stage_run.h"

enum { CONFIRM_S = 120 };

/* Sessions of others, and of other pipelines, have other digests. */
static int session_digest(sha256_digest *ret, const process_input *in)
{
    const char *const parts[] = {in->owner ? in->owner : "", in->pipeline->name, in->session};
    sha256 *h = sha256_new();
    if (!h) return SHOAL_ENOMEM;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) sha256_add_text(h, parts[i]);
    sha256_end(h, ret);
    return 0;
}

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
                          .subject = r->in->subject ? r->in->subject : "",
                          .about = *about,
                          .expires_ns = env_now_ns(r->in->time) + seconds * 1000000000ull};
    q.in_session = r->in->session != NULL;
    if (q.in_session && session_digest(&q.session, r->in)) return SHOAL_ENOMEM;
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

/* How it reads answers; NULL: it never asks. */
static const stage_runner *asking(const config_pipeline *p, const config_stage *st)
{
    const stage_row *row = stage_registry_row(p->kinds, st->kind);
    return row && row->runner && row->runner->read_answer ? row->runner : NULL;
}

static const config_stage *asking_stage(const config_pipeline *p, const char *name)
{
    int i = pipeline_stage_index(p, name, strlen(name));
    return i < 0 || !asking(p, &p->stages[i]) ? NULL : &p->stages[i];
}

/* The request that was asked about takes the answer's place, unless the answer is none: then it is another
 * request, and the question is dropped. */
static int take_up(process_input *in, const config_stage *by, const process_turn *turn,
                   const sha256_digest *about, stage_answer answer, api_error *e)
{
    if (answer == STAGE_ANSWER_OTHER) return 0;
    char *text = arena_strdup(in->memory, turn->request), *subject = arena_strdup(in->memory, turn->subject);
    if (!text || !subject) return api_error_nomem(e);
    in->text = text;
    in->subject = *subject ? subject : NULL;
    in->asked_by = by->name;
    in->asked_about = *about;
    in->agrees = answer == STAGE_ANSWER_YES;
    return 0;
}

/* A token alone, or with the request itself, is a yes. */
static int answer_question(process_input *in, const confirm_question *q, const config_stage *by, bool token,
                           api_error *e)
{
    stage_answer answer = STAGE_ANSWER_YES;
    bool bare = token && (!*in->text || strcmp(in->text, q->input) == 0);
    if (!bare && asking(in->pipeline, by)->read_answer(&answer, by, in->text, in->memory))
        return api_error_nomem(e);
    process_turn turn = {.request = q->input, .subject = q->subject};
    return take_up(in, by, &turn, &q->about, answer, e);
}

static int take_by_token(process_input *in, api_error *e)
{
    confirm_question q;
    if (!in->confirms || !confirm_take(in->confirms, in->confirm, env_now_ns(in->time), &q))
        return no_such_question(e);
    const config_stage *by = asking_stage(in->pipeline, q.stage);
    int status = strcmp(q.pipeline, in->pipeline->name) != 0 || !by ? no_such_question(e)
                                                                    : answer_question(in, &q, by, true, e);
    free(q.input);
    return status;
}

/* Whatever comes next in the session closes what is open there. */
static int take_by_session(process_input *in, bool answers, api_error *e)
{
    confirm_question q;
    sha256_digest session;
    if (session_digest(&session, in)) return api_error_nomem(e);
    if (!in->confirms || !confirm_take_session(in->confirms, &session, env_now_ns(in->time), &q)) return 0;
    const config_stage *by = asking_stage(in->pipeline, q.stage);
    int status = answers && by && *in->text ? answer_question(in, &q, by, false, e) : 0;
    free(q.input);
    return status;
}

int process_may_answer(unsigned *ret_stages, const process_input *in)
{
    *ret_stages = 0;
    for (unsigned i = 0; i < in->pipeline->n_stages && !in->asked_by; i++) {
        const config_stage *st = &in->pipeline->stages[i];
        const stage_runner *r = asking(in->pipeline, st);
        stage_answer answer = STAGE_ANSWER_OTHER;
        if (!r || r->recall) continue; /* process_take_turn has seen to the latter */
        if (r->read_answer(&answer, st, in->text, in->memory)) return SHOAL_ENOMEM;
        if (answer != STAGE_ANSWER_OTHER) *ret_stages = i + 1;
    }
    return 0;
}

/* As the first stage reads it that finds something in it. */
static int follow_turn_of(process_input *in, const process_turn *turn, api_error *e)
{
    stage_following f = {0};
    for (unsigned i = 0; i < in->pipeline->n_stages && !f.text && !f.subject; i++) {
        const config_stage *st = &in->pipeline->stages[i];
        const stage_runner *r = asking(in->pipeline, st);
        if (r && r->follow && r->follow(&f, st, in, turn)) return api_error_nomem(e);
    }
    char *text = f.text ? arena_strdup(in->memory, f.text) : in->text;
    if (!text) return api_error_nomem(e);
    in->text = text;
    in->subject = f.subject;
    return 0;
}

/* The session's last turn counts for its next request alone. */
static int follow_session(process_input *in, api_error *e)
{
    taken_turn last;
    sha256_digest session;
    if (!in->turns || !in->session) return 0;
    if (session_digest(&session, in)) return api_error_nomem(e);
    if (!turns_take(in->turns, &session, env_now_ns(in->time), &last)) return 0;
    bool alone = in->asked_by || in->confirm || !*in->text;
    int status = alone ? 0 : follow_turn_of(in, &last.turn, e);
    taken_turn_done(&last);
    return status;
}

int process_take_answer(process_input *in, api_error *e)
{
    bool files = false;
    for (int m = 0; m < N_MEDIA; m++) files = files || in->files[m].data;
    if (in->confirm && files)
        return api_error_bad(e, "confirm", "an answer to a question is text: give 'confirm' with 'input'");
    int status = in->session ? take_by_session(in, !in->confirm && !files, e) : 0;
    if (!status && in->confirm) status = take_by_token(in, e);
    return status ? status : follow_session(in, e);
}

static void note_turn(const process_input *in, const json_t *answer)
{
    sha256_digest session;
    const char *heard = json_string_value(json_object_get(answer, "heard"));
    process_turn t = {.request = *in->text || !heard ? in->text : heard,
                      .subject = in->subject ? in->subject : "",
                      .reply = json_string_value(json_object_get(answer, "text"))};
    if (!t.reply || session_digest(&session, in)) return;
    turns_put(in->turns, &session, &t, env_now_ns(in->time) + TURN_S * 1000000000ull);
}

/* Where it cannot be kept, the next request means what it means alone. */
void process_note_turn(const process_input *in, const char *answer, size_t len)
{
    json_t *read = NULL;
    if (!in->turns || !in->session || json_parse(&read, answer, len, "an answer", NULL)) return;
    note_turn(in, read);
    json_decref(read);
}

int process_take_turn(process_input *in, const process_turn *turn, api_error *e)
{
    for (unsigned i = 0; i < in->pipeline->n_stages; i++) {
        const config_stage *st = &in->pipeline->stages[i];
        const stage_runner *r = asking(in->pipeline, st);
        bool asked = false;
        sha256_digest about;
        stage_answer answer;
        if (!r || !r->recall) continue;
        if (r->recall(&asked, &about, st, in, turn)) return api_error_nomem(e);
        if (!asked) continue;
        if (r->read_answer(&answer, st, in->text, in->memory)) return api_error_nomem(e);
        if (answer != STAGE_ANSWER_OTHER) return take_up(in, st, turn, &about, answer, e);
    }
    return follow_turn_of(in, turn, e);
}
