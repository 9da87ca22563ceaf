/* compound.c: taking words apart; see compound.h. */
#include "match/compound.h"

#include <string.h>

typedef struct splitter {
    const language *t;
    compound_known_fn known;
    void *user;
    compound *out;
    unsigned steps; /* what is left of the work one word may take */
} splitter;

static bool split_from(splitter *s, const char *word, size_t n);

/* word[0..len) is a part, perhaps with a link at its end, and the rest of the word is parts, too. */
static bool takes(splitter *s, const char *word, size_t n, size_t len)
{
    const word_list *links = &s->t->links;
    for (size_t i = 0; i < links->n; i++) {
        size_t tail = strlen(links->at[i]);
        if (len < tail + COMPOUND_PART_BYTES || memcmp(word + len - tail, links->at[i], tail) != 0) continue;
        size_t at = s->out->n;
        char *part = s->out->parts[at];
        memcpy(part, word, len - tail);
        part[len - tail] = 0;
        if (!s->known(s->user, part)) continue;
        s->out->n = at + 1;
        if (split_from(s, word + len, n - len)) return true;
        s->out->n = at;
    }
    return false;
}

static bool split_from(splitter *s, const char *word, size_t n)
{
    size_t at = s->out->n;
    if (at == COMPOUND_PARTS_MAX || s->steps == 0) return false;
    s->steps--;
    if (at > 0 && n >= COMPOUND_PART_BYTES) {
        memcpy(s->out->parts[at], word, n + 1);
        if (s->known(s->user, s->out->parts[at])) {
            s->out->n = at + 1;
            return true;
        }
    }
    for (size_t len = n; len-- > COMPOUND_PART_BYTES;)
        if (n - len >= COMPOUND_PART_BYTES && takes(s, word, n, len)) return true;
    return false;
}

/* Most words end in nothing that is known: seen before all the ways to cut them are tried. */
static bool may_split(const splitter *s, const char *word, size_t n)
{
    for (size_t at = COMPOUND_PART_BYTES; at + COMPOUND_PART_BYTES <= n; at++)
        if (s->known(s->user, word + at)) return true;
    return false;
}

bool compound_split(compound *ret, const language *t, const char *word, compound_known_fn known, void *user)
{
    char other[RESPELLED_BYTES];
    size_t n = strlen(word);
    ret->n = 0;
    if (!t->links.n || n >= COMPOUND_BYTES_MAX || n < 2 * COMPOUND_PART_BYTES) return false;
    splitter s = {.t = t, .known = known, .user = user, .out = ret, .steps = 64};
    if (!may_split(&s, word, n)) return false;
    if (split_from(&s, word, n)) return true;
    ret->n = 0;
    return device_lexicon_respell(word, other) && split_from(&s, other, strlen(other));
}
