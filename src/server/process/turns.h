/* turns.h: the last turn of each session of POST /v1/process, which says what the next request is about.
 *
 *     turns_put(&book, &session, &(process_turn){"turn on the lamp", "", "Turning on Lamp."}, now_ns + TURN_NS);
 *     ... {"input": "turn it off", "session": ...} ...
 *     if (turns_take(&book, &session, now_ns, &t)) ... t.turn ...; taken_turn_done(&t);
 *
 * The last TURNS_MAX are kept, in this process alone: at another gateway a request means what it means alone. A zeroed book is an
 * empty one. Loop thread only; time arrives as an argument. */
#ifndef PROCESS_TURNS_H
#define PROCESS_TURNS_H

#include <stdbool.h>

#include "base/sha256.h"
#include "process/process.h"

#define TURNS_MAX       256
#define TURN_S          120
#define TURN_TEXT_BYTES 4096 /* a longer request or reply is not kept */

typedef struct taken_turn {
    char *memory; /* of the turn's texts; NULL: there is none */
    process_turn turn;
    sha256_digest session;
    uint64_t expires_ns;
} taken_turn;

typedef struct turn_book {
    taken_turn at[TURNS_MAX];
    size_t next; /* the oldest: where the next is written */
} turn_book;

/* Texts are copied. SHOAL_ENOMEM, or 0. */
int turns_put(turn_book *b, const sha256_digest *session, const process_turn *t, uint64_t expires_ns);
/* All of the session leave the book; *ret is the last of them, then the caller's. False: there is none, or its time is
 * over. */
bool turns_take(turn_book *b, const sha256_digest *session, uint64_t now_ns, taken_turn *ret);
void taken_turn_done(taken_turn *t); /* accepts a zeroed one */
void turn_book_done(turn_book *b);

#endif
