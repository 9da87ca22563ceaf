/* chat_command.c: what a line that begins with a slash does; each command is a row of one table. */
#define _GNU_SOURCE
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "json/json.h"
#include "base/number.h"
#include "json/sampling.h"
#include "repl/chat_session.h"

enum { FILE_MAX_BYTES = 1 << 20 };

typedef struct command {
    const char *name, *args, *help;
    int (*run)(chat_session *s, const char *arg, shoal_err *err);
} command;

static const command *commands(size_t *ret_n);

/* ---- about the talk ------------------------------------------------------------------------------------ */

static int do_help(chat_session *s, const char *arg, shoal_err *err)
{
    size_t n;
    const command *c = commands(&n);
    (void)s, (void)arg, (void)err;
    for (size_t i = 0; i < n; i++) cli_printf("  /%-7s %-14s %s\n", c[i].name, c[i].args, c[i].help);
    cli_printf("  \"\"\" begins lines that go on to the next \"\"\", and so does one that ends in \\.\n"
               "  Ctrl-C stops a reply; twice at an empty prompt, or Ctrl-D, leaves.\n");
    return 0;
}

static int do_system(chat_session *s, const char *arg, shoal_err *err)
{
    if (*arg) return chat_session_system(s, strcmp(arg, "off") == 0 ? "" : arg, err);
    const char *text = chat_talk_system(&s->talk);
    cli_printf("%s\n", text ? text
                       : s->home
                           ? "(the home and its devices, with each line; /system TEXT tells it that instead)"
                           : "(none; /system TEXT sets one)");
    return 0;
}

static int do_model(chat_session *s, const char *arg, shoal_err *err)
{
    int rc = *arg ? chat_session_choose(s, arg, err) : 0;
    if (rc == 0)
        cli_printf("%s%s%s\n", s->voice->model, *s->voice->where ? ", of " : ", in this process",
                   s->voice->where);
    if (rc == 0 && *arg && s->untold)
        cli_print_line(0,
                       "The conversation goes on, without the home; /clear and then /model %s tells it that.",
                       s->voice->model);
    return rc;
}

static int do_save(chat_session *s, const char *arg, shoal_err *err)
{
    if (!*arg) return err_set(err, SHOAL_EINVALID, "/save wants a FILE");
    int rc = chat_talk_save(&s->talk, s->voice->model, arg, err);
    if (rc == 0) cli_printf("%zu message%s in %s\n", s->talk.n, s->talk.n == 1 ? "" : "s", arg);
    return rc;
}

static int do_load(chat_session *s, const char *arg, shoal_err *err)
{
    if (!*arg) return err_set(err, SHOAL_EINVALID, "/load wants a FILE that /save has written");
    int rc = chat_talk_load(&s->talk, arg, err);
    if (rc != 0) return rc;
    cli_home_close(s->home); /* the talk goes on as it was */
    s->home = NULL;
    cli_printf("%zu message%s from %s\n", s->talk.n, s->talk.n == 1 ? "" : "s", arg);
    return 0;
}

static int do_clear(chat_session *s, const char *arg, shoal_err *err)
{
    (void)arg, (void)err;
    chat_talk_cut(&s->talk, chat_talk_system(&s->talk) && !s->home ? 1 : 0);
    cli_printf("forgotten\n");
    return 0;
}

static int do_retry(chat_session *s, const char *arg, shoal_err *err)
{
    (void)arg;
    return chat_session_retry(s, err);
}

static int do_quit(chat_session *s, const char *arg, shoal_err *err)
{
    (void)arg, (void)err;
    s->leaves = true;
    return 0;
}

/* ---- how it is asked ----------------------------------------------------------------------------------- */

typedef struct setting {
    const char *name, *field; /* field: of json/sampling.h; NULL: a count */
    double *number;
    long long *count, min, max;
} setting;

enum { N_SETTINGS = 7 };

