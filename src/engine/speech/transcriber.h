/* transcriber.h: a whole transcription on an engine, for callers that may wait.
 *
 *     transcriber_run(engine, t, on_segment, on_progress, user, &err);
 */
#ifndef SPEECH_TRANSCRIBER_H
#define SPEECH_TRANSCRIBER_H

#include "speech/transcription.h"

typedef void (*transcriber_progress_fn)(void *user, const transcription *t);

/* Blocks until all has been heard. The callbacks run on the caller's thread, progress behind each window;
 * both may be NULL. */
int transcriber_run(engine *e, transcription *t, heard_fn fn, transcriber_progress_fn progress, void *user,
                    shoal_err *err);

#endif
