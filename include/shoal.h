/* shoal.h: run small language models inside your own process.
 *
 * The mental model: a shoal_model is a loaded file plus an engine with its own threads. Calls on
 * one model may come from any thread and run together in one batch; a call blocks its caller until
 * the answer is whole. Nothing is global: two models share no state.
 *
 *     shoal_err err;
 *     shoal_model *m = NULL;
 *     if (shoal_model_open(&m, "models/home-embed.gguf", NULL, &err) != 0) {
 *         fprintf(stderr, "%s\n", err.message);
 *         return 1;
 *     }
 *     shoal_embedding e = {0};
 *     if (shoal_embed(m, "good morning", &e, &err) == 0) printf("%zu floats\n", e.n);
 *     shoal_embedding_done(&e);
 *     shoal_model_close(m);
 *
 * Errors: every call returns 0 or one of the negative codes below. `err` may be NULL; when it is
 * given and the call fails, err->message is one sentence for a person. Outputs are untouched on
 * failure. Text is UTF-8; offsets are given in bytes and in code points. */
#ifndef SHOAL_H
#define SHOAL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* X(name, code, what it means to a person) */
#define SHOAL_ERROR_TABLE(X)                                                \
    X(SHOAL_EINVALID, -1, "the request or an argument is wrong")            \
    X(SHOAL_ENOMEM, -2, "out of memory")                                    \
    X(SHOAL_EIO, -3, "a file or socket could not be read or written")       \
    X(SHOAL_ENOTFOUND, -4, "no such file, model or name")                   \
    X(SHOAL_EFORMAT, -5, "the file or message is malformed")                \
    X(SHOAL_EUNSUPPORTED, -6, "well formed, but not supported")             \
    X(SHOAL_ELIMIT, -7, "over a configured or hard limit")                  \
    X(SHOAL_EFULL, -8, "no room now, try again later")                      \
    X(SHOAL_ECANCELLED, -9, "cancelled by the caller")                      \
    X(SHOAL_EDEADLINE, -10, "the deadline cannot be met or was missed")     \
    X(SHOAL_EDIGEST, -11, "the file is not the one that was pinned")        \
    X(SHOAL_EUNAVAILABLE, -12, "the worker or server is not there")         \
    X(SHOAL_EAUTH, -13, "not allowed")                                      \
    X(SHOAL_EPROTOCOL, -14, "the peer broke the protocol")                  \
    X(SHOAL_EINTERNAL, -15, "a defect in Shoal")

enum {
    SHOAL_OK = 0,
#define SHOAL_ERROR_ENUM(name, code, text) name = code,
    SHOAL_ERROR_TABLE(SHOAL_ERROR_ENUM)
#undef SHOAL_ERROR_ENUM
};

typedef struct shoal_err {
    int code;          /* 0 or a negative SHOAL_E... */
    char message[512]; /* one sentence, NUL-terminated, UTF-8 */
} shoal_err;

/* The name ("SHOAL_EIO") and the meaning of a code; never NULL. */
const char *shoal_err_name(int code);
const char *shoal_err_text(int code);

#ifdef __cplusplus
}
#endif
#endif
