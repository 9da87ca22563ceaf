#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "gateway/config_schema.h"

/* The value of `key` in a mapping and the line of the key itself. */
static yaml_node_t *child_by_key(yaml_document_t *d, yaml_node_t *n, const char *key, size_t n_key,
                                 size_t *line)
{
    if (n->type != YAML_MAPPING_NODE) return NULL;
    for (yaml_node_pair_t *p = n->data.mapping.pairs.start; p < n->data.mapping.pairs.top; p++) {
        yaml_node_t *k = yaml_document_get_node(d, p->key);
        if (!k || k->type != YAML_SCALAR_NODE || k->data.scalar.length != n_key) continue;
        if (memcmp(k->data.scalar.value, key, n_key) != 0) continue;
        *line = k->start_mark.line + 1;
        return yaml_document_get_node(d, p->value);
    }
    return NULL;
}

static yaml_node_t *child_by_index(yaml_document_t *d, yaml_node_t *n, size_t i, size_t *line)
{
    if (n->type != YAML_SEQUENCE_NODE) return NULL;
    yaml_node_item_t *items = n->data.sequence.items.start;
    if (i >= (size_t)(n->data.sequence.items.top - items)) return NULL;
    yaml_node_t *child = yaml_document_get_node(d, items[i]);
    if (child) *line = child->start_mark.line + 1;
    return child;
}

static size_t walk(yaml_document_t *d, const char *path)
{
    yaml_node_t *n = yaml_document_get_root_node(d);
    size_t line = n ? n->start_mark.line + 1 : 0;
    while (n && *path) {
        if (*path == '[') {
            char *end;
            size_t i = strtoul(path + 1, &end, 10);
            n = child_by_index(d, n, i, &line);
            path = *end == ']' ? end + 1 : "";
        } else {
            path += *path == '.';
            size_t n_key = strcspn(path, ".[");
            n = child_by_key(d, n, path, n_key, &line);
            path += n_key;
        }
    }
    return line;
}

static bool is_key(yaml_document_t *d, yaml_node_pair_t *p, const char *key, size_t *ret_line)
{
    const yaml_node_t *k = yaml_document_get_node(d, p->key);
    if (!k || k->type != YAML_SCALAR_NODE || strcmp((const char *)k->data.scalar.value, key) != 0)
        return false;
    *ret_line = k->start_mark.line + 1;
    return true;
}

/* The first line from `from` on where a mapping has `key`. */
static size_t find_key(yaml_document_t *d, const char *key, size_t from)
{
    size_t best = 0, line;
    for (yaml_node_t *n = d->nodes.start; n < d->nodes.top; n++) {
        if (n->type != YAML_MAPPING_NODE) continue;
        for (yaml_node_pair_t *p = n->data.mapping.pairs.start; p < n->data.mapping.pairs.top; p++)
            if (is_key(d, p, key, &line) && line >= from && (!best || line < best)) best = line;
    }
    return best;
}

size_t config_line_of_key(const char *yaml, size_t len, const char *key, size_t from)
{
    yaml_parser_t parser;
    yaml_document_t doc;
    if (!yaml_parser_initialize(&parser)) return 0;
    yaml_parser_set_input_string(&parser, (const unsigned char *)yaml, len);
    size_t line = 0;
    if (yaml_parser_load(&parser, &doc)) {
        line = find_key(&doc, key, from);
        yaml_document_delete(&doc);
    }
    yaml_parser_delete(&parser);
    return line;
}

size_t config_line_of(const char *yaml, size_t len, const char *path)
{
    yaml_parser_t parser;
    yaml_document_t doc;
    if (!yaml_parser_initialize(&parser)) return 0;
    yaml_parser_set_input_string(&parser, (const unsigned char *)yaml, len);
    size_t line = 0;
    if (yaml_parser_load(&parser, &doc)) {
        line = walk(&doc, path);
        yaml_document_delete(&doc);
    } else {
        line = parser.problem_mark.line + 1;
    }
    yaml_parser_delete(&parser);
    return line;
}
