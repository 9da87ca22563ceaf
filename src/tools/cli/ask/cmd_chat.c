/* shoal chat [MODEL]: a conversation, line by line. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "logging/tty_style.h"
#include "repl/chat_session.h"
#include "cli/commands.h"
#include "cli/models/pull_one.h"
#include "command/cli_process.h"
#include "command/line_editor.h"
#include "command/served.h"
#include "kinds/model_kind.h"

static int open_history(line_editor **ret, const chat_session *s, shoal_err *err)
{
    char *path = NULL;
    shoal_err why;
    if (s->terminal && !s->o->no_history && line_editor_history_path(&path, "chat_history", &why) != 0)
        fprintf(stderr, "shoal chat: what you type is not kept: %s\n", why.message);
    int rc = line_editor_open(
        ret, &(line_editor_options){.prompt = "> ", .edit = s->terminal, .history = path}, err);
    free(path);
    return rc;
}

static void greet(const chat_session *s)
{
    const char *name = s->voice->model;
    char *use =
        s->voice->use && *s->voice->use ? strdup(s->voice->use) : cli_model_use(name, s->o->model.manifest);
    if (*s->voice->where) cli_say("%s, served at %s, replies.\n", name, s->voice->where);
    if (s->voice->plain)
        cli_say("Its files have no chat template: it gets the default one, which it may not follow.\n");
    if (use) cli_say("%s is for %s.\n", name, use);
    if (s->home)
        cli_say(
            "It knows the %zu devices of %s. Each line is handled on its own; anything that isn't a clear "
            "request gets a rule-based answer. Calls (->) are shown, not carried out.\n",
            cli_home_n_devices(s->home), cli_home_path(s->home));
    else if (s->voice->pipeline)
        fprintf(stderr, "Each line is handled on its own. Calls (->) are shown, not carried out.\n");
    else if (use && !s->o->system)
        fprintf(stderr, "It knows no devices; /system TEXT gives it a system message.\n");
    fprintf(stderr, "Ctrl-C stops a reply, Ctrl-D ends the chat, /help lists the commands.\n");
    free(use);
}

/* After an error comes the next line: a person may say something else, and of a pipe the exit status tells it. */
static int take_line(chat_session *s, const char *line, shoal_err *err)
{
    const char *said = line;
    if (s->terminal) chat_session_watch_signals(s);
    bool command = s->terminal && chat_command_is(line, &said);
    int rc = command ? chat_command_run(s, line, err) : *said ? chat_session_turn(s, said, err) : 0;
    fflush(stdout);
    bool ends = ferror(stdout) || (!s->terminal && cli_process_ends(rc, err));
    if (rc == 0 || ends) return rc;
    s->failed = true;
    cli_say("shoal chat: %s\n", err->message);
    return 0;
}

static int converse(chat_session *s, line_editor *e, shoal_err *err)
{
    const char *line;
    int rc = 0;
    while (rc == 0 && !s->unheard && !s->leaves && !ferror(stdout) && line_editor_read(e, &line))
        rc = take_line(s, line, err);
    return rc;
}

/* *ret is the file of a reference that no server has as a name; NULL: it is something else. */
static int fetch(char **ret, const chat_options *o, const char *name, shoal_err *err)
{
    served at = {0};
    bool here;
    if (!name || o->server || !model_is_reference(name)) return 0;
    int rc = served_is_path(name) ? 0 : served_find(&at, NULL, name, NULL, o->key, err);
    return rc == 0 && !*at.model ? pull_if_reference(ret, &here, name, err) : rc;
}

static int chat(chat_session *s, const char *name, shoal_err *err)
{
    line_editor *e = NULL;
    char *path = NULL;
    shoal_generate_options checked = {0};
    int rc = cli_sampling_resolve(&s->settings.sampling, &checked, err);
    if (rc == 0) rc = open_history(&e, s, err);
    if (rc == 0) rc = fetch(&path, s->o, name, err);
    if (rc == 0) rc = chat_session_open(s, path ? path : name, err);
    if (rc == 0 && s->terminal) greet(s);
    if (rc == 0) rc = converse(s, e, err);
    line_editor_close(e);
    free(path);
    return rc;
}

static int cmd_chat_finish(chat_session *s, int rc, const shoal_err *err)
{
    if (ferror(stdout)) return cli_flush(CLI_OK);
    if (rc != 0) return cli_fail(&cmd_chat, err);
    return s->unheard || (s->failed && !s->terminal) ? CLI_FAILED : CLI_OK;
}

static int cmd_chat_run(int argc, char **argv)
{
    chat_options o = {.sampling = CLI_SAMPLING_UNSAID(256), .key = getenv("SHOAL_API_KEY")};
    const cli_option options[] = {
        CLI_STRING(0, "system", "TEXT", "the system message, instead of the home's", &o.system),
        CLI_SERVER(&o.server),
        CLI_KEY(&o.key),
        CLI_FLAG(0, "here", "load the model into this process, whatever runs", &o.here),
        CLI_STRING(0, "config", "FILE", "shoal.yaml whose pipeline tells the model its home", &o.config),
        CLI_FLAG(0, "no-home", "tell the model nothing about a home", &o.no_home),
        CLI_FLAG(0, "no-history", "do not keep what is typed", &o.no_history),
        CLI_SAMPLING_OPTIONS(&o.sampling, 256),
        CLI_MODEL_OPTIONS(&o.model),
        CLI_COLOR(&o.color),
        CLI_JSON(&o.json),
        CLI_END,
    };
    cli_args a;
    int rc = cli_parse(&a, &cmd_chat, options, 0, 1, argc, argv);
    if (rc != CLI_GO) return rc;
    shoal_err err = {0};
    if (tty_style_choose(o.color, &err) != 0) return cli_fail(&cmd_chat, &err);
    chat_session *s = calloc(1, sizeof *s);
    if (!s) return CLI_FAILED;
    s->o = &o;
    s->settings.sampling = o.sampling;
    s->terminal = !o.json && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
    s->colour = s->terminal && tty_style_shows(STDERR_FILENO);
    rc = cmd_chat_finish(s, chat(s, a.n ? a.v[0] : NULL, &err), &err);
    chat_session_close(s);
    free(s);
    return rc;
}

const cli_command cmd_chat = {"chat", "talk with a model, line by line", "[MODEL]", cmd_chat_run, false};
