/* list.h: an intrusive list, doubly linked and circular: its members contain their links, so that putting in
 * and taking out cost no search and no memory.
 *
 *     list_node waiting;                 list_init(&waiting);
 *     list_put(&waiting, &call->link);                           // last
 *     struct my_call *c = list_first(&waiting, struct my_call, link);   // NULL when empty
 *     list_take(&c->link);               // out of whatever it is in; once more does nothing
 *     list_each(c, &waiting, struct my_call, link) look_at(c);   // which may take c out, and no other
 *
 * A list by use (LRU) has the member unused for longest first: list_move(&uses, &entry->use) at each use. */
#ifndef BASE_LIST_H
#define BASE_LIST_H

#include <stddef.h>

typedef struct list_node list_node;
struct list_node { /* the list itself, or a link of a member */
    list_node *next, *prev;
};

static inline void list_init(list_node *list)
{
    list->next = list->prev = list;
}

static inline void list_put(list_node *list, list_node *link)
{
    link->prev = list->prev;
    link->next = list;
    list->prev->next = link;
    list->prev = link;
}

static inline void list_take(list_node *link)
{
    link->prev->next = link->next;
    link->next->prev = link->prev;
    list_init(link);
}

/* To the end of this list, out of whatever it is in. */
static inline void list_move(list_node *list, list_node *link)
{
    list_take(link);
    list_put(list, link);
}

/* The member behind that link, whose own lies `offset` bytes in it; NULL: there is none. */
static inline void *list_behind(const list_node *list, const list_node *link, size_t offset)
{
    return link->next == list ? NULL : (char *)link->next - offset;
}

#define list_first(list, type, member)    ((type *)list_behind((list), (list), offsetof(type, member)))
#define list_next(list, at, type, member) ((type *)list_behind((list), &(at)->member, offsetof(type, member)))

#define list_each(at, list, type, member)                         \
    for (type *at = list_first((list), type, member), *at##_next; \
         at && ((at##_next = list_next((list), at, type, member)), 1); at = at##_next)

#endif
