/* shoal chat MODEL: a conversation, line by line.
 *
 * A model that a pipeline of shoal.yaml speaks to is told what that pipeline tells it: the home and its
 * devices. As there, each line then stands alone (such models were trained on single requests), and the
 * pipeline's rules answer what is no clear request. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "cli/cli_generate.h"
#include "cli/cli_home.h"
#include "cli/cli_model.h"
#include "cli/line_editor.h"
#include "text/chat.h"

#define MESSAGES_MAX 512

typedef struct conversation {
    shoal_model *m;
    shoal_generate_options go;
    cli_home *home;                       /* NULL: messages are kept from line to line */
    shoal_message messages[MESSAGES_MAX]; /* contents are malloc'd, roles are constants */
    size_t n;
    bool terminal, json;
    const char *calls_form; /* how the model writes calls */
    toolcall_parser *calls; /* splits the reply that is being shown */
    bool unheard;           /* an answer could not be written, which has been said */
} conversation;

/* ---- the conversation ------------------------------------------------------------------------ */

static int add(conversation *c, const char *role, const char *content, shoal_err *err)
{
    if (c->n == MESSAGES_MAX)
        return err_set(err, SHOAL_ELIMIT, "the conversation has %d messages: start a new one", MESSAGES_MAX);
    char *copy = strdup(content ? content : "");
    if (!copy) return err_nomem(err);
    c->messages[c->n++] = (shoal_message){role, copy};
    return 0;
}

static void forget(conversation *c, size_t n)
{
    while (c->n > n) free((char *)c->messages[--c->n].content);
}

/* What the model is to see of one line. */
static int add_line(conversation *c, const char *line, shoal_err *err)
{
    if (!c->home) return add(c, "user", line, err);
    buf system = {0}, user = {0};
    forget(c, 0);
    int rc = cli_home_messages(c->home, line, &system, &user, err);
    if (rc == 0) rc = add(c, "system", system.data, err);
    if (rc == 0) rc = add(c, "user", user.data, err);
    buf_done(&system);
    buf_done(&user);
    return rc;
}

/* ---- showing a reply ------------------------------------------------------------------------- */

/* Ctrl-C while a reply runs; between replies the line editor has it. */
static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
    (void)number;
    interrupted = 1;
}

static int show(void *user, const char *text, size_t n)
{
    conversation *c = user;
    if (interrupted) return 1;
    if (c->calls)
        toolcall_push(c->calls, text, n);
    else
        fwrite(text, 1, n, stdout);
    return fflush(stdout) == 0 && !ferror(stdout) ? 0 : 1;
}

/* What a model writes must not move the cursor: control characters show as one. */
static void show_text(void *user, const char *s, size_t n)
{
    (void)user;
    for (size_t i = 0; i < n; i++) {
        bool control = ((unsigned char)s[i] < ' ' && s[i] != '\n' && s[i] != '\t') || s[i] == 0x7f;
        putchar(control ? '?' : s[i]);
    }
}

/* A thought is shown fainter than what is meant. */
static int show_thought(void *user, const char *text, size_t n)
{
    const conversation *c = user;
    if (interrupted) return 1;
    if (!c->terminal) return 0;
    fputs("\x1b[2m", stdout);
    show_text(NULL, text, n);
    fputs("\x1b[0m", stdout);
    return fflush(stdout) == 0 && !ferror(stdout) ? 0 : 1;
}

static void show_call(void *user, int index, const char *name)
{
    (void)user, (void)index;
    printf("\n  -> %s ", name);
}

static void show_arguments(void *user, int index, const char *json, size_t n)
{
    (void)index;
    show_text(user, json, n);
}

static void show_call_end(void *user, int index)
{
    (void)user, (void)index;
}

static int print_json(const shoal_generation *g)
{
    buf out = {0};
    buf_puts(&out, "{\"role\":\"assistant\",\"content\":");
    json_put_string(&out, g->text, g->n_bytes);
    if (g->n_thought_bytes) {
        buf_puts(&out, ",\"reasoning_content\":");
        json_put_string(&out, g->thought, g->n_thought_bytes);
    }
    buf_printf(&out, ",\"tokens\":%zu,\"mean_prob\":%.6g,\"ms\":%.3f}", g->n_ids, g->mean_prob,
               g->prefill_ms + g->decode_ms);
    int rc = cli_print(&out);
    buf_done(&out);
    return rc;
}

