/* api_generate.c: shoal_generate and shoal_chat; see include/shoal.h. */
#include <stdlib.h>
#include <string.h>

#include "library/api_impl.h"

static void waiter_add_id(api_waiter *w, int32_t id)
{
    if (w->n_ids == w->cap_ids) {
        size_t cap = w->cap_ids ? 2 * w->cap_ids : 64;
        int32_t *p = realloc(w->ids, cap * sizeof *p);
        if (!p) {
            w->nomem = true;
            return;
        }
        w->ids = p;
        w->cap_ids = cap;
    }
    w->ids[w->n_ids++] = id;
}

static void on_generated(void *user, const gen_event *ev)
{
    api_waiter *w = user;
    pthread_mutex_lock(&w->lock);
    if (ev->thought_len && buf_append(&w->thought, ev->thought, ev->thought_len) != 0) w->nomem = true;
    if (ev->text_len && buf_append(&w->text, ev->text, ev->text_len) != 0) w->nomem = true;
    if (ev->kind == EVENT_TOKEN) {
        waiter_add_id(w, ev->id);
    } else {
        w->finish = ev->finish;
        w->timings = ev->timings;
        api_waiter_finish(w, ev->status, ev->message);
    }
    pthread_cond_signal(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

typedef struct generated {
    buf text, thought;
} generated;

static void take_generation(api_waiter *w, generated *all, size_t n_prompt, shoal_generation *ret)
{
    *ret = (shoal_generation){
        .n_bytes = all->text.len,
        .n_thought_bytes = all->thought.len,
        .ids = w->ids,
        .n_ids = w->n_ids,
        .n_prompt = n_prompt,
        .stopped = w->finish == FINISH_STOP,
        .mean_prob = w->timings.mean_prob,
        .prefill_ms = w->timings.prefill_ms,
        .decode_ms = w->timings.decode_ms,
    };
    ret->text = buf_take(&all->text);
    ret->thought = buf_take(&all->thought);
    w->ids = NULL;
}

/* Who hears what, and all that was heard. */
typedef struct follower {
    shoal_text_fn text, thought;
    void *user;
    generated all;
    bool stopped; /* the caller wants no more */
} follower;

/* Take what has gathered since; under the lock. */
static void take_pieces(api_waiter *w, generated *ret)
{
    generated swap = *ret;
    *ret = (generated){w->text, w->thought};
    w->text = swap.text;
    w->thought = swap.thought;
    buf_clear(&w->text);
    buf_clear(&w->thought);
}

static void hand_on(follower *f, buf *all, const buf *piece, shoal_text_fn fn)
{
    if (piece->len == 0 || f->stopped) return;
    buf_append(all, piece->data, piece->len);
    f->stopped = fn && fn(f->user, piece->data, piece->len) != 0;
}

/* Hand on what comes, until the engine is done. */
static void follow(shoal_model *m, api_waiter *w, uint64_t id, follower *f)
{
    generated piece = {{0}, {0}};
    pthread_mutex_lock(&w->lock);
    for (;;) {
        while (!w->done && w->text.len + w->thought.len == 0) pthread_cond_wait(&w->changed, &w->lock);
        take_pieces(w, &piece);
        bool done = w->done, was = f->stopped;
        pthread_mutex_unlock(&w->lock);
        hand_on(f, &f->all.thought, &piece.thought, f->thought);
        hand_on(f, &f->all.text, &piece.text, f->text);
        if (f->stopped && !was) engine_cancel(m->e, id);
        pthread_mutex_lock(&w->lock);
        if (done && w->text.len + w->thought.len == 0) break;
    }
    if (f->stopped && w->status == 0) api_waiter_finish(w, SHOAL_ECANCELLED, "stopped by the caller");
    pthread_mutex_unlock(&w->lock);
    buf_done(&piece.text);
    buf_done(&piece.thought);
}

/* What a chat adds to a request: how its model writes calls and thoughts. */
static void add_forms(gen_request *r, const chat_template *t, bool in_thought)
{
    r->calls = chat_template_calls(t, NULL);
    r->thinking = chat_template_thinking(t);
    r->in_thought = in_thought;
}

/* The plain template has no token that ends a turn. *ret is malloc'd. */
static int add_stop(gen_request *r, const char ***ret, shoal_err *err)
{
    const char **stops = calloc(r->n_stop + 1, sizeof *stops);
    if (!stops) return err_nomem(err);
    if (r->n_stop) memcpy(stops, r->stop, r->n_stop * sizeof *stops);
    stops[r->n_stop++] = chat_template_plain_stop;
    r->stop = *ret = stops;
    return 0;
}

/* prompt is the source when the model reads one; the reply then begins with the model's own token. */
static int generate_ids(shoal_model *m, const encoding *prompt, const chat_template *t, bool in_thought,
                        const shoal_generate_options *o, shoal_text_fn fn, void *user, shoal_generation *ret,
                        shoal_err *err)
{
    static const shoal_generate_options defaults;
    if (!o) o = &defaults;
    grammar_spec form = {.kind = o->json_schema ? GRAMMAR_JSON_SCHEMA : GRAMMAR_JSON_OBJECT,
                         .schema = o->json_schema};
    const model_config *c = model_get_config(m->m);
    bool reads = c->task == TASK_SEQ2SEQ;
    enc_request source = {.ids = prompt->ids, .type_ids = prompt->type_ids, .n_ids = prompt->n};
    gen_request r = {
        .ids = reads ? &c->start_id : prompt->ids,
        .n_ids = reads ? 1 : prompt->n,
        .source = reads ? &source : NULL,
        .n_beams = o->n_beams,
        .length_penalty = o->length_penalty,
        .early_stopping = o->early_stopping != 0,
        .max_tokens = o->max_tokens,
        .sampling = {.temperature = o->temperature,
                     .top_k = o->top_k,
                     .top_p = o->top_p,
                     .min_p = o->min_p,
                     .repetition_penalty = o->repetition_penalty,
                     .seed = o->seed},
        .stop = o->stop,
        .n_stop = o->n_stop,
        .form = o->json_schema || o->json_object ? &form : NULL,
        .adapter = o->adapter,
    };
    api_waiter w;
    api_waiter_init(&w);
    follower f = {.text = fn, .thought = o->thought, .user = user};
    uint64_t id = 0;
    const char **stops = NULL;
    int rc = 0;
    if (t) add_forms(&r, t, in_thought);
    if (t && model_chat_template_is_default(m->m)) rc = add_stop(&r, &stops, err);
    if (rc == 0) rc = engine_generate(m->e, &r, on_generated, &w, &id, err);
    free(stops);
    if (rc == 0) {
        follow(m, &w, id, &f);
        rc = w.status;
        if (rc == 0 && (w.nomem || f.all.text.failed || f.all.thought.failed))
            rc = err_nomem(err);
        else if (rc != 0)
            err_set(err, rc, "%s", w.message);
        if (ret && (rc == 0 || rc == SHOAL_ECANCELLED)) take_generation(&w, &f.all, prompt->n, ret);
    }
    buf_done(&f.all.text);
    buf_done(&f.all.thought);
    api_waiter_done(&w);
    return rc;
}

static int do_generate(shoal_model *m, const char *prompt, const shoal_generate_options *opts,
                       shoal_text_fn fn, void *user, shoal_generation *ret, shoal_err *err)
{
    bool reads = api_task(m) == TASK_SEQ2SEQ;
    int rc = api_need_task(m, reads ? TASK_SEQ2SEQ : TASK_GENERATE, err);
    encoding enc = {0};
    if (rc == 0 && !prompt) rc = err_set(err, SHOAL_EINVALID, "the text is NULL");
    if (rc == 0) rc = api_need_tokenizer(m, err);
    if (rc == 0) rc = tokenizer_encode_completion(model_tokenizer(m->m), prompt, strlen(prompt), &enc, err);
    if (rc == 0) rc = generate_ids(m, &enc, NULL, false, opts, fn, user, ret, err);
    encoding_done(&enc);
    return rc;
}

int shoal_generate_defaults(shoal_model *m, shoal_generate_options *ret, shoal_err *err)
{
    if (!m->m) return api_need_task(m, TASK_GENERATE, err);
    sampling_defaults d = SAMPLING_LAST, beside;
    manifest_sampling(model_path(m->m), &beside);
    sampling_override(&d, &model_get_config(m->m)->sampling);
    sampling_override(&d, &beside);
    sampling_top_p(&d.top_p);
    ret->temperature = d.temperature;
    ret->top_k = (int)d.top_k;
    ret->top_p = d.top_p;
    ret->min_p = d.min_p;
    ret->repetition_penalty = d.repetition_penalty;
    return 0;
}

int shoal_generate(shoal_model *m, const char *prompt, const shoal_generate_options *opts, shoal_text_fn fn,
                   void *user, shoal_generation *ret, shoal_err *err)
{
    api_enter(m);
    return api_leave(m, do_generate(m, prompt, opts, fn, user, ret, err));
}

static json_t *messages_json(const shoal_message *messages, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; list && i < n; i++) {
        json_t *one = json_pack("{s:s, s:s}", "role", messages[i].role, "content", messages[i].content);
        if (!one || json_array_append_new(list, one) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

static int no_template(const shoal_model *m, shoal_err *err)
{
    const char *why = model_chat_template_error(m->m);
    if (why)
        return err_set(err, SHOAL_EUNSUPPORTED,
                       "%s: its chat template cannot be used: %s; give it a raw prompt", model_name(m->m),
                       why);
    return err_set(err, SHOAL_EUNSUPPORTED, "%s has no chat template: give it a raw prompt",
                   model_name(m->m));
}

static int do_chat(shoal_model *m, const shoal_message *messages, size_t n_messages,
                   const shoal_generate_options *opts, shoal_text_fn fn, void *user, shoal_generation *ret,
                   shoal_err *err)
{
    int rc = api_need_task(m, TASK_GENERATE, err);
    if (rc != 0) return rc;
    const chat_template *t = model_chat_template(m->m);
    if (!t) return no_template(m, err);
    json_t *list = messages_json(messages, n_messages);
    if (!list) return err_set(err, SHOAL_EINVALID, "a message has no role, no content, or is not UTF-8");
    bool in_thought = false;
    encoding enc = {0};
    rc = api_need_tokenizer(m, err);
    if (rc == 0)
        rc = chat_prompt_encode(t, model_tokenizer(m->m), &(chat_input){.messages = list}, &enc, &in_thought,
                                err);
    if (rc == 0) rc = generate_ids(m, &enc, t, in_thought, opts, fn, user, ret, err);
    encoding_done(&enc);
    json_decref(list);
    return rc;
}

int shoal_chat(shoal_model *m, const shoal_message *messages, size_t n_messages,
               const shoal_generate_options *opts, shoal_text_fn fn, void *user, shoal_generation *ret,
               shoal_err *err)
{
    api_enter(m);
    return api_leave(m, do_chat(m, messages, n_messages, opts, fn, user, ret, err));
}

void shoal_generation_done(shoal_generation *g)
{
    free(g->text);
    free(g->thought);
    free(g->ids);
    *g = (shoal_generation){0};
}
