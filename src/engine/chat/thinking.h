/* thinking.h: models that think before they answer, and taking thought and answer apart in a streamed reply.
 *
 *     <think>\nThe lamp is off.\n</think>\n\nYes.      thought "The lamp is off.", answer "Yes."
 *     <|channel|>analysis<|message|>Off.<|end|><|start|>assistant<|channel|>final<|message|>Yes.      alike
 *
 * One row of a table per form. A thought stands at the reply's beginning unless the form says `again`; some
 * templates open it in the prompt already. The markers, and white space inside them and behind, belong to
 * neither part, and neither do the frames that some models write around an answer. Text that might yet be a
 * marker is held back.
 *
 *     thinking_init(&t, form, open, NULL);
 *     thinking_push(&t, piece, n, &parts) ...; thinking_end(&t, NULL, 0, &parts); thinking_done(&t); */
#ifndef CHAT_THINKING_H
#define CHAT_THINKING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

enum { THINKING_FRAMES = 16, THINKING_ENDS = 4 };

typedef struct thinking_form {
    const char *name;
    const char *open, *close; /* open NULL: there are no thoughts, only frames */
    const char *sign; /* a template that holds this uses the form; NULL: one that holds open or close */
    const char *ends[THINKING_ENDS];     /* these end a thought, too, and belong to what follows it */
    const char *frames[THINKING_FRAMES]; /* dropped wherever they stand outside of thoughts */
    /* Heads of calls: up to head_end nothing is looked for behind them ... */
    const char *calls[THINKING_ENDS];
    const char *others[THINKING_ENDS]; /* ... and messages to others than the client, which are dropped */
    const char *head_end;
    const char *lead;             /* dropped at an answer's very beginning */
    bool again;                   /* a thought may come behind an answer, too */
    const char *between, *answer; /* what the model writes behind a thought, and before an answer, or NULL */
} thinking_form;

/* The table. */
const thinking_form *thinking_forms(size_t *ret_n);
/* The form that a chat template (source, NUL-terminated) knows; NULL: its models do not think. */
const thinking_form *thinking_find(const char *source);
/* A row by its name; NULL: there is none. */
const thinking_form *thinking_named(const char *name);
/* Is s[0..n) a part of one of the form's markers? Asked about control tokens, whose text is not shown else.
 */
bool thinking_shows(const thinking_form *f, const char *s, size_t n);
/* Does the prompt end within a thought that the template opened? marks as of chat_template_render: what the
 * request brought opens nothing. */
bool thinking_is_open(const thinking_form *f, const char *prompt, size_t n, const uint8_t *marks);

typedef struct thinking {
    const thinking_form *form; /* NULL: everything is answer */
    const char *const *ends;   /* markers of calls that end a thought which nothing else has ended; or NULL */
    enum { THINK_BEFORE, THINK_LEAD, THINK_IN, THINK_GAP, THINK_DONE, THINK_CALL, THINK_OTHER } at;
    buf held;
    buf thought, answer; /* what the last call gave away, where it is not the caller's own bytes */
    bool any;            /* there is a thought, if only its marker */
} thinking;

typedef struct thinking_parts {
    const char *thought, *answer; /* borrowed until the next call */
    size_t n_thought, n_answer;
} thinking_parts;

/* Room is reserved, so that tokens of usual length do not allocate. 0 or SHOAL_ENOMEM. form and ends (an
 * array that ends in NULL, borrowed) may be NULL. */
int thinking_init(thinking *t, const thinking_form *form, bool open, const char *const *ends);
void thinking_done(thinking *t); /* accepts a zeroed one */
/* What is certain after s[0..n). A lack of memory is seen by thinking_failed, and stays. */
void thinking_push(thinking *t, const char *s, size_t n, thinking_parts *ret);
/* The same for the reply's last bytes (n may be 0): with all that is still held back. */
void thinking_end(thinking *t, const char *s, size_t n, thinking_parts *ret);
bool thinking_failed(const thinking *t);

#endif