static void list_settings(setting ret[N_SETTINGS], cli_sampling *p)
{
    const setting all[N_SETTINGS] = {
        {"temperature", "temperature", &p->temperature, NULL, 0, 0},
        {"top_p", "top_p", &p->top_p, NULL, 0, 0},
        {"min_p", "min_p", &p->min_p, NULL, 0, 0},
        {"repetition_penalty", "repetition_penalty", &p->repetition_penalty, NULL, 0, 0},
        {"top_k", NULL, NULL, &p->top_k, 0, 1000000},
        {"seed", NULL, NULL, &p->seed, 0, INT64_MAX},
        {"max_tokens", NULL, NULL, &p->max_tokens, 1, 1 << 20},
    };
    memcpy(ret, all, sizeof all);
}

static const char *setting_name(const void *list, size_t i)
{
    return ((const setting *)list)[i].name;
}

static int set(const setting *s, const char *value, shoal_err *err)
{
    double x;
    int64_t n;
    if (!s->field) {
        if (!number_i64(value, &n) || n < s->min || n > s->max)
            return err_set(err, SHOAL_EINVALID, "%s is a whole number from %lld to %lld, not \"%.40s\"",
                           s->name, s->min, s->max, value);
        *s->count = n;
        return 0;
    }
    if (!number_double(value, &x))
        return err_set(err, SHOAL_EINVALID, "%s is a number such as 0.5, not \"%.40s\"", s->name, value);
    int rc = sampling_check(s->field, x, err);
    if (rc == 0) *s->number = x;
    return rc;
}

static int do_set(chat_session *s, const char *arg, shoal_err *err)
{
    setting all[N_SETTINGS];
    char name[40];
    size_t n = strcspn(arg, " \t=");
    const char *value = arg + n + strspn(arg + n, " \t=");
    const cli_sampling *p = &s->settings.sampling;
    list_settings(all, &s->settings.sampling);
    for (size_t i = 0; i < N_SETTINGS && !*arg; i++) {
        bool said = all[i].field ? !isnan(*all[i].number) : *all[i].count >= 0;
        if (!said)
            cli_printf("  %-20s %s\n", all[i].name, all[i].count == &p->seed ? "drawn" : "the model's");
        else if (all[i].field)
            cli_printf("  %-20s %g\n", all[i].name, *all[i].number);
        else
            cli_printf("  %-20s %lld\n", all[i].name, *all[i].count);
    }
    if (!*arg) return 0;
    snprintf(name, sizeof name, "%.*s", (int)n, arg);
    for (size_t i = 0; i < N_SETTINGS; i++)
        if (strcmp(all[i].name, name) == 0)
            return *value ? set(&all[i], value, err)
                          : err_set(err, SHOAL_EINVALID, "/set %s wants a value", name);
    cli_hint hint = cli_did_you_mean(cli_nearest(name, N_SETTINGS, setting_name, all));
    return err_set(err, SHOAL_EINVALID, "there is no setting \"%s\"%s: /set alone lists them", name,
                   hint.text);
}

static int read_json(const char *path, buf *text, json_t **ret, shoal_err *err)
{
    int rc = file_read(text, path, FILE_MAX_BYTES, err);
    return rc == 0 ? json_parse(ret, text->data ? text->data : "", text->len, path, err) : rc;
}

static int do_schema(chat_session *s, const char *arg, shoal_err *err)
{
    cli_sampling *p = &s->settings.sampling;
    bool off = strcmp(arg, "off") == 0;
    buf text = {0};
    json_t *schema = NULL;
    char *taken = NULL;
    if (!*arg) {
        cli_printf("%s\n", p->schema ? p->schema
                                     : "(none; /schema FILE makes replies satisfy the JSON schema in it)");
        return 0;
    }
    int rc = off ? 0 : read_json(arg, &text, &schema, err);
    if (rc == 0 && !off && !(taken = buf_take(&text))) rc = err_nomem(err);
    if (rc == 0) {
        free(p->schema);
        p->schema = taken;
    }
    json_decref(schema);
    buf_done(&text);
    return rc;
}

