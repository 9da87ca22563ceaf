/* listen.h: a whole transcription on an engine, for callers that may wait.
 *
 *     speech_listen(engine, t, on_segment, on_progress, user, &err);
 */
#ifndef SPEECH_LISTEN_H
#define SPEECH_LISTEN_H

#include "speech/transcription.h"

typedef void (*listen_progress_fn)(void *user, const transcription *t);

/* Blocks until all has been heard. The callbacks run on the caller's thread, progress behind each window;
 * both may be NULL. */
int speech_listen(engine *e, transcription *t, heard_fn fn, listen_progress_fn progress, void *user,
                  shoal_err *err);

#endif
