/* backend_speech.c: a Whisper-shaped model: a network and its engine, and the table of its tokens
 * (speech/whisper_tokens.h) that steers what it writes down. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/backend_net_impl.h"

typedef struct speech_backend {
    net_backend net; /* first: the operations of backend_net.c take it */
    whisper_tokens tokens;
    bool full_window;
} speech_backend;

int backend_speech_recognises(backend_source *s, shoal_err *err)
{
    return backend_model_is_for(s, TASK_TRANSCRIBE, err);
}

static void speech_close(void *state)
{
    speech_backend *b = state;
    whisper_tokens_done(&b->tokens);
    backend_net_close_state(&b->net);
    free(b);
}

static int speech_open(void **ret, backend_source *s, backend_digests *ret_digests, shoal_err *err)
{
    speech_backend *b = calloc(1, sizeof *b);
    if (!b) return err_nomem(err);
    int rc = backend_net_open_state(&b->net, s, ret_digests, err);
    if (rc == 0)
        *ret = b;
    else
        speech_close(b);
    return rc;
}

/* A short window gives other bits than the whole one, which is the file's. */
static void name_window(backend_model *m)
{
    size_t n = strlen(m->precision);
    snprintf(m->precision + n, sizeof m->precision - n, ",window=speech");
}

static int speech_start(void *state, const backend_options *o, const backend_env *env, shoal_err *err)
{
    speech_backend *b = state;
    int rc = whisper_tokens_init(&b->tokens, b->net.model.m, err);
    if (rc == 0) rc = backend_net_start(&b->net, o, env, err);
    b->full_window = o->full_window;
    if (rc == 0 && transcription_shortens(&b->tokens) && !b->full_window) name_window(&b->net.model);
    return rc;
}

static void speech_describe(const void *state, backend_about *ret)
{
    const speech_backend *b = state;
    backend_net_describe(&b->net, ret);
    ret->speech = &b->tokens;
    ret->full_window = b->full_window;
}

static int speech_transcribe(void *state, transcription *t, gen_event_fn fn, void *user, uint64_t *ret_id,
                             shoal_err *err)
{
    gen_request r;
    enc_request source;
    transcription_request(t, &r, &source);
    return engine_generate(((speech_backend *)state)->net.engine, &r, fn, user, ret_id, err);
}

const backend_ops backend_speech = {.name = "speech",
                                    .engine = BIT_IDENTITY_ENGINE,
                                    .numerics = NUMERICS_CONTRACT,
                                    .open = speech_open,
                                    .start = speech_start,
                                    .describe = speech_describe,
                                    .stats = backend_net_stats,
                                    .adapter = backend_net_adapter,
                                    .transcribe = speech_transcribe,
                                    .cancel = backend_net_cancel,
                                    .stop = backend_net_stop,
                                    .close = speech_close};
