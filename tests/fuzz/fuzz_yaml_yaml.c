/* YAML from hostile bytes: a tree whose every promise holds, or a sentence. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "json/json.h"
#include "base/utf8.h"
#include "yaml/yaml.h"
#include "memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_as_everything(const yaml_doc *d, const yaml_node *n)
{
    uint64_t u;
    int64_t s;
    double v;
    bool t;
    if (yaml_u64(d, n, "f", 5, 500, &u, NULL) == 0 && (u < 5 || u > 500)) abort();
    if (yaml_i64(d, n, "f", -5, 5, &s, NULL) == 0 && (s < -5 || s > 5)) abort();
    if (yaml_double(d, n, "f", -1, 1, &v, NULL) == 0 && !(v >= -1 && v <= 1)) abort();
    if (yaml_bool(d, n, "f", &t, NULL) == 0 && t != (strcmp(n->text, "true") == 0)) abort();
    const yaml_excerpt x = yaml_excerpt_of(n->text);
    if (!utf8_valid(x.text, strlen(x.text), NULL)) abort();
}

static void walk(const yaml_doc *d, const yaml_node *n, size_t depth)
{
    if (depth > YAML_DEPTH_MAX || n->line == 0 || n->column == 0) abort();
    if (n->kind == YAML_SCALAR && strlen(n->text) != n->len) abort();
    read_as_everything(d, n);
    for (size_t i = 0; i < n->n; i++) {
        walk(d, n->items[i], depth + 1);
        if (n->kind != YAML_MAP) continue;
        if (n->keys[i]->kind != YAML_SCALAR || (i < 100 && yaml_get(n, n->keys[i]->text) != n->items[i]))
            abort();
    }
}

/* It is JSON, if nested and large numbers are no matter. */
static void read_as_json(const yaml_doc *d)
{
    buf text = {0};
    json_t *v = NULL;
    shoal_err err = {0};
    if (holds(yaml_put_json(&text, yaml_root(d)) == 0)) {
        int rc = json_parse(&v, text.data, text.len, "json", &err);
        bool bounded =
            strstr(err.message, "too big") || strstr(err.message, "overflow") || strstr(err.message, "nest");
        if (rc == SHOAL_ENOMEM)
            holds(false);
        else if (rc && !bounded)
            abort();
    }
    json_decref(v);
    buf_done(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    yaml_doc *d = NULL;
    shoal_err err = {0};
    int rc = yaml_parse(&d, (const char *)data, size, "fuzz.yaml", &err);
    if ((rc == 0) != (d != NULL)) abort();
    if (rc == SHOAL_ENOMEM)
        holds(false);
    else if (rc && strncmp(err.message, "fuzz.yaml:", 10) != 0)
        abort();
    if (!rc) walk(d, yaml_root(d), 0);
    if (!rc) read_as_json(d);
    yaml_doc_free(d);
    return 0;
}
