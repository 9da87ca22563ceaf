/* chat_voice.c: what both kinds share, and the model in this process. */
#include "repl/chat_voice.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "chat/toolcall.h"

typedef struct here {
    chat_voice voice;
    shoal_model *m;
    shoal_model_info info;
    /* of the reply that is made */
    const chat_show *show;
    toolcall_parser *calls; /* NULL: the reply is shown as it is written */
    uint64_t begin_ns, first_ns;
    bool unread;    /* nobody reads */
    int calls_fail; /* of the parser: out of memory */
} here;

void chat_voice_close(chat_voice *v)
{
    if (v) v->close(v);
}

void chat_voice_stop(chat_voice *v)
{
    v->stopped = 1;
    if (v->stop) v->stop(v);
}

int chat_voice_reply(chat_voice *v, const chat_talk *t, const chat_settings *s, const chat_show *show,
                     chat_said *ret, shoal_err *err)
{
    *ret = (chat_said){0};
    v->stopped = 0;
    int rc = v->reply(v, t, s, show, ret, err);
    ret->stopped = v->stopped != 0;
    return rc == SHOAL_ECANCELLED && ret->stopped ? 0 : rc;
}

void chat_said_done(chat_said *s)
{
    buf_done(&s->text);
    buf_done(&s->thought);
    buf_done(&s->calls);
}

int chat_voice_refuse(const char *model, const char *task, shoal_err *err)
{
    return err_set(
        err, SHOAL_EUNSUPPORTED,
        "%s is a model for \"%s\", which does not talk; try: shoal %s %s TEXT, or chat with home-chat-s",
        model, task, task, model);
}

/* ---- a reply of this process --------------------------------------------------------------------------- */

static void on_text(void *user, const char *s, size_t n)
{
    here *h = user;
    h->unread |= h->show->text(h->show->user, s, n) != 0;
}

static void on_call(void *user, int index, const char *name)
{
    here *h = user;
    (void)index;
    h->show->call(h->show->user, name);
}

static void on_arguments(void *user, int index, const char *json, size_t n)
{
    here *h = user;
    (void)index;
    h->show->arguments(h->show->user, json, n);
}

static void on_call_end(void *user, int index)
{
    (void)user, (void)index;
}

static int chat_voice_on_piece(void *user, const char *s, size_t n)
{
    here *h = user;
    if (!h->first_ns) h->first_ns = clock_ns();
    if (!h->calls)
        on_text(h, s, n);
    else if (h->calls_fail == 0)
        h->calls_fail = toolcall_push(h->calls, s, n);
    return h->voice.stopped || h->unread || h->calls_fail != 0;
}

static int on_thought(void *user, const char *s, size_t n)
{
    here *h = user;
    if (!h->first_ns) h->first_ns = clock_ns();
    h->unread |= h->show->thought(h->show->user, s, n) != 0;
    return h->voice.stopped || h->unread;
}

static double ms_between(uint64_t from, uint64_t to)
{
    return to > from ? (double)(to - from) / 1e6 : 0;
}

/* whole: nobody broke it off. */
static int chat_voice_take(chat_said *ret, const here *h, const shoal_generation *g, bool whole,
                           shoal_err *err)
{
    uint64_t end = clock_ns(), first = h->first_ns ? h->first_ns : end;
    ret->n_tokens = g->n_ids;
    ret->first_ms = ms_between(h->begin_ns, first);
    ret->ms = ms_between(h->begin_ns, end);
    ret->tokens_per_s = g->decode_ms > 0 ? (double)g->n_ids * 1e3 / g->decode_ms : 0;
    ret->mean_prob = g->mean_prob;
    if (whole) snprintf(ret->finish, sizeof ret->finish, "%s", g->stopped ? "stop" : "length");
    buf_append(&ret->text, g->text ? g->text : "", g->n_bytes);
    buf_append(&ret->thought, g->thought ? g->thought : "", g->n_thought_bytes);
    return ret->text.failed || ret->thought.failed ? err_nomem(err) : 0;
}

static int reply_here(chat_voice *v, const chat_talk *t, const chat_settings *s, const chat_show *show,
                      chat_said *ret, shoal_err *err)
{
    here *h = (here *)v;
    const toolcall_sink sink = {
        .user = h, .text = on_text, .begin = on_call, .arguments = on_arguments, .end = on_call_end};
    shoal_message messages[CHAT_MESSAGES_MAX];
    shoal_generate_options go = {0};
    shoal_generation g = {0};
    cli_sampling sampling = s->sampling; /* its schema is read already */
    sampling.schema_file = NULL;
    for (size_t i = 0; i < t->n; i++)
        messages[i] = (shoal_message){t->messages[i].role, t->messages[i].content};
    int rc = shoal_generate_defaults(h->m, &go, err);
    if (rc == 0) rc = cli_sampling_resolve(&sampling, &go, err);
    if (rc != 0) return rc;
    go.thought = on_thought;
    h->show = show;
    h->unread = false;
    h->first_ns = 0;
    h->begin_ns = clock_ns();
    const char *form = h->info.tool_syntax ? h->info.tool_syntax : "hermes";
    h->calls_fail = 0;
    h->calls = show->raw ? NULL : toolcall_new(&sink, toolcall_find(form), NULL);
    if (!h->calls && !show->raw) return err_nomem(err);
    rc = shoal_chat(h->m, messages, t->n, &go, chat_voice_on_piece, h, &g, err);
    if (h->calls && h->calls_fail == 0) h->calls_fail = toolcall_end(h->calls, false);
    toolcall_free(h->calls);
    if (h->calls_fail != 0) {
        rc = err_nomem(err);
    } else if (rc == 0 || rc == SHOAL_ECANCELLED) {
        int taken = chat_voice_take(ret, h, &g, rc == 0, err);
        if (taken != 0) rc = taken;
    }
    shoal_generation_done(&g);
    return rc;
}

/* ---- opening it ---------------------------------------------------------------------------------------- */

static void close_here(chat_voice *v)
{
    here *h = (here *)v;
    shoal_model_close(h->m);
    free(h);
}

int chat_voice_here(chat_voice **ret, const char *arg, const cli_model_options *o, shoal_err *err)
{
    here *h = calloc(1, sizeof *h);
    if (!h) return err_nomem(err);
    int rc = cli_model_open(&h->m, arg, o, err);
    if (rc == 0) rc = shoal_model_describe(h->m, &h->info, err);
    if (rc == 0 && strcmp(h->info.task, "generate") != 0) rc = chat_voice_refuse(arg, h->info.task, err);
    h->voice = (chat_voice){
        .model = rc == 0 ? h->info.name : "", .where = "", .reply = reply_here, .close = close_here};
    if (rc != 0)
        close_here(&h->voice);
    else
        *ret = &h->voice;
    return rc;
}
