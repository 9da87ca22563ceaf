/* chat_session.c: see chat_session.h. */
#define _GNU_SOURCE
#include "repl/chat_session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "json/json.h"
#include "json/json_put.h"

/* ---- who replies --------------------------------------------------------------------------------------- */

/* Options that are about a file are for one. */
static bool wants_file(const chat_options *o, const char *name)
{
    return o->here || cli_model_option(&o->model) || (name && served_is_path(name));
}

/* Of the manifest, the first that talks. *ret is malloc'd. */
static int first_listed(const chat_options *o, char **ret, shoal_err *err)
{
    manifest *m = NULL;
    char *path = NULL;
    int rc = o->model.manifest ? 0 : manifest_locate(&path, err);
    if (rc == 0) rc = manifest_open(&m, path ? path : o->model.manifest, err);
    for (size_t i = 0; rc == 0 && !*ret && i < manifest_count(m); i++) {
        const manifest_entry *e = manifest_at(m, i);
        if (e->task && strcmp(e->task, "generate") == 0 && !(*ret = strdup(e->name))) rc = err_nomem(err);
    }
    if (rc == 0 && !*ret)
        rc = err_set(err, SHOAL_ENOTFOUND, "no model of the manifest talks: name one, or a file");
    manifest_free(m);
    free(path);
    return rc;
}

static int open_here(chat_voice **ret, const char *name, const chat_options *o, shoal_err *err)
{
    char *first = NULL;
    int rc = name ? 0 : first_listed(o, &first, err);
    if (rc == 0) rc = chat_voice_here(ret, name ? name : first, &o->model, err);
    const char *option = o->here ? "--here" : cli_model_option(&o->model);
    if (rc != 0 && name && !o->server) rc = served_instead(rc, name, option, o->key, err);
    free(first);
    return rc;
}

static int open_voice(chat_voice **ret, const char *name, const chat_options *o, shoal_err *err)
{
    served found = {0};
    if (!o->server && wants_file(o, name)) return open_here(ret, name, o, err);
    /* What a system message or a form is given to is a model. */
    bool formed = o->system || o->sampling.schema_file || o->sampling.json_object;
    int rc = served_find(&found, o->server, name, formed ? "generate" : SERVED_CHATS, o->key, err);
    if (rc == 0 && *found.model) return chat_voice_server(ret, &found, o->key, err);
    if (rc == 0 && o->server) return served_missing(&found, name ? name : "that talks", err);
    return rc == 0 ? open_here(ret, name, o, err) : rc;
}

static int open_home(cli_home **ret, const chat_options *o, const char *model, shoal_err *err)
{
    *ret = NULL;
    if (o->no_home) return 0;
    int rc = cli_home_open(ret, o->config, model, err);
    return rc == 0 ? 0 : err_prefix(err, rc, "what the home is (--no-home does without)");
}

int chat_session_choose(chat_session *s, const char *name, shoal_err *err)
{
    chat_voice *voice = NULL;
    cli_home *home = NULL;
    bool goes_on =
        !s->home && s->talk.n > 0; /* of a home, the talk is one line and what the home said of it */
    int rc = open_voice(&voice, name, s->o, err);
    bool told = goes_on && chat_talk_system(&s->talk);
    if (rc == 0 && !told && !voice->pipeline) rc = open_home(&home, s->o, voice->model, err);
    if (rc != 0) {
        chat_voice_close(voice);
        return rc;
    }
    s->untold = goes_on && home;
    if (goes_on) {
        cli_home_close(home);
        home = NULL;
    } else {
        chat_talk_cut(&s->talk, 0);
    }
    cli_home_close(s->home);
    chat_voice_close(s->voice);
    s->voice = voice;
    s->home = home;
    return 0;
}

int chat_session_open(chat_session *s, const char *name, shoal_err *err)
{
    int rc = s->o->system ? chat_talk_set_system(&s->talk, s->o->system, err) : 0;
    return rc == 0 ? chat_session_choose(s, name, err) : rc;
}

int chat_session_system(chat_session *s, const char *text, shoal_err *err)
{
    if (s->home) chat_talk_cut(&s->talk, 0);
    cli_home_close(s->home);
    s->home = NULL;
    return chat_talk_set_system(&s->talk, text, err);
}

void chat_session_close(chat_session *s)
{
    chat_talk_done(&s->talk);
    cli_home_close(s->home);
    chat_voice_close(s->voice);
    free(s->settings.sampling.schema);
    json_decref(s->settings.tools);
}

/* ---- showing a reply ----------------------------------------------------------------------------------- */

static chat_voice *speaking; /* whom Ctrl-C stops; a process has one reply at a time */

static volatile sig_atomic_t n_pressed; /* since the line began */

