/* plan_what_if.c: see plan_what_if.h. */
#include "serve/plan_what_if.h"

#include <stdlib.h>
#include <string.h>

#include "command/cli.h"

static node *find_node(const plan_what_if *w, const char *name)
{
    for (size_t i = 0; i < w->n_nodes; i++)
        if (strcmp(w->nodes[i].name, name) == 0) return &w->nodes[i];
    return NULL;
}

static void remove_node(plan_what_if *w, node *n)
{
    size_t at = (size_t)(n - w->nodes), n_left = 0;
    for (size_t i = 0; i < w->n_now; i++)
        if (strcmp(w->now[i].node, n->name) != 0) w->now[n_left++] = w->now[i];
    w->n_now = n_left;
    memmove(n, n + 1, (--w->n_nodes - at) * sizeof *n);
}

static int add_nodes(plan_what_if *w, const char *path, shoal_err *err)
{
    config_nodes *file = NULL;
    int rc = cli_opened(config_nodes_load(&file, path, err), err);
    if (rc != 0) return rc;
    w->files[w->n_files++] = file;
    node *nodes = realloc(w->nodes, (w->n_nodes + file->n_nodes + 1) * sizeof *nodes);
    if (!nodes) return err_nomem(err);
    w->nodes = nodes;
    for (size_t i = 0; i < file->n_nodes; i++) {
        if (find_node(w, file->nodes[i].name))
            return err_set(err, SHOAL_EINVALID, "--what-if joins:%.200s: '%s' is in the cluster already",
                           path, file->nodes[i].name);
        w->nodes[w->n_nodes++] = file->nodes[i];
    }
    return 0;
}

static int change(plan_what_if *w, const char *what, shoal_err *err)
{
    size_t kind = strcspn(what, ":");
    const char *of = what[kind] ? what + kind + 1 : "";
    bool goes = kind == 4 && strncmp(what, "gone", 4) == 0;
    bool drains = kind == 6 && strncmp(what, "drains", 6) == 0;
    bool joins = kind == 5 && strncmp(what, "joins", 5) == 0;
    if (!*of || !(goes || drains || joins))
        return err_set(err, SHOAL_EINVALID,
                       "--what-if wants gone:NODE, drains:NODE or joins:FILE, not '%.100s'", what);
    if (joins) return add_nodes(w, of, err);
    node *n = find_node(w, of);
    if (!n) return err_set(err, SHOAL_EINVALID, "--what-if %.100s: there is no such node", what);
    if (goes)
        remove_node(w, n);
    else
        n->draining = true;
    return 0;
}

int plan_what_if_open(plan_what_if *ret, const node *nodes, size_t n_nodes, const placement_now *now,
                      size_t n_now, const char *const *changes, size_t n_changes, shoal_err *err)
{
    plan_what_if w = {.nodes = malloc((n_nodes + 1) * sizeof *w.nodes),
                      .now = malloc((n_now + 1) * sizeof *w.now)};
    int rc = w.nodes && w.now ? 0 : err_nomem(err);
    if (rc == 0 && n_changes > PLAN_WHAT_IF_MOST)
        rc = err_set(err, SHOAL_EINVALID, "--what-if: %d changes at most", PLAN_WHAT_IF_MOST);
    if (rc == 0) {
        w.n_nodes = n_nodes;
        w.n_now = n_now;
        if (n_nodes) memcpy(w.nodes, nodes, n_nodes * sizeof *nodes);
        if (n_now) memcpy(w.now, now, n_now * sizeof *now);
    }
    for (size_t i = 0; rc == 0 && i < n_changes; i++) rc = change(&w, changes[i], err);
    if (rc == 0)
        *ret = w;
    else
        plan_what_if_done(&w);
    return rc;
}

void plan_what_if_done(plan_what_if *w)
{
    for (size_t i = 0; i < w->n_files; i++) config_nodes_free(w->files[i]);
    free(w->nodes);
    free(w->now);
    *w = (plan_what_if){0};
}
