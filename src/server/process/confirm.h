/* confirm.h: questions that stages asked back, until they are answered.
 *
 * A question is known by a token that nobody can guess, for some time, for one answer; where the request came with
 * a session, by that, too: then its next request answers it or drops it. Behind it stand the
 * request as it was and what would have been done: only that may be done when the answer is yes. The last
 * CONFIRM_MAX questions are kept, in this process alone: at another gateway the request is made again.
 *
 * A zeroed book is an empty one. Loop thread only; time and draws arrive as arguments. */
#ifndef PROCESS_CONFIRM_H
#define PROCESS_CONFIRM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/sha256.h"

#define CONFIRM_MAX         256
#define CONFIRM_TOKEN_BYTES 16 /* drawn; twice as many digits */

typedef struct confirm_question {
    char token[2 * CONFIRM_TOKEN_BYTES + 1]; /* "": none */
    char *input;                             /* of the request; the next three are in its memory */
    const char *pipeline, *stage;
    const char *subject; /* what "it" stood for in it (process_turn); "": nothing */
    sha256_digest about; /* what would be done: devices and actions */
    uint64_t expires_ns;
    bool in_session; /* it was asked in this one: */
    sha256_digest session;
} confirm_question;

typedef struct confirm_book {
    confirm_question at[CONFIRM_MAX];
    size_t next; /* the oldest: where the next is written */
} confirm_book;

/* Note a question; token, input and strings of *q are set by the caller but for the token, which is made of
 * `draw`. Strings are copied, the token is written to ret_token. SHOAL_ENOMEM, or 0. */
int confirm_put(confirm_book *b, const confirm_question *q, const uint8_t draw[CONFIRM_TOKEN_BYTES],
                char ret_token[2 * CONFIRM_TOKEN_BYTES + 1]);
/* Take the question of a token out of the book: *ret, whose input is then the caller's to free. False: there
 * is none, or its time is over. */
bool confirm_take(confirm_book *b, const char *token, uint64_t now_ns, confirm_question *ret);
/* The same for the question that is open in a session: the last one that was asked there; all of them leave the
 * book. */
bool confirm_take_session(confirm_book *b, const sha256_digest *session, uint64_t now_ns,
                          confirm_question *ret);
void confirm_book_done(confirm_book *b);

#endif
