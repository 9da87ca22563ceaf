/* cli.c: options read by getopt_long from a command's own table, from which the help (cli_help.c) comes as
 * well. getopt's state is global: one parse at a time. */
#define _GNU_SOURCE
#include "command/cli.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"

enum { MAX_OPTIONS = 48, FIRST_VALUE = 256, HELP_VALUE = 255 };

const char **cli_ca(void)
{
    static const char *file;
    return &file;
}

static int usage_error(const cli_command *cmd)
{
    fprintf(stderr, "try: shoal %s --help\n", cmd->name);
    return CLI_USAGE;
}

static const char *option_name(const void *list, size_t i)
{
    return ((const cli_option *)list)[i].name;
}

/* Behind getopt's own complaint about argv's word. */
static int unknown_option(const cli_command *cmd, const cli_option *options, const char *word)
{
    char name[64];
    size_t n = 0;
    while (options[n].kind != CLI_KIND_END) n++;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(word, "="), word);
    if (strcmp(name, "--ctx-size") == 0)
        snprintf(name, sizeof name, "--context-"); /* llama.cpp's name of it */
    const char *meant = strncmp(name, "--", 2) == 0 ? cli_nearest(name + 2, n, option_name, options) : NULL;
    if (meant && strcmp(meant, name + 2) != 0) {
        fprintf(stderr, "try: --%s, or shoal %s --help\n", meant, cmd->name);
        return CLI_USAGE;
    }
    return usage_error(cmd);
}

static bool parse_int(const cli_option *o, const char *s)
{
    int64_t v;
    if (!number_i64(s, &v) || v < o->min || v > o->max) return false;
    *(long long *)o->target = v;
    return true;
}

static bool parse_num(const cli_option *o, const char *s)
{
    return number_double(s, o->target);
}

static int set_option(const cli_command *cmd, const cli_option *o, const char *value)
{
    bool ok = true;
    cli_list *list = o->target;
    switch (o->kind) {
    case CLI_KIND_FLAG: *(bool *)o->target = true; break;
    case CLI_KIND_STRING: *(const char **)o->target = value; break;
    case CLI_KIND_LIST:
        ok = list->n < sizeof list->v / sizeof *list->v;
        if (ok) list->v[list->n++] = value;
        break;
    case CLI_KIND_INT: ok = parse_int(o, value); break;
    case CLI_KIND_NUM: ok = parse_num(o, value); break;
    case CLI_KIND_END: break;
    }
    if (ok) return CLI_GO;
    if (o->kind == CLI_KIND_INT)
        fprintf(stderr, "shoal %s: --%s wants a whole number from %lld to %lld, not \"%s\"\n", cmd->name,
                o->name, o->min, o->max, value);
    else if (o->kind == CLI_KIND_NUM)
        fprintf(stderr, "shoal %s: --%s wants a number such as 0.5, not \"%s\"\n", cmd->name, o->name, value);
    else
        fprintf(stderr, "shoal %s: --%s was given too often\n", cmd->name, o->name);
    return usage_error(cmd);
}

/* The table as getopt wants it; letters map to the same row as their long names. */
static void build_getopt(const cli_option *options, char *letters, struct option *longs)
{
    int i = 0;
    for (; options[i].kind != CLI_KIND_END && i < MAX_OPTIONS; i++) {
        bool flag = options[i].kind == CLI_KIND_FLAG;
        longs[i] =
            (struct option){options[i].name, flag ? no_argument : required_argument, NULL, FIRST_VALUE + i};
        if (!options[i].letter) continue;
        *letters++ = options[i].letter;
        if (!flag) *letters++ = ':';
    }
    longs[i] = (struct option){"help", no_argument, NULL, HELP_VALUE};
    longs[i + 1] = (struct option){0};
    *letters++ = 'h';
    *letters = '\0';
}

static const cli_option *find_option(const cli_option *options, int value)
{
    if (value >= FIRST_VALUE) return &options[value - FIRST_VALUE];
    while (options->kind != CLI_KIND_END && options->letter != value) options++;
    return options;
}

static int check_count(const cli_command *cmd, int n, int min, int max)
{
    if (n >= min && (max < 0 || n <= max)) return CLI_GO;
    fprintf(stderr, "shoal %s: %s arguments; usage: shoal %s [options]%s%s\n", cmd->name,
            n < min ? "missing" : "too many", cmd->name, *cmd->usage ? " " : "", cmd->usage);
    return usage_error(cmd);
}

/* Who is told instead (cli_tell). */
static struct {
    cli_take take;
    void *user;
} listener;