static void print_end(conversation *c, const shoal_generation *g, bool stopped)
{
    if (c->calls) toolcall_end(c->calls);
    putchar('\n');
    if (!c->terminal) return;
    fflush(stdout);
    fprintf(stderr, "  [%s%zu tokens, %.0f ms, sure to %.0f %%]\n", stopped ? "stopped: " : "", g->n_ids,
            g->prefill_ms + g->decode_ms, 100 * g->mean_prob);
}

/* ---- turns ----------------------------------------------------------------------------------- */

/* The model's reply to what is said so far; on a terminal Ctrl-C ends it early, and what there is counts. */
static int reply(conversation *c, shoal_err *err)
{
    static const toolcall_sink sink = {
        .text = show_text, .begin = show_call, .arguments = show_arguments, .end = show_call_end};
    shoal_generation g = {0};
    c->calls = c->terminal ? toolcall_new(&sink, toolcall_find(c->calls_form), NULL) : NULL;
    c->go.thought = show_thought;
    interrupted = 0;
    int rc = shoal_chat(c->m, c->messages, c->n, &c->go, c->json ? NULL : show, c, &g, err);
    bool stopped = rc == SHOAL_ECANCELLED && interrupted;
    if (stopped) rc = 0;
    if (rc == 0) rc = add(c, "assistant", g.text, err);
    if (rc == 0 && c->json)
        c->unheard = print_json(&g) != CLI_OK;
    else if (rc == 0)
        print_end(c, &g, stopped);
    toolcall_free(c->calls);
    shoal_generation_done(&g);
    return rc;
}

/* Of a home, the rules answer what no model should: greetings, prohibitions, what is not understood.
 * *ret_done: they did. */
static int answer_by_rules(conversation *c, const char *line, bool *ret_done, shoal_err *err)
{
    buf text = {0}, out = {0};
    int rc = c->home ? cli_home_answer(c->home, line, &text, err) : 0;
    *ret_done = rc == 0 && text.len > 0;
    if (*ret_done && c->json) {
        buf_puts(&out, "{\"role\":\"assistant\",\"content\":");
        json_put_string(&out, text.data, text.len);
        buf_puts(&out, ",\"by\":\"rules\"}");
        c->unheard = cli_print(&out) != CLI_OK;
    } else if (*ret_done) {
        printf("%s\n", text.data);
        if (c->terminal) fprintf(stderr, "  [by the home's rules]\n");
    }
    buf_done(&out);
    buf_done(&text);
    return rc;
}

/* One line of the person, one reply. A person at a terminal may say something else after an error. */
static int turn(conversation *c, const char *line, shoal_err *err)
{
    size_t before = c->n;
    bool done = false;
    int rc = answer_by_rules(c, line, &done, err);
    if (rc == 0 && !done) rc = add_line(c, line, err);
    if (rc == 0 && !done) rc = reply(c, err);
    if (rc != 0 && c->terminal && !ferror(stdout)) {
        fprintf(stderr, "shoal chat: %s\n", err->message);
        forget(c, c->home ? 0 : before);
        rc = 0;
    }
    return rc;
}

static int converse(conversation *c, line_editor *e, shoal_err *err)
{
    const char *line;
    int rc = 0;
    while (rc == 0 && !c->unheard && line_editor_read(e, &line)) {
        if (*line) rc = turn(c, line, err);
        fflush(stdout);
    }
    return rc;
}

/* ---- opening --------------------------------------------------------------------------------- */

typedef struct chat_options {
    cli_model_options model;
    cli_sampling sampling;
    const char *system, *config;
    bool json, no_home, no_history;
} chat_options;

/* A model that does not generate is refused before anything is typed. */
static int check_task(shoal_model *m, const char *name, shoal_model_info *ret, shoal_err *err)
{
    int rc = shoal_model_describe(m, ret, err);
    if (rc != 0 || strcmp(ret->task, "generate") == 0) return rc;
    return err_set(
        err, SHOAL_EUNSUPPORTED,
        "%s is a model for \"%s\", which does not talk; try: shoal %s %s TEXT, or chat with home-chat-s",
        name, ret->task, ret->task, name);
}

