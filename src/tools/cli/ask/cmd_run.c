/* shoal run MODEL [TEXT...]: what a model makes of a text, whatever it is for: one that talks replies, one
 * without a chat template continues, others classify, tag, embed, rank, write down what they hear. The model
 * is one of a running Shoal that has the name, else a file, which is loaded into this process. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "logging/tty_style.h"
#include "json/json.h"
#include "repl/chat_session.h"
#include "cli/commands.h"
#include "cli/ask/run_served.h"
#include "cli/models/pull_one.h"
#include "tasks/task.h"
#include "infer/model_about.h"

static int cmd_run_show(void *user, const char *text, size_t n)
{
    (void)user;
    return cli_write(text, n) == 0 && fflush(stdout) == 0 ? 0 : 1;
}

static double per_second(size_t n, double ms)
{
    return ms > 0 ? (double)n * 1e3 / ms : 0;
}

static int cmd_run_print_json(const shoal_generation *g)
{
    buf out = {0};
    buf_puts(&out, "{\"text\":");
    json_put_string(&out, g->text, g->n_bytes);
    buf_puts(&out, ",\"ids\":[");
    for (size_t i = 0; i < g->n_ids; i++) buf_printf(&out, "%s%d", i ? "," : "", g->ids[i]);
    buf_printf(
        &out,
        "],\"finish\":\"%s\",\"mean_prob\":%.6g,\"timings\":{\"prompt_tokens\":%zu,\"prefill_ms\":%.3f,"
        "\"prefill_tokens_per_s\":%.1f,\"generated_tokens\":%zu,\"decode_ms\":%.3f,\"decode_tokens_per_s\":%."
        "1f}}",
        g->stopped ? "stop" : "length", g->mean_prob, g->n_prompt, g->prefill_ms,
        per_second(g->n_prompt, g->prefill_ms), g->n_ids, g->decode_ms, per_second(g->n_ids, g->decode_ms));
    int rc = cli_print(&out);
    buf_done(&out);
    return rc;
}

typedef struct options {
    chat_options chat; /* model, sampling, server, key, here, json */
    const char *prompt;
    bool raw, implied; /* implied: the text is standard input because none was given */
} options;

/* ---- the model's task ---------------------------------------------------------------------------------- */

typedef struct peeked {
    char task[32];
    bool talks; /* it has a chat template of its own */
} peeked;

/* Without loading it. */
static int cmd_run_peek(peeked *ret, const char *arg, const char *manifest, shoal_err *err)
{
    char *path = NULL, *sha256 = NULL;
    model_about a = {0};
    int rc = manifest_resolve(arg, manifest, &path, &sha256, err);
    if (rc == 0)
        rc = cli_opened(model_about_open(&a, path, &(model_options){.no_tokenizer = true}, err), err);
    if (rc == 0) {
        snprintf(ret->task, sizeof ret->task, "%s", task_effective(task_name(a.task), a.n_labels));
        ret->talks = a.talks && !a.is_plain;
    }
    model_about_close(&a);
    free(path);
    free(sha256);
    return rc;
}

/* Beside the answer: what was done with the text. */
static void say_which(const options *o, const char *what, const char *model, const char *where)
{
    if (!o->chat.json) cli_say("%s: %s%s%s\n", model, what, *where ? "; served at " : "", where);
}

/* ---- generation ---------------------------------------------------------------------------------------- */

static int continue_raw(const options *o, const char *arg, const char *text, shoal_err *err)
{
    shoal_model *m = NULL;
    shoal_generation g = {0};
    shoal_generate_options go = {0};
    cli_sampling s = o->chat.sampling;
    bool json = o->chat.json;
    int rc = cli_model_open(&m, arg, &o->chat.model, err);
    if (rc == 0) rc = shoal_generate_defaults(m, &go, err);
    if (rc == 0) rc = cli_sampling_resolve(&s, &go, err);
    if (rc == 0) say_which(o, "the text goes on", arg, "");
    if (rc == 0) rc = shoal_generate(m, text, &go, json ? NULL : cmd_run_show, NULL, &g, err);
    if (rc == 0 && json) {
        rc =
            cmd_run_print_json(&g) == CLI_OK ? 0 : err_set(err, SHOAL_EIO, "the answer could not be written");
    } else if (rc == 0) {
        putchar('\n');
        fflush(stdout);
        fprintf(stderr, "%zu tokens of prompt in %.1f ms, %zu generated at %.0f tokens/s\n", g.n_prompt,
                g.prefill_ms, g.n_ids, per_second(g.n_ids, g.decode_ms));
        if (!g.stopped) cli_sampling_say_cut(&s, g.n_ids);
    }
    shoal_generation_done(&g);
    shoal_model_close(m);
    free(s.schema);
    return rc;
}

