/* process_events.h: a run as events, for a client that wants to see it going on. No transport is known here:
 * each function appends whole events of text/event-stream to a buf.
 *
 *     stage    a stage has settled: its entry of the trace
 *     text     {"object":"shoal.process.text","text":"Turn"}: more of the answer's text
 *     answer   the answer, as it is without "stream"; then EVENT_LAST
 *
 * The texts, joined, are the answer's text (or it is null, and there are none): a stage's words go out while
 * it writes only when nothing that is still to come could take their place. */
#ifndef PROCESS_PROCESS_EVENTS_H
#define PROCESS_PROCESS_EVENTS_H

#include "base/buf.h"

/* Who sees a run going on (process_input.watch). Neither may end the run. */
typedef struct process_watch {
    void *user;
    void (*stage)(void *user, const char *entry); /* its JSON */
    void (*text)(void *user, const char *text, size_t n);
} process_watch;

void process_events_stage(buf *out, const char *entry);
void process_events_text(buf *out, const char *text, size_t n);
/* body: the answer without id and ms. */
void process_events_answer(buf *out, const char *id, double ms, const char *body, size_t n);
/* Stages and text of an answer that came from the cache. SHOAL_ENOMEM: out->failed is set. */
void process_events_replay(buf *out, const char *body, size_t n);

#endif
