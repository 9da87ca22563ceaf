/* ollama.h: Ollama's API in words of ours, and our answers in words of Ollama's (its docs/api.md).
 *
 * A chat or a prompt becomes the body of a streamed OpenAI request, whatever the client wants; its chunks
 * become lines, or are gathered into one object. Pure.
 *
 *     ollama_ask a;
 *     json_t *body;
 *     if (ollama_read(&a, OLLAMA_CHAT, bytes, n, &body, &e) == 0) ... POST a.path with body
 *     ollama_take(&run, chunk);  ollama_put_line(&out, &a, &run, &times)       for each chunk
 *     ollama_put_last(&out, &a, &run, &times)                                  at the end
 *
 * Fields that say how a model is to be loaded (num_ctx, num_gpu, ...) are accepted and change nothing: models
 * are loaded as shoal.yaml says, or the request that loaded them. Pictures are refused, as no model here sees
 * them. */
#ifndef DIALECTS_OLLAMA_H
#define DIALECTS_OLLAMA_H

#include <stdbool.h>
#include <stdint.h>

#include "gotemplate/gotemplate.h"
#include "messages/api_error.h"
#include "base/buf.h"
#include "json/json.h"

typedef enum ollama_kind {
    OLLAMA_CHAT,
    OLLAMA_GENERATE,
    OLLAMA_EMBED,
    OLLAMA_EMBEDDINGS,
    OLLAMA_SHOW,
    OLLAMA_PULL,
    OLLAMA_DELETE
} ollama_kind;

#define OLLAMA_FOR_GOOD (-1) /* of keep_alive_s */
#define OLLAMA_NOT_SAID (-2)

typedef struct ollama_ask {
    ollama_kind kind;
    char model[128];  /* without ":latest" */
    char shown[136];  /* as the client wrote it, which replies repeat */
    const char *path; /* whom to ask */
    bool stream;
    bool thinks;          /* it asks the model to think */
    bool truncates;       /* a chat: its oldest messages may go where all are too long */
    bool loads;           /* it has nothing to say: the model is to be there, and that is all */
    bool has_template;    /* its own, or that of the made model (ollama_fill_template), ... */
    gotemplate_uses uses; /* ... which looks at these */
    bool inserts;         /* it asks for text between the prompt and a suffix */
    int64_t keep_alive_s; /* how long it is to stay from now on; 0: it is to go */
} ollama_ask;

typedef struct ollama_times {
    int64_t unix_us; /* now */
    uint64_t total_ns, prompt_ns, reply_ns;
} ollama_times;

enum { OLLAMA_CALLS_MAX = 32 };

/* What has come of an answer. Zeroed it is empty. */
typedef struct ollama_run {
    buf text, thinking; /* since the last line, or all of it */
    struct {
        buf name, arguments;
    } calls[OLLAMA_CALLS_MAX];
    size_t n_calls;
    buf logprobs; /* of the tokens since the last line, separated by commas */
    char finish[16];
    uint64_t n_prompt, n_reply;
} ollama_run;

/* *ret_body is the caller's; NULL where nothing is asked of a model (OLLAMA_SHOW and behind). 0 or the status
 * of *e. */
int ollama_read(ollama_ask *ret, ollama_kind kind, const char *bytes, size_t n, json_t **ret_body,
                api_error *e);

/* POST /api/create, POST /api/copy: a model that is made of another. */
typedef struct ollama_making {
    char name[128], from[128]; /* without ":latest" */
    char sha256[65];           /* from the model with this file, and not by a name; "": by its name */
    bool stream;
} ollama_making;
/* *ret_made is the caller's: {"parameters", "system", "messages", "template"}, those that are said. 0 or the status of
 * *e. */
int ollama_read_create(ollama_making *ret, const char *bytes, size_t n, json_t **ret_made, api_error *e);
/* Of "sha256:HEX" the digits, in lower case; false: it is no such digest. */
bool ollama_read_digest(char ret[65], const char *digest);
int ollama_read_copy(ollama_making *ret, const char *bytes, size_t n, api_error *e);
/* Fill in what a request leaves out, for the model that `made` was made from: the body of /v1/chat/completions or
 * /v1/completions, which has no messages and gets no system message; the next, that of llama-server's completions.
 * 0 or SHOAL_ENOMEM. */
int ollama_fill_in(json_t *body, const json_t *made);
int ollama_fill_in_llama(json_t *body, const json_t *made);
/* The template of `made` into a chat that brings none; *a (may be NULL) learns what it looks at. 0 or the status of
 * *e. */
int ollama_fill_template(ollama_ask *a, json_t *body, const json_t *made, api_error *e);

/* Drop the oldest quarter of a chat's messages from its body, to a user's message where there is one; those of the
 * system and the last stay. false: nothing more can go. */
bool ollama_shorten(json_t *body);
/* For a model without a chat template: the prompt of /api/generate, with its system message and an empty line in
 * front, becomes the text of a completion. Nothing else changes. 0 or SHOAL_ENOMEM. */
int ollama_use_text(ollama_ask *a, json_t *body);

/* A chunk of ours: 0, SHOAL_EPROTOCOL (no chunk of ours) or SHOAL_ENOMEM. */
int ollama_take(ollama_run *run, const json_t *chunk);
/* What has come since the last line, as a line of its own; nothing where nothing came. */
void ollama_put_line(buf *out, const ollama_ask *a, ollama_run *run, const ollama_times *t);
/* The last line, which has all that was not said yet. */
void ollama_put_last(buf *out, const ollama_ask *a, ollama_run *run, const ollama_times *t);
void ollama_run_done(ollama_run *run);

/* From the object of /v1/embeddings. 0, SHOAL_EPROTOCOL or SHOAL_ENOMEM, as the next ones. */
int ollama_put_vectors(buf *out, const ollama_ask *a, const json_t *ours, const ollama_times *t);
/* From the list of /v1/models: those that are there (tags), or those that run (ps). Those that are in the
 * store beside it (model_manager.h) are there as well, and those that were made of others; NULL: none. */
int ollama_put_models(buf *out, const json_t *ours, const json_t *stored, const json_t *made, bool running,
                      const ollama_times *t);
/* From one model of it; made: what was made of it and is shown; NULL: the model itself. */
int ollama_put_model(buf *out, const json_t *ours, const json_t *made, const ollama_times *t);
/* Of one that only loads, or, with keep_alive 0, unloads. */
void ollama_put_loaded(buf *out, const ollama_ask *a, const ollama_times *t);
/* A line of a download: {"status": "pulling a.gguf", "digest": ..., "total": 9, "completed": 3}; sha256 ""
 * and total 0: not known. */
void ollama_put_progress(buf *out, const char *file, const char *sha256, uint64_t total, uint64_t completed);
void ollama_put_status(buf *out, const char *status);
/* What `shoal pull` calls what `ollama pull` is given: "llama3.2:1b", "hf.co/ORG/NAME:Q4". false: too long.
 */
bool ollama_reference(const char *name, char *ret, size_t size);
/* {"error":"..."} */
void ollama_put_error(buf *out, const char *message);

#endif
