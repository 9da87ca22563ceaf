/* prompt.h: a GenerateRequest's prompt as token ids: messages go through the chat template, text through the
 * tokeniser, ids are there already.
 *
 *     prompt p = {0};
 *     prompt_make(&p, w, r, &err);     borrows from r, which must outlive it
 *     prompt_done(&p);
 *
 * A template may read the clock, so the same messages can give another prompt a minute later: a reply that
 * another worker began goes on with that worker's prompt_ids instead. Any thread. */
#ifndef WORKER_PROMPT_H
#define WORKER_PROMPT_H

#include "shoal/v1/worker.pb-c.h"
#include "worker/service.h"

/* A prompt: the request's own ids, or `enc` from its text. An encoder-decoder reads `enc` as its source, and
 * its prompt is how its replies begin. */
typedef struct prompt {
    const int32_t *ids;
    size_t n;
    encoding enc;
    int32_t *start; /* owned */
    bool has_source;
    chat_template *own; /* the request's; NULL: the model's is used */
    int32_t end;        /* of own: the token that ends its turns; -1: none */
    /* of the template that wrote it */
    const toolcall_syntax *calls;  /* how the reply calls tools */
    const char *calls_label;       /* the same for people (chat_template_calls_label); NULL: no template */
    const char *stop;              /* a text that ends the reply; NULL: none */
    const thinking_form *thinking; /* NULL: it does not think */
    bool shows_thinking;           /* a constrained reply may begin with a thought */
    bool in_thought;
} prompt;

/* Requests that do not name one prompt, or one that this model cannot read, are SHOAL_EINVALID; SHOAL_ELIMIT:
 * no room for a reply is left in the context. *ret can be given to prompt_done whatever is returned. */
int prompt_make(prompt *ret, worker *w, const Shoal__V1__GenerateRequest *r, shoal_err *err);
void prompt_done(prompt *p);

/* Append what the model's chat template makes of the messages. SHOAL_EINVALID where it takes none. Any
 * thread. */
int prompt_render(worker *w, const Shoal__V1__RenderRequest *r, buf *ret, shoal_err *err);

#endif