/* One turn of a talk: a home's model is told its home, as in shoal chat. */
static int cmd_run_reply(const options *o, const char *arg, const char *text, shoal_err *err)
{
    chat_session *s = calloc(1, sizeof *s);
    shoal_generate_options checked = {0};
    if (!s) return err_nomem(err);
    s->o = &o->chat;
    s->settings.sampling = o->chat.sampling;
    s->terminal = !o->chat.json && isatty(STDOUT_FILENO);
    s->colour = s->terminal && tty_style_shows(STDERR_FILENO);
    int rc = cli_sampling_resolve(&s->settings.sampling, &checked, err);
    if (rc == 0) rc = chat_session_open(s, arg, err);
    if (rc == 0)
        say_which(o, s->home ? "a reply, told of the home" : "a reply", s->voice->model, s->voice->where);
    if (rc == 0) rc = chat_session_turn(s, text, err);
    chat_session_close(s);
    free(s);
    return rc;
}

/* ---- other tasks --------------------------------------------------------------------------------------- */

/* The command of the same name, with the options that all have. */
static int hand_over(const options *o, const char *task, const char *arg, int n, char **words)
{
    bool image = strcmp(task, "classify-image") == 0;
    const cli_model_options *m = &o->chat.model;
    const cli_command *cmd = cli_find(image ? "classify" : task);
    char threads[24], context[24], kv_mb[24], **argv = calloc((size_t)n + 15, sizeof *argv);
    int argc = 0;
    if (!cmd || !argv) {
        free(argv);
        cli_say("shoal run: %s is for \"%s\", which shoal run does not know\n", arg, task);
        return CLI_FAILED;
    }
    snprintf(threads, sizeof threads, "--threads=%lld", m->threads);
    snprintf(context, sizeof context, "--context=%lld", m->context);
    snprintf(kv_mb, sizeof kv_mb, "--kv-mb=%lld", m->kv_mb);
    argv[argc++] = (char *)cmd->name;
    if (m->manifest) argv[argc++] = "--manifest", argv[argc++] = (char *)m->manifest;
    if (m->adapter) argv[argc++] = "--adapter", argv[argc++] = (char *)m->adapter;
    if (m->threads) argv[argc++] = threads;
    if (m->context) argv[argc++] = context;
    if (m->kv_mb) argv[argc++] = kv_mb;
    if (o->chat.json) argv[argc++] = "--json";
    if (image) argv[argc++] = "--image", argv[argc++] = words[0];
    argv[argc++] = "--";
    argv[argc++] = (char *)arg;
    for (int i = image; i < n; i++) argv[argc++] = words[i];
    int rc = cmd->run(argc, argv);
    free(argv);
    return rc;
}

/* Words that were typed without quotes are one text; of a reranker each is one. */
static int cmd_run_join(buf *ret, const options *o, int n, char **words, shoal_err *err)
{
    int rc = n == 1 ? cli_text(ret, words[0], err) : 0;
    if (rc == 0 && o->implied && ret->len == 0)
        rc = err_set(err, SHOAL_EINVALID,
                     "there is no prompt: shoal run MODEL PROMPT, or give it on standard input");
    if (n == 1) return rc;
    for (int i = 0; i < n; i++) buf_printf(ret, "%s%s", i ? " " : "", words[i]);
    return ret->failed ? err_nomem(err) : 0;
}

static bool takes_text(const char *task)
{
    const task_endpoint *at = task_endpoint_of(task);
    return !at || (at->input && at != &TASK_ENDPOINTS[ASK_RERANK]);
}

/* ---- the command --------------------------------------------------------------------------------------- */

static int run_there(const options *o, const served *at, int n, char **words, shoal_err *err)
{
    const chat_options *c = &o->chat;
    buf text = {0};
    bool generates = !*at->task || strcmp(at->task, "generate") == 0,
         whole = generates || takes_text(at->task);
    int rc = whole ? cmd_run_join(&text, o, n, words, err) : 0;
    if (rc == 0 && generates && !o->raw && !at->is_plain) {
        rc = cmd_run_reply(o, at->model, text.data, err);
    } else if (rc == 0) {
        bool streams = generates && !c->json;
        run_input in = {.text = whole ? text.data : words[0],
                        .more = words + 1,
                        .n_more = (size_t)n - 1,
                        .sampling = &c->sampling,
                        .json = c->json};
        if (streams) say_which(o, "the text goes on", at->model, at->url);
        rc = streams ? run_served_stream(at, &in, c->key, err) : run_served(at, &in, c->key, err);
        if (rc == 0 && !streams) say_which(o, at->task, at->model, at->url);
    }
    buf_done(&text);
    return rc;
}

