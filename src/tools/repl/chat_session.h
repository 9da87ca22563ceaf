/* chat_session.h: one sitting of `shoal chat`: who replies, what was said, and how it is asked.
 *
 * A model that a pipeline of shoal.yaml speaks to is told what that pipeline tells it: the home and its
 * devices. As there, each line then stands alone (such models were trained on single requests), and the
 * pipeline's rules answer what is no clear request.
 *
 *     chat_session s = {.o = &options};
 *     chat_session_open(&s, "home-chat-s", err);
 *     chat_session_turn(&s, "turn on the light", err);     // shown on stdout
 *     chat_command_run(&s, "/set temperature 0.3", err);
 *     chat_session_close(&s);
 *
 * One thread. */
#ifndef REPL_CHAT_SESSION_H
#define REPL_CHAT_SESSION_H

#include "logging/fold.h"
#include "repl/chat_voice.h"
#include "command/cli_home.h"

typedef struct chat_options {
    cli_model_options model;
    cli_sampling sampling;
    const char *system, *config, *server, *key, *color;
    bool json, no_home, no_history, here;
} chat_options;

typedef struct chat_session {
    const chat_options *o;
    chat_voice *voice;
    cli_home *home; /* NULL: messages are kept from line to line */
    chat_talk talk;
    chat_settings settings;
    fold fold;             /* of the reply that is being shown */
    bool terminal, colour; /* of standard output; what is said beside replies may be faint */
    bool untold;           /* the model has a home, and is not told of it since the talk goes on */
    bool unheard;          /* a reply could not be written, which has been said */
    bool failed;           /* so did a line */
    bool leaves;           /* /quit */
} chat_session;

/* Find the model and its home: a running server that has it, else its file. name NULL: the first that talks.
 */
int chat_session_open(chat_session *s, const char *name, shoal_err *err);
void chat_session_close(chat_session *s);

/* Another model in its place, told its own home; when there is none, the old one stays. A talk that goes on
 * from line to line goes on with it, and is told of no home. */
int chat_session_choose(chat_session *s, const char *name, shoal_err *err);
/* One line of the person, one reply. When it fails, the talk is as it was. */
int chat_session_turn(chat_session *s, const char *line, shoal_err *err);
/* The last reply is made again. */
int chat_session_retry(chat_session *s, shoal_err *err);
/* Tell the model this from now on, instead of the home's; "": nothing. */
int chat_session_system(chat_session *s, const char *text, shoal_err *err);

/* Is a line a command: "/help", but not "/ " or "//..."? What to say to the model instead, for the latter. */
bool chat_command_is(const char *line, const char **ret_said);
/* Do it; what it has to say is on stdout. What was asked wrongly is an error. */
int chat_command_run(chat_session *s, const char *line, shoal_err *err);

/* For the line that comes now: Ctrl-C stops its reply or its wait for a server, pressed again it ends the
 * process. */
void chat_session_watch_signals(chat_session *s);

#endif
