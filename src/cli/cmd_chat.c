/* shoal chat MODEL: a conversation, line by line. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "cli/cli_generate.h"
#include "cli/cli_model.h"

#define MESSAGES_MAX 512

typedef struct conversation {
    shoal_message messages[MESSAGES_MAX]; /* contents are malloc'd, roles are constants */
    size_t n;
    bool terminal, json;
    bool unheard; /* an answer could not be written, which has been said */
} conversation;

static int add(conversation *c, const char *role, const char *content, shoal_err *err)
{
    if (c->n == MESSAGES_MAX)
        return err_set(err, SHOAL_ELIMIT, "the conversation has %d messages: start a new one", MESSAGES_MAX);
    char *copy = strdup(content);
    if (!copy) return err_nomem(err);
    c->messages[c->n++] = (shoal_message){role, copy};
    return 0;
}

static int show(void *user, const char *text, size_t n)
{
    (void)user;
    return fwrite(text, 1, n, stdout) == n && fflush(stdout) == 0 ? 0 : 1;
}

static int print_json(const shoal_generation *g)
{
    buf out = {0};
    buf_puts(&out, "{\"role\":\"assistant\",\"content\":");
    json_put_string(&out, g->text, g->n_bytes);
    buf_printf(&out, ",\"tokens\":%zu,\"mean_prob\":%.6g,\"ms\":%.3f}", g->n_ids, g->mean_prob,
               g->prefill_ms + g->decode_ms);
    int rc = cli_print(&out);
    buf_done(&out);
    return rc;
}

/* One line of the person, one reply; both stay in the conversation. */
static int turn(shoal_model *m, conversation *c, const char *line, const shoal_generate_options *go,
                shoal_err *err)
{
    shoal_generation g = {0};
    int rc = add(c, "user", line, err);
    if (rc == 0) rc = shoal_chat(m, c->messages, c->n, go, c->json ? NULL : show, NULL, &g, err);
    if (rc == 0) rc = add(c, "assistant", g.text, err);
    if (rc == 0 && c->json)
        c->unheard = print_json(&g) != CLI_OK;
    else if (rc == 0)
        putchar('\n');
    if (rc == 0 && c->terminal)
        fprintf(stderr, "  [%zu tokens, %.0f ms, sure to %.0f %%]\n", g.n_ids, g.prefill_ms + g.decode_ms,
                100 * g.mean_prob);
    shoal_generation_done(&g);
    return rc;
}

static int converse(shoal_model *m, conversation *c, const shoal_generate_options *go, shoal_err *err)
{
    char *line = NULL;
    size_t cap = 0;
    int rc = 0;
    while (rc == 0 && !c->unheard) {
        if (c->terminal) fputs("> ", stderr);
        ssize_t n = getline(&line, &cap, stdin);
        if (n < 0) break;
        line[strcspn(line, "\n")] = '\0';
        if (*line) rc = turn(m, c, line, go, err);
        fflush(stdout);
    }
    free(line);
    return rc;
}

static int run(int argc, char **argv)
{
    cli_model_options mo = {0};
    cli_sampling s = {.max_tokens = 256};
    const char *system = NULL;
    bool json = false;
    const cli_option options[] = {
        CLI_STRING('s', "system", "TEXT", "the system message", &system),
        CLI_SAMPLING_OPTIONS(&s),
        CLI_MODEL_OPTIONS(&mo),
        CLI_JSON(&json),
        CLI_END,
    };
    cli_args a;
    int rc = cli_parse(&a, &cmd_chat, options, 1, 1, argc, argv);
    if (rc != CLI_GO) return rc;
    shoal_err err = {0};
    shoal_model *m = NULL;
    shoal_generate_options go;
    conversation *c = calloc(1, sizeof *c);
    rc = c ? cli_sampling_resolve(&s, &go, &err) : err_nomem(&err);
    if (rc == 0) rc = cli_model_open(&m, a.v[0], &mo, &err);
    if (rc == 0 && system) rc = add(c, "system", system, &err);
    if (rc == 0) {
        c->json = json;
        c->terminal = !json && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
        if (c->terminal) fprintf(stderr, "Say something; an empty input (Ctrl-D) ends.\n");
        rc = converse(m, c, &go, &err);
    }
    if (ferror(stdout))
        rc = cli_flush(CLI_OK);
    else if (rc != 0)
        rc = cli_fail(&cmd_chat, &err);
    else
        rc = c->unheard ? CLI_FAILED : CLI_OK;
    for (size_t i = 0; c && i < c->n; i++) free((char *)c->messages[i].content);
    free(c);
    shoal_model_close(m);
    free(s.schema);
    return rc;
}

const cli_command cmd_chat = {"chat", "talk with a model, line by line", "MODEL", run, false};
