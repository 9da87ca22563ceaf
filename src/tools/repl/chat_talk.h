/* chat_talk.h: what has been said in `shoal chat`: messages, and the file that keeps them.
 *
 *     chat_talk t = {0};
 *     chat_talk_add(&t, "user", "hello", NULL, err);
 *     chat_talk_save(&t, "home-chat-s", "talk.json", err);
 *     chat_talk_done(&t);
 *
 * One thread. */
#ifndef REPL_CHAT_TALK_H
#define REPL_CHAT_TALK_H

#include <jansson.h>

#include "base/err.h"

enum { CHAT_MESSAGES_MAX = 512 };

typedef struct chat_message {
    const char *role; /* static: "system", "user", "assistant", "tool" */
    char *content;
    /* Of an assistant, a JSON array as in OpenAI's tool_calls; of a tool, the call's id; or NULL. */
    char *calls;
} chat_message;

typedef struct chat_talk {
    chat_message messages[CHAT_MESSAGES_MAX];
    size_t n;
} chat_talk;

/* Both texts are copied. SHOAL_ELIMIT: there are too many. */
int chat_talk_add(chat_talk *t, const char *role, const char *content, const char *calls, shoal_err *err);
/* Forget all but the first n. */
void chat_talk_cut(chat_talk *t, size_t n);
void chat_talk_done(chat_talk *t);
/* The system message, NULL when there is none; and another one ("": none). */
const char *chat_talk_system(const chat_talk *t);
int chat_talk_set_system(chat_talk *t, const char *text, shoal_err *err);

/* As OpenAI's messages; calls that the last assistant made and nobody carried out get a tool's word that says
 * so, since models and servers want one. NULL: out of memory. */
json_t *chat_talk_json(const chat_talk *t);

/* A file that is there is written over only when it is empty or another saved talk; any other one is
 * SHOAL_EINVALID. */
int chat_talk_save(const chat_talk *t, const char *model, const char *path, shoal_err *err);
/* Read {"messages": [...]} or an array of messages; *t is another talk only when this returns 0. */
int chat_talk_load(chat_talk *t, const char *path, shoal_err *err);
int chat_talk_parse(chat_talk *t, const char *text, size_t n, const char *what, shoal_err *err);

#endif
