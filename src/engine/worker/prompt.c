/* prompt.c: messages, text or ids -> the ids that a reply follows; see prompt.h. */
#include "worker/prompt.h"

#include <stdlib.h>
#include <string.h>

#include "json/json.h"

static int parse_json(json_t **ret, const char *text, const char *what, shoal_err *err)
{
    return *text ? json_parse(ret, text, strlen(text), what, err) : 0;
}

static int prompt_no_template(const worker *w, shoal_err *err)
{
    const char *why = w->backend.about.no_chat_template;
    if (why)
        return err_set(err, SHOAL_EINVALID,
                       "%s: its chat template cannot be used: %s; send text instead of messages", w->name,
                       why);
    return err_set(err, SHOAL_EINVALID, "%s has no chat template; send text instead of messages", w->name);
}

/* A template of the request, which bears the blame for it. */
static int compile_own(const char *source, chat_template **ret, shoal_err *err)
{
    int rc = *source ? chat_template_compile(ret, source, strlen(source), "chat_template", err) : 0;
    return rc == 0 || rc == SHOAL_ENOMEM ? rc : (err->code = SHOAL_EINVALID);
}

/* The request's template, or else the model's. */
static int choose_template(const worker *w, const char *source, prompt *ret,
                           const chat_template **ret_template, shoal_err *err)
{
    const tokenizer *t = w->backend.about.tokenizer;
    int rc = compile_own(source, &ret->own, err);
    ret->end = -1;
    if (rc == 0 && ret->own && t) rc = chat_turn_end(ret->own, t, &ret->end, err);
    *ret_template = ret->own ? ret->own : w->backend.about.chat_template;
    return rc == 0 && !*ret_template ? prompt_no_template(w, err) : rc;
}

/* What the template is known to do, whatever it makes of the messages. */
static void use_template(const worker *w, const chat_template *t, const json_t *kwargs, prompt *ret)
{
    bool is_default = w->backend.about.default_chat_template && !ret->own;
    ret->stop = is_default ? chat_template_plain_stop : NULL;
    ret->thinking = chat_template_thinking(t);
    ret->shows_thinking = chat_template_shows_thinking(t);
    ret->calls = chat_template_calls(t, kwargs);
    ret->calls_label = chat_template_calls_label(t, kwargs);
}

static int parse_kwargs(json_t **ret, const char *text, shoal_err *err)
{
    int rc = parse_json(ret, text, "template_kwargs", err);
    if (rc == 0 && *ret && !json_is_object(*ret))
        rc = err_set(err, SHOAL_EINVALID, "template_kwargs must be a JSON object");
    return rc;
}

/* What a template is rendered from, parsed. */
typedef struct talk {
    json_t *messages, *tools, *kwargs;
    chat_input in; /* borrows them */
} talk;

static int parse_talk(talk *ret, const char *messages, const char *tools, const char *kwargs, int64_t clock,
                      shoal_err *err)
{
    *ret = (talk){0};
    int rc = parse_json(&ret->messages, messages, "messages", err);
    if (rc == 0) rc = parse_json(&ret->tools, tools, "tools", err);
    if (rc == 0) rc = parse_kwargs(&ret->kwargs, kwargs, err);
    if (rc == 0 && (!json_is_array(ret->messages) || (ret->tools && !json_is_array(ret->tools))))
        rc = err_set(err, SHOAL_EINVALID, "%s must be a JSON array",
                     json_is_array(ret->messages) ? "tools" : "messages");
    ret->in =
        (chat_input){.messages = ret->messages, .tools = ret->tools, .kwargs = ret->kwargs, .clock = clock};
    return rc;
}

/* Here, broken JSON is the request's fault. */
static int talk_done(talk *t, int rc, shoal_err *err)
{
    json_decref(t->messages);
    json_decref(t->tools);
    json_decref(t->kwargs);
    return rc == SHOAL_EFORMAT ? (err->code = SHOAL_EINVALID) : rc;
}

static int encode_messages(worker *w, const Shoal__V1__GenerateRequest *r, prompt *ret, shoal_err *err)
{
    const chat_template *t;
    talk talk;
    int rc = choose_template(w, r->chat_template, ret, &t, err);
    if (rc != 0) return rc;
    rc = parse_talk(&talk, r->messages_json, r->tools_json, r->template_kwargs_json, r->clock, err);
    if (rc == 0)
        rc = chat_prompt_encode(t, w->backend.about.tokenizer, &talk.in, &ret->enc, &ret->in_thought, err);
    if (rc == 0) use_template(w, t, talk.kwargs, ret);
    return talk_done(&talk, rc, err);
}

