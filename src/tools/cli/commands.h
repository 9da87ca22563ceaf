/* commands.h: the table of the commands of `shoal`. To add one: write GROUP/cmd_NAME.c, add a row. */
#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

#include "command/cli.h"

/* X(name): in the order that help shows them, by group */
#define CLI_COMMANDS(X) \
    /* serve */         \
    X(serve)            \
    X(init)             \
    X(config)           \
    X(plan)             \
    X(load)             \
    X(stop)             \
    X(ps)               \
    X(top)              \
    X(logs)             \
    X(crash)            \
    X(cache)            \
    X(backup)           \
    X(restore)          \
    X(demo)             \
    /* ask */           \
    X(run)              \
    X(chat)             \
    X(process)          \
    X(docs)             \
    X(classify)         \
    X(tag)              \
    X(embed)            \
    X(rerank)           \
    X(score)            \
    X(seq2seq)          \
    X(fill_mask)        \
    X(transcribe)       \
    X(vad)              \
    /* models */        \
    X(models)           \
    X(show)             \
    X(pull)             \
    X(rm)               \
    X(quantize)         \
    X(edit)             \
    X(tokenize)         \
    X(logits)           \
    /* cluster */       \
    X(nodes)            \
    X(node)             \
    X(agent)            \
    X(ca)               \
    X(token)            \
    X(worker)           \
    /* measure */       \
    X(pipeline)         \
    X(route)            \
    X(eval)             \
    X(calibrate)        \
    X(bench)            \
    X(profile)          \
    X(lab)              \
    X(debug)            \
    /* shell */         \
    X(completions)      \
    X(version)

/* X(name, first command, what they do): a group goes on to the next one's first command */
#define CLI_GROUPS(X)                                                 \
    X("serve", serve, "a cluster, and what it is doing")              \
    X("ask", run, "a model, a pipeline, documents")                   \
    X("models", models, "files: which there are, fetched or changed") \
    X("cluster", nodes, "several machines")                           \
    X("measure", pipeline, "what is answered, how fast, what breaks") \
    X("shell", completions, "this program")

#define CLI_DECLARE(name) extern const cli_command cmd_##name;
CLI_COMMANDS(CLI_DECLARE)
#undef CLI_DECLARE

/* Number of commands, and the i-th. */
size_t cli_count(void);
const cli_command *cli_at(size_t i);

/* The one of that name, NULL when there is none. */
const cli_command *cli_find(const char *name);
/* Is it the first of a group? Its name and what the group is for, NULL when it is not. */
const char *cli_group_begins(const cli_command *cmd, const char **ret_summary);
/* The nearest to `word` of those that help shows; NULL when none is near. */
const char *cli_nearest_command(const char *word);

#endif
