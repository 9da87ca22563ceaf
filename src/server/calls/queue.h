/* queue.h: a list that its members are links of, so that putting in and taking out cost no search and no
 * memory.
 *
 *     queue waiting;                      queue_init(&waiting);
 *     queue_put(&waiting, &call->link);   // last
 *     struct my_call *c = queue_first(&waiting, struct my_call, link);   // NULL when empty
 *     queue_take(&c->link);               // out of whatever it is in; once more does nothing
 */
#ifndef CALLS_QUEUE_H
#define CALLS_QUEUE_H

#include <stddef.h>

typedef struct queue queue;
struct queue { /* the list itself, or a link of a member */
    queue *next, *prev;
};

static inline void queue_init(queue *q)
{
    q->next = q->prev = q;
}

static inline void queue_put(queue *q, queue *link)
{
    link->prev = q->prev;
    link->next = q;
    q->prev->next = link;
    q->prev = link;
}

static inline void queue_take(queue *link)
{
    link->prev->next = link->next;
    link->next->prev = link->prev;
    queue_init(link);
}

static inline void *queue_at(const queue *q, size_t offset)
{
    return q->next == q ? NULL : (char *)q->next - offset;
}

#define queue_first(q, type, member) ((type *)queue_at((q), offsetof(type, member)))

#endif