static int run_here(const options *o, const char *arg, int n, char **words, int *ret_status, shoal_err *err)
{
    peeked p = {0};
    buf text = {0};
    int rc = cmd_run_peek(&p, arg, o->chat.model.manifest, err);
    if (rc == 0 && strcmp(p.task, "generate") != 0) {
        bool joined = takes_text(p.task);
        if (joined) rc = cmd_run_join(&text, o, n, words, err);
        char *one[] = {text.data};
        if (rc == 0)
            *ret_status = joined ? hand_over(o, p.task, arg, 1, one) : hand_over(o, p.task, arg, n, words);
        if (rc == 0 && *ret_status == CLI_OK) say_which(o, p.task, arg, "");
    } else if (rc == 0 && (rc = cmd_run_join(&text, o, n, words, err)) == 0) {
        rc =
            o->raw || !p.talks ? continue_raw(o, arg, text.data, err) : cmd_run_reply(o, arg, text.data, err);
    }
    buf_done(&text);
    return rc;
}

/* option: the one that keeps a server from being asked, NULL: none. */
static int run_fetched(options *o, const char *arg, int n, char **words, const char *option, int *ret_status,
                       shoal_err *err)
{
    char *path = NULL;
    bool here;
    o->chat.here = true;
    int rc = pull_if_reference(&path, &here, arg, err);
    if (rc == 0) rc = run_here(o, path ? path : arg, n, words, ret_status, err);
    if (!path) rc = served_instead(rc, arg, option, o->chat.key, err);
    free(path);
    return rc;
}

static int run_words(options *o, const char *arg, int n, char **words, int *ret_status, shoal_err *err)
{
    const chat_options *c = &o->chat;
    served at = {0};
    const char *option = c->here ? "--here" : cli_model_option(&c->model);
    if (!c->server && !option && !served_is_path(arg)) {
        int rc = served_find(&at, NULL, arg, NULL, c->key, err);
        if (rc != 0) return rc;
    } else if (c->server) {
        int rc = served_find(&at, c->server, arg, NULL, c->key, err);
        if (rc == 0 && !*at.model) rc = served_missing(&at, arg, err);
        if (rc != 0) return rc;
    }
    return *at.model ? run_there(o, &at, n, words, err)
                     : run_fetched(o, arg, n, words, option, ret_status, err);
}

static int ask_cmd_run(int argc, char **argv)
{
    options o = {.chat = {.sampling = CLI_SAMPLING_UNSAID(128), .key = getenv("SHOAL_API_KEY")}};
    chat_options *c = &o.chat;
    const cli_option options[] = {
        CLI_STRING('p', "prompt", "TEXT", "the text, as the second argument (-: standard input)", &o.prompt),
        CLI_STRING(0, "system", "TEXT", "what a model that talks is told first, instead of the home's",
                   &c->system),
        CLI_FLAG(0, "raw", "continue the text as it is, without a chat template", &o.raw),
        CLI_FLAG(0, "no-home", "tell the model nothing about a home", &c->no_home),
        CLI_SERVER(&c->server),
        CLI_KEY(&c->key),
        CLI_FLAG(0, "here", "load the model into this process, whatever runs", &c->here),
        CLI_SAMPLING_OPTIONS(&c->sampling, 128),
        CLI_MODEL_OPTIONS(&c->model),
        CLI_JSON(&c->json),
        CLI_END,
    };
    cli_args a;
    int rc = cli_parse(&a, &cmd_run, options, 1, -1, argc, argv), status = CLI_OK;
    if (rc != CLI_GO) return rc;
    shoal_err err = {0};
    shoal_generate_options checked = {0};
    cli_sampling sampling = c->sampling;
    char standard[] = "-", *one[] = {o.prompt ? (char *)o.prompt : standard};
    char **words = a.n > 1 ? a.v + 1 : one;
    int n = a.n > 1 ? a.n - 1 : 1;
    o.implied = a.n < 2 && !o.prompt;
    rc = cli_sampling_resolve(&sampling, &checked, &err);
    free(sampling.schema);
    if (rc == 0 && a.n > 1 && o.prompt)
        rc = err_set(&err, SHOAL_EINVALID, "there are two texts: one with --prompt, one behind the model");
    if (rc == 0 && o.implied && isatty(STDIN_FILENO))
        rc = err_set(&err, SHOAL_EINVALID,
                     "there is no prompt: shoal run MODEL PROMPT, or give it on standard input");
    if (rc == 0) rc = run_words(&o, a.v[0], n, words, &status, &err);
    if (ferror(stdout)) return cli_flush(CLI_OK);
    return cli_flush(rc == 0 ? status : cli_fail(&cmd_run, &err));
}

const cli_command cmd_run = {"run", "give a model a text: it replies, classifies, embeds or ranks",
                             "MODEL TEXT|-", ask_cmd_run, false};