/* What waits for a server is interrupted by the signal itself; what does not hear it, the loading of a model,
 * is left with the next one. */
static void chat_session_on_signal(int number)
{
    static const char told[] = " (again leaves)\n";
    int before = n_pressed++;
    (void)number;
    if (speaking && before == 0)
        chat_voice_stop(speaking);
    else if (before > (speaking ? 1 : 0))
        _exit(130);
    else if (write(STDERR_FILENO, told, sizeof told - 1) < 0)
        _exit(130);
}

void chat_session_watch_signals(chat_session *s)
{
    (void)s;
    n_pressed = 0;
    /* What is being written goes on: half a line is no reason to end. */
    struct sigaction act = {.sa_handler = chat_session_on_signal, .sa_flags = SA_RESTART};
    sigaction(SIGINT, &act, NULL);
}

static int written(void)
{
    return fflush(stdout) == 0 && !ferror(stdout) ? 0 : 1;
}

/* Part of a reply: on a terminal in rows that end between words. */
static void put_part(chat_session *s, const char *text, size_t n)
{
    buf rows = {0};
    fold_put(&s->fold, &rows, text, n);
    if (rows.len) cli_write(rows.data, rows.len);
    buf_done(&rows);
}

/* The word that was held back. */
static void end_part(chat_session *s)
{
    buf rows = {0};
    fold_end(&s->fold, &rows);
    if (rows.len) cli_write(rows.data, rows.len);
    buf_done(&rows);
}

static int show_text(void *user, const char *s, size_t n)
{
    put_part(user, s, n);
    return written();
}

/* A thought is shown fainter than what is meant. */
static int show_thought(void *user, const char *s, size_t n)
{
    chat_session *c = user;
    if (!c->terminal) return 0;
    if (c->colour) fputs("\x1b[2m", stdout);
    put_part(c, s, n);
    if (c->colour) fputs("\x1b[0m", stdout);
    return written();
}

static void show_call(void *user, const char *name)
{
    put_part(user, "\n  -> ", 6);
    put_part(user, name, strlen(name));
    put_part(user, " ", 1);
}

static void show_arguments(void *user, const char *json, size_t n)
{
    put_part(user, json, n);
}

static int no_text(void *user, const char *s, size_t n)
{
    (void)user, (void)s, (void)n;
    return 0;
}

static void no_call(void *user, const char *name)
{
    (void)user, (void)name;
}

static void no_arguments(void *user, const char *json, size_t n)
{
    (void)user, (void)json, (void)n;
}

static int chat_session_print_json(const chat_said *said)
{
    buf out = {0};
    buf_puts(&out, "{\"role\":\"assistant\",\"content\":");
    json_put_string(&out, said->text.data ? said->text.data : "", said->text.len);
    if (said->thought.len) json_put_text_n(&out, "reasoning_content", said->thought.data, said->thought.len);
    if (said->calls.len) buf_printf(&out, ",\"tool_calls\":%s", said->calls.data);
    if (*said->finish) json_put_text(&out, "finish", said->finish);
    buf_printf(&out, ",\"tokens\":%zu", said->n_tokens);
    if (said->mean_prob > 0) buf_printf(&out, ",\"mean_prob\":%.6g", said->mean_prob);
    buf_printf(&out, ",\"first_ms\":%.3f,\"ms\":%.3f}", said->first_ms, said->ms);
    int rc = cli_print(&out);
    buf_done(&out);
    return rc;
}

/* Beside the reply, on a terminal: how much it was, how fast it came, how soon it began. */
static void print_figures(const chat_session *s, const chat_said *said)
{
    fflush(stdout);
    fprintf(stderr, "%s  [%s%zu token%s", s->colour ? "\x1b[2m" : "", said->stopped ? "stopped: " : "",
            said->n_tokens, said->n_tokens == 1 ? "" : "s");
    if (said->tokens_per_s > 0 && said->n_tokens > 1)
        fprintf(stderr, ", %.*f tokens/s", said->tokens_per_s < 10 ? 1 : 0, said->tokens_per_s);
    if (said->n_tokens) fprintf(stderr, ", first after %.0f ms", said->first_ms);
    if (said->mean_prob > 0) fprintf(stderr, ", sure to %.0f %%", 100 * said->mean_prob);
    fprintf(stderr, "]%s\n", s->colour ? "\x1b[0m" : "");
}

/* ---- turns --------------------------------------------------------------------------------------------- */