static void list_tools(const json_t *tools)
{
    size_t i;
    json_t *t;
    if (!tools)
        cli_printf("(none; /tools FILE offers the functions in it: a JSON array as in OpenAI's tools)\n");
    json_array_foreach((json_t *)(uintptr_t)tools, i, t)
    {
        const char *name = json_string_value(json_object_get(json_object_get(t, "function"), "name"));
        cli_printf("  %s\n", name ? name : "(a function without a name)");
    }
}

static int do_tools(chat_session *s, const char *arg, shoal_err *err)
{
    bool off = strcmp(arg, "off") == 0;
    buf text = {0};
    json_t *tools = NULL;
    int rc = 0;
    if (*arg && !off && !*s->voice->where)
        return err_set(err, SHOAL_EUNSUPPORTED,
                       "tools are offered to models of a server: shoal serve, then chat with it by its name");
    if (*arg && !off) rc = read_json(arg, &text, &tools, err);
    if (rc == 0 && tools && !json_is_array(tools))
        rc = err_set(err, SHOAL_EFORMAT,
                     "%s: tools are a JSON array: [{\"type\": \"function\", \"function\": ...}]", arg);
    if (rc == 0 && *arg) {
        json_decref(s->settings.tools);
        s->settings.tools = off ? NULL : json_incref(tools);
    }
    if (rc == 0) list_tools(s->settings.tools);
    json_decref(tools);
    buf_done(&text);
    return rc;
}

/* ---- the table ----------------------------------------------------------------------------------------- */

static const command *commands(size_t *ret_n)
{
    static const command all[] = {
        {"help", "", "this", do_help},
        {"system", "[TEXT|off]", "show or set what the model is told first", do_system},
        {"model", "[NAME]", "show who replies, or take another", do_model},
        {"set", "[NAME VALUE]", "show or set temperature, top_p, max_tokens, seed, ...", do_set},
        {"schema", "[FILE|off]", "replies are JSON that satisfies this schema", do_schema},
        {"tools", "[FILE|off]", "offer functions; calls are shown, not carried out", do_tools},
        {"save", "FILE", "write the conversation to a file", do_save},
        {"load", "FILE", "go on with a conversation that was saved", do_load},
        {"clear", "", "forget the conversation", do_clear},
        {"retry", "", "make the last reply again", do_retry},
        {"quit", "", "leave", do_quit},
    };
    *ret_n = sizeof all / sizeof *all;
    return all;
}

static const char *command_name(const void *list, size_t i)
{
    return ((const command *)list)[i].name;
}

bool chat_command_is(const char *line, const char **ret_said)
{
    *ret_said = line;
    if (line[0] == '/' && line[1] == '/') *ret_said = line + 1;
    return line[0] == '/' && isalpha((unsigned char)line[1]);
}

/* "exit" and "bye" are what people of other programs type. */
static const char *meant(const char *name)
{
    return strcmp(name, "exit") == 0 || strcmp(name, "bye") == 0 || strcmp(name, "q") == 0 ? "quit"
           : strcmp(name, "?") == 0                                                        ? "help"
                                                                                           : name;
}

int chat_command_run(chat_session *s, const char *line, shoal_err *err)
{
    size_t n, len = strcspn(line + 1, " \t\n");
    const command *all = commands(&n);
    char name[32], *arg = strdup(line + 1 + len + strspn(line + 1 + len, " \t\n"));
    if (!arg) return err_nomem(err);
    for (size_t end = strlen(arg); end > 0 && isspace((unsigned char)arg[end - 1]); end--)
        arg[end - 1] = '\0';
    snprintf(name, sizeof name, "%.*s", (int)len, line + 1);
    for (size_t i = 0; i < n; i++) {
        if (strcmp(all[i].name, meant(name)) != 0) continue;
        int rc = all[i].run(s, arg, err);
        free(arg);
        fflush(stdout);
        return rc;
    }
    free(arg);
    cli_hint hint = cli_did_you_mean(cli_nearest(name, n, command_name, all));
    return err_set(err, SHOAL_EINVALID,
                   "there is no /%s%s: /help lists what there is; // says a slash to the model", name,
                   hint.text);
}