void cli_tell(const cli_command *cmd, cli_take take, void *user)
{
    char name[64], option[] = "--help", *argv[] = {name, option, NULL};
    snprintf(name, sizeof name, "%s", cmd->name);
    listener.take = take;
    listener.user = user;
    cmd->run(2, argv);
    listener.take = NULL;
}

/* CLI_GO, or CLI_OK after --help, or CLI_USAGE. */
static int parse_options(cli_args *ret, const cli_command *cmd, const cli_option *options,
                         const cli_verb *verbs, int argc, char **argv)
{
    if (listener.take) {
        listener.take(listener.user, cmd, options, verbs);
        return CLI_OK;
    }
    const char *word = argc > 1 ? argv[1] : NULL;
    char letters[2 * MAX_OPTIONS + 2], name[64];
    struct option longs[MAX_OPTIONS + 2];
    build_getopt(options, letters, longs);
    /* getopt prints its complaints itself and begins them with argv[0]. */
    snprintf(name, sizeof name, "shoal %s", cmd->name);
    char *first = argv[0];
    argv[0] = name;
    int rc = CLI_GO;
    optind = 0; /* glibc: start afresh */
    for (int v; rc == CLI_GO && (v = getopt_long(argc, argv, letters, longs, NULL)) != -1;) {
        if (v == 'h' || v == HELP_VALUE)
            rc = CLI_OK, cli_help(cmd, options, verbs, word);
        else if (v == '?')
            rc = unknown_option(cmd, options, argv[optind - 1]);
        else
            rc = set_option(cmd, find_option(options, v), optarg);
    }
    argv[0] = first;
    *ret = (cli_args){.v = argv + optind, .n = argc - optind};
    return rc;
}

int cli_parse(cli_args *ret, const cli_command *cmd, const cli_option *options, int min, int max, int argc,
              char **argv)
{
    int rc = parse_options(ret, cmd, options, NULL, argc, argv);
    return rc == CLI_GO ? check_count(cmd, ret->n, min, max) : rc;
}

/* ---- verbs -------------------------------------------------------------------------------------------- */

static const char *verb_name(const void *list, size_t i)
{
    return ((const cli_verb *)list)[i].name;
}

static int unknown_verb(const cli_command *cmd, const cli_verb *verbs, size_t n, const char *word)
{
    cli_hint hint = cli_did_you_mean(cli_nearest(word, n, verb_name, verbs));
    fprintf(stderr, "shoal %s: there is no \"%s %s\"%s\n", cmd->name, cmd->name, word, hint.text);
    return usage_error(cmd);
}

static int check_verb(const cli_command *cmd, const cli_verb *verb, int n)
{
    if (n >= verb->min && (verb->max < 0 || n <= verb->max)) return CLI_GO;
    fprintf(stderr, "shoal %s: %s arguments; usage: shoal %s%s%s%s%s [options]\n", cmd->name,
            n < verb->min ? "missing" : "too many", cmd->name, *verb->name ? " " : "", verb->name,
            *verb->args ? " " : "", verb->args);
    return usage_error(cmd);
}

int cli_parse_verb(cli_args *ret, const cli_verb **ret_verb, const cli_command *cmd,
                   const cli_option *options, const cli_verb *verbs, int argc, char **argv)
{
    int rc = parse_options(ret, cmd, options, verbs, argc, argv);
    if (rc != CLI_GO) return rc;
    const char *word = ret->n ? ret->v[0] : "";
    size_t n = 0;
    const cli_verb *verb = NULL;
    for (; verbs[n].name; n++)
        if (strcmp(verbs[n].name, word) == 0) verb = &verbs[n];
    if (!verb && ret->n) return unknown_verb(cmd, verbs, n, word);
    if (!verb) return check_count(cmd, 0, 1, 1);
    ret->v += ret->n > 0;
    ret->n -= ret->n > 0;
    *ret_verb = verb;
    return check_verb(cmd, verb, ret->n);
}

int cli_flush(int rc)
{
    if (!ferror(stdout)) errno = 0; /* else it still says why the earlier write failed */
    if (fflush(stdout) == 0 && !ferror(stdout)) return cli_print_lost() && rc == CLI_OK ? CLI_FAILED : rc;
    if (rc == CLI_OK && errno != EPIPE)
        fprintf(stderr, "shoal: standard output: %s\n", errno ? strerror(errno) : "a write failed");
    clearerr(stdout);
    return CLI_FAILED;
}

int cli_opened(int rc, shoal_err *err)
{
    return rc == SHOAL_EINVALID ? err->code = SHOAL_EFORMAT : rc;
}

int cli_fail(const cli_command *cmd, const shoal_err *err)
{
    cli_say("shoal %s: %s\n", cmd->name, err->message);
    return err->code == SHOAL_EINVALID ? CLI_USAGE : CLI_FAILED;
}