/* The reply to what is said so far; what there is when Ctrl-C ends it counts. */
static int chat_session_reply(chat_session *s, shoal_err *err)
{
    const chat_show aloud = {.user = s,
                             .text = show_text,
                             .thought = show_thought,
                             .call = show_call,
                             .arguments = show_arguments};
    const chat_show still = {.user = s,
                             .raw = true,
                             .text = no_text,
                             .thought = no_text,
                             .call = no_call,
                             .arguments = no_arguments};
    chat_said said;
    bool json = s->o->json;
    s->fold = (fold){.width = s->terminal ? cli_columns(0) : 0};
    speaking = s->voice;
    int rc = chat_voice_reply(s->voice, &s->talk, &s->settings, json ? &still : &aloud, &said, err);
    speaking = NULL;
    end_part(s);
    if (!json && (said.text.len || said.thought.len || said.calls.len || rc == 0)) putchar('\n');
    if (rc == 0)
        rc = chat_talk_add(&s->talk, "assistant", said.text.data, said.calls.len ? said.calls.data : NULL,
                           err);
    if (rc == 0 && json) s->unheard = chat_session_print_json(&said) != CLI_OK;
    bool by_rules = s->voice->pipeline && said.n_tokens == 0;
    if (rc == 0 && !json && s->terminal && !by_rules) print_figures(s, &said);
    if (rc == 0 && !json && strcmp(said.finish, "length") == 0) {
        fflush(stdout);
        cli_sampling_say_cut(&s->settings.sampling, said.n_tokens);
    }
    chat_said_done(&said);
    return rc;
}

/* What the model is to see of one line. */
static int add_line(chat_session *s, const char *line, shoal_err *err)
{
    if (!s->home) return chat_talk_add(&s->talk, "user", line, NULL, err);
    buf system = {0}, user = {0};
    chat_talk_cut(&s->talk, 0);
    int rc = cli_home_messages(s->home, line, &system, &user, err);
    if (rc == 0) rc = chat_talk_add(&s->talk, "system", system.data, NULL, err);
    if (rc == 0) rc = chat_talk_add(&s->talk, "user", user.data, NULL, err);
    buf_done(&system);
    buf_done(&user);
    return rc;
}

/* Of a home, the rules answer what no model should: greetings, prohibitions, what is not understood.
 * *ret_done: they did. */
static int answer_by_rules(chat_session *s, const char *line, bool *ret_done, shoal_err *err)
{
    buf text = {0}, out = {0};
    int rc = s->home ? cli_home_answer(s->home, line, &text, err) : 0;
    *ret_done = rc == 0 && text.len > 0;
    if (*ret_done && s->o->json) {
        buf_puts(&out, "{\"role\":\"assistant\",\"content\":");
        json_put_string(&out, text.data, text.len);
        buf_puts(&out, ",\"by\":\"rules\"}");
        s->unheard = cli_print(&out) != CLI_OK;
    } else if (*ret_done) {
        cli_print_line(0, "%s", text.data);
        fflush(stdout);
        if (s->terminal)
            fprintf(stderr, "%s  [by the home's rules]%s\n", s->colour ? "\x1b[2m" : "",
                    s->colour ? "\x1b[0m" : "");
    }
    buf_done(&out);
    buf_done(&text);
    return rc;
}

/* Of a home a request is one line, however it was typed; else line breaks are the text's. */
static char *request_of(const chat_session *s, const char *line)
{
    char *said = strdup(line);
    for (char *c = said; s->home && c && (c = strchr(c, '\n'));) *c = ' ';
    return said;
}

int chat_session_turn(chat_session *s, const char *line, shoal_err *err)
{
    size_t before = s->talk.n;
    bool done = false;
    char *said = request_of(s, line);
    int rc = said ? answer_by_rules(s, said, &done, err) : err_nomem(err);
    if (rc == 0 && !done) rc = add_line(s, said, err);
    free(said);
    if (rc == 0 && !done) rc = chat_session_reply(s, err);
    if (rc != 0) chat_talk_cut(&s->talk, s->home ? 0 : before);
    if (rc != 0 &&
        (strstr(err->message, "maximum context length is") || strstr(err->message, "leave no room"))) {
        shoal_err why = *err;
        err_set(err, rc, "%.380s; %s, and --context N of shoal serve and load allows more", why.message,
                before > 1 ? "/clear begins anew" : "say less at once");
    }
    return rc;
}

int chat_session_retry(chat_session *s, shoal_err *err)
{
    chat_talk *t = &s->talk;
    if (t->n < 2 || strcmp(t->messages[t->n - 1].role, "assistant") != 0)
        return err_set(err, SHOAL_EINVALID, "there is no reply to make again");
    chat_message last = t->messages[--t->n]; /* kept until there is another */
    t->messages[t->n] = (chat_message){0};
    int rc = chat_session_reply(s, err);
    if (rc != 0) {
        t->messages[t->n++] = last;
        return rc;
    }
    free(last.content);
    free(last.calls);
    return 0;
}
