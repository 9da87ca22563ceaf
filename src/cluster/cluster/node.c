/* node.c: copies of what agents say. */
#include "cluster/node.h"

#include <stdlib.h>
#include <string.h>

static size_t size_of(const char *s)
{
    return s ? strlen(s) + 1 : 0;
}

static const char *move_in(char **at, const char *s)
{
    if (!s) return NULL;
    char *p = *at;
    size_t n = strlen(s) + 1;
    memcpy(p, s, n);
    *at += n;
    return p;
}

int node_copy(node **ret, const node *n, shoal_err *err)
{
    if (!n->name || !*n->name) return err_set(err, SHOAL_EINVALID, "a node must have a name");
    size_t table = n->n_labels * sizeof(char *);
    size_t bytes = sizeof *n + table + size_of(n->name) + size_of(n->site) + size_of(n->address) +
                   size_of(n->isa) + size_of(n->group);
    for (size_t i = 0; i < n->n_labels; i++) bytes += size_of(n->labels[i]);
    node *c = malloc(bytes);
    if (!c) return err_nomem(err);
    const char **labels = (const char **)(c + 1);
    char *at = (char *)(labels + n->n_labels);
    *c = *n;
    c->name = move_in(&at, n->name);
    c->site = move_in(&at, n->site);
    c->address = move_in(&at, n->address);
    c->isa = move_in(&at, n->isa);
    c->group = move_in(&at, n->group);
    for (size_t i = 0; i < n->n_labels; i++) labels[i] = move_in(&at, n->labels[i]);
    c->labels = labels;
    *ret = c;
    return 0;
}

void node_free(node *n)
{
    free(n);
}

bool node_has_label(const node *n, const char *label)
{
    for (size_t i = 0; i < n->n_labels; i++)
        if (strcmp(n->labels[i], label) == 0) return true;
    return false;
}