static int open_history(line_editor **ret, const conversation *c, const chat_options *o, shoal_err *err)
{
    char *path = NULL;
    shoal_err why;
    if (c->terminal && !o->no_history && line_editor_history_path(&path, "chat_history", &why) != 0)
        fprintf(stderr, "shoal chat: what you type is not kept: %s\n", why.message);
    int rc = line_editor_open(
        ret, &(line_editor_options){.prompt = "> ", .edit = c->terminal, .history = path}, err);
    free(path);
    return rc;
}

static void greet(const conversation *c, const char *name, const chat_options *o)
{
    char *use = cli_model_use(name, o->model.manifest);
    if (use) fprintf(stderr, "%s is for %s.\n", name, use);
    if (c->home)
        fprintf(stderr,
                "It is told the %zu devices of %s. Each line stands alone; what is no clear request\n"
                "is answered by the home's rules, and calls (->) are shown, not carried out.\n",
                cli_home_n_devices(c->home), cli_home_path(c->home));
    else if (use && !o->system)
        fprintf(stderr, "It is told nothing about a home; -s gives it a system message.\n");
    fprintf(stderr, "Ctrl-C stops a reply, Ctrl-D ends; a line that ends in \\ goes on in the next.\n");
    free(use);
}

static int chat(conversation *c, const char *arg, chat_options *o, shoal_err *err)
{
    line_editor *e = NULL;
    shoal_model_info info;
    int rc = cli_sampling_resolve(&o->sampling, &c->go, err);
    if (rc == 0) rc = open_history(&e, c, o, err);
    if (rc == 0) rc = cli_model_open(&c->m, arg, &o->model, err);
    if (rc == 0) rc = check_task(c->m, arg, &info, err);
    if (rc == 0) c->calls_form = info.tool_syntax ? info.tool_syntax : "hermes";
    if (rc == 0 && o->system) rc = add(c, "system", o->system, err);
    if (rc == 0 && !o->system && !o->no_home) {
        rc = cli_home_open(&c->home, o->config, info.name, err);
        if (rc != 0) err_prefix(err, rc, "what the home is (--no-home does without)");
    }
    if (rc == 0 && c->terminal) {
        greet(c, info.name, o);
        struct sigaction act = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
        sigaction(SIGINT, &act, NULL);
    }
    if (rc == 0) rc = converse(c, e, err);
    line_editor_close(e);
    return rc;
}

static int run(int argc, char **argv)
{
    chat_options o = {.sampling = {.max_tokens = 256}};
    const cli_option options[] = {
        CLI_STRING('s', "system", "TEXT", "the system message, instead of the home's", &o.system),
        CLI_STRING(0, "config", "FILE", "shoal.yaml whose pipeline tells the model its home", &o.config),
        CLI_FLAG(0, "no-home", "tell the model nothing about a home", &o.no_home),
        CLI_FLAG(0, "no-history", "do not keep what is typed", &o.no_history),
        CLI_SAMPLING_OPTIONS(&o.sampling),
        CLI_MODEL_OPTIONS(&o.model),
        CLI_JSON(&o.json),
        CLI_END,
    };
    cli_args a;
    int rc = cli_parse(&a, &cmd_chat, options, 1, 1, argc, argv);
    if (rc != CLI_GO) return rc;
    shoal_err err = {0};
    conversation *c = calloc(1, sizeof *c);
    if (!c) return CLI_FAILED;
    c->json = o.json;
    c->terminal = !o.json && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
    rc = chat(c, a.v[0], &o, &err);
    if (ferror(stdout))
        rc = cli_flush(CLI_OK);
    else if (rc != 0)
        rc = cli_fail(&cmd_chat, &err);
    else
        rc = c->unheard ? CLI_FAILED : CLI_OK;
    forget(c, 0);
    cli_home_close(c->home);
    shoal_model_close(c->m);
    free(c);
    free(o.sampling.schema);
    return rc;
}

const cli_command cmd_chat = {"chat", "talk with a model, line by line", "MODEL", run, false};
