/* chat_voice.h: who replies in `shoal chat`: a model in this process, or one of a running Shoal.
 *
 *     chat_voice *v;
 *     chat_voice_here(&v, "model.gguf", &model_options, err);     // or
 *     chat_voice_server(&v, &found, key, err);
 *     chat_voice_reply(v, &talk, &settings, &show, &said, err);
 *     chat_said_done(&said);
 *     chat_voice_close(v);
 *
 * One thread; chat_voice_stop alone may be called from a signal handler. */
#ifndef REPL_CHAT_VOICE_H
#define REPL_CHAT_VOICE_H

#include <jansson.h>
#include <signal.h>

#include "repl/chat_talk.h"
#include "command/cli_generate.h"
#include "command/cli_model.h"
#include "command/served.h"

typedef struct chat_settings {
    cli_sampling sampling; /* its schema is the settings' */
    json_t *tools;         /* NULL: none; of servers only */
} chat_settings;

/* A reply as it comes. Text and thoughts answer not 0 when nobody reads. */
typedef struct chat_show {
    void *user;
    bool raw; /* calls come as the model writes them, within the text (where that is known) */
    int (*text)(void *user, const char *s, size_t n);
    int (*thought)(void *user, const char *s, size_t n);
    void (*call)(void *user, const char *name);
    void (*arguments)(void *user, const char *json, size_t n);
} chat_show;

typedef struct chat_said {
    buf text, thought, calls; /* calls: a JSON array, empty when there are none */
    size_t n_tokens;
    double first_ms, ms; /* to the first piece; all of it */
    double tokens_per_s; /* behind the first; 0: not known */
    double mean_prob;    /* how sure the model was; 0: not known */
    bool stopped;        /* chat_voice_stop */
    char finish[24];     /* why it ended, as OpenAI's finish_reason; "": not known */
} chat_said;

typedef struct chat_voice {
    const char *model; /* its name */
    const char *where; /* "http://..."; "": in this process */
    const char *use;   /* what it is for; NULL: the manifest may say it */
    bool plain;        /* of a server: it has no chat template of its own */
    bool pipeline;     /* of a server: it knows its devices, and each line stands for itself */
    volatile sig_atomic_t stopped;
    int (*reply)(struct chat_voice *v, const chat_talk *t, const chat_settings *s, const chat_show *show,
                 chat_said *ret, shoal_err *err);
    void (*stop)(struct chat_voice *v); /* signal handler; NULL: `stopped` is enough */
    void (*close)(struct chat_voice *v);
} chat_voice;

/* MODEL as cli_model_open takes it; it must generate. */
int chat_voice_here(chat_voice **ret, const char *arg, const cli_model_options *o, shoal_err *err);
/* The model that was found there. key is borrowed, may be NULL. */
int chat_voice_server(chat_voice **ret, const served *found, const char *key, shoal_err *err);
void chat_voice_close(chat_voice *v); /* accepts NULL */

/* What was stopped is a success, too. *ret is to be done with either way. */
int chat_voice_reply(chat_voice *v, const chat_talk *t, const chat_settings *s, const chat_show *show,
                     chat_said *ret, shoal_err *err);
void chat_voice_stop(chat_voice *v);
void chat_said_done(chat_said *s);

/* A model with another task than "generate" does not talk: what to do with it instead, as err. */
int chat_voice_refuse(const char *model, const char *task, shoal_err *err);

/* The parts of the server's voice that make no calls, for tests: the body of the request, appended; and what
 * one event of the answer brings. */
int chat_voice_ask(buf *out, const char *model, const chat_talk *t, const chat_settings *s, shoal_err *err);
typedef struct chat_heard {
    const chat_show *show;
    chat_said *said;
    json_t *calls; /* an array; grows */
    size_t n_pieces;
    bool done;     /* [DONE] has come */
    shoal_err err; /* an event said so */
} chat_heard;
int chat_voice_hear(chat_heard *h, const char *data, size_t n); /* not 0: that is enough */

#endif
