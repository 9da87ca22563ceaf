/* thinking.h: models that think before they answer, and taking the two apart in a streamed reply.
 *
 *     <think>\nThe lamp is off.\n</think>\n\nYes.      thought "The lamp is off.", answer "Yes."
 *
 * A thought stands at the reply's beginning or nowhere; some templates open it in the prompt already. The
 * markers, and white space inside them and behind, belong to neither part. Text that might yet be a marker is
 * held back.
 *
 *     thinking_init(&t, form, open);
 *     thinking_push(&t, piece, n, &parts) ...; thinking_end(&t, NULL, 0, &parts); thinking_done(&t); */
#ifndef TEXT_THINKING_H
#define TEXT_THINKING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

typedef struct thinking_form {
    const char *open, *close;
} thinking_form;

/* The form that a chat template (source, NUL-terminated) knows; NULL: its models do not think. */
const thinking_form *thinking_find(const char *source);
/* Does the prompt end within a thought that the template opened? marks as of chat_template_render: what the
 * request brought opens nothing. */
bool thinking_is_open(const thinking_form *f, const char *prompt, size_t n, const uint8_t *marks);

typedef struct thinking {
    const thinking_form *form; /* NULL: everything is answer */
    enum { THINK_BEFORE, THINK_LEAD, THINK_IN, THINK_GAP, THINK_DONE } at;
    buf held;
    bool any;      /* there is a thought, if only its marker */
    size_t n_used; /* leading bytes of `held` that the last call gave away */
} thinking;

typedef struct thinking_parts {
    const char *thought, *answer; /* borrowed until the next call */
    size_t n_thought, n_answer;
} thinking_parts;

/* Room is reserved, so that tokens of usual length do not allocate. 0 or SHOAL_ENOMEM. form may be NULL. */
int thinking_init(thinking *t, const thinking_form *form, bool open);
void thinking_done(thinking *t); /* accepts a zeroed one */
/* What is certain after s[0..n). A lack of memory sticks in t->held.failed. */
void thinking_push(thinking *t, const char *s, size_t n, thinking_parts *ret);
/* The same for the reply's last bytes (n may be 0): with all that is still held back. */
void thinking_end(thinking *t, const char *s, size_t n, thinking_parts *ret);

#endif
