/* cli_help.c: the help of one command, or of one of its verbs, from the tables that read its arguments. */
#include <stdio.h>
#include <string.h>

#include "command/cli.h"

enum { COLUMNS = 79, LEFT = 31 }; /* of a row; before what is said about an option */

/* What something is called, and what it is, in as many rows as that needs. */
static void cli_help_put_row(const char *left, const char *text)
{
    size_t at = (size_t)printf("  %-*s", LEFT - 3, left);
    if (at >= LEFT) at = (size_t)printf("\n%*s", LEFT - 1, "") - 1;
    while (*text) {
        size_t n = strcspn(text, " ");
        if (at > LEFT && at + 1 + n > COLUMNS) at = (size_t)printf("\n%*s", LEFT - 1, "") - 1;
        at += (size_t)printf(" %.*s", (int)n, text);
        text += n + (text[n] == ' ');
    }
    putchar('\n');
}

static void put_option(char letter, const char *name, const char *arg, const char *help)
{
    char left[64], dash[8] = "   ";
    if (letter) snprintf(dash, sizeof dash, "-%c,", letter);
    snprintf(left, sizeof left, "%s --%s%s%s", dash, name, arg ? " " : "", arg ? arg : "");
    cli_help_put_row(left, help);
}

static const cli_verb *find_verb(const cli_verb *verbs, const char *word, size_t n)
{
    for (; verbs && verbs->name; verbs++)
        if (n && strlen(verbs->name) == n && strncmp(verbs->name, word, n) == 0) return verbs;
    return NULL;
}

/* Bytes of "list, show: " at the start of s, 0 without such; *ret_has: it names the verb. */
static size_t verbs_prefix(const char *s, const cli_verb *verbs, const char *verb, bool *ret_has)
{
    *ret_has = false;
    for (const char *at = s;;) {
        size_t n = strcspn(at, ",: ");
        if (!find_verb(verbs, at, n)) return 0;
        *ret_has |= strlen(verb) == n && strncmp(at, verb, n) == 0;
        if (strncmp(at + n, ": ", 2) == 0) return (size_t)(at + n + 2 - s);
        if (strncmp(at + n, ", ", 2) != 0) return 0;
        at += n + 2;
    }
}

/* "search: results [5]; ask: passages [4]" has two parts; without verbs in front it is for all. */
bool cli_help_of_verb(const char *help, const cli_verb *verbs, const char *verb, char *ret, size_t size)
{
    bool has;
    snprintf(ret, size, "%s", help);
    if (verbs_prefix(help, verbs, verb, &has) == 0) return true;
    for (const char *part = help; part; part = strstr(part, "; "), part = part ? part + 2 : NULL) {
        size_t skip = verbs_prefix(part, verbs, verb, &has);
        if (!has) continue;
        const char *end = part + skip;
        do end = strstr(end + 1, "; ");
        while (end && verbs_prefix(end + 2, verbs, verb, &has) == 0);
        snprintf(ret, size, "%.*s", end ? (int)(end - part - (long)skip) : (int)strlen(part + skip),
                 part + skip);
        return true;
    }
    return false;
}

static void put_options(const cli_option *options, const cli_verb *verbs, const cli_verb *of)
{
    char help[256];
    for (const cli_option *o = options; o->kind != CLI_KIND_END; o++) {
        if (!of)
            put_option(o->letter, o->name, o->arg, o->help);
        else if (cli_help_of_verb(o->help, verbs, of->name, help, sizeof help))
            put_option(o->letter, o->name, o->arg, help);
    }
    put_option('h', "help", NULL, "show this");
}

/* The verbs of a command, a row each. */
static void put_verbs(const cli_verb *verbs)
{
    char left[64];
    for (; verbs->name; verbs++) {
        snprintf(left, sizeof left, "%s%s%s", verbs->name, *verbs->args ? " " : "", verbs->args);
        if (*verbs->name) cli_help_put_row(left, verbs->summary);
    }
    putchar('\n');
}

/* What follows the name of the command. */
static void put_usage(const cli_command *cmd, const cli_verb *verbs, const cli_verb *of)
{
    if (of) {
        printf("usage: shoal %s %s [options]%s%s\n", cmd->name, of->name, *of->args ? " " : "", of->args);
        return;
    }
    printf("usage: shoal %s [options]%s", cmd->name, verbs || *cmd->usage ? " " : "");
    const char *between = "";
    for (const cli_verb *v = verbs; v && v->name; v++) {
        if (!*v->name) continue;
        printf("%s%s", between, v->name);
        between = "|";
    }
    printf("%s\n", verbs ? " ..." : cmd->usage);
}

void cli_help(const cli_command *cmd, const cli_option *options, const cli_verb *verbs, const char *word)
{
    const cli_verb *of = word ? find_verb(verbs, word, strlen(word)) : NULL;
    put_usage(cmd, verbs, of);
    printf("\n%s.\n\n", of ? of->summary : cmd->summary);
    if (verbs && !of) put_verbs(verbs);
    put_options(options, verbs, of);
}
