/* mention.h: where a sentence names devices; for match*.c and mention*.c alone.
 *
 * Each unit of a sentence has a role. What names something is a run of content, between what is asked for
 * ("mach", "an"), joins and signs; a determiner begins a new one, unless a preposition leads to it ("Licht in
 * der Küche"). A word that no list has is unknown, and a mention that has one names nothing that is
 * there. */
#ifndef MATCH_MENTION_H
#define MATCH_MENTION_H

#include "match/match.h"
#include "nlu/devices.h"

#define MENTIONS_MAX 32 /* of one sentence */

typedef enum unit_role {
    ROLE_BREAK,
    ROLE_CONTENT,
    ROLE_UNKNOWN,
    ROLE_NUMBER,
    ROLE_DETERMINER,
    ROLE_PREPOSITION,
    ROLE_ALL,
    ROLE_BOTH,
    ROLE_EVERYTHING,
    ROLE_EXCEPT,
    ROLE_JOIN,
    ROLE_VERB,
    ROLE_FILLER,
} unit_role;

/* A word, a part of a compound, or several words that mean one thing. */
typedef struct mention_token {
    const char *s;     /* folded; digits for numbers */
    const char *whole; /* the word that it is part of, or itself */
    word_sense sense;  /* in the language that is spoken */
} mention_token;

typedef struct spoken_mention {
    size_t n;
    size_t n_own; /* the first of them are its own; the others are of what stands beside it */
    mention_token tokens[MENTION_WORDS_MAX];
    size_t begin, end; /* bytes of the text, from the first content to the last */
    bool all, both, everything;
    bool unknown;  /* a word of it is not known */
    bool placed;   /* begins with a preposition */
    bool fixed;    /* begins with a determiner, or is meant by one */
    bool joined;   /* a join stands before it */
    bool excluded; /* it is left out of what stands before */
    bool full;     /* it has more words than are looked at */
} spoken_mention;

/* A sentence under way. */
typedef struct sentence {
    const match_devices *x;
    const utterance *d;
    const language *t;
    const unit *u;
    size_t n;
    const match_options *o;
    unit_role role[UNITS_MAX];
    unit_set named;      /* units of whole names of two words or more */
    unit_set run_begins; /* where such a name begins */
    struct {
        size_t n; /* units; 0: none begins here */
        word_sense sense;
    } phrase[UNITS_MAX]; /* "living room" */
    bool asks;           /* a verb is among them */
    size_t n_mentions;
    spoken_mention *mentions; /* [MENTIONS_MAX] */
} sentence;

/* Is the word a part of compounds in this sentence (a `const sentence *`): a word of a device, a kind or a
 * room? */
bool mention_is_part(void *sentence, const char *word);
/* Give each unit its role (mention_role.c). */
void mention_roles(sentence *s);
/* Read the mentions out of the roles, and what they take from each other (mention.c). SHOAL_ENOMEM, or 0. */
int mention_read(sentence *s, arena *a);

static inline uint64_t token_kinds(const mention_token *t)
{
    return t->sense.one | t->sense.many;
}

#endif
