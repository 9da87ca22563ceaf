/* tok_text.h: a text under normalisation that remembers where each byte came from.
 *
 * Every byte of `s` carries the byte range of the original text it stands for. All bytes of one
 * character share the character's range, so the offsets of half a character name the whole one. A
 * text that is still the original keeps no ranges at all (`from` == NULL): most texts stay so.
 *
 * Rewriting goes through tok_text_put, the reference library's transform: each new character says how it
 * relates to the old ones. change 0 replaces one old character, -n replaces one and removes the n
 * after it, 1 is inserted and shares the range of the old character before it. */
#ifndef TOKENIZER_TOK_TEXT_H
#define TOKENIZER_TOK_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct text_range {
    uint32_t begin, end; /* bytes of the original text */
} text_range;

typedef struct tok_text {
    const char *s; /* what it reads now */
    size_t len;
    text_range *from; /* [len], or NULL: s is the original from `base` on */
    size_t base;
    char *own; /* s, when it is ours */
    size_t cap;
} tok_text;

/* A zeroed one is fine; what it borrows stays. */
void tok_text_done(tok_text *t);
/* The range of the original that bytes [b, e) stand for; b < e. */
text_range tok_text_origin(const tok_text *t, size_t b, size_t e);

typedef struct text_writer {
    const tok_text *src;
    tok_text dst;
    size_t at; /* next old byte */
    bool failed;
} text_writer;

/* Start rewriting src; the old characters before byte `at` are dropped. */
text_writer tok_text_rewrite(const tok_text *src, size_t at);
void tok_text_put(text_writer *w, uint32_t cp, int change);
void tok_text_put_str(text_writer *w, const char *s, size_t len,
                      int first_change); /* the rest have change 1 */
/* New characters that stand for the old bytes [b, e), b < e; `at` stays. */
void tok_text_put_for(text_writer *w, const char *s, size_t len, size_t b, size_t e);
void tok_text_copy(text_writer *w, size_t until); /* old bytes [at, until) as they are */
void tok_text_skip(text_writer *w, size_t until);
/* Replaces *t (which may be w's src) with what was written. SHOAL_ENOMEM leaves *t as it was. */
int tok_text_finish(text_writer *w, tok_text *t);

/* Decode the character at *at (well-formed text) and step over it. */
uint32_t tok_text_next(const tok_text *t, size_t *at);

#endif
