/* turns.c: see turns.h. */
#include "process/turns.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"

void taken_turn_done(taken_turn *t)
{
    free(t->memory);
    *t = (taken_turn){0};
}

int turns_put(turn_book *b, const sha256_digest *session, const process_turn *t, uint64_t expires_ns)
{
    size_t n_request = strlen(t->request) + 1, n_subject = strlen(t->subject) + 1,
           n_reply = strlen(t->reply) + 1;
    if (n_request > TURN_TEXT_BYTES || n_subject > 16 * TURN_TEXT_BYTES || n_reply > TURN_TEXT_BYTES)
        return 0;
    taken_turn new = {.session = *session, .expires_ns = expires_ns};
    new.memory = malloc(n_request + n_subject + n_reply);
    if (!new.memory) return SHOAL_ENOMEM;
    new.turn.request = memcpy(new.memory, t->request, n_request);
    new.turn.subject = memcpy(new.memory + n_request, t->subject, n_subject);
    new.turn.reply = memcpy(new.memory + n_request + n_subject, t->reply, n_reply);
    taken_turn_done(&b->at[b->next]);
    b->at[b->next] = new;
    b->next = (b->next + 1) % TURNS_MAX;
    return 0;
}

bool turns_take(turn_book *b, const sha256_digest *session, uint64_t now_ns, taken_turn *ret)
{
    bool got = false;
    for (size_t k = 1; k <= TURNS_MAX; k++) { /* the newest first */
        taken_turn *t = &b->at[(b->next + TURNS_MAX - k) % TURNS_MAX];
        if (!t->memory || memcmp(&t->session, session, sizeof *session) != 0) continue;
        bool late = now_ns >= t->expires_ns;
        if (got || late) {
            taken_turn_done(t);
            continue;
        }
        *ret = *t;
        *t = (taken_turn){0};
        got = true;
    }
    return got;
}

void turn_book_done(turn_book *b)
{
    for (size_t i = 0; i < TURNS_MAX; i++) taken_turn_done(&b->at[i]);
}
