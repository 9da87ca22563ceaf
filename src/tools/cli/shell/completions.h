/* completions.h: what a shell offers behind `shoal`, from the tables that read the arguments (cli.h).
 *
 * Each shell has a script of its own: completions_bash.c, completions_zsh.c, completions_fish.c. All say what
 * may stand where in the same few kinds, which follow from how help names a value: FILE is a file, MODEL the
 * name of a model (or its file), DIR a folder, and everything else is the person's.
 *
 *     completions_bash(stdout);        // for ~/.local/share/bash-completion/completions/shoal */
#ifndef CLI_SHELL_COMPLETIONS_H
#define CLI_SHELL_COMPLETIONS_H

#include <stdio.h>

#include "cli/commands.h"

typedef enum { TAKES_ANY, TAKES_FILE, TAKES_FOLDER, TAKES_MODEL } completion_kind;

/* Of one word of a usage: "MODEL", "[FILE]", "TEXT|-", "PATH...", or of an option's value. */
completion_kind completion_of(const char *word);

enum { COMPLETION_PLACES = 6 };
typedef struct completion_places { /* what stands at the first, second, ... place of the arguments */
    completion_kind at[COMPLETION_PLACES];
    size_t n;
    bool goes_on; /* the last one may repeat */
} completion_places;
/* Of a usage such as "ENSEMBLE FILE...". */
completion_places completion_places_of(const char *usage);

/* Of an option: of flags TAKES_ANY, too. */
completion_kind completion_of_option(const cli_option *o);

/* Write s without what ends a quoted word of the shell: each of the characters `which` behind `escape`. */
void completion_put_quoted(FILE *to, const char *s, const char *which, const char *escape);

void completions_bash(FILE *to);
void completions_zsh(FILE *to);
void completions_fish(FILE *to);
void completions_man(FILE *to); /* OPTIONS of shoal.1, which is put in where it is installed */
void completions_man_page(FILE *to, const cli_command *cmd); /* shoal-NAME.1, in troff */
/* {"commands":[{"name","summary","hidden","usage","verbs":[{"name","args","summary"}],
 * "options":[{"name","letter","arg","help"}]}]} */
void completions_json(FILE *to);

#endif
