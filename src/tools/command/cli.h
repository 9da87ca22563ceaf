/* cli.h: how commands read their arguments, say what is wrong with them, and print.
 *
 * A command is a file src/tools/cli/GROUP/cmd_NAME.c that defines `const cli_command cmd_NAME`, and a row of CLI_COMMANDS
 * (cli/commands.h), of which help, dispatch, completions and tests are made.
 *
 *     static int run(int argc, char **argv)
 *     {
 *         bool json = false;
 *         const char *type = "q8_0";
 *         const cli_option options[] = {
 *             CLI_STRING('t', "type", "TYPE", "element type of matrices", &type),
 *             CLI_JSON(&json),
 *             CLI_END,
 *         };
 *         cli_args a;
 *         int rc = cli_parse(&a, &cmd_quantize, options, 2, 2, argc, argv);
 *         if (rc != CLI_GO) return rc;
 *         ... a.v[0], a.v[1] ...
 *     }
 *     const cli_command cmd_quantize = {"quantize", "write a smaller GGUF", "IN OUT", run, false}; */
#ifndef COMMAND_CLI_H
#define COMMAND_CLI_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

enum { CLI_OK = 0, CLI_FAILED = 1, CLI_USAGE = 2, CLI_GO = -1 }; /* exit codes; GO is none: carry on */

typedef struct cli_command {
    const char *name;
    const char *summary;               /* one line, lower case, no full stop */
    const char *usage;                 /* what follows the options: "MODEL TEXT" */
    int (*run)(int argc, char **argv); /* argv[0] is the command's name; returns the exit code */
    bool hidden;                       /* not in the list of commands */
} cli_command;

typedef enum {
    CLI_KIND_END,
    CLI_KIND_FLAG,
    CLI_KIND_STRING,
    CLI_KIND_LIST,
    CLI_KIND_INT,
    CLI_KIND_NUM
} cli_kind;

typedef struct cli_list { /* of an option that may be given several times */
    const char *v[64];
    size_t n;
} cli_list;

typedef struct cli_option {
    cli_kind kind;
    char letter;      /* 0: only the long form */
    const char *name; /* without the dashes */
    const char *arg;  /* what help calls the value; NULL for flags */
    const char *help;
    void *target;       /* bool *, const char **, cli_list *, long long * or double *; holds the default */
    long long min, max; /* of CLI_INT */
} cli_option;

#define CLI_FLAG(l, n, h, t)                            \
    {                                                   \
        CLI_KIND_FLAG, l, n, NULL, h, (bool *){t}, 0, 0 \
    }
#define CLI_STRING(l, n, a, h, t)                             \
    {                                                         \
        CLI_KIND_STRING, l, n, a, h, (const char **){t}, 0, 0 \
    }
#define CLI_LIST(l, n, a, h, t)                          \
    {                                                    \
        CLI_KIND_LIST, l, n, a, h, (cli_list *){t}, 0, 0 \
    }
#define CLI_INT(l, n, a, lo, hi, h, t)                     \
    {                                                      \
        CLI_KIND_INT, l, n, a, h, (long long *){t}, lo, hi \
    }
#define CLI_NUM(l, n, a, h, t)                        \
    {                                                 \
        CLI_KIND_NUM, l, n, a, h, (double *){t}, 0, 0 \
    }
#define CLI_JSON(t) CLI_FLAG(0, "json", "print JSON", t)
/* Of commands that ask a running server; where it is not given: cli_process_where, and SHOAL_API_KEY. */
#define CLI_SERVER_HELP "ADDRESS:PORT, http[s]://ADDRESS:PORT or unix:PATH [SHOAL_HOST, else shoal.yaml's]"
#define CLI_CA_HELP     "of https: PEM file of the CAs to trust [SHOAL_CA, else the system's]"
#define CLI_CA          CLI_STRING(0, "ca", "FILE", CLI_CA_HELP, cli_ca())
#define CLI_SERVER(t)   CLI_STRING('s', "server", "URL", CLI_SERVER_HELP, t), CLI_CA
/* Where --ca is kept, one for the process, as its command line is. */
const char **cli_ca(void);
/* What it was called before; before CLI_SERVER in no list. */
#define CLI_URL(t)   CLI_STRING('u', "url", "URL", "the same as --server", t)
#define CLI_KEY(t)   CLI_STRING(0, "key", "KEY", "the API key [SHOAL_API_KEY]", t)
#define CLI_COLOR(t) CLI_STRING(0, "color", "WHEN", "colours: auto, always or never [auto]", t)
#define CLI_END                                       \
    {                                                 \
        CLI_KIND_END, 0, NULL, NULL, NULL, NULL, 0, 0 \
    }

