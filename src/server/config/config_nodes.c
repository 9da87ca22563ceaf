/* config_nodes.c: the file through its schema, and what no row can say of it. */
#include "config/config_nodes.h"

#include <string.h>

#include "base/arena.h"
#include "base/file.h"
#include "config/config_schema.h"

#define NODES_MAX_BYTES (4u << 20)

typedef struct nodes_file {
    config_nodes pub; /* first */
    arena *mem;
    yaml_doc *doc;
} nodes_file;

static const yaml_node *item(const nodes_file *f, const char *list, size_t i, const char *key)
{
    const yaml_node *map = yaml_get(yaml_root(f->doc), list)->items[i], *value = yaml_get(map, key);
    return value ? value : map;
}

static int check_names(const nodes_file *f, shoal_err *err)
{
    const config_nodes *n = &f->pub;
    for (size_t i = 0; i < n->n_nodes; i++)
        for (size_t k = 0; k < i; k++)
            if (strcmp(n->nodes[i].name, n->nodes[k].name) == 0)
                return yaml_fail(f->doc, item(f, "nodes", i, "name"), err,
                                 "nodes[%zu].name: '%s' is already the name of nodes[%zu]", i,
                                 n->nodes[i].name, k);
    return 0;
}

/* People write gigabytes; the placement counts bytes. */
static void scale(config_nodes *n)
{
    for (size_t i = 0; i < n->n_nodes; i++) {
        n->nodes[i].bytes_per_s *= 1e9;
        n->nodes[i].multiplies_per_s *= 1e9;
    }
}

static int config_nodes_read_file(nodes_file *f, const char *path, shoal_err *err)
{
    buf text = {0};
    int rc = file_read(&text, path, NODES_MAX_BYTES, err);
    if (rc == 0) rc = yaml_parse(&f->doc, text.data ? text.data : "", text.len, path, err);
    buf_done(&text);
    if (rc == 0) rc = config_read(&config_nodes_schema, NULL, f->doc, f->mem, &f->pub, err);
    if (rc == 0) rc = check_names(f, err);
    if (rc == 0) scale(&f->pub);
    return rc;
}

int config_nodes_load(config_nodes **ret, const char *path, shoal_err *err)
{
    arena *mem = arena_new(0);
    nodes_file *f = mem ? arena_alloc(mem, sizeof *f) : NULL;
    if (!f) {
        arena_free(mem);
        return err_nomem(err);
    }
    f->mem = mem;
    int rc = config_nodes_read_file(f, path, err);
    if (rc != 0)
        config_nodes_free(&f->pub);
    else
        *ret = &f->pub;
    return rc;
}

void config_nodes_free(config_nodes *n)
{
    nodes_file *f = (nodes_file *)n;
    if (!f) return;
    yaml_doc_free(f->doc);
    arena_free(f->mem);
}
