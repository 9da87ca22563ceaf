/* A conversation's file, or else an event of a reply, that anybody may have written: what is read can be
 * written and read again. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "repl/chat_voice.h"
#include "memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int nobody(void *user, const char *s, size_t n)
{
    (void)user, (void)s, (void)n;
    return 0;
}

static void no_call(void *user, const char *name)
{
    (void)user;
    if (!*name) abort();
}

static void no_arguments(void *user, const char *json, size_t n)
{
    (void)user, (void)json;
    if (n == 0) abort();
}

static void hear(const char *s, size_t n)
{
    const chat_show show = {.text = nobody, .thought = nobody, .call = no_call, .arguments = no_arguments};
    chat_said said = {0};
    chat_heard h = {.show = &show, .said = &said};
    int rc = chat_voice_hear(&h, s, n);
    if (rc != 0 && !h.done && !h.err.code) abort();
    json_decref(h.calls);
    chat_said_done(&said);
}

static void write_again(const chat_talk *t)
{
    static chat_talk again;
    json_t *all = chat_talk_json(t);
    char *text = all ? json_dumps(all, JSON_COMPACT) : NULL;
    if (text && chat_talk_parse(&again, text, strlen(text), "again", NULL) == SHOAL_EFORMAT) abort();
    chat_talk_done(&again);
    free(text);
    json_decref(all);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static chat_talk talk;
    shoal_err err = {0};
    int rc = chat_talk_parse(&talk, (const char *)data, size, "file", &err);
    if (rc != 0 && !*err.message) abort();
    if (rc == 0) write_again(&talk);
    chat_talk_done(&talk);
    hear((const char *)data, size);
    return 0;
}