typedef struct cli_args { /* what is left after the options; borrowed from argv */
    char **v;
    int n;
} cli_args;

/* Read options into their targets; they may stand before, between and after the arguments, and "--"
 * ends them. CLI_GO to carry on; otherwise the exit code: CLI_OK after --help, CLI_USAGE (with the
 * reason on stderr) for anything wrong, such as fewer than min or more than max arguments (max -1:
 * any number). */
int cli_parse(cli_args *ret, const cli_command *cmd, const cli_option *options, int min, int max, int argc,
              char **argv);

/* A command with verbs: `shoal ca revoke NAME`. Of options whose help begins with verbs ("list, show: ..."),
 * the help of one verb shows its own. */
typedef struct cli_verb {
    const char *name;    /* "": what the command does without one */
    const char *args;    /* what follows it: "NAME", "" */
    const char *summary; /* as a command's */
    int min, max;        /* arguments behind it; max -1: any number */
} cli_verb;
#define CLI_VERB_END           \
    {                          \
        NULL, NULL, NULL, 0, 0 \
    }

/* The same for a command with verbs: the first argument is one of them; ret holds what stands behind it. */
int cli_parse_verb(cli_args *ret, const cli_verb **ret_verb, const cli_command *cmd,
                   const cli_option *options, const cli_verb *verbs, int argc, char **argv);

/* What a command would read: its options and its verbs (NULL: none), which are gone when take returns.
 * Nothing is run or printed. */
typedef void (*cli_take)(void *user, const cli_command *cmd, const cli_option *options,
                         const cli_verb *verbs);
void cli_tell(const cli_command *cmd, cli_take take, void *user);

/* Words of others, of files, servers and models: on a terminal without what commands it or reorders text (logging/sanitise.h),
 * into a pipe as they are. printf's number, resp. 0; -1: it could not be written, which cli_flush tells (or
 * memory is out, which is told at once, and is cli_flush's failure, too). */
int cli_printf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
int cli_write(const char *s, size_t n);
bool cli_print_lost(void); /* memory was out for something that was to be printed */
/* How wide the terminal behind stdout is; `otherwise` where there is none, or none that says. */
size_t cli_columns(size_t otherwise);
/* End the line that began at out->data[from]: on a terminal folded at words to its width (logging/fold.h),
 * further rows behind `indent` spaces; elsewhere it stays one line. */
void cli_end_line(buf *out, size_t from, size_t indent);
/* One line, as cli_printf, ended so. */
int cli_print_line(size_t indent, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The line of stderr, a terminal, that a command redraws: in the place of what it drew before, without control
 * characters, cut to the width. "": nothing is left of it. */
void cli_live_line(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* On stderr, always without them, on a terminal folded; what is longer than 2047 bytes is cut. */
void cli_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* "shoal NAME: sentence" on stderr, and the exit code that suits err->code: CLI_USAGE for
 * SHOAL_EINVALID, else CLI_FAILED. */
int cli_fail(const cli_command *cmd, const shoal_err *err);

/* What a file says wrongly is no wrong usage: rc of opening one, SHOAL_EINVALID (here and in err) turned into
 * SHOAL_EFORMAT. */
int cli_opened(int rc, shoal_err *err);

/* Send what stdout holds on its way. rc, or CLI_FAILED with the reason on stderr when that, or an earlier
 * write, failed; a reader that has left (shoal ... | head) asked for no more and gets no message. */
int cli_flush(int rc);

/* What a person may have meant by `word`: the nearest of n names, NULL when none is near. name(list, i) is
 * the i-th. */
const char *cli_nearest(const char *word, size_t n, const char *(*name)(const void *list, size_t i),
                        const void *list);
/* ", did you mean \"NAME\"?" of the nearest name, "" without one: for ends of sentences. */
typedef struct cli_hint {
    char text[64];
} cli_hint;
cli_hint cli_did_you_mean(const char *nearest);

/* The help of a command, or of its verb that `word` names (any other word, NULL: of the command). */
void cli_help(const cli_command *cmd, const cli_option *options, const cli_verb *verbs, const char *word);
/* The part of an option's help that is about a verb, in ret; false: the option is not for it. */
bool cli_help_of_verb(const char *help, const cli_verb *verbs, const char *verb, char *ret, size_t size);

#endif
