/* tags.h: names by which answers are found again, to be purged.
 *
 * A tag_set is the tags of one answer, or of one computation; it lies in whatever it tells of. A tag lives as
 * long as a set has it, and knows its sets, so that a purge looks at those alone.
 *
 *     tag_set s = {.user = entry};
 *     tags_add(t, &s, "model:home-chat-s");
 *     for (tag_link *l = tags_first(t, "model:home-chat-s"); l; l = l->next) ... l->set->user ...
 *     tags_drop(t, &s);
 *
 * Bytes are counted of the sets that are kept, and of a tag while a kept set has it. One thread. */
#ifndef CACHE_TAGS_H
#define CACHE_TAGS_H

#include <stdbool.h>
#include <stddef.h>

#define TAGS_MAX       64  /* of one set */
#define TAGS_BYTES_MAX 160 /* of one tag */

typedef struct tags tags;
typedef struct tag tag;
typedef struct tag_link tag_link;

typedef struct tag_set { /* zeroed but for `user` and `kept`: none yet */
    tag_link *first;
    size_t n;
    bool kept; /* its bytes count */
    void *user;
} tag_set;

struct tag_link { /* one tag of one set */
    tag *tag;
    tag_set *set;
    tag_link *prev, *next; /* of the tag's */
    tag_link *more;        /* of the set's */
};

tags *tags_new(void);    /* NULL: out of memory */
void tags_free(tags *t); /* no set has any; accepts NULL */

/* 0, also when the set has it; SHOAL_ENOMEM; SHOAL_ELIMIT: the set has TAGS_MAX, or the name is too long. */
int tags_add(tags *t, tag_set *s, const char *name);
void tags_drop(tags *t, tag_set *s); /* all of a set's */
/* `to`, which is kept, gets the tags of `from`, which is not. */
void tags_move(tags *t, tag_set *to, tag_set *from);

tag_link *tags_first(const tags *t, const char *name); /* NULL: no set has it */
bool tags_has(const tag_set *s, const char *name);
size_t tags_bytes(const tags *t); /* that count */
size_t tags_count(const tags *t);

#endif
