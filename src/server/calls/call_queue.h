/* call_queue.h: a list that its members are links of, so that putting in and taking out cost no search and no
 * memory.
 *
 *     call_queue waiting;                 call_queue_init(&waiting);
 *     call_queue_put(&waiting, &call->link);   // last
 *     struct my_call *c = call_queue_first(&waiting, struct my_call, link);   // NULL when empty
 *     call_queue_take(&c->link);               // out of whatever it is in; once more does nothing
 */
#ifndef CALLS_CALL_QUEUE_H
#define CALLS_CALL_QUEUE_H

#include <stddef.h>

typedef struct call_queue call_queue;
struct call_queue { /* the list itself, or a link of a member */
    call_queue *next, *prev;
};

static inline void call_queue_init(call_queue *q)
{
    q->next = q->prev = q;
}

static inline void call_queue_put(call_queue *q, call_queue *link)
{
    link->prev = q->prev;
    link->next = q;
    q->prev->next = link;
    q->prev = link;
}

static inline void call_queue_take(call_queue *link)
{
    link->prev->next = link->next;
    link->next->prev = link->prev;
    call_queue_init(link);
}

static inline void *call_queue_at(const call_queue *q, size_t offset)
{
    return q->next == q ? NULL : (char *)q->next - offset;
}

#define call_queue_first(q, type, member) ((type *)call_queue_at((q), offsetof(type, member)))

#endif
