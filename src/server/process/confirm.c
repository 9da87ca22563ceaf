/* confirm.c: questions that wait for an answer; see confirm.h. */
#include "process/confirm.h"

#include <stdlib.h>
#include <string.h>

static void confirm_forget(confirm_question *q)
{
    free(q->input);
    *q = (confirm_question){0};
}

static void write_token(char *out, const uint8_t *draw)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < CONFIRM_TOKEN_BYTES; i++) {
        *out++ = digits[draw[i] >> 4];
        *out++ = digits[draw[i] & 15];
    }
    *out = 0;
}

/* One block of memory: a question outlives the configuration that it was asked by. */
static bool copy_texts(confirm_question *to, const confirm_question *q)
{
    size_t n_input = strlen(q->input) + 1, n_pipeline = strlen(q->pipeline) + 1,
           n_stage = strlen(q->stage) + 1, n_subject = strlen(q->subject) + 1;
    char *all = malloc(n_input + n_pipeline + n_stage + n_subject);
    if (!all) return false;
    to->input = memcpy(all, q->input, n_input);
    to->pipeline = memcpy(all + n_input, q->pipeline, n_pipeline);
    to->stage = memcpy(all + n_input + n_pipeline, q->stage, n_stage);
    to->subject = memcpy(all + n_input + n_pipeline + n_stage, q->subject, n_subject);
    return true;
}

int confirm_put(confirm_book *b, const confirm_question *q, const uint8_t draw[CONFIRM_TOKEN_BYTES],
                char ret_token[2 * CONFIRM_TOKEN_BYTES + 1])
{
    confirm_question kept = *q, *to = &b->at[b->next];
    if (!copy_texts(&kept, q)) return SHOAL_ENOMEM;
    b->next = (b->next + 1) % CONFIRM_MAX;
    confirm_forget(to);
    *to = kept;
    write_token(to->token, draw);
    memcpy(ret_token, to->token, sizeof to->token);
    return 0;
}

/* Every byte is looked at, however early they differ. */
static bool same_token(const char *a, const char *b)
{
    unsigned differ = 0;
    for (size_t i = 0; i < 2 * CONFIRM_TOKEN_BYTES; i++) differ |= (unsigned char)(a[i] ^ b[i]);
    return differ == 0;
}

/* It leaves the book. False: its time is over. */
static bool confirm_hand_out(confirm_question *q, uint64_t now_ns, confirm_question *ret)
{
    bool late = now_ns >= q->expires_ns;
    if (late) {
        confirm_forget(q);
    } else {
        *ret = *q;
        *q = (confirm_question){0};
    }
    return !late;
}

bool confirm_take(confirm_book *b, const char *token, uint64_t now_ns, confirm_question *ret)
{
    if (strlen(token) != 2 * CONFIRM_TOKEN_BYTES) return false;
    confirm_question *found = NULL;
    for (size_t i = 0; i < CONFIRM_MAX; i++)
        if (*b->at[i].token && same_token(b->at[i].token, token)) found = &b->at[i];
    return found && confirm_hand_out(found, now_ns, ret);
}

bool confirm_take_session(confirm_book *b, const sha256_digest *session, uint64_t now_ns,
                          confirm_question *ret)
{
    bool got = false;
    for (size_t k = 1; k <= CONFIRM_MAX; k++) { /* the newest first */
        confirm_question *q = &b->at[(b->next + CONFIRM_MAX - k) % CONFIRM_MAX];
        if (!*q->token || !q->in_session || memcmp(&q->session, session, sizeof *session) != 0) continue;
        if (got)
            confirm_forget(q);
        else
            got = confirm_hand_out(q, now_ns, ret);
    }
    return got;
}

void confirm_book_done(confirm_book *b)
{
    for (size_t i = 0; i < CONFIRM_MAX; i++) confirm_forget(&b->at[i]);
}