int prompt_render(worker *w, const Shoal__V1__RenderRequest *r, buf *ret, shoal_err *err)
{
    const chat_template *t;
    prompt own = {0};
    talk talk = {0};
    buf marks = {0};
    int rc = choose_template(w, r->chat_template, &own, &t, err);
    if (rc == 0)
        rc = parse_talk(&talk, r->messages_json, r->tools_json, r->template_kwargs_json, r->clock, err);
    if (rc == 0) rc = chat_prompt_render(t, w->backend.about.tokenizer, &talk.in, ret, &marks, err);
    prompt_done(&own);
    buf_done(&marks);
    return talk_done(&talk, rc, err);
}

static int tokenize_prompt(worker *w, const Shoal__V1__GenerateRequest *r, prompt *ret, shoal_err *err)
{
    const tokenizer *t;
    int rc = backend_tokenizer(&w->backend, "; send token ids", &t, err);
    if (rc != 0) return rc;
    /* A template writes its own special tokens; plain text gets those that the tokeniser adds, and may
     * spell out others: whoever sends it writes the whole prompt. */
    rc = *r->messages_json ? encode_messages(w, r, ret, err)
                           : tokenizer_encode_completion(t, r->text, strlen(r->text), &ret->enc, err);
    ret->ids = ret->enc.ids;
    ret->n = ret->enc.n;
    return rc;
}

/* The prompt that a worker made of the messages when this reply began. */
static int take_prompt(worker *w, const Shoal__V1__GenerateRequest *r, prompt *ret, shoal_err *err)
{
    const chat_template *t;
    json_t *kwargs = NULL;
    int rc = choose_template(w, r->chat_template, ret, &t, err);
    if (rc == 0) rc = parse_kwargs(&kwargs, r->template_kwargs_json, err);
    if (rc == 0) use_template(w, t, kwargs, ret);
    json_decref(kwargs);
    if (rc == SHOAL_EFORMAT) rc = err->code = SHOAL_EINVALID;
    if (rc == 0 && r->in_thought && !ret->thinking)
        rc = err_set(err, SHOAL_EINVALID, "in_thought: %s does not think", w->name);
    ret->ids = r->prompt_ids;
    ret->n = r->n_prompt_ids;
    ret->in_thought = r->in_thought;
    return rc;
}

/* The source is the text; the reply begins with the model's own token, then with the request's ids. */
static int make_source(worker *w, const Shoal__V1__GenerateRequest *r, prompt *ret, shoal_err *err)
{
    if (*r->messages_json || !*r->text)
        return err_set(err, SHOAL_EINVALID,
                       "%s turns a text into another: send text, not messages or token ids", w->name);
    int rc = tokenize_prompt(w, r, ret, err);
    if (rc != 0) return rc;
    ret->has_source = true;
    ret->n = r->n_ids + 1;
    ret->ids = ret->start = calloc(ret->n, sizeof *ret->start);
    if (!ret->start) return err_nomem(err);
    ret->start[0] = w->backend.about.config->start_id;
    if (r->n_ids) memcpy(ret->start + 1, r->ids, r->n_ids * sizeof *ret->start);
    return 0;
}

static int refuse_length(const worker *w, size_t n, shoal_err *err)
{
    size_t ctx = w->backend.about.n_ctx, most = w->backend.about.config->n_ctx;
    char more[120] = "";
    if (ctx < most)
        snprintf(more, sizeof more, "; its settings context and kv_mb decide, and the model was made for %zu",
                 most);
    return err_set(err, SHOAL_ELIMIT,
                   "This model's maximum context length is %zu tokens, reply included, and the prompt has "
                   "%zu (model %s)%s",
                   ctx, n, w->name, more);
}

int prompt_make(prompt *ret, worker *w, const Shoal__V1__GenerateRequest *r, shoal_err *err)
{
    ret->calls = toolcall_find("hermes"); /* unless the template says otherwise */
    ret->end = -1;
    if (w->backend.about.config->task == TASK_SEQ2SEQ) return make_source(w, r, ret, err);
    if ((*r->messages_json != 0) + (*r->text != 0) + (r->n_ids != 0) != 1)
        return err_set(err, SHOAL_EINVALID, "give exactly one of messages_json, text and ids");
    int rc = 0;
    if (r->n_ids) {
        ret->ids = r->ids;
        ret->n = r->n_ids;
    } else if (r->n_prompt_ids) {
        rc = take_prompt(w, r, ret, err);
    } else {
        rc = tokenize_prompt(w, r, ret, err);
    }
    if (rc == 0 && ret->n >= w->backend.about.n_ctx) rc = refuse_length(w, ret->n, err);
    return rc;
}

void prompt_done(prompt *p)
{
    encoding_done(&p->enc);
    chat_template_free(p->own);
    free(p->start);
}
